"""The query builder: immutable, and always within one partition.

    Memory.query.get(agent_id="a", memory_id=...)
    Memory.query.filter(agent_id="a", tags="work").order_by("-importance").limit(5).all()

Each method that narrows returns a new query; each that reads states its cost and has an `a` twin.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from omoide.errors import QueryError
from omoide.model.instance import Instance, spec_of
from omoide.model.naming import shown_name
from omoide.model.partition import check_ids, ids_of, scope_of_call
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import batch as batches
from omoide.ops import delete, load, port
from omoide.ops.load import Selection
from omoide.ops.lookups import ALL, Conditions, at, can_order, ever, holds, narrow, without
from omoide.ops.run import Plan, arun, run
from omoide.ops.unique import unique_digest

M = TypeVar("M", bound=Instance)

MOST_TOP = 1_000
LARGEST_PAGE = 1_000
LARGEST_NUMBER = 2**53


@dataclass(frozen=True, slots=True)
class Query(Generic[M]):
    """Records of one partition that meet conditions; newest first unless ordered otherwise."""

    model: type[M]
    scope: Scope | None = None
    conditions: Conditions = ALL
    order: str = "time"
    descending: bool = True
    bound: int | None = None
    skipped: int = 0
    scanning: bool = False

    # ---- narrowing -----------------------------------------------------------------------------

    def filter(self, *, scan: bool = False, as_of: datetime | None = None, **lookups: Any) -> Query[M]:
        """Keep records that meet every lookup; the partition's own fields say where to look.

        Indexed: ids (`id__in=`), tags, `index=True` fields, session and author by equality;
        `importance`, `confidence` and `time` with `__gte` and `__lt`. Any other lookup tests every
        record of the partition in the client, and needs `scan=True`. Ranges are exact, to the microsecond
        for times; an importance is compared in single precision when the bound is one, as 0.1 is.

        Where the model has a ValidityField, only records count that are valid now, or `as_of` an instant.

        Raises:
            QueryError: the partition is not named, no index answers a lookup, or `as_of` is asked of a model
                without validity.
        """
        scope = self._located(lookups)
        rest = {name: value for name, value in lookups.items() if name not in scope.spec.partition_by}
        scanning = self.scanning or scan
        conditions = narrow(self.conditions, scope.spec, rest, scan=scanning)
        if as_of is not None:
            conditions = at(conditions, scope.spec, as_of)
        return replace(self, scope=scope, conditions=conditions, scanning=scanning)

    def history(self) -> Query[M]:
        """Every version, those that are over and those that are still to come included.

        Raises:
            QueryError: the model has no ValidityField.
        """
        return replace(self, conditions=ever(self.conditions, self._spec))

    def scan(self) -> Query[M]:
        """Allow lookups and orders that no index answers: every record is read, a round trip per 500."""
        return replace(self, scanning=True)

    def exclude(self, ids: Iterable[str]) -> Query[M]:
        """Leave out records by id."""
        return replace(
            self,
            conditions=without(
                self.conditions, check_ids(self._spec, ids_of(ids, "exclude"), what="an id of exclude")
            ),
        )

    def order_by(self, order: str) -> Query[M]:
        """Order by `time`, `importance`, `confidence` or `valid_from`, descending with a leading `-`.

        Other fields need `scan()`. Ties: by time, then id.
        """
        if not isinstance(order, str):
            raise QueryError(f"order_by takes the name of a field, not {type(order).__name__}")
        name = order.removeprefix("-")
        spec = self._spec
        certainty = None if spec.certainty is None else spec.certainty.name
        roles = {spec.time: "time", spec.importance: "importance", certainty: "confidence"}
        role = roles.get(name, name)
        if spec.validity is not None and name == spec.validity.start:
            role = load.BY_VALIDITY
        if not load.has_order(spec, role) and (name not in spec.fields or not self.scanning):
            raise QueryError(
                f"{spec.name}: no index orders by {shown_name(name)!r}", hint="scan() first, or order by time"
            )
        if not load.has_order(spec, role) and not can_order(spec.fields[name]):
            raise QueryError(f"{spec.name}.{name} has no order")
        return replace(self, order=role, descending=order.startswith("-"))

    def limit(self, n: int) -> Query[M]:
        """At most n records."""
        return replace(self, bound=_whole("limit", n))

    def offset(self, n: int) -> Query[M]:
        """Leave out the first n records."""
        return replace(self, skipped=_whole("offset", n))

    # ---- single records ------------------------------------------------------------------------

    def get(self, **key: Any) -> M | None:
        """The record of a partition and an id, or of a unique key; None when there is none.

        Raises:
            QueryError: the partition, or the id or a whole unique key, is not given.
        Cost: one round trip, O(1) on the server, the record to the client.
        """
        return run(self._get(key), port.current().store)

    async def aget(self, **key: Any) -> M | None:
        """The record of a partition and an id, or of a unique key; None when there is none.

        Raises:
            QueryError: the partition, or the id or a whole unique key, is not given.
        Cost: one round trip, O(1) on the server, the record to the client.
        """
        return await arun(self._get(key), port.current().astore)

    def get_many(self, ids: Sequence[str], **partition: Any) -> list[M | None]:
        """Records by id, in the order asked, None where there is none.

        Cost: a round trip per 1,000 ids, O(1) each on the server, the records to the client.
        """
        return run(self._get_many(ids, partition), port.current().store)

    async def aget_many(self, ids: Sequence[str], **partition: Any) -> list[M | None]:
        """Records by id, in the order asked, None where there is none.

        Cost: a round trip per 1,000 ids, O(1) each on the server, the records to the client.
        """
        return await arun(self._get_many(ids, partition), port.current().astore)

    def first(self) -> M | None:
        """The first record in order. Cost: as `all` with limit(1)."""
        return _first(self.limit(1).all())

    async def afirst(self) -> M | None:
        """The first record in order. Cost: as `all` with limit(1)."""
        return _first(await self.limit(1).aall())

    # ---- many records --------------------------------------------------------------------------

    def all(self) -> list[M]:
        """The records, in order.

        Cost: one round trip and the records returned where indexes answer; with ids, a round trip
        per 1,000; with a scan, a round trip per 500 records and the whole partition to the client.
        """
        return run(load.select(self.model, self._selection()), port.current().store)

    async def aall(self) -> list[M]:
        """The records, in order.

        Cost: one round trip and the records returned where indexes answer; with ids, a round trip
        per 1,000; with a scan, a round trip per 500 records and the whole partition to the client.
        """
        return await arun(load.select(self.model, self._selection()), port.current().astore)

    def ids(self) -> list[str]:
        """The ids of the records, in order. Cost: as `all`."""
        return run(delete.selected_ids(self.model, self._selection()), port.current().store)

    async def aids(self) -> list[str]:
        """The ids of the records, in order. Cost: as `all`."""
        return await arun(delete.selected_ids(self.model, self._selection()), port.current().astore)

    def count(self) -> int:
        """How many records meet the conditions, whatever limit and offset say.

        Cost: one round trip and a number to the client; for a bound finer than its index (a time within a
            millisecond), one more and the records beside it; with ids or a scan, as `all`.
        """
        return run(load.count(self.model, self._selection()), port.current().store)

    async def acount(self) -> int:
        """How many records meet the conditions, whatever limit and offset say.

        Cost: one round trip and a number to the client; for a bound finer than its index (a time within a
            millisecond), one more and the records beside it; with ids or a scan, as `all`.
        """
        return await arun(load.count(self.model, self._selection()), port.current().astore)

    def top_by_decay(self, n: int = 10) -> list[M]:
        """The n (1..1,000) most relevant records: base score x decay since the last touch.

        Cost: one round trip, O(log N + n) on the server, the records to the client; versions that are not
            valid and would be among them are passed over, 2,048 a round trip.
        """
        return run(self._top(n), port.current().store)

    async def atop_by_decay(self, n: int = 10) -> list[M]:
        """The n (1..1,000) most relevant records: base score x decay since the last touch.

        Cost: one round trip, O(log N + n) on the server, the records to the client; versions that are not
            valid and would be among them are passed over, 2,048 a round trip.
        """
        return await arun(self._top(n), port.current().astore)

    def iterate(self, page: int = 500) -> Iterator[M]:
        """Every record that meets the conditions, in storage order, within `limit` and `offset`.

        Records that exist throughout come exactly once, whatever is written meanwhile.
        Cost: a round trip per page (1..1,000 records); the ids seen are held in memory.
        """
        walk = _Walk(self._selection(), page)
        while not walk.done:
            reply = run(load.page(walk.selection.scope, walk.cursor, walk.size), port.current().store)
            yield from walk.fresh(load.passing(self.model, self.conditions, reply), reply.cursor)

    async def aiterate(self, page: int = 500) -> AsyncIterator[M]:
        """Every record that meets the conditions, in storage order, within `limit` and `offset`.

        Records that exist throughout come exactly once, whatever is written meanwhile.
        Cost: a round trip per page (1..1,000 records); the ids seen are held in memory.
        """
        walk = _Walk(self._selection(), page)
        while not walk.done:
            reply = await arun(load.page(walk.selection.scope, walk.cursor, walk.size), port.current().astore)
            for instance in walk.fresh(load.passing(self.model, self.conditions, reply), reply.cursor):
                yield instance

    def delete(self) -> int:
        """Erase every record that meets the conditions; how many were erased.

        Raises:
            QueryError: inside a batch.
        Cost: as `ids`, then a round trip per 250.
        """
        batches.refuse("query.delete()")
        return run(delete.delete_selected(self.model, self._selection()), port.current().store)

    async def adelete(self) -> int:
        """Erase every record that meets the conditions; how many were erased.

        Raises:
            QueryError: inside a batch.
        Cost: as `ids`, then a round trip per 250.
        """
        batches.refuse("query.delete()")
        return await arun(delete.delete_selected(self.model, self._selection()), port.current().astore)

    # ---- plans -----------------------------------------------------------------------------------

    @property
    def _spec(self) -> ModelSpec:
        return spec_of(self.model)

    def _located(self, lookups: Mapping[str, Any]) -> Scope:
        """The partition named by lookups, or by an earlier filter."""
        spec = self._spec
        named = {name: value for name, value in lookups.items() if name in spec.partition_by}
        if self.scope is None:
            return scope_of_call(spec, named, "query")
        known = dict(zip(spec.partition_by, self.scope.values, strict=True))
        scope = scope_of_call(spec, {**known, **named}, "query")
        if scope.values != self.scope.values:
            raise QueryError(f"{spec.name}: a query stays within one partition")
        return scope

    def _selection(self) -> Selection:
        scope = self._located({})
        return Selection(scope, self.conditions, self.order, self.descending, self.bound, self.skipped)

    def _get(self, key: Mapping[str, Any]) -> Plan[M | None]:
        scope = self._located(key)
        spec = scope.spec
        rest = {name: value for name, value in key.items() if name not in spec.partition_by}
        if set(rest) in ({spec.id_field}, {"id"}):
            (record_id,) = check_ids(spec, tuple(rest.values()))
            found: M | None = yield from load.one(self.model, scope, record_id)
            return self._kept(found)
        for rule in spec.unique:
            if set(rule) == set(rest):
                conditioned = {name: spec.fields[name].coerce(value) for name, value in rest.items()}
                digest = _digest(spec, rule, conditioned)
                found = yield from load.by_unique(self.model, scope, digest)
                return self._kept(found)
        raise QueryError(
            f"{spec.name}.query.get needs {spec.id_field}="
            + "".join(f" or all of {rule}" for rule in spec.unique),
            hint="filter() finds records by other fields",
        )

    def _get_many(self, ids: Sequence[str], partition: Mapping[str, Any]) -> Plan[list[M | None]]:
        scope = self._located(partition)
        unknown = [name for name in partition if name not in scope.spec.partition_by]
        if unknown:
            raise QueryError(
                f"{scope.spec.name}.query.get_many takes ids and a partition, not {shown_name(unknown[0])!r}"
            )
        found: list[M | None] = yield from load.many(self.model, scope, check_ids(scope.spec, ids_of(ids)))
        return [self._kept(one) for one in found]

    def _kept(self, found: M | None) -> M | None:
        """A record found by key, unless it fails the conditions of this query."""
        if found is None or self.conditions is ALL:
            return found
        record, ids = load.record_of(found), self.conditions.ids
        return found if (ids is None or record.id in ids) and holds(self.conditions, record, found) else None

    def _top(self, n: int) -> Plan[list[M]]:
        selection = self._selection()
        if selection.scope.spec.decay is None:
            raise QueryError(f"{selection.scope.spec.name} has no DecayingSortedField")
        if not 1 <= _whole("n", n) <= MOST_TOP:
            raise QueryError(f"n is 1..{MOST_TOP}")
        found: list[M] = yield from load.top(self.model, selection, n)
        return found


class QueryEntry:
    """`Model.query`: a fresh query of the class it is read from."""

    def __get__(self, instance: object | None, owner: type[M]) -> Query[M]:
        return Query(owner)


class _Walk:
    """Where an iteration stands: cursor, ids seen, and how many records it may still give."""

    def __init__(self, selection: Selection, size: int) -> None:
        if not 1 <= _whole("page", size) <= LARGEST_PAGE:
            raise QueryError(f"page is 1..{LARGEST_PAGE}")
        self.selection = selection
        self.size = size
        self.cursor = ""
        self.skip = selection.offset
        self.left = selection.limit
        self.done = selection.limit == 0
        self._seen: set[str] = set()

    def fresh(self, found: list[tuple[Any, M]], cursor: str) -> Iterator[M]:
        """The records not seen yet; storage that was reorganised starts over, and repeats are dropped."""
        self.cursor = cursor
        self.done = self.done or not cursor
        for record, instance in found:
            if record.id in self._seen:
                continue
            self._seen.add(record.id)
            if self.skip:
                self.skip -= 1
                continue
            if self.left is not None:
                self.left -= 1
                self.done = self.done or self.left == 0
            yield instance
            if self.left == 0:
                return


def _digest(spec: ModelSpec, rule: tuple[str, ...], values: Mapping[str, Any]) -> bytes:
    for name, value in values.items():
        try:
            spec.fields[name].verify(value, spec.name)
        except ValueError as error:
            raise QueryError(str(error)) from None
    digest = unique_digest(spec, rule, values)
    if digest is None:
        raise QueryError(f"{spec.name}: a unique key with None names no record")
    return digest


def _first(found: list[M]) -> M | None:
    return found[0] if found else None


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_NUMBER:
        raise QueryError(f"{name} is a whole number, 0..2^53")
    return value
