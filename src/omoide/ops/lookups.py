"""Keyword lookups become conditions: what indexes answer, and what only a scan can.

memory_id=, id__in=                       ids
tags=, session_id=, indexed fields        equality
importance__gte=, confidence__lt=,
time__gte= (or the fields' own names)     half-open ranges [gte, lt), exact (see `omoide.ops.bounds`)
anything else                             a test of each record, with scan=True only
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from sys import float_info
from typing import Any

from omoide.errors import CorruptRecordError, FieldError, QueryError
from omoide.fields.instants import to_milliseconds
from omoide.fields.tags import TagField
from omoide.fields.values import BytesField, EnumField
from omoide.model.field import Field
from omoide.model.instance import Instance
from omoide.model.naming import shown_name
from omoide.model.partition import check_ids, refuse
from omoide.model.schema import ModelSpec
from omoide.ops.bounds import Edge, bound
from omoide.ops.request import EVERYTHING, Match, Record

_log = logging.getLogger("omoide")

_FLOAT_MAX = float_info.max
_RANGES = ("importance", "confidence", "time")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": lambda held, value: held > value,
    "gte": lambda held, value: held >= value,
    "lt": lambda held, value: held < value,
    "lte": lambda held, value: held <= value,
}
_OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "contains")


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison that each record is put to in the client."""

    field: str
    operator: str
    value: Any

    def holds(self, instance: Instance) -> bool:
        """Whether the record passes. A stored value that cannot be read does not, with a log line.

        Raises:
            QueryError: the values of a field of one's own cannot be compared.
        """
        try:
            held = getattr(instance, self.field, None)
        except CorruptRecordError as error:
            _log.warning("a scan passed over a record: %s", error)
            return False
        try:
            return self._passes(held)
        except TypeError:
            raise QueryError(f"{self.field}: the values cannot be compared by {self.operator}") from None

    def _passes(self, held: Any) -> bool:
        if self.operator in ("eq", "ne"):
            return bool((held == self.value) == (self.operator == "eq"))
        if self.operator == "in":
            return held in self.value
        if held is None:
            return False
        if self.operator == "contains":
            return self.value in held
        return bool(_COMPARE[self.operator](held, self.value))


@dataclass(frozen=True, slots=True)
class Conditions:
    """All must hold. `ids` None: any id. `edges`: what indexes are too coarse to tell."""

    match: Match = EVERYTHING
    ids: tuple[str, ...] | None = None
    tests: tuple[Test, ...] = ()
    edges: tuple[Edge, ...] = ()


ALL = Conditions()


def narrow(base: Conditions, spec: ModelSpec, lookups: Mapping[str, Any], *, scan: bool) -> Conditions:
    """Add lookups to conditions.

    Raises:
        QueryError: an unknown name or operator, a value that cannot be compared, or a lookup that
            no index answers while `scan` is False.
        PolicyError: the firewall of the model keeps a value out of commands.
    """
    named = [_split(spec, key) for key in lookups]
    if lookups:
        refuse(spec, "filter", {key: value for key, value in lookups.items() if key != spec.id_field})
    for (name, operator), value in zip(named, lookups.values(), strict=True):
        base = _add(base, spec, name, operator, value, scan)
    return base


def without(base: Conditions, ids: tuple[str, ...]) -> Conditions:
    """Add ids to leave out."""
    if not ids:
        return base
    return replace(base, match=replace(base.match, exclude=tuple(dict.fromkeys((*base.match.exclude, *ids)))))


def at(base: Conditions, spec: ModelSpec, as_of: object) -> Conditions:
    """Conditions as of an instant: only what was valid then.

    Raises:
        QueryError: the model has no validity, or that is no aware datetime.
    """
    _need_validity(spec, "as_of")
    if not isinstance(as_of, datetime) or as_of.utcoffset() is None:
        raise QueryError(f"{spec.name}: as_of is an aware datetime", hint="datetime(..., tzinfo=UTC)")
    return replace(base, match=replace(base.match, as_of=to_milliseconds(as_of), history=False))


def ever(base: Conditions, spec: ModelSpec) -> Conditions:
    """Conditions that every version can meet, valid or not.

    Raises:
        QueryError: the model has no validity.
    """
    _need_validity(spec, "history")
    return replace(base, match=replace(base.match, as_of=None, history=True))


def _need_validity(spec: ModelSpec, option: str) -> None:
    if spec.validity is None:
        raise QueryError(f"{spec.name} has no ValidityField, which {option} needs")


def _valid(match: Match, record: Record) -> bool:
    """Whether a record is valid as the conditions ask; by the server's clock when it was read."""
    if record.valid_from_ms is None or match.history:
        return True
    instant = record.read_ms if match.as_of is None else match.as_of
    return record.valid_from_ms <= instant and (record.valid_to_ms is None or instant < record.valid_to_ms)


def holds(conditions: Conditions, record: Record, instance: Instance) -> bool:
    """Whether a record meets all conditions but the ids, checked in the client."""
    match = conditions.match
    if record.id in match.exclude or not _valid(match, record):
        return False
    ranges = (
        (match.time, record.time_ms),
        (match.importance, record.importance),
        (match.confidence, record.confidence),
    )
    if not all(_within(bounds, value) for bounds, value in ranges):
        return False
    if not all(edge.holds(record, instance) for edge in conditions.edges):
        return False
    fields = type(instance).__omoide_spec__.fields  # type: ignore[union-attr]
    return all(_carries(fields[name], instance, text) for name, text in match.exact) and all(
        test.holds(instance) for test in conditions.tests
    )


def _split(spec: ModelSpec, key: str) -> tuple[str, str]:
    name, separator, operator = key.rpartition("__")
    if key in spec.fields or not separator:
        name, operator = key, "eq"
    known = name in spec.fields or name in (*_RANGES, "id")
    if not known or operator not in _OPERATORS:
        raise QueryError(
            f"{spec.name} has no lookup {shown_name(key)!r}",
            hint=f"a field name, or one with __{', __'.join(_OPERATORS[1:])}",
        )
    return name, operator


def _add(base: Conditions, spec: ModelSpec, name: str, operator: str, value: Any, scan: bool) -> Conditions:
    if name == spec.id_field or (name == "id" and name not in spec.fields):
        if operator in ("eq", "in"):
            return _with_ids(base, spec, (value,) if operator == "eq" else _several(spec, name, value))
        name = spec.id_field
    role = _range_role(spec, name)
    if role is not None and operator in ("gte", "lt"):
        _check_bound(spec, name, role, value)
        rounded, edge = bound(role, operator, value)
        match = ranged(base.match, role, _cut(getattr(base.match, role), operator, rounded))
        return replace(base, match=match, edges=base.edges if edge is None else (*base.edges, edge))
    if name not in spec.fields:
        raise QueryError(
            f"{spec.name}.{name} takes {name}__gte and {name}__lt", hint="or name a field of the model"
        )
    attribute = spec.fields[name]
    if name in spec.exact and operator == "eq" and value is not None:
        pairs = tuple((name, text) for text in _exact_texts(spec, attribute, value))
        return replace(base, match=replace(base.match, exact=(*base.match.exact, *pairs)))
    if not scan:
        raise QueryError(
            f"{spec.name}.{name}: no index answers this lookup",
            hint="add scan=True to test every record of the partition, or index the field",
        )
    return replace(base, tests=(*base.tests, Test(name, operator, _tested(spec, attribute, operator, value))))


def ranged(match: Match, role: str, bounds: tuple[Any, Any]) -> Match:
    """The match with other bounds of a range."""
    changes: dict[str, Any] = {role: bounds}
    return replace(match, **changes)


def _with_ids(base: Conditions, spec: ModelSpec, ids: tuple[Any, ...]) -> Conditions:
    wanted = tuple(dict.fromkeys(check_ids(spec, ids)))
    if base.ids is not None:
        wanted = tuple(one for one in base.ids if one in set(wanted))
    return replace(base, ids=wanted)


def _range_role(spec: ModelSpec, name: str) -> str | None:
    """Which indexed range a name stands for: a field with that role, or the role's own name."""
    certainty = None if spec.certainty is None else spec.certainty.name
    named = {spec.importance: "importance", certainty: "confidence", spec.time: "time"}
    if name in named:
        return named[name]
    return name if name in _RANGES and name not in spec.fields else None


def _check_bound(spec: ModelSpec, name: str, role: str, value: Any) -> None:
    if role == "time":
        if not isinstance(value, datetime) or value.utcoffset() is None:
            raise QueryError(
                f"{spec.name}.{name}: compare with an aware datetime", hint="datetime(..., tzinfo=UTC)"
            )
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not -_FLOAT_MAX <= value <= _FLOAT_MAX:
        raise QueryError(f"{spec.name}.{name}: compare with a finite number")


def _cut(bounds: tuple[Any, Any] | None, operator: str, bound: float | int) -> tuple[Any, Any]:
    low, high = bounds or (None, None)
    if operator == "gte":
        return (bound if low is None else max(low, bound), high)
    return (low, bound if high is None else min(high, bound))


def _within(bounds: tuple[Any, Any] | None, value: float) -> bool:
    low, high = bounds or (None, None)
    return (low is None or value >= low) and (high is None or value < high)


def _carries(attribute: Field[Any], instance: Instance, text: str) -> bool:
    value = getattr(instance, attribute.name, None)
    return value is not None and text in attribute.exact_texts(value)


def _exact_texts(spec: ModelSpec, attribute: Field[Any], value: Any) -> tuple[str, ...]:
    """Index texts of a value looked for; one tag may be given as a plain string."""
    settled = attribute.coerce(value)
    if attribute.raw_types == (list,) and isinstance(settled, str):
        settled = {settled}
    _verify(spec, attribute, settled)
    texts = attribute.exact_texts(settled)
    if not texts:
        raise QueryError(f"{spec.name}.{attribute.name}: an empty set matches nothing in particular")
    return texts


def _tested(spec: ModelSpec, attribute: Field[Any], operator: str, value: Any) -> Any:
    if operator == "in":
        return tuple(attribute.coerce(one) for one in _several(spec, attribute.name, value))
    if operator == "contains":
        _check_part(spec, attribute, value)
        return value
    if operator in _COMPARE and not can_order(attribute):
        raise QueryError(f"{spec.name}.{attribute.name} has no order to compare by")
    settled = None if value is None else attribute.coerce(value)
    if settled is not None or operator not in ("eq", "ne"):
        _verify(spec, attribute, settled)
    return settled


def _several(spec: ModelSpec, name: str, value: Any) -> tuple[Any, ...]:
    """The values of `__in`; one text is no collection of texts."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise QueryError(f"{spec.name}.{name}__in takes a list of values")
    return tuple(value)


def _check_part(spec: ModelSpec, attribute: Field[Any], value: Any) -> None:
    """Refuse a `__contains` that no value of the field could answer."""
    kinds = set(attribute.raw_types)
    if isinstance(attribute, TagField) or attribute.textual or kinds == {dict}:
        part: type = str
    elif isinstance(attribute, BytesField):
        part = bytes
    elif kinds == {list} or not kinds:
        return
    else:
        raise QueryError(f"{spec.name}.{attribute.name}: a value of this field contains nothing")
    if not isinstance(value, part):
        raise QueryError(f"{spec.name}.{attribute.name}__contains takes a {part.__name__}")


def can_order(attribute: Field[Any]) -> bool:
    """Whether any two values of a field can be compared."""
    if isinstance(attribute, EnumField):
        return issubclass(attribute.members, int | str)
    return not {list, dict} & set(attribute.raw_types)


def _verify(spec: ModelSpec, attribute: Field[Any], value: Any) -> None:
    try:
        attribute.verify(value, spec.name)
    except FieldError as error:
        raise QueryError(str(error)) from None
