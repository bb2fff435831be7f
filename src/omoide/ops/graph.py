"""The association graph of one record: edges, neighbours, propagation."""

from __future__ import annotations

from typing import Any

from omoide.errors import QueryError
from omoide.model.field import is_number
from omoide.model.instance import Instance, id_of, scope_of
from omoide.model.partition import check_ids
from omoide.ops import port
from omoide.ops.request import Link, Spread
from omoide.ops.run import Plan, arun, run

MOST_HOPS = 4
MOST_FAN_OUT = 64
MOST_FOUND = 1_000

Scored = list[tuple[str, float]]


class Associations:
    """The edges of one record; see `omoide.fields.cooccurrence.Associations`."""

    __slots__ = ("_record",)

    def __init__(self, record: Instance) -> None:
        self._record = record

    def link(self, other: Any, weight: float | None = None) -> float:
        """Add `weight` (default 1.0) to the edge; its new weight. Cost: one round trip."""
        return run(_change(self._record, other, weight, +1), port.current().store)

    async def alink(self, other: Any, weight: float | None = None) -> float:
        """Add `weight` (default 1.0) to the edge; its new weight. Cost: one round trip."""
        return await arun(_change(self._record, other, weight, +1), port.current().astore)

    def strengthen(self, other: Any, by: float | None = None) -> float:
        """Add to the edge, making it where there is none; its new weight. Cost: one round trip."""
        return run(_change(self._record, other, by, +1), port.current().store)

    async def astrengthen(self, other: Any, by: float | None = None) -> float:
        """Add to the edge, making it where there is none; its new weight. Cost: one round trip."""
        return await arun(_change(self._record, other, by, +1), port.current().astore)

    def weaken(self, other: Any, by: float | None = None) -> float:
        """Take from the edge (default 0.5); its new weight, 0.0 when gone. Cost: one round trip."""
        return run(_change(self._record, other, by, -1), port.current().store)

    async def aweaken(self, other: Any, by: float | None = None) -> float:
        """Take from the edge (default 0.5); its new weight, 0.0 when gone. Cost: one round trip."""
        return await arun(_change(self._record, other, by, -1), port.current().astore)

    def neighbours(self, limit: int = 16) -> Scored:
        """(id, w / (1 + w)) of linked records, strongest first. Cost: one round trip."""
        return run(_spread(self._record, 1, MOST_FAN_OUT, 1.0, limit), port.current().store)

    async def aneighbours(self, limit: int = 16) -> Scored:
        """(id, w / (1 + w)) of linked records, strongest first. Cost: one round trip."""
        return await arun(_spread(self._record, 1, MOST_FAN_OUT, 1.0, limit), port.current().astore)

    def propagate(
        self,
        hops: int | None = None,
        *,
        fan_out: int | None = None,
        decay: float | None = None,
        limit: int = 64,
    ) -> Scored:
        """(id, score) of what paths of at most `hops` (1..4) edges reach, best path first.

        Each edge passes on decay x w / (1 + w) of a score; `fan_out` (1..64) strongest edges of a
        record are followed. Cost: one round trip, O(fan_out ^ hops) on the server.
        """
        return run(_spread(self._record, hops, fan_out, decay, limit), port.current().store)

    async def apropagate(
        self,
        hops: int | None = None,
        *,
        fan_out: int | None = None,
        decay: float | None = None,
        limit: int = 64,
    ) -> Scored:
        """(id, score) of what paths of at most `hops` (1..4) edges reach, best path first.

        Each edge passes on decay x w / (1 + w) of a score; `fan_out` (1..64) strongest edges of a
        record are followed. Cost: one round trip, O(fan_out ^ hops) on the server.
        """
        return await arun(_spread(self._record, hops, fan_out, decay, limit), port.current().astore)


def _change(record: Instance, other: Any, weight: float | None, sign: int) -> Plan[float]:
    scope, mine = scope_of(record), id_of(record)
    if isinstance(other, Instance):
        if type(other) is not type(record) or scope_of(other).values != scope.values:
            raise QueryError(f"{scope.spec.name}: only records of one partition can be linked")
        other = id_of(other)
    (theirs,) = check_ids(scope.spec, (other,))
    if theirs == mine:
        raise QueryError(f"{scope.spec.name}: a record cannot be linked to itself")
    if weight is None:
        defaults = type(record).__omoide_defaults__
        weight = defaults.link_weight if sign > 0 else defaults.weaken_weight
    if not (is_number(weight) and weight > 0):
        raise QueryError("the weight of a link is a positive number")
    new: float = yield Link(scope, mine, theirs, sign * float(weight))
    return new


def _spread(
    record: Instance, hops: int | None, fan_out: int | None, decay: float | None, limit: int
) -> Plan[Scored]:
    defaults = type(record).__omoide_defaults__
    hops = defaults.link_hops if hops is None else hops
    fan_out = defaults.link_fan_out if fan_out is None else fan_out
    decay = defaults.link_decay if decay is None else decay
    if not (1 <= hops <= MOST_HOPS and 1 <= fan_out <= MOST_FAN_OUT and 1 <= limit <= MOST_FOUND):
        raise QueryError(f"hops is 1..{MOST_HOPS}, fan_out 1..{MOST_FAN_OUT}, limit 1..{MOST_FOUND}")
    if not 0.0 < decay <= 1.0:
        raise QueryError("decay is a number in (0, 1]")
    reached: tuple[tuple[str, float], ...] = yield Spread(
        scope_of(record), {id_of(record): 1.0}, hops, fan_out, float(decay), limit
    )
    return list(reached)
