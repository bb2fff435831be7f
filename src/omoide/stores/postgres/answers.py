"""What rows answer when the store cannot: records by id and by unique value, recall, lists and counts.

The store answers first; these are asked when it is out of reach. A record is the same as the store's but for
deliveries of the last seconds, which are not in the rows yet. What only indexes of the store hold (the decay
order, the graph, turns, pages) is not answered: that stays an outage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from omoide.model.schema import ModelSpec, Scope
from omoide.ops.request import Count, Find, Get, GetUnique, Hit, Match, Record, Request, Search, SearchReply
from omoide.stores.postgres import recall
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.rows import KNOWN, Known
from omoide.stores.postgres.script import Script, Step
from omoide.stores.postgres.tables import Table, values_of
from omoide.stores.redis.codec import relevance

__all__ = ["POSTGRES", "is_answered", "script_of"]

POSTGRES = "postgres"
"""Reader of a search that rows answered."""

_ORDERS = {
    "time": "m._time",
    "importance": "m._base",
    "confidence": recall.CONFIDENCE,
    "valid_from": recall.STARTED,
}


def is_answered(request: Request[Any]) -> bool:
    """Whether rows can answer a request."""
    if type(request) not in _SCRIPTS:
        return False
    if isinstance(request, Search):
        return request.about is None
    return True


def script_of(request: Request[Any]) -> Callable[..., Script[Any]]:
    """The script that answers a request, given (table, partition, request)."""
    return _SCRIPTS[type(request)]


def get(table: Table, partition: str, request: Get) -> Script[tuple[Record | None, ...]]:
    """Records by id, in the order asked."""
    found = yield from _by_id(table, request.scope, partition, request.ids)
    return tuple(found.get(one) for one in request.ids)


def get_unique(table: Table, partition: str, request: GetUnique) -> Script[Record | None]:
    """The record that holds a uniqueness digest."""
    held = " OR ".join(f"m.{recall.identifier(name)} = %(digest)s" for name in table.unique) or "false"
    rows = yield from _records(table, request.scope, partition, held, {"digest": request.digest})
    return rows[0] if rows else None


def search(table: Table, partition: str, request: Search) -> Script[SearchReply]:
    """Rank the rows of a partition; see `recall`."""
    ranked = yield from recall.rank(request, partition)
    held = yield from _by_id(table, request.scope, partition, [unescaped(one) for one, _, _ in ranked])
    live = yield from count(table, partition, Count(request.scope, Match(history=True)))
    hits = tuple(Hit(held[unescaped(one)], score, text) for one, score, text in ranked)
    skipped = () if request.vector is None else ("meaning",)
    return SearchReply(hits, POSTGRES, 1, live, skipped)


def find(table: Table, partition: str, request: Find) -> Script[tuple[Record, ...]]:
    """Records that match, in order."""
    direction = "DESC" if request.descending else "ASC"
    tail = f" ORDER BY {_ORDERS[request.order]} {direction}, m._time DESC, m.{_id(table.spec)}"
    filters, values = recall.conditions(recall.Rows(request.scope, partition), request.match)
    values |= {"limit": request.limit, "offset": request.offset}
    held = " AND ".join(["true", *filters])
    rows = yield from _records(
        table, request.scope, partition, held, values, f"{tail} LIMIT %(limit)s OFFSET %(offset)s"
    )
    return tuple(rows)


def count(table: Table, partition: str, request: Count) -> Script[int]:
    """How many live records match."""
    rows = recall.Rows(request.scope, partition)
    filters, values = recall.conditions(rows, request.match)
    held = " AND ".join([rows.live, *filters])
    found = yield Step(
        f"SELECT count(*) FROM {rows.table} AS m WHERE {held}", {**values, "partition": partition}
    )
    return int(found[0][0])


def _by_id(table: Table, scope: Scope, partition: str, ids: Sequence[str]) -> Script[dict[str, Record]]:
    held = f"m.{_id(scope.spec)} = ANY (%(ids)s::text[])"
    wanted = [escaped(one) for one in ids]
    rows = yield from _records(table, scope, partition, held, {"ids": wanted})
    return {record.id: record for record in rows}


def _records(
    table: Table, scope: Scope, partition: str, held: str, values: dict[str, Any], tail: str = ""
) -> Script[list[Record]]:
    """Live records of one partition that meet a condition."""
    names = [scope.spec.id_field, *KNOWN, "_extra", *(column.name for column in table.columns)]
    columns = ", ".join(f"m.{recall.identifier(name)}" for name in names)
    where = recall.Rows(scope, partition)
    rows = yield Step(
        f"SELECT {columns} FROM {where.table} AS m WHERE {where.live} AND ({held}){tail}",
        {**values, "partition": partition},
    )
    now_ms = round(time.time() * 1000)
    return [_record(table, row, now_ms) for row in rows]


def _record(table: Table, row: Sequence[Any], now_ms: int) -> Record:
    after = 1 + len(KNOWN)
    known = Known.of(row[1:after])
    spec = table.spec
    span = known.span(spec)
    return Record(
        id=unescaped(row[0]),
        row=known.row,
        values=values_of(table, row[after + 1 :], row[after]),
        version=known.version,
        time_ms=known.time_ms,
        importance=known.base,
        confidence=_confidence(spec, known),
        corroborations=known.up,
        contradictions=known.down,
        access_count=known.accesses,
        accessed_ms=known.accessed_ms,
        relevance=relevance(spec, known.order, known.base, now_ms),
        expires_ms=known.expires_ms or 0,
        order=known.order,
        valid_from_ms=None if span is None else span.start,
        valid_to_ms=None if span is None else span.end,
        read_ms=now_ms,
    )


def _confidence(spec: ModelSpec, known: Known) -> float:
    if known.alpha is None or known.beta is None:
        return 1.0 if spec.certainty is None else spec.certainty.initial
    return known.alpha / (known.alpha + known.beta)


def _id(spec: ModelSpec) -> str:
    return recall.identifier(spec.id_field)


_SCRIPTS: dict[type, Callable[..., Script[Any]]] = {
    Count: count,
    Find: find,
    Get: get,
    GetUnique: get_unique,
    Search: search,
}
