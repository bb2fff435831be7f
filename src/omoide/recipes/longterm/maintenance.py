"""The daily upkeep of long-term memory: episodes that have had their time go, facts never do.

    rows ──▶ which episodes are due, and why ──▶ ledger ──▶ erased, in PostgreSQL and Redis ──▶ ledger: done

A scheduler calls `maintain` once a day; calling it more often, or twice at once, erases nothing more.
Nothing is lost when it is killed: the next run takes up what is due, and settles the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from omoide.errors import QueryError, StoreError
from omoide.model.instance import spec_of
from omoide.model.partition import scope_of_call
from omoide.model.schema import Scope
from omoide.ops import delete as deletes
from omoide.ops import port
from omoide.ops.run import arun, run
from omoide.recipes.longterm.record import LongTermRecord
from omoide.recipes.longterm.resource import checked_bound, checked_resource
from omoide.stores.postgres import retention

if TYPE_CHECKING:
    from omoide.stores.postgres.retention import Due, Entry, Rules
    from omoide.stores.postgres.session import Database

EPISODE_DAYS = 90
EPISODES_PER_RESOURCE = 5_000
MOST_DAYS = 36_500
CHUNK = 250

Progress = Callable[[int, int], None]
"""Told (episodes gone, episodes due)."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """What a run did, or would do.

    Attributes:
        run_id: Names the run in the ledger; "" for a dry run.
        dry_run: Nothing was erased.
        counts: Reason (`age`, `per_resource`, `in_all`) -> episodes.
        missed: Episodes that were due and that someone else erased first.
    """

    run_id: str
    dry_run: bool
    counts: Mapping[str, int] = field(default_factory=dict)
    missed: int = 0

    @property
    def erased(self) -> int:
        """All of them together."""
        return sum(self.counts.values())


def maintain(
    *,
    dry_run: bool = False,
    episode_days: float = EPISODE_DAYS,
    episodes_per_resource: int = EPISODES_PER_RESOURCE,
    episodes_in_all: int | None = None,
    now: datetime | None = None,
    model: type[LongTermRecord] = LongTermRecord,
    progress: Progress | None = None,
) -> Maintained:
    """Erase the episodes that are due.

    Args:
        dry_run: Count them, and erase nothing.
        episode_days: Episodes older than this go.
        episodes_per_resource: The newest so many of a resource stay.
        episodes_in_all: The newest so many of all resources together stay; None: no bound.
        now: Instead of the clock of this machine.
        model: Whose rows.
    Raises:
        QueryError: a bound is negative, or `now` is no datetime with a time zone.
        StoreUnavailableError, StoreTimeoutError: PostgreSQL does not answer; what went, went.
    Cost: one pass over the rows of episodes, one more per 250 that go, and two transactions for those.
    """
    connection: Any = port.current()
    rules = _rules(connection, model, episode_days, episodes_per_resource, episodes_in_all, now)
    database = _ready(connection, model)
    counts = database.run(retention.count_due, rules)
    if dry_run:
        return Maintained("", True, counts)
    tally = _Tally(sum(counts.values()), progress)
    database.run(retention.settle, rules.table)
    while chunk := database.run(retention.due, rules, CHUNK):
        tally.check(chunk)
        database.run(retention.enter, tally.run_id, chunk)
        for scope, due in _partitions(model, chunk):
            gone = run(deletes.delete_many(scope, [one.memory_id for one in due]), connection.store)
            tally.add(due, gone)
        database.run(retention.settle, rules.table)
    return tally.done()


async def amaintain(
    *,
    dry_run: bool = False,
    episode_days: float = EPISODE_DAYS,
    episodes_per_resource: int = EPISODES_PER_RESOURCE,
    episodes_in_all: int | None = None,
    now: datetime | None = None,
    model: type[LongTermRecord] = LongTermRecord,
    progress: Progress | None = None,
) -> Maintained:
    """Async twin of `maintain`."""
    connection: Any = port.current()
    rules = _rules(connection, model, episode_days, episodes_per_resource, episodes_in_all, now)
    database = await _aready(connection, model)
    counts = await database.arun(retention.count_due, rules)
    if dry_run:
        return Maintained("", True, counts)
    tally = _Tally(sum(counts.values()), progress)
    await database.arun(retention.settle, rules.table)
    while chunk := await database.arun(retention.due, rules, CHUNK):
        tally.check(chunk)
        await database.arun(retention.enter, tally.run_id, chunk)
        for scope, due in _partitions(model, chunk):
            plan = deletes.delete_many(scope, [one.memory_id for one in due])
            tally.add(due, await arun(plan, connection.astore))
        await database.arun(retention.settle, rules.table)
    return tally.done()


def ledger(
    resource_id: str, *, limit: int = 100, model: type[LongTermRecord] = LongTermRecord
) -> list[Entry]:
    """What went of a resource by itself, when and why, the latest first; ids, never contents.

    Raises:
        QueryError: a resource id that is none, or a negative limit.
    """
    connection: Any = port.current()
    partition = _partition(connection, model, checked_resource(resource_id, "ledger"))
    checked_bound(limit, "limit", "ledger")
    rows = _ready(connection, model).run(retention.ledger, partition, limit)
    return [entry for _, entry in rows]


async def aledger(
    resource_id: str, *, limit: int = 100, model: type[LongTermRecord] = LongTermRecord
) -> list[Entry]:
    """Async twin of `ledger`."""
    connection: Any = port.current()
    partition = _partition(connection, model, checked_resource(resource_id, "ledger"))
    checked_bound(limit, "limit", "ledger")
    rows = await (await _aready(connection, model)).arun(retention.ledger, partition, limit)
    return [entry for _, entry in rows]


class _Tally:
    """What a run has erased so far."""

    def __init__(self, due: int, progress: Progress | None) -> None:
        self.run_id = uuid4().hex
        self._due, self._progress = due, progress
        self._counts: dict[str, int] = {}
        self._missed = 0
        self._before: Sequence[Due] = ()

    def check(self, chunk: Sequence[Due]) -> None:
        """Raise StoreError when what was erased is due again: it would go on for ever."""
        if chunk == self._before:
            raise StoreError("episodes that were erased are still there", hint="omoide doctor")
        self._before = chunk

    def add(self, due: Sequence[Due], gone: int) -> None:
        """Count episodes of one resource that were just erased."""
        for one in due[:gone]:
            self._counts[one.reason] = self._counts.get(one.reason, 0) + 1
        self._missed += len(due) - gone
        if self._progress is not None:
            self._progress(sum(self._counts.values()), max(self._due, sum(self._counts.values())))

    def done(self) -> Maintained:
        return Maintained(self.run_id, False, self._counts, self._missed)


def _rules(
    connection: Any,
    model: type[LongTermRecord],
    days: float,
    per_resource: int,
    in_all: int | None,
    now: datetime | None,
) -> Rules:
    for name, value in (("episodes_per_resource", per_resource), ("episodes_in_all", in_all)):
        if value is None and name == "episodes_in_all":
            continue
        checked_bound(value, name, "maintain")
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 <= days <= MOST_DAYS:
        raise QueryError(f"episode_days is a number of days, 0..{MOST_DAYS:,}")
    if now is not None and not (isinstance(now, datetime) and now.utcoffset() is not None):
        raise QueryError("now is a datetime with a time zone")
    before = (now or datetime.now(UTC)) - timedelta(days=days)
    prefix = _partition(connection, model, "x").removesuffix("x")
    return retention.Rules(_table(model), prefix, before, per_resource, in_all)


def _table(model: type[LongTermRecord]) -> str:
    mirror = spec_of(model).mirror
    if mirror is None or mirror.table is None:
        raise QueryError(f"{model.__name__} has no mirror", hint="subclass LongTermRecord")
    return mirror.table


def _partitions(model: type[LongTermRecord], due: Sequence[Due]) -> Iterator[tuple[Scope, list[Due]]]:
    """Episodes by resource."""
    for name, episodes in groupby(due, key=lambda one: one.partition):
        resource_id = unquote(name.rpartition(":")[2])
        yield scope_of_call(spec_of(model), {"resource_id": resource_id}, "maintain"), list(episodes)


def _partition(connection: Any, model: type[LongTermRecord], resource_id: str) -> str:
    from omoide.stores.postgres.tables import partition_name

    scope = scope_of_call(spec_of(model), {"resource_id": resource_id}, "ledger")
    return partition_name(scope, connection.namespace)


def _ready(connection: Any, model: type[LongTermRecord]) -> Database:
    """The database, with the tables of the model and of the ledger."""
    from omoide.stores.postgres import tables
    from omoide.stores.postgres.migrate import ensure

    database: Database = connection.database
    known = f"table {_table(model)}"
    if known not in database.ready:
        tables.prepare(database, spec_of(model))
        database.ready.add(known)
    return ensure(database, retention.LINE)


async def _aready(connection: Any, model: type[LongTermRecord]) -> Database:
    """`_ready`, async."""
    from omoide.stores.postgres import tables
    from omoide.stores.postgres.migrate import aensure

    database: Database = connection.database
    known = f"table {_table(model)}"
    if known not in database.ready:
        await tables.aprepare(database, spec_of(model))
        database.ready.add(known)
    return await aensure(database, retention.LINE)


__all__ = ["Maintained", "aledger", "amaintain", "ledger", "maintain"]
