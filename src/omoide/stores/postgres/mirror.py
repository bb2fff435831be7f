"""The mirror: authoritative rows in PostgreSQL, and a store that shows what they say.

    write ──▶ one transaction: the rows decide, sequence number, outbox entry ──▶ the store, in that order
    read  ──▶ the store; the rows, where they can and it is away

A write is done when its transaction is. The store then takes it if it is what comes next (`lua/apply.lua`);
what it does not take, because it is away or behind, is left to a projector. PostgreSQL away: nothing is
written anywhere. The store away: the write succeeds and its reply says `mirrored=False`.

A *plan* here is a generator that yields `Transaction`s and requests to the store, and does no I/O of its own:
`stores.mirrored` carries it, blocking or async. No connection to PostgreSQL is held while the store
is asked, and none while a model is.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from omoide.errors import (
    ModelError,
    OmoideError,
    QueryError,
    StoreError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import port
from omoide.ops import request as ask
from omoide.ops.request import Applied, Apply, Batch, Deliver, Erase, Observe, Put, PutReply, Request
from omoide.stores.postgres.accesses import Accesses
from omoide.stores.postgres.answers import is_answered, script_of
from omoide.stores.postgres.ledger import Committed, Ledger
from omoide.stores.postgres.outbox import LOST, drain
from omoide.stores.postgres.session import Script, Step
from omoide.stores.postgres.tables import Table, partition_name
from omoide.types import Seconds

__all__ = ["Mirror", "MirrorPlan", "Prepare", "Transaction", "Within"]

R = TypeVar("R")
CHANNEL = "omoide_outbox"
"""What a write that was left to a projector is announced on, with the namespace."""

TOGETHER = 64
"""Most writes of one partition in one transaction, and so in one call of the store."""

AWAY_SECONDS, MOST_AWAY_SECONDS = 1.0, 30.0
"""How long reads go to the rows, and writes to a projector, without asking a store that was away."""

_log = logging.getLogger("omoide")


@dataclass(frozen=True, slots=True)
class Transaction:
    """A script to run in one transaction."""

    script: Callable[..., Script[Any]]
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Within:
    """A request to the store that may take half of the time that is left: the rows need the other."""

    request: Request[Any]

    @property
    def seconds(self) -> Seconds | None:
        """The bound now; None without a deadline."""
        left = port.remaining()
        return None if left is None else left / 2


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make sure that the table of a model is there; its reply is the `Table`."""

    spec: ModelSpec


MirrorPlan: TypeAlias = Generator["Transaction | Prepare | Within | Request[Any]", Any, R]


class Mirror:
    """What one process knows of its mirrored partitions; the plans of every request about one.

    Args:
        namespace: Of the store: two namespaces of one database are two sets of partitions.
        behind: Called when something is left to a projector.
    Attributes:
        accesses: Deliveries that are not in the rows yet.
        left: Set when a write was left to a projector.
        draining: Partitions whose outbox this process is replaying.
        lost: Those found missing in the store by a read, until they are rebuilt.
    """

    def __init__(self, namespace: str, behind: Callable[[], None] = lambda: None) -> None:
        self.namespace = namespace
        self._behind = behind
        self.accesses = Accesses()
        self.left = threading.Event()
        self.draining: set[tuple[str, str]] = set()
        self.lost: set[tuple[str, str]] = set()
        self._tables: dict[str, Table] = {}
        self._shown: dict[tuple[str, str], int] = {}
        self.away_until = 0.0
        self._plans: dict[type, Callable[[Any], MirrorPlan[Any]]] = {
            Put: self._one,
            Erase: self._one,
            Observe: self._observe,
            Deliver: self._deliver,
            ask.Link: self._one,
            ask.Increment: self._one,
            ask.Prune: self._one,
            ask.Drop: self._drop,
            ask.Restore: self._restore,
        }

    def plan(self, request: Request[R]) -> MirrorPlan[R]:
        """The plan that answers a request about a mirrored partition."""
        make = self._plans.get(type(request), self._read)
        return make(request)

    def table(self, spec: ModelSpec) -> MirrorPlan[Table]:
        """The table of a model, looked at once a process."""
        found = self._tables.get(spec.name)
        if found is None or found.spec is not spec:
            found = yield Prepare(spec)
            self._tables[spec.name] = found
        return found

    # ---- writes

    def _one(self, write: Any) -> MirrorPlan[Any]:
        replies = yield from self.commit(write.scope, (write,))
        return replies[0]

    def commit(
        self, scope: Scope, writes: Sequence[Any], turn_ids: Sequence[str] | None = None
    ) -> MirrorPlan[tuple[Any, ...]]:
        """Decide writes of one partition in one transaction, and show the store what came of it."""
        table = yield from self.table(scope.spec)
        partition = partition_name(scope, self.namespace)
        shown = self._shown.get((scope.spec.name, partition), 0)
        committed: Committed = yield Transaction(_decide, (table, scope, partition, shown, writes, turn_ids))
        if not committed.changes:
            return committed.replies
        mirrored = yield from self._show(scope, partition, committed)
        if mirrored:
            return committed.replies
        return tuple(
            replace(reply, mirrored=False) if isinstance(reply, PutReply) else reply
            for reply in committed.replies
        )

    def _show(self, scope: Scope, partition: str, committed: Committed) -> MirrorPlan[bool]:
        """Tell the store what was committed; False when it is left to a projector."""
        first, (changes, *more) = committed.seq - len(committed.changes) + 1, committed.changes
        asked = time.monotonic()
        try:
            if self.is_away:
                raise StoreUnavailableError("the store was away a moment ago")
            applied: int = yield Apply(scope, first, first, changes, committed.begins, more=tuple(more))
            if 0 <= applied < committed.seq:
                applied = yield from drain(self, scope, until=committed.seq)
        except (StoreError, ModelError) as error:
            applied = -1
            if not self.is_away and isinstance(error, StoreUnavailableError | StoreTimeoutError):
                self._went_away(asked)
            _log.debug("%s: a write is left to a projector (%s)", scope.spec.name, type(error).__name__)
        if applied >= committed.seq:
            self.shown(scope, partition, applied)
            return True
        if not self.left.is_set():
            self.left.set()
            try:
                yield Transaction(_notify, (self.namespace,))
            except StoreError:  # the write is committed; projectors look by themselves too
                self.left.clear()
        self._behind()
        return False

    def shown(self, scope: Scope, partition: str, seq: int) -> None:
        """Remember that the store shows a commit: its outbox entries are not needed any more."""
        if len(self._shown) > 10_000:
            self._shown.clear()
        self.away_until = 0.0
        name = (scope.spec.name, partition)
        self._shown[name] = max(seq, self._shown.get(name, 0))

    def _observe(self, request: Observe) -> MirrorPlan[Any]:
        ids: Sequence[str] | None = None
        if request.turn is not None:
            try:
                ids = (yield ask.TurnIds(request.scope, request.turn)) or ()
            except StoreUnavailableError:
                if any(not item.id for item in request.evidence):
                    raise
        replies = yield from self.commit(request.scope, (request,), ids)
        return replies[0]

    def _deliver(self, request: Deliver) -> MirrorPlan[None]:
        """The turn is kept in the store; accesses are counted in the rows, a few seconds later."""
        counters = request.counters
        if self.is_away:
            raise StoreUnavailableError("the store was away a moment ago")
        yield replace(request, counters=())
        if request.scope.spec.tracks_access:
            self.accesses.add(request.scope, request.ids)
            self._behind()
        if counters:
            yield from self.commit(request.scope, (Observe(request.scope, (), counters=counters),))

    def flush(self) -> MirrorPlan[None]:
        """Count the deliveries that are waiting. What cannot be counted now is kept for the next time."""
        parts = [
            AccessCounts(scope, counts[start : start + TOGETHER])
            for scope, counts in self.accesses.take()
            for start in range(0, len(counts), TOGETHER)
        ]
        for place, part in enumerate(parts):
            try:
                yield from self.commit(part.scope, (part,))
            except OmoideError:
                for left in parts[place:]:
                    self.accesses.put_back(left.scope, left.counts)
                raise

    def _drop(self, request: ask.Drop) -> MirrorPlan[int]:
        table = yield from self.table(request.scope.spec)
        partition = partition_name(request.scope, self.namespace)
        self.accesses.forget(request.scope)
        committed: Committed = yield Transaction(_dropped, (table, request.scope, partition))
        yield from self._show(request.scope, partition, committed)
        number: int = committed.replies[0]
        return number

    def _restore(self, request: ask.Restore) -> MirrorPlan[int]:
        from omoide.stores.postgres.rebuild import rebuild

        return (yield from rebuild(self, request.scope, request.progress)) or 0

    # ---- batches

    def batch(self, request: Batch) -> MirrorPlan[tuple[Any, ...]]:
        """Writes of any partitions: those of one mirrored partition are one transaction, up to 64 of them."""
        replies: list[Any] = [None] * len(request.writes)
        groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        plain: list[int] = []
        for place, write in enumerate(request.writes):
            if write.scope.spec.mirror is None:
                plain.append(place)
            else:
                groups.setdefault((write.scope.spec.name, write.scope.values), []).append(place)
        if plain:
            found = yield Batch(tuple(request.writes[place] for place in plain))
            for place, reply in zip(plain, found, strict=True):
                replies[place] = reply
        for places in groups.values():
            yield from self._group(request, places, replies)
        return tuple(replies)

    def _group(self, request: Batch, places: list[int], replies: list[Any]) -> MirrorPlan[None]:
        waiting: list[int] = []

        def send() -> MirrorPlan[None]:
            for start in range(0, len(waiting), TOGETHER):
                part = waiting[start : start + TOGETHER]
                writes = tuple(request.writes[place] for place in part)
                try:
                    found: Sequence[Any] = yield from self.commit(writes[0].scope, writes)
                except (StoreError, ModelError) as error:
                    found = [error] * len(part)
                for place, reply in zip(part, found, strict=True):
                    replies[place] = reply
            waiting.clear()

        for place in places:
            write = request.writes[place]
            if isinstance(write, Put | Erase) or (isinstance(write, Observe) and write.turn is None):
                waiting.append(place)
                continue
            yield from send()
            try:
                replies[place] = yield from self.plan(write)
            except (StoreError, ModelError) as error:
                replies[place] = error
        yield from send()

    # ---- reads

    def _read(self, request: Any) -> MirrorPlan[Any]:
        """A read goes to the store; an answer of nothing is believed only from a partition that is there.

        It costs two more round trips then: one to see that the partition is there, one to ask it again, since
        it may have come back just now. What rows can answer, they answer while the store is away.
        """
        if not is_answered(request):
            reply = yield request
            if _is_nothing(reply) and not (yield from self._is_empty(request.scope)):
                reply = yield request
            return reply
        if isinstance(request, ask.Get) and request.settled:
            return (yield from self._from_rows(request))
        if self.is_away:
            with contextlib.suppress(StoreUnavailableError, StoreTimeoutError):  # the rows are away as well
                return (yield from self._from_rows(request))
        asked = time.monotonic()
        try:
            reply = yield Within(request)
        except (StoreUnavailableError, StoreTimeoutError):
            self._went_away(asked)
            return (yield from self._from_rows(request))
        self.away_until = 0.0
        if not _is_nothing(reply):
            return reply
        try:
            if not (yield from self._is_empty(request.scope)):
                reply = yield request
        except StoreUnavailableError:
            return (yield from self._from_rows(request))
        return reply

    @property
    def is_away(self) -> bool:
        """Whether the store did not answer lately, so that nobody waits for it again yet."""
        return time.monotonic() < self.away_until

    def _went_away(self, asked: Seconds) -> None:
        """Leave the store alone for four times as long as it let us wait: 1 s to 30 s."""
        now = time.monotonic()
        self.away_until = now + min(MOST_AWAY_SECONDS, max(AWAY_SECONDS, 4 * (now - asked)))

    def _from_rows(self, request: Any) -> MirrorPlan[Any]:
        """The answer of the rows to a read."""
        table = yield from self.table(request.scope.spec)
        partition = partition_name(request.scope, self.namespace)
        return (yield Transaction(script_of(request), (table, partition, request)))

    def _is_empty(self, scope: Scope) -> MirrorPlan[bool]:
        """Whether a partition that shows nothing is none; what was not shown yet is shown now.

        Raises:
            StoreUnavailableError: there are rows, and the store has lost the partition that shows them.
        """
        if (yield Applied(scope)) is not None:
            return False
        table = yield from self.table(scope.spec)
        held: bool = yield Transaction(_holds, (table, partition_name(scope, self.namespace)))
        if not held:
            return True
        if (yield from drain(self, scope)) == LOST:
            self.lost.add((scope.spec.name, partition_name(scope, self.namespace)))
            self.left.set()
            self._behind()
            raise StoreUnavailableError(
                f"{scope.spec.name}: the store has lost this partition; its rows are safe",
                hint="omoide rebuild, or wait for a projector to do it",
            )
        return False


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """Deliveries to count: (id, how many, instant of the last in ms)."""

    scope: Scope
    counts: tuple[tuple[str, int, int], ...]


def _decide(
    table: Table,
    scope: Scope,
    partition: str,
    shown: int,
    writes: Sequence[Any],
    turn_ids: Sequence[str] | None,
) -> Script[Committed]:
    ledger = Ledger(table, scope, partition, shown)
    yield from ledger.begin()
    replies: list[Any] = []
    for write in writes:
        if isinstance(write, Put):
            replies.append((yield from ledger.put(write)))
        elif isinstance(write, Erase):
            replies.append((yield from ledger.erase(write.ids)))
        elif isinstance(write, Observe):
            replies.append((yield from ledger.observe(write, turn_ids)))
        elif isinstance(write, ask.Link):
            replies.append((yield from ledger.link(write.first, write.second, write.delta)))
        elif isinstance(write, ask.Increment):
            replies.append((yield from ledger.count(write.name, write.delta)))
        elif isinstance(write, ask.Prune):
            replies.append((yield from ledger.erase_due(write.limit)))
        elif isinstance(write, AccessCounts):
            yield from ledger.access(write.counts)
            replies.append(None)
        else:
            raise QueryError(f"a mirrored partition takes no {type(write).__name__}")
    return (yield from ledger.finish(replies))


def _notify(namespace: str) -> Script[None]:
    yield Step("SELECT pg_notify(%s, %s)", (CHANNEL, namespace))


def _dropped(table: Table, scope: Scope, partition: str) -> Script[Committed]:
    ledger = Ledger(table, scope, partition)
    yield from ledger.begin()
    return (yield from ledger.drop())


def _holds(table: Table, partition: str) -> Script[bool]:
    rows = yield Step(
        table.statement(
            "SELECT EXISTS (SELECT FROM {table} WHERE _partition = %s AND (_expires IS NULL"
            " OR _expires > (extract(epoch FROM clock_timestamp()) * 1000)::bigint))"
        ),
        (partition,),
    )
    return bool(rows[0][0])


def _is_nothing(reply: Any) -> bool:
    """Whether an answer could be that of a partition that is not there."""
    if isinstance(reply, ask.SearchReply):
        return reply.live == 0
    if isinstance(reply, ask.PageReply | ask.DumpReply):
        return not reply.records and not reply.cursor
    if isinstance(reply, tuple):
        return not any(reply)
    return not reply
