"""Bounds of a range, and the indexes that are coarser than what they index.

    role         held                    indexed in
    time         microseconds            milliseconds, rounded down
    importance   float64                 float32
    confidence   float64                 steps of 1/65,535, rounded

A half-open range [low, high) of exact values becomes one of index values that is rounded outward, and
an `Edge` for each bound that falls inside an index step: records of that step are put to the exact
test in the client. A bound that begins a step needs none.

An importance is compared in single precision when the bound is a number of single precision, as 0.1
is (the shortest text of its float32 reads back as it); a finer bound is compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import inf, nextafter
from struct import Struct
from typing import Any

from omoide.core.columns import CONFIDENCE_STEPS, stored_confidence
from omoide.errors import CorruptRecordError
from omoide.fields.instants import to_microseconds
from omoide.model.instance import Instance, single, spec_of
from omoide.ops.request import Record

LARGEST = 3.4e38
"""No importance is beyond +-LARGEST."""

_BITS = Struct("<i")
_SINGLE = Struct("<f")
_DIGITS = 9
"""Decimal digits that tell any two float32 apart."""

Step = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Edge:
    """A bound inside an index step: `step` [low, high) of the index, `value` exact, `gte` or `lt`."""

    role: str
    operator: str
    value: float | int
    step: Step

    def holds(self, record: Record, instance: Instance) -> bool:
        """Whether a record is on the right side of the bound."""
        held = _exact(self.role, record, instance)
        return held >= self.value if self.operator == "gte" else held < self.value


def bound(role: str, operator: str, value: Any) -> tuple[float | int, Edge | None]:
    """A checked bound rounded outward for the index, and the test it leaves to the client."""
    exact, step, inside = _STEPS[role](value)
    edge = Edge(role, operator, exact, step) if inside else None
    if operator == "gte" or edge is None:
        return step[0], edge
    return step[1], edge


def meet(first: Step | None, second: Step) -> Step | None:
    """What two half-open ranges share, None for nothing."""
    low, high = first or (None, None)
    low = second[0] if low is None else max(low, second[0])
    high = second[1] if high is None else min(high, second[1])
    return (low, high) if low < high else None


def _time_step(value: datetime) -> tuple[int, Step, bool]:
    exact = to_microseconds(value)
    low = exact // 1_000
    return exact, (low, low + 1), low * 1_000 != exact


def _importance_step(value: float) -> tuple[float, Step, bool]:
    exact = float(value)
    low = single(max(-LARGEST, min(LARGEST, exact)))
    return exact, (low, _next_single(low)), exact != _shortest(low)


def _confidence_step(value: float) -> tuple[float, Step, bool]:
    exact = min(1.0, max(0.0, float(value)))
    step = stored_confidence(exact)
    inside = exact == value and exact > 0.0 and stored_confidence(nextafter(exact, -inf)) == step
    return float(value), (float(value), (step + 1) / CONFIDENCE_STEPS), inside


_STEPS: Mapping[str, Callable[[Any], tuple[Any, Step, bool]]] = {
    "time": _time_step,
    "importance": _importance_step,
    "confidence": _confidence_step,
}


def _next_single(value: float) -> float:
    """The next greater float32."""
    if value == 0.0:
        return float(_SINGLE.unpack(_BITS.pack(1))[0])
    bits: int = _BITS.unpack(_SINGLE.pack(value))[0]
    return float(_SINGLE.unpack(_BITS.pack(bits + (1 if value > 0.0 else -1)))[0])


def _shortest(value: float) -> float:
    """The number that the shortest decimal text of a float32 stands for."""
    texts = (f"{value:.{digits}g}" for digits in range(1, _DIGITS + 1))
    return next((float(text) for text in texts if single(float(text)) == value), value)


def _exact(role: str, record: Record, instance: Instance) -> float | int:
    """What the index of a role was made from, in full precision; the indexed value where that is unknown."""
    if role == "confidence":
        return record.confidence
    if role == "importance":
        value = _held(instance, spec_of(type(instance)).importance)
        known = isinstance(value, int | float) and abs(value) <= LARGEST
        return float(value) if known and single(float(value)) == record.importance else record.importance
    for name in (spec_of(type(instance)).time, "created_at"):
        value = _held(instance, name)
        if isinstance(value, datetime) and to_microseconds(value) // 1_000 == record.time_ms:
            return to_microseconds(value)
    return record.time_ms * 1_000


def _held(instance: Instance, name: str | None) -> Any:
    try:
        return None if name is None else getattr(instance, name, None)
    except CorruptRecordError:
        return None


__all__ = ["LARGEST", "Edge", "bound", "meet"]
