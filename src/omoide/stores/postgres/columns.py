"""Fields as columns: each type of field has one column type that gives every value back, equal and typed.

    StringField, KeyField, AutoKeyField   text            NUL and U+FDD0 escaped (see `escaped`)
    IntField                              bigint
    FloatField                            double precision
    DecimalField                          text            numeric would lose exponent and sign of zero
    BoolField                             boolean
    BytesField                            bytea
    DatetimeField                         timestamptz     whole microseconds, UTC
    DateField                             date
    UUIDField                             uuid
    EnumField                             text            a Flag: bigint
    TagField                              text[]
    ListField, DictField                  json            jsonb would lose -0.0, 1e16 and NUL
    any other stored field                bytea           MessagePack

A column takes the *stored form* of a value. A stored value of another type (the class changed since, and
the record was not saved anew) has no place in a typed column; it is kept, with values that no field names,
in the MessagePack column `_extra`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Flag
from typing import Any
from uuid import UUID

import msgspec

from omoide.fields import (
    AutoKeyField,
    BoolField,
    BytesField,
    DateField,
    DatetimeField,
    DecimalField,
    DictField,
    EnumField,
    FloatField,
    IntField,
    KeyField,
    ListField,
    StringField,
    TagField,
    UUIDField,
)
from omoide.model.field import Field
from omoide.model.schema import ModelSpec

__all__ = ["Column", "columns_of", "escaped", "unescaped"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ESCAPE = "\ufdd0"  # a noncharacter: no text that people exchange holds it
_INT = 2**63
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode

Convert = Callable[[Any], Any]


class Misfit(ValueError):
    """A stored value that its column cannot hold."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its SQL type, and the way of a stored form, not None, there and back."""

    name: str
    type: str
    to_sql: Convert
    from_sql: Convert


def escaped(text: str) -> str:
    """Text as PostgreSQL can hold it: NUL is U+FDD0 `0`, and U+FDD0 itself U+FDD0 `1`."""
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\0", f"{_ESCAPE}0")


def unescaped(text: str) -> str:
    """The inverse of `escaped`."""
    if _ESCAPE not in text:
        return text
    return text.replace(f"{_ESCAPE}0", "\0").replace(f"{_ESCAPE}1", _ESCAPE)


def columns_of(spec: ModelSpec) -> tuple[Column, ...]:
    """A column for each stored field, in the order of the fields."""
    return tuple(_column(name, field) for name, field in spec.fields.items() if field.stored)


def _column(name: str, field: Field[Any]) -> Column:
    if isinstance(field, EnumField):
        flag = issubclass(field.members, Flag)
        return Column(name, *(_WHOLE if flag else _TEXT))
    for kind, how in _KINDS:
        if isinstance(field, kind):
            return Column(name, *how)
    return Column(name, "bytea", _pack, lambda data: _unpack(bytes(data)))


def _typed(kind: type, convert: Convert = lambda value: value) -> Convert:
    def checked(value: Any) -> Any:
        if type(value) is not kind:
            raise Misfit
        return convert(value)

    return checked


def _whole(value: Any) -> int:
    if type(value) is not int or not -_INT <= value < _INT:
        raise Misfit
    return value


def _uuid(value: Any) -> UUID:
    if type(value) is not bytes or len(value) != 16:
        raise Misfit
    return UUID(bytes=value)


def _instant(value: Any) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=_whole(value))
    except OverflowError:
        raise Misfit from None


def _day(value: Any) -> date:
    try:
        found = date.fromisoformat(value)
    except (TypeError, ValueError):
        raise Misfit from None
    if found.isoformat() != value:
        raise Misfit
    return found


def _tags(value: Any) -> list[str]:
    if type(value) is not list or not all(type(tag) is str for tag in value):
        raise Misfit
    return [escaped(tag) for tag in value]


def _same(value: Any) -> Any:
    return value


def _document(kind: type) -> tuple[str, Convert, Convert]:
    return "json", _typed(kind, lambda value: json.dumps(value, separators=(",", ":"))), _same


_TEXT: tuple[str, Convert, Convert] = ("text", _typed(str, escaped), unescaped)
_WHOLE: tuple[str, Convert, Convert] = ("bigint", _whole, _same)
_KINDS: tuple[tuple[Any, tuple[str, Convert, Convert]], ...] = (
    ((StringField, KeyField, AutoKeyField, DecimalField), _TEXT),
    (IntField, _WHOLE),
    (FloatField, ("double precision", _typed(float), _same)),
    (BoolField, ("boolean", _typed(bool), _same)),
    (BytesField, ("bytea", _typed(bytes), bytes)),
    (
        DatetimeField,
        ("timestamptz", _instant, lambda value: (value - _EPOCH) // _MICROSECOND),
    ),
    (DateField, ("date", _day, lambda value: value.isoformat())),
    (UUIDField, ("uuid", _uuid, lambda value: value.bytes)),
    (TagField, ("text[]", _tags, lambda value: [unescaped(tag) for tag in value])),
    (ListField, _document(list)),
    (DictField, _document(dict)),
)
