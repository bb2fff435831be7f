"""Replaying what the store does not show yet.

    outbox entries after the one shown ──▶ the rows they name, as they are now ──▶ Apply(first, last)

A row may be newer than the entry that names it: then a later entry names it too. So replaying is
idempotent, needs no tombstones and resurrects nothing. Entries are forgotten once the store shows them,
except while a rebuild of the partition goes on (`omoide_rebuilds`), which reads them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from omoide.errors import CorruptRecordError
from omoide.model import registry
from omoide.model.instance import Instance
from omoide.model.schema import Scope
from omoide.ops.request import Applied, Apply, Changes, Pause
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.edges import edges_of
from omoide.stores.postgres.parts import WORK, work_of
from omoide.stores.postgres.rows import row_columns, row_state
from omoide.stores.postgres.session import Script, Step
from omoide.stores.postgres.tables import Table, partition_name

if TYPE_CHECKING:
    from omoide.stores.postgres.mirror import Mirror, MirrorPlan

__all__ = ["LOST", "Pending", "changes_of", "drain", "pending", "scope_named", "waiting"]

ENTRIES = 64
RECORDS = 64
MOST_LOOKS = 3
PAUSE_SECONDS = 0.005
MOST_PAUSES = 200
LOST = -1
"""What `drain` returns of a partition that only a rebuild can bring back."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Entries `first`..`last` of a partition, as one change. `left`: there are more."""

    first: int
    last: int
    begins: bool
    changes: Changes
    left: bool


def drain(mirror: Mirror, scope: Scope, *, until: int | None = None) -> MirrorPlan[int]:
    """Show the store what is waiting of one partition, in order; the commit shown then.

    Several calls of one process do not do the same work: the later ones wait for the first, for a while.

    Args:
        until: Enough when this commit is shown. None: everything there is now; what is shown is then
            forgotten by the outbox.
    Returns:
        int: LOST when the store lacks commits that are not in the outbox any more, or is damaged.
    Raises:
        ModelError: the store's indexes are of another shape than the class; only a rebuild makes them anew.
    """
    from omoide.stores.postgres.mirror import Transaction  # the plans of a mirror need this one

    table = yield from mirror.table(scope.spec)
    partition = partition_name(scope, mirror.namespace)
    at = (escaped(scope.spec.name), partition)
    goal: int | None = until
    if goal is None:
        goal = yield Transaction(_last, (at,))
    elif at in mirror.draining and (yield from _shown_by_another(mirror, scope, at, goal)):
        return goal
    shown: int = 0
    if goal is not None:
        mirror.draining.add(at)
        try:
            shown = yield from _replay(table, scope, partition, goal)
        finally:
            mirror.draining.discard(at)
        if shown == LOST:
            return LOST
        mirror.shown(scope, partition, shown)
        if until is None:
            yield Transaction(_forget, (*at, shown))
    return shown


def _shown_by_another(mirror: Mirror, scope: Scope, at: tuple[str, str], goal: int) -> MirrorPlan[bool]:
    """Wait until another call of this process has shown a commit; False when it did not."""
    for _ in range(MOST_PAUSES):
        if at not in mirror.draining:
            break
        yield Pause(PAUSE_SECONDS)
        if ((yield Applied(scope)) or 0) >= goal:
            return True
    return False


def _replay(table: Table, scope: Scope, partition: str, goal: int) -> MirrorPlan[int]:
    """Apply entries until a commit is shown; the commit shown then, or LOST."""
    from omoide.stores.postgres.mirror import Transaction

    applied: int | None = yield Applied(scope)
    done, stuck = 0, 0  # the last commit known to be shown: of a dropped partition the store says nothing
    while max(done, applied or 0) < goal:
        found: Pending | None = yield Transaction(pending, (table, scope, partition, max(done, applied or 0)))
        if found is not None and _follows(found, applied):
            try:
                now: int | None = yield Apply(scope, found.first, found.last, found.changes, found.begins)
            except CorruptRecordError:
                return LOST
            if now is not None and now >= found.last:
                done, stuck = found.last, 0
                applied = None if found.changes.drops and now == found.last else now
                continue
        # Others work here too: they may have shown, and had forgotten, what was about to be done.
        now = yield Applied(scope)
        stuck = stuck + 1 if now == applied else 0
        if stuck == MOST_LOOKS:
            return LOST
        applied = now
    return max(done, applied or 0)


def _follows(found: Pending, applied: int | None) -> bool:
    """Whether entries can be applied to what the store shows."""
    return found.begins or found.changes.drops or (applied is not None and found.first == applied + 1)


def pending(table: Table, scope: Scope, partition: str, after: int) -> Script[Pending | None]:
    """The next entries of a partition after a commit, with the rows they name as they are now."""
    at = (escaped(scope.spec.name), partition)
    rows = yield Step(
        "SELECT seq, op, begins, ids, linked, counters FROM omoide_outbox"
        " WHERE model = %s AND partition = %s AND seq > %s ORDER BY seq LIMIT %s",
        (*at, after, ENTRIES + 1),
    )
    if not rows:
        return None
    taken = _together(rows[:ENTRIES])
    first = taken[0]
    if first[1] == "drop":
        return Pending(first[0], first[0], False, Changes(drops=True), len(rows) > 1)
    while True:
        ids, linked, counters = (
            list(dict.fromkeys(unescaped(name) for row in taken for name in row[column]))
            for column in (3, 4, 5)
        )
        changes = yield from changes_of(table, scope, partition, ids, linked, counters)
        work = work_of(changes)
        if work <= WORK or len(taken) == 1:
            return Pending(first[0], taken[-1][0], first[2], changes, len(taken) < len(rows))
        taken = taken[: max(1, len(taken) * WORK // work)]


def _together(rows: Sequence[Any]) -> list[Any]:
    """The first entries that can be one change: one life of the partition, and not too many records.

    A busy name links each new record with the same ones: each record counts once, or a commit a step would be
    slower than those who write.
    """
    taken: list[Any] = []
    records: set[str] = set()
    for row in rows:
        if taken and (row[1] == "drop" or row[2] or taken[0][1] == "drop" or row[0] != taken[-1][0] + 1):
            break
        records.update(row[3], row[4])
        if taken and len(records) > RECORDS:
            break
        taken.append(row)
    return taken


def changes_of(
    table: Table,
    scope: Scope,
    partition: str,
    ids: Sequence[str],
    linked: Sequence[str],
    counters: Sequence[str],
) -> Script[Changes]:
    """What the rows say now of some records, of the edges of some, and of some counters."""
    at = (escaped(scope.spec.name), partition)
    states = []
    if ids:
        rows = yield Step(
            table.statement(
                "SELECT {columns} FROM {table} WHERE _partition = %s AND {id} = ANY(%s) ORDER BY _row",
                columns=table.list_of(row_columns(table)),
            ),
            (partition, [escaped(id) for id in ids]),
        )
        states = [row_state(table, scope, row) for row in rows]
    there = {state.id for state in states}
    edges = yield from edges_of(at, linked)
    numbers: list[tuple[str, int]] = []
    if counters:
        rows = yield Step(
            "SELECT name, value FROM omoide_counters WHERE model = %s AND partition = %s AND name = ANY(%s)",
            (*at, [escaped(name) for name in counters]),
        )
        numbers = [(unescaped(name), int(value)) for name, value in rows]
    return Changes(
        rows=tuple(states),
        erased=tuple(id for id in ids if id not in there),
        edges=edges,
        counters=tuple(numbers),
    )


def _last(at: tuple[str, str]) -> Script[int | None]:
    """The last commit of a partition, whether or not the outbox still has it; None for no partition."""
    rows = yield Step(
        "SELECT greatest((SELECT seq FROM omoide_partitions WHERE model = %s AND partition = %s AND begun),"
        " (SELECT max(seq) FROM omoide_outbox WHERE model = %s AND partition = %s))",
        (*at, *at),
    )
    return None if rows[0][0] is None else int(rows[0][0])


def _forget(model: str, partition: str, shown: int) -> Script[None]:
    yield Step(
        "DELETE FROM omoide_outbox WHERE model = %s AND partition = %s AND seq <= %s AND NOT EXISTS"
        " (SELECT FROM omoide_rebuilds WHERE model = %s AND partition = %s AND until > now())",
        (model, partition, shown, model, partition),
    )


def waiting(namespace: str) -> Script[list[tuple[str, str]]]:
    """(model, partition) of every partition with entries, of one namespace."""
    rows = yield Step("SELECT DISTINCT model, partition FROM omoide_outbox ORDER BY model, partition")
    return [(unescaped(model), partition) for model, partition in rows if _is_of(partition, namespace)]


def with_records(namespace: str) -> Script[list[tuple[str, str]]]:
    """(model, partition) of every partition that has records, of one namespace."""
    rows = yield Step(
        "SELECT model, partition FROM omoide_partitions WHERE records > 0 ORDER BY model, partition"
    )
    return [(unescaped(model), partition) for model, partition in rows if _is_of(partition, namespace)]


def every_partition(namespace: str, model: str) -> Script[list[tuple[str, int]]]:
    """(partition, records) of every partition of a model."""
    rows = yield Step(
        "SELECT partition, records FROM omoide_partitions WHERE model = %s ORDER BY partition",
        (escaped(model),),
    )
    return [(partition, int(records)) for partition, records in rows if _is_of(partition, namespace)]


def _is_of(partition: str, namespace: str) -> bool:
    space, colon, _ = partition.rpartition(":")
    return unquote(space) == namespace if colon else namespace == "omoide"


def scope_named(model: str, partition: str) -> Scope | None:
    """The partition behind its name; None when no class of the model is loaded, or it has no mirror."""
    cls = registry.find(model)
    spec = cls.__omoide_spec__ if cls is not None and issubclass(cls, Instance) else None
    if spec is None or spec.mirror is None:
        return None
    values = partition.rpartition(":")[2]
    parts = tuple(unquote(value) for value in values.split("/")) if spec.partition_by else ()
    return Scope(spec, parts)
