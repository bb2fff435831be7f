"""Reading records: by id, by a unique key, by conditions, by the decay order, page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any, TypeVar

from omoide.core.decay import NEVER
from omoide.errors import CorruptRecordError, QueryError
from omoide.model.instance import Instance, spec_of
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.bounds import meet
from omoide.ops.lookups import ALL, Conditions, holds, ranged
from omoide.ops.request import (
    EVERYTHING,
    Count,
    Find,
    Get,
    GetUnique,
    Match,
    Page,
    PageReply,
    Record,
    Request,
    Top,
)
from omoide.ops.run import Plan

M = TypeVar("M", bound=Instance)

PAGE = 500
MOST_IDS = 1_000
"""Ids asked for in one request."""

MOST_EXCLUDED = 500
"""Ids left out of a count by one request; more of them are looked up, to be taken off the count."""

BESIDE = 16
"""Records asked for beyond those wanted when a bound falls inside an index step."""

INDEXED_ORDERS = ("time", "importance", "confidence")
BY_VALIDITY = "valid_from"

EVER = Conditions(Match(history=True))
"""Every version, valid or not."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records, in which order, and which stretch of them (`limit` None: all)."""

    scope: Scope
    conditions: Conditions = ALL
    order: str = "time"
    descending: bool = True
    limit: int | None = None
    offset: int = 0

    @property
    def by_index(self) -> bool:
        """Indexes alone answer it."""
        ordered = has_order(self.scope.spec, self.order)
        return self.conditions.ids is None and not self.conditions.tests and ordered


def has_order(spec: ModelSpec, order: str) -> bool:
    """Whether an index has the order: that of validity only where there is any."""
    return order in INDEXED_ORDERS or (order == BY_VALIDITY and spec.validity is not None)


def one(model: type[M], scope: Scope, record_id: str) -> Plan[M | None]:
    """The record of an id. One round trip."""
    found: list[M | None] = yield from many(model, scope, (record_id,))
    return found[0]


def many(model: type[M], scope: Scope, ids: Sequence[str]) -> Plan[list[M | None]]:
    """The records of ids, in the order asked, None where there is none. A round trip per 1,000."""
    found: list[M | None] = []
    for start in range(0, len(ids), MOST_IDS):
        records: tuple[Record | None, ...] = yield Get(scope, tuple(ids[start : start + MOST_IDS]))
        found += [None if record is None else model.from_record(record) for record in records]
    return found


def by_unique(model: type[M], scope: Scope, digest: bytes) -> Plan[M | None]:
    """The record that holds a uniqueness digest. One round trip."""
    record: Record | None = yield GetUnique(scope, digest)
    return None if record is None else model.from_record(record)


def select(model: type[M], selection: Selection) -> Plan[list[M]]:
    """The selected records, in order."""
    if selection.limit == 0:
        return []
    found: list[M]
    if selection.by_index:
        found = yield from _indexed(model, selection)
        return found
    found = yield from candidates(model, selection)
    try:
        found.sort(key=lambda instance: _sort_key(instance, selection.order), reverse=selection.descending)
    except TypeError:
        name = selection.scope.spec.name
        raise QueryError(f"{name}: the values of {selection.order} cannot be compared") from None
    end = None if selection.limit is None else selection.offset + selection.limit
    return found[selection.offset : end]


def _indexed(model: type[M], selection: Selection) -> Plan[list[M]]:
    """What indexes answer; where they are too coarse, a few more are read and those beside a bound tested."""
    conditions, limit = selection.conditions, selection.limit
    if not conditions.edges:
        request = Find(
            selection.scope,
            conditions.match,
            selection.order,
            selection.descending,
            limit,
            selection.offset,
        )
        records: tuple[Record, ...] = yield request
        return [model.from_record(record) for record in records]

    def ask(most: int | None) -> Request[tuple[Record, ...]]:
        return Find(selection.scope, conditions.match, selection.order, selection.descending, most)

    end = None if limit is None else selection.offset + limit
    found: list[M] = yield from _tested(model, conditions, ask, end)
    return found[selection.offset : end]


def _tested(
    model: type[M],
    conditions: Conditions,
    ask: Callable[[int | None], Request[tuple[Record, ...]]],
    wanted: int | None,
) -> Plan[list[M]]:
    """The first `wanted` records of a request that meet all conditions; asks for more while some fail."""
    size = None if wanted is None else wanted + BESIDE
    while True:
        records: tuple[Record, ...] = yield ask(size)
        pairs = [(record, model.from_record(record)) for record in records]
        found = [instance for record, instance in pairs if holds(conditions, record, instance)]
        if size is None or wanted is None or len(records) < size or len(found) >= wanted:
            return found[:wanted]
        size *= 2


def candidates(model: type[M], selection: Selection) -> Plan[list[M]]:
    """Every record that meets the conditions, tested in the client, unordered."""
    conditions = selection.conditions
    if conditions.ids is not None:
        found: list[M | None] = yield from many(model, selection.scope, conditions.ids)
        return [one for one in found if one is not None and holds(conditions, record_of(one), one)]
    kept: dict[str, M] = {}
    cursor = ""
    while True:
        reply: PageReply = yield Page(selection.scope, cursor, PAGE)
        kept.update({one.id: instance for one, instance in passing(model, conditions, reply)})
        cursor = reply.cursor
        if not cursor:
            return list(kept.values())


def passing(model: type[M], conditions: Conditions, reply: PageReply) -> list[tuple[Record, M]]:
    """The records of a page that meet the conditions."""
    pairs = [(record, model.from_record(record)) for record in reply.records]
    wanted = None if conditions.ids is None else set(conditions.ids)
    return [
        (record, instance)
        for record, instance in pairs
        if (wanted is None or record.id in wanted) and holds(conditions, record, instance)
    ]


def count(model: type[M], selection: Selection) -> Plan[int]:
    """How many records meet the conditions; order, limit and offset do not matter."""
    if selection.conditions.ids is None and not selection.conditions.tests:
        number: int = yield from _counted(model, selection)
        return number
    found: list[M] = yield from candidates(model, selection)
    return len(found)


def _counted(model: type[M], selection: Selection) -> Plan[int]:
    """The count of what indexes answer, less what they let through beside a bound."""
    scope, conditions = selection.scope, selection.conditions
    match, excluded = conditions.match, conditions.match.exclude
    if len(excluded) > MOST_EXCLUDED:
        match = replace(match, exclude=())
    total: int = yield Count(scope, match)
    wrong: set[str] = set()
    for edge in conditions.edges:
        span = meet(getattr(match, edge.role), edge.step)
        if span is None:
            continue
        beside: tuple[Record, ...] = yield Find(scope, ranged(match, edge.role, span))
        pairs = ((record, model.from_record(record)) for record in beside)
        wrong |= {record.id for record, instance in pairs if not edge.holds(record, instance)}
    if match is conditions.match:
        return total - len(wrong)
    left: list[M | None] = yield from many(model, scope, excluded)
    counted = replace(conditions, match=match)
    return total - len(wrong) - sum(one is not None and holds(counted, record_of(one), one) for one in left)


def top(model: type[M], selection: Selection, limit: int) -> Plan[list[M]]:
    """The first records of the decay order that meet the conditions."""
    conditions = selection.conditions
    found: list[M]
    if conditions.ids is None and not conditions.tests and conditions.edges:
        found = yield from _tested(model, conditions, lambda most: _top(selection, most or limit), limit)
        return found
    if conditions.ids is None and not conditions.tests:
        records: tuple[Record, ...] = yield _top(selection, limit)
        return [model.from_record(record) for record in records]
    found = yield from candidates(model, selection)
    found.sort(key=lambda instance: decay_rank(record_of(instance), selection.scope.spec))
    return found[:limit]


def _top(selection: Selection, limit: int) -> Top:
    return Top(selection.scope, limit, selection.conditions.match)


def decay_rank(record: Record, spec: ModelSpec, *, weigh_confidence: bool = False) -> tuple[float, ...]:
    """Sorts records as the decay order does, ascending: the one key of every way to the first n.

    (score, order, time, row), each of them greatest first. The score is the static order, which unlike
    relevance never underflows, plus ln(.8 + .2 confidence) where that weighs; by a power law, which
    has no static order, it is the relevance itself.
    """
    certainty = 0.8 + 0.2 * record.confidence if weigh_confidence else 1.0
    if spec.decay is not None and spec.decay.exponent is not None:
        score = (record.relevance or 0.0) * certainty
    else:
        score = record.order + log(certainty) if record.order > NEVER / 2 else record.order
    return (-score, -record.order, -record.time_ms, -record.row)


def page(scope: Scope, cursor: str, size: int) -> Plan[PageReply]:
    """One page in storage order. One round trip."""
    reply: PageReply = yield Page(scope, cursor, size)
    return reply


def record_of(instance: Instance) -> Record:
    """The stored record behind a loaded instance."""
    record: Any = instance._omoide.record
    loaded: Record = record
    return loaded


def unconditional(scope: Scope) -> Selection:
    """The whole partition, newest first."""
    return Selection(scope, replace(ALL, match=EVERYTHING))


def _sort_key(instance: Instance, order: str) -> tuple[Any, ...]:
    """Ties by time, then id; None sorts below every value."""
    record = record_of(instance)
    if has_order(spec_of(type(instance)), order):
        value = {
            "time": record.time_ms,
            "importance": record.importance,
            "confidence": record.confidence,
            "valid_from": record.valid_from_ms or 0,
        }[order]
        return (True, value, record.time_ms, record.id)
    try:
        held = getattr(instance, order, None)
    except CorruptRecordError:
        held = None
    return (held is not None, 0 if held is None else held, record.time_ms, record.id)
