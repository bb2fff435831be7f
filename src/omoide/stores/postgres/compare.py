"""Comparing a partition of the store with its rows: counts, and a checksum over all that both know.

    rows of PostgreSQL ──▶ digest of each record ──▶ sum ─┐
    records of the store ──▶ digest of each ───────▶ sum ─┴─▶ equal, or not

The digest covers values, version, time, evidence, accesses, expiry, validity and the place in the decay
order; each edge has one of its own. The sum does not depend on the order, and is taken modulo 2^128.
The indexes of the store are compared with its records. A copy that cannot be read is damaged, and differs;
a store that cannot be asked is an error.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from omoide.errors import CorruptRecordError, ScriptError
from omoide.model.schema import Scope
from omoide.ops.request import Applied, Check, CheckReply, Dump, DumpReply, ReadCounters
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.rows import read_row, row_columns
from omoide.stores.postgres.session import Script, Step
from omoide.stores.postgres.tables import Table, partition_name
from omoide.stores.postgres.versions import unkeyed

if TYPE_CHECKING:
    from omoide.stores.postgres.mirror import Mirror, MirrorPlan

__all__ = ["DAMAGE", "Comparison", "compare"]

DAMAGE = (CorruptRecordError, ScriptError)
"""What reading a damaged copy raises: the script that finds it, or one that fails on what it reads."""

PAGE = 500
TRIES = 3
_BOUND = 2**128
_pack = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class Comparison:
    """One partition on both sides: records, and the sum of their digests as hex digits.

    `behind`: commits that the store does not show yet; -1 when it has no such partition.
    `counters`: the counters are equal. `findings`: what indexes of the store say otherwise than its records,
    as in `Health`. `damaged`: the store's copy cannot be read, and no more is known of it.
    `repaired`: it was asked for, and both sides are equal since.
    """

    rows: int
    records: int
    rows_sum: str
    records_sum: str
    behind: int
    counters: bool
    findings: tuple[tuple[str, int], ...] = ()
    damaged: bool = False
    repaired: bool = False

    @property
    def equal(self) -> bool:
        """Both sides say the same, and so do the indexes."""
        if self.damaged or self.findings:
            return False
        same = self.rows_sum == self.records_sum and self.rows == self.records
        return same and self.counters and self.behind in (0, -1 if not self.rows else 0)


def compare(mirror: Mirror, scope: Scope) -> MirrorPlan[Comparison]:
    """Compare one partition; again, up to three times, when something was written meanwhile.

    Cost: all bytes of the partition on both sides, those of the store twice.
    """
    from omoide.stores.postgres.mirror import Transaction

    table = yield from mirror.table(scope.spec)
    partition = partition_name(scope, mirror.namespace)
    at = (escaped(scope.spec.name), partition)
    for attempt in range(TRIES):
        before, now_ms = yield Transaction(_seq, (at,))
        rows, rows_sum = yield from _sum_rows(table, scope, partition, at, now_ms)
        counters: dict[str, int] = yield Transaction(_counters, (at,))
        copy = yield from _read_copy(scope)
        after, _ = yield Transaction(_seq, (at,))
        if before == after or attempt == TRIES - 1:
            break
    if copy is None:
        return Comparison(rows, 0, f"{rows_sum:032x}", f"{0:032x}", 0, counters=False, damaged=True)
    behind = -1 if copy.applied is None else max(0, (after or 0) - copy.applied)
    same = {name: value for name, value in counters.items() if value} == {
        name: value for name, value in copy.counters.items() if value
    }
    sums = f"{rows_sum:032x}", f"{copy.sum:032x}"
    return Comparison(rows, copy.records, *sums, behind, same, copy.findings)


class _Copy(NamedTuple):
    """What the store has of a partition."""

    records: int
    sum: int
    counters: dict[str, int]
    applied: int | None
    findings: tuple[tuple[str, int], ...]


def _read_copy(scope: Scope) -> MirrorPlan[_Copy | None]:
    """All of the store's copy; None when it is damaged."""
    try:
        records, records_sum = yield from _sum_records(scope)
        counters: dict[str, int] = yield ReadCounters(scope)
        applied: int | None = yield Applied(scope)
        checked: CheckReply = yield Check(scope)
    except DAMAGE:
        return None
    return _Copy(records, records_sum, counters, applied, checked.findings)


def _sum_rows(
    table: Table, scope: Scope, partition: str, at: tuple[str, str], now_ms: int
) -> MirrorPlan[tuple[int, int]]:
    from omoide.stores.postgres.mirror import Transaction

    number = total = after = 0
    while True:
        found, after = yield Transaction(_rows, (table, scope, partition, after))
        for id, known, values in found:
            if not known.expired(now_ms):
                number += 1
                span = known.span(scope.spec)
                valid = None if span is None else (span.start, span.end, span.own, unkeyed(span.chain))
                total += _digest(id, values, known.version, known.time_ms, known.statistics, known.order,
                                 known.expires_ms or 0, valid)  # fmt: skip
        if not found:
            break
    last: tuple[str, str] = ("", "")
    while scope.spec.graph:
        edges, last = yield Transaction(_edges, (at, last))
        total += sum(_digest(*edge) for edge in edges)
        if not edges:
            break
    return number, total % _BOUND


def _sum_records(scope: Scope) -> MirrorPlan[tuple[int, int]]:
    number = total = 0
    cursor = ""
    while True:
        page: DumpReply = yield Dump(scope, cursor)
        for record in page.records:
            number += 1
            kept = record.kept
            held = None if kept.statistics is None else astuple(kept.statistics)
            values = dict(sorted(record.values.items()))
            valid = None
            if record.interval is not None and kept.validity is not None:
                valid = (*record.interval, kept.validity[1], kept.chain)
            total += _digest(
                record.id, values, kept.version, kept.time_ms, held, kept.order, kept.expires_ms, valid
            )
            total += sum(_digest(*sorted((record.id, other)), weight) for other, weight in kept.edges)
        cursor = page.cursor
        if not cursor:
            return number, total % _BOUND


def _digest(*told: Any) -> int:
    return int.from_bytes(hashlib.blake2b(_pack(told), digest_size=16).digest(), "little")


def _rows(table: Table, scope: Scope, partition: str, after: int) -> Script[tuple[list[Any], int]]:
    rows = yield Step(
        table.statement(
            "SELECT {columns} FROM {table} WHERE _partition = %s AND _row > %s ORDER BY _row LIMIT %s",
            columns=table.list_of(row_columns(table)),
        ),
        (partition, after, PAGE),
    )
    return [read_row(table, scope, row)[:3] for row in rows], int(rows[-1][1]) if rows else after


def _edges(
    at: tuple[str, str], last: tuple[str, str]
) -> Script[tuple[list[tuple[str, str, float]], tuple[str, str]]]:
    rows = yield Step(
        "SELECT first, second, weight FROM omoide_edges WHERE model = %s AND partition = %s"
        " AND (first, second) > (%s, %s) ORDER BY first, second LIMIT %s",
        (*at, *last, PAGE),
    )
    found = [(*sorted((unescaped(first), unescaped(second))), weight) for first, second, weight in rows]
    return found, rows[-1][:2] if rows else last


def _seq(at: tuple[str, str]) -> Script[tuple[int | None, int]]:
    rows = yield Step(
        "SELECT (SELECT seq FROM omoide_partitions WHERE model = %s AND partition = %s AND begun),"
        " (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
        at,
    )
    return rows[0][0], rows[0][1]


def _counters(at: tuple[str, str]) -> Script[dict[str, int]]:
    rows = yield Step("SELECT name, value FROM omoide_counters WHERE model = %s AND partition = %s", at)
    return {unescaped(name): int(value) for name, value in rows}
