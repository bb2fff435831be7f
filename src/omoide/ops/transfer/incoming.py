"""What is on its way into a store: partitions and records as a file tells them, checked, not yet written.

A reader makes `Opening`s and `Incoming`s of a source, one at a time and in its order, and raises
TransferError where the source is wrong. It is called twice: to look at all of it, and to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import TypeAlias

from omoide.core.decay import order_score, touched_at
from omoide.errors import CorruptRecordError, FieldError, TransferError
from omoide.fields.documents import broken_rule
from omoide.fields.values import LARGEST_BYTES
from omoide.model.draft import Draft
from omoide.model.instance import (
    Instance,
    add_equality,
    id_of,
    scope_of,
    single,
    spec_of,
    stored_values,
)
from omoide.model.naming import shown_name
from omoide.model.schema import DecayIndex, ModelSpec, Scope
from omoide.ops.request import Kept

_FLOAT32_MAX = 3.4e38


@dataclass(frozen=True, slots=True)
class Opening:
    """A partition that was exported, with its counters."""

    place: str
    scope: Scope
    counters: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record, and where its source has it.

    `kept` None: it begins as a record that is saved now. `ignored`: names of values that are left out.
    `counted`: the counters that come with its partition tell of it already.
    """

    place: str
    instance: Instance
    kept: Kept | None = None
    ignored: tuple[str, ...] = ()
    counted: bool = False


Item: TypeAlias = Opening | Incoming
Reader: TypeAlias = Callable[[], Iterator[Item]]


def checked(item: Incoming) -> Scope:
    """The partition of a record that keeps every rule of its class.

    Raises:
        TransferError: a value breaks a rule; it names the field.
    """
    instance = item.instance
    spec = spec_of(type(instance))
    try:
        id_of(instance)
        for name, field in spec.fields.items():
            if field.stored:
                _check_field(instance, name)
        for name, value in instance._omoide.extra.items():
            _check_extra(spec.name, name, value)
        add_equality(instance, Draft(stored_values(instance)))
        return scope_of(instance)
    except (FieldError, CorruptRecordError) as error:
        raise TransferError(str(error), place=item.place, hint=error.hint) from None


def _check_field(instance: Instance, name: str) -> None:
    """Raise unless the stored form of a value is one that its field writes, or could be left out."""
    spec = spec_of(type(instance))
    field = spec.fields[name]
    if instance._omoide.raw.get(name) is None and name in instance._omoide.raw and not field.required:
        return
    field.verify(getattr(instance, name, None), spec.name)


def _check_extra(model: str, name: str, value: object) -> None:
    """Raise unless a value that no field of the class names can be stored as it is."""
    rule = None if isinstance(value, bytes) else broken_rule(value, LARGEST_BYTES)
    if rule is not None:
        raise FieldError(model, shown_name(name), rule)


def order_for(decay: DecayIndex | None, base: float, touched: float, place: str) -> float:
    """The score of the decay order of a model for a last touch (seconds since the epoch).

    Raises:
        TransferError: there is none, for a base score or a touch that no record has.
    """
    if decay is None or decay.exponent is not None:
        order = touched
    elif abs(base) > _FLOAT32_MAX:
        order = inf
    else:
        order = order_score(single(base), touched, decay.half_life)
    if not isfinite(order):
        raise TransferError("a record with a decay order that no store keeps", place=place)
    return order


def base_of(spec: ModelSpec, instance: Instance) -> float:
    """The base score of a record, 1.0 without decay."""
    if spec.decay is None:
        return 1.0
    name = spec.decay.base_score_field
    value = None if name is None else getattr(instance, name, None)
    return spec.decay.base_default if value is None else float(value)


def touch_of(half_life: float | None, base: float, order: float) -> float:
    """The last touch behind a score of a decay order; `half_life` None for an order by touch."""
    if half_life is None:
        return order
    return inf if abs(base) > _FLOAT32_MAX else touched_at(order, single(base), half_life)


__all__ = [
    "Incoming",
    "Item",
    "Opening",
    "Reader",
    "base_of",
    "checked",
    "order_for",
    "touch_of",
]
