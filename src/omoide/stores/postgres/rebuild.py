"""Rebuilding partitions of the store from their rows, while they are read and written.

    claim ──▶ BeginRestore ──▶ rows by key, a page a transaction ──▶ LoadRows   (beside the partition)
                           ──▶ edges ──▶ what was committed meanwhile, from the outbox ──▶ Adopt

The claim keeps the outbox from forgetting, so that every commit since is found there: a page may show a row
earlier or later than another page, and replaying the entries since the claim brings all to one state.
`Adopt` swaps the copy in; it is refused when the store shows a later commit than the copy, and tried again.
Readers see the old partition, or none, until then. Memory: one page.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from omoide.errors import OmoideError, StoreError
from omoide.model.schema import Scope
from omoide.ops.request import Adopt, Apply, BeginRestore, Changes, LoadRows, Pause, RowState
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.edges import edges_of
from omoide.stores.postgres.outbox import drain, pending
from omoide.stores.postgres.renew import renew
from omoide.stores.postgres.rows import row_columns, row_state
from omoide.stores.postgres.session import Script, Step
from omoide.stores.postgres.tables import Table, partition_name

if TYPE_CHECKING:
    from omoide.stores.postgres.mirror import Mirror, MirrorPlan
    from omoide.stores.postgres.outbox import Pending

__all__ = ["Progress", "rebuild"]

Progress = Callable[[int, int], None]
"""Told (records done, records in all)."""

STRETCH = 256
"""Rows of one statement."""

PAGE = 2_048
PAGE_BYTES = 4_194_304
"""Rows, and bytes of them, that are loaded together, one stretch at least: a term is written once for all."""

LEASE = "60 seconds"
MOST_SWAPS = 50
PATIENT_SWAPS = 20
"""After so many a busy partition steps back by a few commits, which the outbox has, to be swapped at all."""

WAIT_SECONDS = 120.0
PAUSE_SECONDS = 0.05


class Start(NamedTuple):
    """The last commit, the records there are, and the place that the next row written gets.

    A row that is written again later goes to a place from `end` on: no record is loaded twice.
    """

    seq: int
    records: int
    end: int


def rebuild(mirror: Mirror, scope: Scope, progress: Progress | None = None) -> MirrorPlan[int | None]:
    """Build a partition of the store anew from its rows; how many records it shows then, None without rows.

    Raises:
        StoreError: another rebuild of the partition is under way, or took this one over.
    """
    from omoide.stores.postgres.mirror import Transaction

    table = yield from mirror.table(scope.spec)
    partition = partition_name(scope, mirror.namespace)
    at = (escaped(scope.spec.name), partition)
    token = secrets.token_hex(8)
    start = yield from _claimed(at, token)
    if not start.seq:
        return None
    try:
        while scope.spec.validity is not None:
            if not (yield Transaction(_renewed, (table, scope, partition, at, token))):
                break
        yield BeginRestore(scope, token)
        yield from _load(table, scope, partition, at, token, start, progress)
        live = yield from _catch_up(table, scope, partition, at, token, start.seq)
    except OmoideError:
        yield Transaction(_release, (at, token))
        raise
    yield Transaction(_release, (at, token))
    yield from drain(mirror, scope)
    return live


def _claimed(at: tuple[str, str], token: str) -> MirrorPlan[Start]:
    """Where a rebuild starts from; commit 0 for no partition.

    Another rebuild that is under way is waited for: it may have begun too early to show what is asked.
    """
    from omoide.stores.postgres.mirror import Transaction

    for _ in range(round(WAIT_SECONDS / PAUSE_SECONDS)):
        if (yield Transaction(_claim, (at, token))):
            found: Start = yield Transaction(_start, (at,))
            if not found.seq:
                yield Transaction(_release, (at, token))
            return found
        yield Pause(PAUSE_SECONDS)
    raise StoreError("another rebuild of this partition is under way", hint="try again when it is done")


def _load(
    table: Table,
    scope: Scope,
    partition: str,
    at: tuple[str, str],
    token: str,
    start: Start,
    progress: Progress | None,
) -> MirrorPlan[None]:
    from omoide.stores.postgres.mirror import Transaction

    after, done, step = 0, 0, 1
    while True:
        rows, after = yield Transaction(_page, (table, scope, partition, at, token, after, start.end))
        if not rows:
            break
        step = yield LoadRows(scope, token, rows, done + 1, step)
        done += len(rows)
        if progress is not None:
            progress(done, max(done, start.records))
    if not scope.spec.graph:
        return
    last = ""
    while True:
        edges, last = yield Transaction(_edge_page, (at, token, last))
        if not last:
            return
        yield Apply(scope, 0, 0, Changes(edges=edges), token=token)


def _catch_up(
    table: Table, scope: Scope, partition: str, at: tuple[str, str], token: str, seq: int
) -> MirrorPlan[int]:
    """Bring the copy up to the last commit and swap it in.

    A store that shows a later commit than there are entries for shows what was never committed here (the
    database was set back): then the rows win.
    """
    from omoide.stores.postgres.mirror import Transaction

    before, force = -1, False
    for attempt in range(MOST_SWAPS):
        while True:
            yield Transaction(_renew, (at, token))
            found: Pending | None = yield Transaction(pending, (table, scope, partition, seq))
            if found is None:
                break
            if found.changes.drops:
                raise StoreError("the partition was erased while it was rebuilt")
            yield Apply(scope, found.first, found.last, found.changes, token=token)
            seq = found.last
            if not found.left:
                break
        counters: tuple[tuple[str, int], ...] = yield Transaction(_counters, (at,))
        live: int = yield Adopt(scope, token, seq, counters, force)
        if live >= 0:
            return live
        before, force = seq, before == seq or attempt > PATIENT_SWAPS
    raise StoreError("the partition changed faster than it could be rebuilt", hint="start it again")


def _claim(at: tuple[str, str], token: str) -> Script[bool]:
    """Keep the outbox of a partition for this rebuild; False when another one is under way."""
    rows = yield Step(
        "INSERT INTO omoide_rebuilds AS held (model, partition, token, until)"
        " VALUES (%s, %s, %s, now() + %s::interval) ON CONFLICT (model, partition)"
        " DO UPDATE SET token = excluded.token, until = excluded.until WHERE held.until < now() RETURNING 1",
        (*at, token, LEASE),
    )
    return bool(rows)


def _start(at: tuple[str, str]) -> Script[Start]:
    """What there is; read after the claim, so that the outbox keeps the rest.

    A writer that began before the claim may forget entries still, but only such as were shown by then.
    """
    rows = yield Step(
        "SELECT seq, records, next_row FROM omoide_partitions WHERE model = %s AND partition = %s", at
    )
    return Start(*map(int, rows[0])) if rows else Start(0, 0, 0)


def _renew(at: tuple[str, str], token: str) -> Script[None]:
    rows = yield Step(
        "UPDATE omoide_rebuilds SET until = now() + %s::interval"
        " WHERE model = %s AND partition = %s AND token = %s AND until > now() RETURNING 1",
        (LEASE, *at, token),
    )
    if not rows:
        raise StoreError("this rebuild was given up or taken over", hint="start it again")


def _renewed(table: Table, scope: Scope, partition: str, at: tuple[str, str], token: str) -> Script[bool]:
    """Bring rows of an older class up to date; whether there may be more of them."""
    yield from _renew(at, token)
    return (yield from renew(table, scope, partition))


def _release(at: tuple[str, str], token: str) -> Script[None]:
    yield Step("DELETE FROM omoide_rebuilds WHERE model = %s AND partition = %s AND token = %s", (*at, token))


def _page(
    table: Table, scope: Scope, partition: str, at: tuple[str, str], token: str, after: int, end: int
) -> Script[tuple[tuple[RowState, ...], int]]:
    """The next rows in order of writing, and the last one's place."""
    yield from _renew(at, token)
    found: list[RowState] = []
    size = 0
    while len(found) < PAGE and size < PAGE_BYTES:
        rows = yield Step(
            table.statement(
                "SELECT {columns} FROM {table} WHERE _partition = %s AND _row > %s AND _row < %s"
                " ORDER BY _row LIMIT %s",
                columns=table.list_of(row_columns(table)),
            ),
            (partition, after, end, STRETCH),
        )
        if not rows:
            break
        after = int(rows[-1][1])
        states = [row_state(table, scope, row) for row in rows]
        found += states
        size += sum(len(state.body) + len(state.footprint) + len(state.slot) for state in states)
    return tuple(found), after


def _edge_page(at: tuple[str, str], token: str, after: str) -> Script[tuple[Any, str]]:
    """All edges of the next records that have any, by id, and the last id ("" at the end)."""
    yield from _renew(at, token)
    rows = yield Step(
        "SELECT id FROM ("
        "(SELECT DISTINCT first AS id FROM omoide_edges WHERE model = %s AND partition = %s AND first > %s"
        " ORDER BY first LIMIT %s) UNION "
        "(SELECT DISTINCT second FROM omoide_edges WHERE model = %s AND partition = %s AND second > %s"
        ' ORDER BY second LIMIT %s)) AS found ORDER BY id COLLATE "C" LIMIT %s',
        (*at, after, STRETCH, *at, after, STRETCH, STRETCH),
    )
    edges = yield from edges_of(at, [unescaped(id) for (id,) in rows])
    return edges, rows[-1][0] if rows else ""


def _counters(at: tuple[str, str]) -> Script[tuple[tuple[str, int], ...]]:
    rows = yield Step("SELECT name, value FROM omoide_counters WHERE model = %s AND partition = %s", at)
    return tuple((unescaped(name), int(value)) for name, value in rows)
