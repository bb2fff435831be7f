"""The connections of wire.py for asyncio: the same exchange, the same promises.

Sockets belong to the event loop that opened them, so every loop has its own; a process may run
any number of loops, one after the other or in threads. An async generator kept suspended in each
loop closes them when the loop is shut down (`asyncio.run` finishes such generators before it
closes the loop), so nobody has to.

A call that is cancelled or times out closes the connections it was using: replies that would
still arrive must not become someone else's.
"""

from __future__ import annotations

import asyncio
import logging
import select
import weakref
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from hiredis import HiredisError

from omoide import settings
from omoide.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.capabilities import Capabilities
from omoide.stores.redis.exchange import (
    Argument,
    Command,
    Deadline,
    Forget,
    Outcome,
    Pause,
    Refresh,
    Round,
    Send,
    exchange,
    join,
    pack,
    shares,
    whole,
)
from omoide.stores.redis.topology import (
    NOT_YET,
    PROBE_COMMANDS,
    SLOTS_COMMAND,
    WHO,
    Topology,
    Traffic,
    connection_options,
    reply_reader,
)
from omoide.stores.redis.translate import connection_error
from omoide.stores.redis.url import Address, Target, parse_url, show_address
from omoide.stores.redis.wire import SyncWire

__all__ = ["AsyncWire"]

_LOG = logging.getLogger("omoide")
_HAS_POLL = hasattr(select, "poll")


class AsyncWire:
    """Connections to one target for any event loop of this process.

    Args:
        target: A `Target` or a URL, or a `SyncWire` whose map of the nodes, knowledge of the
            server and counters are shared.
        timeout: Default deadline of a call in seconds, connecting included.
        revive: As for `SyncWire`; runs in a thread.
    """

    def __init__(
        self,
        target: Target | str | SyncWire,
        *,
        timeout: float | None = None,
        revive: Callable[[float], object] | None = None,
    ) -> None:
        if isinstance(target, SyncWire):
            self.target: Target = target.target
            self._topology, self._traffic = target.topology, target.traffic
            timeout, revive = timeout or target.timeout, revive or target.revive
        else:
            self.target = parse_url(target) if isinstance(target, str) else target
            self._topology, self._traffic = Topology(self.target), Traffic()
        self.timeout = timeout or self.target.timeout or settings.call_timeout()
        self.revive = revive
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<AsyncWire {self.target.safe_url}>"

    @property
    def round_trips(self) -> int:
        return self._traffic.round_trips

    @property
    def history(self) -> int:
        """As for `SyncWire`."""
        return self._traffic.history

    @property
    def bytes_out(self) -> int:
        return self._traffic.bytes_out

    @property
    def bytes_in(self) -> int:
        return self._traffic.bytes_in

    async def call(
        self, commands: Sequence[Command], *, timeout: float | None = None, node: Address | None = None
    ) -> list[Any]:
        """`SyncWire.call`, awaited."""
        if not commands:
            return []
        async with _limit(self.timeout if timeout is None else timeout) as deadline:
            if not self._topology.ready:
                await self._check(deadline)
            return await self._run(
                commands, deadline, self._topology.route if node is None else lambda _: node
            )

    async def each_primary(self, args: tuple[Argument, ...], *, timeout: float | None = None) -> list[Any]:
        """One idempotent command to every primary at once: replies in the order of `primaries`."""
        async with _limit(self.timeout if timeout is None else timeout) as deadline:
            if not self._topology.ready:
                await self._check(deadline)
            nodes = self._topology.primaries()
            commands = [Command(args, b"%d" % index, idempotent=True) for index in range(len(nodes))]
            return whole(await self._run(commands, deadline, lambda key: nodes[int(key)]))

    async def primaries(self, *, timeout: float | None = None, fresh: bool = False) -> list[Address]:
        """Every primary, for `call(node=)`; `fresh` asks a cluster for its map first."""
        await self.capabilities(timeout=timeout)
        if fresh and self._topology.cluster:
            async with _limit(self.timeout if timeout is None else timeout) as deadline:
                await self._refresh(deadline)
        return self._topology.primaries()

    async def capabilities(self, *, timeout: float | None = None) -> Capabilities:
        """What the server is; asks on first use."""
        if not self._topology.ready:
            async with _limit(self.timeout if timeout is None else timeout) as deadline:
                await self._check(deadline)
        assert self._topology.capabilities is not None
        return self._topology.capabilities

    async def aclose(self) -> None:
        """Close the idle connections of the running loop; a later call opens new ones."""
        idle = self._loops.pop(asyncio.get_running_loop(), None)
        if idle is not None:
            await idle.finish()

    # -- what the exchange asks for

    async def _run(self, commands: Sequence[Command], deadline: Deadline, route: Any) -> list[Any]:
        if self._topology.home is None and not self._topology.cluster:
            await self._find_primary(deadline)
        if self._topology.suspects:
            await self._refresh(deadline)
            self._topology.suspects.clear()
        plan = exchange(commands, route, self._topology.moved, deadline, patient=self._topology.patient)
        answer: Any = None
        while True:
            try:
                step = plan.send(answer)
            except StopIteration as stop:
                replies: list[Any] = stop.value
                return replies
            answer = None
            if isinstance(step, Round):
                answer = await self._round(step.sends, deadline)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            elif isinstance(step, Forget):
                await _drain((await self._idle()).channels.get(step.node, []))
            elif isinstance(step, Refresh):
                await self._refresh(deadline)

    async def _round(self, sends: list[Send], deadline: Deadline) -> list[Outcome]:
        """Write everything, then read everything."""
        idle = await self._idle()
        outcomes = [Outcome() for _ in sends]
        open_channels: list[_Channel | None] = [None] * len(sends)
        try:
            for index, send in enumerate(sends):
                open_channels[index] = await self._write(idle, send, outcomes[index], deadline)
            for index, send in enumerate(sends):
                channel = open_channels[index]
                if channel is not None:
                    await self._read(idle, channel, send, outcomes[index])
                    open_channels[index] = None
        except asyncio.CancelledError:
            self._topology.timed_out(
                send.node for send, channel in zip(sends, open_channels, strict=True) if channel is not None
            )
            raise
        finally:
            for channel in open_channels:
                if channel is not None:
                    await channel.close()
        return outcomes

    async def _write(self, idle: _Idle, send: Send, outcome: Outcome, deadline: Deadline) -> _Channel | None:
        try:
            channel = await self._acquire(idle, send.node, self._topology.connecting(deadline))
        except StoreError as error:
            outcome.error, outcome.sent = error, False
            return None
        try:
            await channel.send(send.payload)
        except OSError as error:
            await channel.close()
            outcome.error = connection_error(error, show_address(send.node))
            return None
        except BaseException:
            await channel.close()
            raise
        return channel

    async def _read(self, idle: _Idle, channel: _Channel, send: Send, outcome: Outcome) -> None:
        before = channel.received
        try:
            await channel.receive(send.replies, outcome.replies)
        except (OSError, HiredisError) as error:
            await channel.close()
            outcome.error = connection_error(error, show_address(send.node))
        else:
            idle.channels.setdefault(send.node, []).append(channel)
        self._traffic.add(len(send.payload), channel.received - before)

    # -- connections

    async def _idle(self) -> _Idle:
        loop = asyncio.get_running_loop()
        idle = self._loops.get(loop)
        if idle is None:
            for other in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(other, None)
            idle = self._loops[loop] = _Idle()
            await idle.watch(self._loops, loop)
        return idle

    async def _acquire(self, idle: _Idle, node: Address, deadline: Deadline) -> _Channel:
        channels = idle.channels.get(node)
        while channels:
            channel = channels.pop()
            if channel.usable():
                return channel
            await channel.close()
        return await self._dial(node, deadline)

    async def _dial(self, node: Address, deadline: Deadline, *, sentinel: bool = False) -> _Channel:
        from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
        from redis.exceptions import RedisError

        kind: Any = SSLConnection if self.target.tls else Connection
        if node[1] == 0:
            kind = UnixDomainSocketConnection
        connection = kind(**connection_options(self.target, node, deadline.left(), sentinel=sentinel))
        try:
            await connection.connect()
        except (RedisError, OSError) as error:
            raise connection_error(error, show_address(node)) from None
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        channel = _Channel(connection)
        if not sentinel:
            self._traffic.meet(node, await channel.ask(WHO, node))
        if self.target.kind == "sentinel" and not sentinel:
            await self._ask_role(channel, node)
        return channel

    async def _ask_role(self, channel: _Channel, node: Address) -> None:
        """A sentinel may still name the old primary; a replica must not pass for one."""
        role = await channel.ask(("ROLE",), node)
        if isinstance(role, list) and role[0] != b"master":
            await channel.close()
            raise StoreUnavailableError(f"{show_address(node)} is no longer the primary")

    # -- who is who

    async def _check(self, deadline: Deadline) -> None:
        """Find out once per loop, however many tasks come first."""
        async with (await self._idle()).first:
            if not self._topology.ready:
                await self._probe(deadline)

    async def _probe(self, deadline: Deadline) -> None:
        topology = self._topology
        if topology.cluster:
            await self._load_slots(deadline)
        elif topology.home is None:
            await self._find_primary(deadline)
        node = topology.primaries()[0]
        found = topology.take_probe(whole(await self._run(PROBE_COMMANDS, deadline, lambda _key: node)), node)
        if found.cluster and not topology.cluster:
            await self._load_slots(deadline)
        topology.capabilities = found

    async def _refresh(self, deadline: Deadline) -> None:
        """Find out again; when nobody answers the call goes on with what is known, to its deadline."""
        try:
            if self._topology.cluster:
                await self._load_slots(deadline)
            elif self.target.kind == "sentinel":
                self._topology.lost_primary()
                await self._find_primary(deadline)
            elif self.revive is not None:
                await asyncio.to_thread(self.revive, deadline.left())
        except (StoreUnavailableError, StoreTimeoutError) as error:
            _LOG.debug("no new map of the nodes: %s", error)

    async def _load_slots(self, deadline: Deadline) -> None:
        for node, share in shares(self._topology.sources(), deadline):
            try:
                async with asyncio.timeout(share.left()):
                    outcome = (await self._round([join([SLOTS_COMMAND], node)], share))[0]
            except TimeoutError:
                continue
            if outcome.error is None:
                self._topology.take_slots(outcome.replies[0], node)
                return
        raise StoreUnavailableError(f"no node of {self.target.safe_url} answers")

    async def _find_primary(self, deadline: Deadline) -> None:
        question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.target.service)
        for sentinel, share in shares(list(self.target.addresses), deadline):
            try:
                async with asyncio.timeout(share.left()):
                    channel = await self._dial(sentinel, share, sentinel=True)
                    answer = await channel.ask(question, sentinel)
                    await channel.close()
            except (StoreError, OSError) as error:
                _LOG.debug("sentinel %s: %s", show_address(sentinel), type(error).__name__)
                continue
            if self._topology.found_primary(answer):
                return
        raise StoreUnavailableError(f"no sentinel knows the primary {self.target.service}")


class _Idle:
    """Idle connections of one event loop."""

    def __init__(self) -> None:
        self.channels: dict[Address, list[_Channel]] = {}
        self.first = asyncio.Lock()
        self._keeper: AsyncGenerator[None, None] | None = None

    async def watch(
        self,
        loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Idle],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Have everything closed when the loop shuts its async generators down."""

        async def keeper() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                loops.pop(loop, None)
                for channels in self.channels.values():
                    await _drain(channels)

        self._keeper = keeper()
        await anext(self._keeper)

    async def finish(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()


class _Channel:
    """A connected stream and its reader of replies."""

    __slots__ = ("_connection", "_input", "_output", "_poll", "_reader", "received")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._input: asyncio.StreamReader = connection._reader
        self._output: asyncio.StreamWriter = connection._writer
        self._reader = reply_reader()
        self.received = 0
        self._poll = None
        if _HAS_POLL:
            self._poll = select.poll()
            tls = self._output.get_extra_info("ssl_object") is not None
            hang_up = getattr(select, "POLLRDHUP", 0)
            self._poll.register(
                self._output.get_extra_info("socket").fileno(), hang_up if tls else hang_up | select.POLLIN
            )

    async def ask(self, command: tuple[Argument, ...], node: Address) -> Any:
        """Reply to a command outside of an exchange; whatever goes wrong closes the channel."""
        replies: list[Any] = []
        try:
            await self.send(pack(command))
            await self.receive(1, replies)
        except BaseException as error:
            await self.close()
            if isinstance(error, (OSError, HiredisError)):
                raise connection_error(error, show_address(node)) from None
            raise
        return replies[0]

    async def send(self, payload: bytes) -> None:
        self._output.write(payload)
        await self._output.drain()

    async def receive(self, count: int, replies: list[Any]) -> None:
        """Append `count` replies; what arrived before a failure is in `replies` all the same."""
        reader = self._reader
        while True:
            while (reply := reader.gets()) is not NOT_YET:
                replies.append(reply)
                if len(replies) == count:
                    return
            data = await self._input.read(65536)
            if not data:
                raise ConnectionResetError
            self.received += len(data)
            reader.feed(data)

    def usable(self) -> bool:
        """Whether the other side has neither hung up nor said anything unasked."""
        if self._reader.has_data() or getattr(self._input, "_buffer", b""):
            return False
        if self._input.at_eof() or self._output.is_closing():
            return False
        return self._poll is None or not self._poll.poll(0)

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)


async def _drain(channels: list[_Channel]) -> None:
    while channels:
        await channels.pop().close()


class _limit:
    """`asyncio.timeout` whose end is a StoreTimeoutError, and the `Deadline` that goes with it."""

    def __init__(self, seconds: float) -> None:
        self._deadline = Deadline.after(seconds)
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> Deadline:
        await self._timeout.__aenter__()
        return self._deadline

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise StoreTimeoutError("no answer in time") from None
