"""One call over the wire, without I/O: what to send where, what to make of the replies.

    exchange ──Round([Send, ...])──▶ driver: write all, then read all
             ◀──[Outcome, ...]─────
             ──Refresh()───────────▶ driver: read the slot map again
             ──Pause(seconds)──────▶ driver: sleep

The generator owns every decision (grouping by node, redirections, what may be sent again, when
to give up); the sync and the async wire own sockets and nothing else.

What may be sent again
    * A reply that says nothing was executed (MOVED, ASK, TRYAGAIN, LOADING, CLUSTERDOWN,
      MASTERDOWN, BUSY, READONLY): that command, until the deadline.
    * No connection, so nothing was sent: once more for a single server; until the deadline where
      a failover can help (cluster, sentinel), which is why connecting gets a third of the time.
    * A connection lost after bytes went out: once, what was not answered, and only if every
      command of the call is idempotent. Otherwise it is the caller's to know.
A reply in place is final: commands of one call are independent of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

import hiredis

from omoide.errors import CapabilityError, StoreError, StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.translate import LoadingError, RefusedError, connection_error, reply_error
from omoide.stores.redis.url import Address

__all__ = [
    "Command",
    "Deadline",
    "Forget",
    "Outcome",
    "Pause",
    "Refresh",
    "Round",
    "Send",
    "exchange",
    "join",
    "shares",
    "whole",
]

Argument: TypeAlias = bytes | str | int | float

MAX_REDIRECTIONS: Final = 16
READONLY_SECONDS: Final = 1.0
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.25


@dataclass(slots=True)
class Command:
    """One command, not to be changed.
    Attributes:
        args: The command and its arguments; str is sent as UTF-8, numbers as decimals.
        slot_key: Any key of the partition; its hash tag decides about the node.
        idempotent: Whether sending it twice leaves the same as sending it once.
    """

    args: tuple[Argument, ...]
    slot_key: bytes
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds left; StoreTimeoutError when there are none."""
        left = self.at - time.monotonic()
        if left <= 0.0:
            raise StoreTimeoutError("no answer in time")
        return left


def shares(nodes: list[Address], deadline: Deadline) -> Iterator[tuple[Address, Deadline]]:
    """Each node with its share of the time, so that one that hangs leaves some for the rest."""
    for position, node in enumerate(nodes):
        yield node, Deadline.after(deadline.left() / (len(nodes) - position))


@dataclass(slots=True)
class Send:
    """Bytes for one node, and how many replies they have. `indices`: positions in the call."""

    node: Address
    payload: bytes
    replies: int
    indices: list[int]


@dataclass(slots=True)
class Outcome:
    """What became of a `Send`: the replies read, and the trouble that ended it.

    `sent` is False when no byte can have reached the server.
    """

    replies: list[Any] = field(default_factory=list)
    error: StoreError | None = None
    sent: bool = True


@dataclass(slots=True)
class Round:
    """One round trip to each node named."""

    sends: list[Send]


@dataclass(slots=True)
class Refresh:
    """Read the slot map again; no reply."""


@dataclass(slots=True)
class Pause:
    """Sleep so many seconds; no reply."""

    seconds: float


@dataclass(slots=True)
class Forget:
    """Close the idle connections to a node, so that the next one finds out who is primary."""

    node: Address


Step: TypeAlias = Round | Refresh | Pause | Forget
Route: TypeAlias = Callable[[bytes], Address]


def pack(args: tuple[Argument, ...]) -> bytes:
    """A command as bytes for the wire."""
    packed: bytes = hiredis.pack_command(cast(Any, args))
    return packed


def join(commands: Sequence[Command], node: Address) -> Send:
    """One `Send` of all commands to one node."""
    payload = b"".join([pack(command.args) for command in commands])
    return Send(node, payload, len(commands), list(range(len(commands))))


_PENDING: Final[Any] = object()


def exchange(
    commands: Sequence[Command],
    route: Route,
    moved: Callable[[int, Address], None],
    deadline: Deadline,
    *,
    patient: bool,
) -> Generator[Step, Any, list[Any]]:
    """Carry commands out; returns one reply each, error replies as exception objects.

    Trouble stands in the place of the replies it cost, as a StoreError: what was done on other nodes
    is not lost to the caller. It is raised when there is nothing else.

    Args:
        route: Node of a slot key, by the slot map of the moment.
        moved: Told slot and node of every MOVED reply.
        patient: Whether another node may take over one that is gone (cluster, sentinel).
    Raises:
        StoreTimeoutError, StoreUnavailableError: as translate.py has them.
    """
    state = _Call(commands, deadline, patient)
    try:
        yield from _carry(state, route, moved, deadline)
    except StoreError as error:
        state.replies = [error if reply is _PENDING else reply for reply in state.replies]
    if all(isinstance(reply, StoreError) for reply in state.replies):
        raise state.replies[0]
    return state.replies


def whole(replies: list[Any]) -> list[Any]:
    """The replies; raises the StoreError that stands for a missing one."""
    for reply in replies:
        if isinstance(reply, StoreError):
            raise reply
    return replies


def _carry(
    state: _Call, route: Route, moved: Callable[[int, Address], None], deadline: Deadline
) -> Generator[Step, Any, None]:
    while True:
        sends = state.sends(route)
        outcomes: list[Outcome] = yield Round(sends)
        for send, outcome in zip(sends, outcomes, strict=True):
            state.take(send, outcome, moved)
        if not state.todo:
            return
        for node in state.demoted:
            yield Forget(node)
        if state.wait:
            yield Pause(state.next_pause())
        if state.stale:
            yield Refresh()
        if time.monotonic() >= deadline.at:
            raise state.trouble or StoreTimeoutError("no answer in time")


class _Call:
    """What is known about a call between two rounds."""

    def __init__(self, commands: Sequence[Command], deadline: Deadline, patient: bool) -> None:
        self.commands = commands
        self.packed = [pack(command.args) for command in commands]
        self.replies: list[Any] = [_PENDING] * len(commands)
        self.todo: list[int] = list(range(len(commands)))
        self.deadline = deadline
        self.patient = patient
        self.demoted: set[Address] = set()
        self.stale = False
        self.wait = False
        self.trouble: StoreError | None = None
        self.redirections = 0
        self.losses = 0
        self.pauses = 0
        self.readonly_until = 0.0

    def sends(self, route: Route) -> list[Send]:
        """Group what is still to do by node, in the order of the call."""
        todo, self.todo = self.todo, []
        self.demoted.clear()
        self.stale = self.wait = False
        groups: dict[Address, list[int]] = {}
        nodes: dict[bytes, Address] = {}
        for index in todo:
            key = self.commands[index].slot_key
            node = nodes.get(key)
            if node is None:
                node = nodes[key] = route(key)
            groups.setdefault(node, []).append(index)
        return [
            Send(node, b"".join([self.packed[index] for index in indices]), len(indices), indices)
            for node, indices in groups.items()
        ]

    def take(self, send: Send, outcome: Outcome, moved: Callable[[int, Address], None]) -> None:
        for index, reply in zip(send.indices, outcome.replies, strict=False):
            try:
                if isinstance(reply, Exception) and self._again(send.node, index, reply, moved):
                    self.todo.append(index)
                else:
                    self.replies[index] = reply
            except StoreError as error:
                self.replies[index] = error
        if outcome.error is not None:
            rest = send.indices[len(outcome.replies) :]
            try:
                self._lost(outcome)
                self.todo.extend(rest)
            except StoreError as error:
                for index in rest:
                    self.replies[index] = error
        if len(self.todo) > 1:
            self.todo.sort()

    def _again(
        self, node: Address, index: int, reply: Exception, moved: Callable[[int, Address], None]
    ) -> bool:
        """Whether an error reply says that the command was not executed and may be sent again.

        ASK is waited out and never followed. A partition is one unit of many keys, of which a script
        names one; the node a slot is moving to would take those that have not arrived for absent. On
        the node it is moving from every script ends before it does anything (partition.lua).
        """
        from redis import exceptions as client

        if isinstance(reply, client.MovedError):
            self.redirections += 1
            self.trouble = StoreUnavailableError("the cluster keeps redirecting")
            if self.redirections > MAX_REDIRECTIONS * len(self.commands):
                raise self.trouble
            moved(int(reply.slot_id), (reply.host or node[0], int(reply.port)))
            self.stale = True
            self.wait = self.wait or self.redirections > len(self.commands)  # nodes that have yet to agree
            return True
        if isinstance(reply, client.ReadOnlyError):
            now = time.monotonic()
            self.readonly_until = self.readonly_until or now + READONLY_SECONDS
            if not self.patient and now > self.readonly_until:
                raise reply_error(reply)
            self.demoted.add(node)
            self.stale = True
        elif not isinstance(
            reply, (client.AskError, client.BusyLoadingError, client.ClusterDownError, client.TryAgainError)
        ) and not str(reply).startswith("BUSY "):
            if isinstance(reply, client.ConnectionError):
                raise connection_error(reply, "the server")
            return False
        self.stale = self.stale or isinstance(reply, client.ClusterDownError)
        self.wait = True
        self.trouble = reply_error(reply)
        return True

    def _lost(self, outcome: Outcome) -> None:
        """Raise unless what was not answered may be sent again."""
        error = outcome.error
        assert error is not None
        self.losses += 1
        self.trouble = error
        self.stale = self.wait = True
        out_of_time = isinstance(error, StoreTimeoutError) and (outcome.sent or not self.patient)
        if out_of_time or isinstance(error, (RefusedError, CapabilityError)):
            raise error
        if isinstance(error, LoadingError) and not outcome.sent:
            self.losses -= 1
            return
        if outcome.sent:
            if self.losses > 1 or not all(command.idempotent for command in self.commands):
                raise error
        elif self.losses > 1 and not self.patient:
            raise error

    def next_pause(self) -> float:
        """Seconds to wait; raises the trouble itself when they would pass the deadline."""
        seconds = min(_FIRST_PAUSE * (1 << min(self.pauses, 10)), _LONGEST_PAUSE)
        self.pauses += 1
        if self.deadline.at - time.monotonic() <= seconds:
            raise self.trouble or StoreTimeoutError("no answer in time")
        return seconds
