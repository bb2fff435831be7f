"""Blocking connections: one round trip per node and call.

exchange.py decides, channel.py has the sockets, this file brings them together and keeps the
idle ones: per node, as many as calls ever ran at the same time, each checked for a hang-up before
it is used again. Against redis-py's client and pipeline objects this leaves out locks, metrics and
retries that cost more than the command itself, and makes a deadline cover the whole call.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from hiredis import HiredisError

from omoide import settings
from omoide.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.capabilities import Capabilities
from omoide.stores.redis.channel import Channel, dial
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
    shares,
    whole,
)
from omoide.stores.redis.topology import (
    PROBE_COMMANDS,
    SLOTS_COMMAND,
    WHO,
    Topology,
    Traffic,
)
from omoide.stores.redis.translate import connection_error
from omoide.stores.redis.url import Address, Target, parse_url, show_address

__all__ = ["Command", "SyncWire", "Wire"]

_LOG = logging.getLogger("omoide")


class Wire(Protocol):
    """What a store needs of its connections."""

    @property
    def round_trips(self) -> int: ...

    def call(
        self, commands: Sequence[Command], *, timeout: float | None = None, node: Address | None = None
    ) -> list[Any]: ...

    def each_primary(self, args: tuple[Argument, ...], *, timeout: float | None = None) -> list[Any]: ...

    def close(self) -> None: ...


class SyncWire:
    """Connections to one target, for any number of threads, and for children after a fork.

    Args:
        target: A `Target` or a URL (not `embedded://`: use the socket of its server).
        timeout: Default deadline of a call in seconds, connecting included.
        revive: Called with the seconds left when the server of a single-server target is gone,
            before the one retry: what starts an embedded server again.

    Nothing is opened before the first call. Counters: `round_trips`, `bytes_out`, `bytes_in`.
    """

    def __init__(
        self,
        target: Target | str,
        *,
        timeout: float | None = None,
        revive: Callable[[float], object] | None = None,
    ) -> None:
        self.target = parse_url(target) if isinstance(target, str) else target
        self.timeout = timeout or self.target.timeout or settings.call_timeout()
        self.revive = revive
        self.topology = Topology(self.target)
        self.traffic = Traffic()
        self._idle: dict[Address, list[Channel]] = {}
        self._first = threading.Lock()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<SyncWire {self.target.safe_url}>"

    @property
    def round_trips(self) -> int:
        return self.traffic.round_trips

    @property
    def history(self) -> int:
        """Goes up when a node is another process than before: what was read from it may never have been."""
        return self.traffic.history

    @property
    def bytes_out(self) -> int:
        return self.traffic.bytes_out

    @property
    def bytes_in(self) -> int:
        return self.traffic.bytes_in

    def call(
        self, commands: Sequence[Command], *, timeout: float | None = None, node: Address | None = None
    ) -> list[Any]:
        """Send commands and read one reply each, in their order.

        Args:
            commands: Independent commands, for any partitions.
            timeout: Seconds for the whole call, whatever happens in it.
            node: Send everything to this primary instead of the nodes of the slot keys.
        Returns:
            list of bytes, int, None, list; an error reply is an exception object in its place
            (`redis.exceptions.ResponseError`; `translate.reply_error` reads it), a StoreError where
            other commands of the call were answered.
        Raises:
            StoreTimeoutError: no answer in time; the connection is thrown away.
            StoreUnavailableError: no connection, or it was lost; see exchange.py for what is
                sent again.
            CapabilityError: the server is too old (first call only).
        Cost: one round trip per node involved; on one connection about 10 us over the socket's own.
        """
        deadline = Deadline.after(self.timeout if timeout is None else timeout)
        if not commands:
            return []
        if not self.topology.ready:
            self._check(deadline)
        return self._carry(commands, deadline, node)

    def each_primary(self, args: tuple[Argument, ...], *, timeout: float | None = None) -> list[Any]:
        """One idempotent command to every primary at once: replies in the order of `primaries`."""
        deadline = Deadline.after(self.timeout if timeout is None else timeout)
        if not self.topology.ready:
            self._check(deadline)
        nodes = self.topology.primaries()
        commands = [Command(args, b"%d" % index, idempotent=True) for index in range(len(nodes))]
        return whole(self._run(commands, deadline, lambda key: nodes[int(key)]))

    def primaries(self, *, timeout: float | None = None, fresh: bool = False) -> list[Address]:
        """Every primary, for `call(node=)`; `fresh` asks a cluster for its map first."""
        self.capabilities(timeout=timeout)
        if fresh and self.topology.cluster:
            self._refresh(Deadline.after(self.timeout if timeout is None else timeout))
        return self.topology.primaries()

    def capabilities(self, *, timeout: float | None = None) -> Capabilities:
        """What the server is; asks on first use. Raises as `call` does."""
        if not self.topology.ready:
            self._check(Deadline.after(self.timeout if timeout is None else timeout))
        assert self.topology.capabilities is not None
        return self.topology.capabilities

    def close(self) -> None:
        """Close the idle connections; a later call opens new ones."""
        for idle in list(self._idle.values()):
            self._drain(idle)

    # -- what the exchange asks for

    def _carry(self, commands: Sequence[Command], deadline: Deadline, node: Address | None) -> list[Any]:
        route = self.topology.route if node is None else lambda _key: node
        return self._run(commands, deadline, route)

    def _run(self, commands: Sequence[Command], deadline: Deadline, route: Any) -> list[Any]:
        if self.topology.home is None and not self.topology.cluster:
            self._find_primary(deadline)
        if self.topology.suspects:
            self._refresh(deadline)
            self.topology.suspects.clear()
        plan = exchange(commands, route, self.topology.moved, deadline, patient=self.topology.patient)
        answer: Any = None
        while True:
            try:
                step = plan.send(answer)
            except StopIteration as stop:
                replies: list[Any] = stop.value
                return replies
            answer = None
            if isinstance(step, Round):
                answer = self._round(step.sends, deadline)
            elif isinstance(step, Pause):
                time.sleep(step.seconds)
            elif isinstance(step, Forget):
                self._drain(self._idle.get(step.node, []))
            elif isinstance(step, Refresh):
                self._refresh(deadline)

    def _round(self, sends: list[Send], deadline: Deadline) -> list[Outcome]:
        """Write everything, then read everything."""
        outcomes = [Outcome() for _ in sends]
        open_channels: list[Channel | None] = [None] * len(sends)
        try:
            for index, send in enumerate(sends):
                open_channels[index] = self._write(send, outcomes[index], deadline)
            for index, send in enumerate(sends):
                channel = open_channels[index]
                if channel is not None:
                    self._read(channel, send, outcomes[index], deadline)
                    open_channels[index] = None
        finally:
            for channel in open_channels:
                if channel is not None:
                    channel.close()
        late = [
            send.node
            for send, outcome in zip(sends, outcomes, strict=True)
            if isinstance(outcome.error, StoreTimeoutError)
        ]
        if late:
            self.topology.timed_out(late)
        return outcomes

    def _write(self, send: Send, outcome: Outcome, deadline: Deadline) -> Channel | None:
        try:
            channel = self._acquire(send.node, self.topology.connecting(deadline))
        except StoreError as error:
            outcome.error, outcome.sent = error, False
            return None
        try:
            channel.send(send.payload, deadline)
        except (OSError, StoreTimeoutError) as error:
            channel.close()
            outcome.error = connection_error(error, show_address(send.node))
            return None
        except BaseException:
            channel.close()
            raise
        return channel

    def _read(self, channel: Channel, send: Send, outcome: Outcome, deadline: Deadline) -> None:
        before = channel.received
        try:
            channel.receive(send.replies, outcome.replies, deadline)
        except (OSError, HiredisError, StoreTimeoutError) as error:
            channel.close()
            outcome.error = connection_error(error, show_address(send.node))
        else:
            self._idle.setdefault(send.node, []).append(channel)
        self.traffic.add(len(send.payload), channel.received - before)

    # -- connections

    def _acquire(self, node: Address, deadline: Deadline) -> Channel:
        if self._pid != os.getpid():
            self._after_fork()
        idle = self._idle.get(node)
        while idle:
            try:
                channel = idle.pop()
            except IndexError:
                break
            if channel.usable():
                return channel
            channel.close()
        return self._dial(node, deadline)

    def _dial(self, node: Address, deadline: Deadline) -> Channel:
        channel = dial(self.target, node, deadline)
        (reply,) = channel.ask([WHO], node, deadline)
        self.traffic.meet(node, reply)
        if self.target.kind == "sentinel":
            self._ask_role(channel, node, deadline)
        return channel

    def _ask_role(self, channel: Channel, node: Address, deadline: Deadline) -> None:
        """A sentinel may still name the old primary; a replica must not pass for one."""
        (role,) = channel.ask([("ROLE",)], node, deadline)
        if isinstance(role, list) and role[0] != b"master":
            channel.close()
            raise StoreUnavailableError(f"{show_address(node)} is no longer the primary")

    def _drain(self, idle: list[Channel]) -> None:
        with contextlib.suppress(IndexError):
            while True:
                idle.pop().close()

    def _after_fork(self) -> None:
        """The parent goes on using its sockets: close our copies, without a word to the server."""
        inherited, self._idle = self._idle, {}
        self.traffic.after_fork()
        self._first = threading.Lock()
        self._pid = os.getpid()
        for idle in inherited.values():
            self._drain(idle)

    # -- who is who

    def _check(self, deadline: Deadline) -> None:
        """Find out once, however many threads come first."""
        if self._pid != os.getpid():
            self._after_fork()
        if not self._first.acquire(timeout=deadline.left()):
            raise StoreTimeoutError("no answer in time")
        try:
            if not self.topology.ready:
                self._probe(deadline)
        finally:
            self._first.release()

    def _probe(self, deadline: Deadline) -> None:
        topology = self.topology
        if topology.cluster:
            self._load_slots(deadline)
        elif topology.home is None:
            self._find_primary(deadline)
        node = topology.primaries()[0]
        found = topology.take_probe(whole(self._run(PROBE_COMMANDS, deadline, lambda _key: node)), node)
        if found.cluster and not topology.cluster:
            self._load_slots(deadline)
        topology.capabilities = found

    def _refresh(self, deadline: Deadline) -> None:
        """Find out again; when nobody answers the call goes on with what is known, to its deadline."""
        try:
            if self.topology.cluster:
                self._load_slots(deadline)
            elif self.topology.target.kind == "sentinel":
                self.topology.lost_primary()
                self._find_primary(deadline)
            elif self.revive is not None:
                self.revive(deadline.left())
        except (StoreUnavailableError, StoreTimeoutError) as error:
            _LOG.debug("no new map of the nodes: %s", error)

    def _load_slots(self, deadline: Deadline) -> None:
        for node, share in shares(self.topology.sources(), deadline):
            outcome = self._round([join([SLOTS_COMMAND], node)], share)[0]
            if outcome.error is None:
                self.topology.take_slots(outcome.replies[0], node)
                return
        raise StoreUnavailableError(f"no node of {self.target.safe_url} answers")

    def _find_primary(self, deadline: Deadline) -> None:
        question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.target.service)
        for sentinel, share in shares(list(self.target.addresses), deadline):
            try:
                with contextlib.closing(dial(self.target, sentinel, share, sentinel=True)) as channel:
                    (answer,) = channel.ask([question], sentinel, share)
            except StoreError as error:
                _LOG.debug("sentinel: %s", error)
                continue
            if self.topology.found_primary(answer):
                return
        raise StoreUnavailableError(f"no sentinel knows the primary {self.target.service}")
