"""Every value comes back equal and of the same type, through MessagePack."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, auto
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from omoide.model.instance import stored_values
from omoide.ops.model import Model
from omoide.ops.request import Record


class Colour(Enum):
    RED = "r"
    BLUE = 2


class Mode(Flag):
    READ = auto()
    WRITE = auto()


class EveryValue(Model):
    record_id = AutoKeyField()
    agent_id = KeyField()
    key = KeyField(null=True)
    text = StringField(null=True)
    whole = IntField(null=True)
    number = FloatField(null=True)
    exact = DecimalField(null=True)
    truth = BoolField(null=True)
    data = BytesField(null=True)
    instant = DatetimeField(null=True)
    day = DateField(null=True)
    colour = EnumField(Colour, null=True)
    mode = EnumField(Mode, null=True)
    uuid = UUIDField(null=True)
    tags = TagField(null=True)
    items = ListField(null=True)
    document = DictField(null=True)

    class Meta:
        partition_by = "agent_id"


_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
_KEY = _TEXT.filter(lambda text: 0 < len(text.encode()) <= 128)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "agent_id": _KEY,
    "record_id": _KEY,
    "key": st.none() | _KEY,
    "text": st.none() | _TEXT,
    "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
    "number": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "exact": st.none() | st.decimals(allow_nan=False, allow_infinity=False),
    "truth": st.none() | st.booleans(),
    "data": st.none() | st.binary(max_size=60),
    "instant": st.none()
    | st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=_ZONES, allow_imaginary=False),
    "day": st.none() | st.dates(),
    "colour": st.none() | st.sampled_from(Colour),
    "mode": st.none() | st.sampled_from([Mode.READ, Mode.WRITE, Mode.READ | Mode.WRITE, Mode(0)]),
    "uuid": st.none() | st.uuids(),
    "tags": st.none() | st.sets(_KEY, max_size=6),
    "items": st.none() | st.lists(_JSON, max_size=4),
    "document": st.none() | st.dictionaries(_TEXT, _JSON, max_size=4),
}


def round_trip(instance: EveryValue) -> EveryValue:
    packed = msgspec.msgpack.encode(stored_values(instance))
    values = msgspec.msgpack.decode(packed)
    return EveryValue.from_record(Record(values["record_id"], 1, values, 1, 0, 1.0, 0.5))


def same(first: Any, second: Any) -> bool:
    """Equal, of equal types all the way down, signs of zero included."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second) and (not isinstance(first, float | Decimal) or str(first) == str(second))


@given(st.fixed_dictionaries(VALUES))
def test_every_value_comes_back(values: dict[str, Any]) -> None:
    instance = EveryValue(**values)
    back = round_trip(instance)
    for name, value in values.items():
        if name == "instant" and value is not None:
            assert getattr(back, name) == value
            assert getattr(back, name).tzinfo is UTC
        else:
            assert same(getattr(back, name), value), name
        assert same(getattr(back, name), getattr(instance, name)), name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", ""),
        ("text", "\x00\x01\n\u2028 e\u0301 é 👩‍👩‍👧 𝔘"),
        ("text", "x" * 65_536),
        ("whole", 2**63 - 1),
        ("whole", -(2**63)),
        ("number", -0.0),
        ("number", 1.7976931348623157e308),
        ("number", 5e-324),
        ("exact", Decimal("-0.00")),
        ("exact", Decimal("1E+400")),
        ("instant", datetime(1, 1, 1, tzinfo=UTC)),
        ("instant", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ("day", date.min),
        ("day", date.max),
        ("uuid", UUID(int=0)),
        ("data", b"\x00\xff" * 100),
        ("items", [[[]], {}, {"": None}]),
        ("agent_id", "a:{b}*?[c]%/\n 日本"),
    ],
)
def test_extremes_come_back(name: str, value: Any) -> None:
    instance = EveryValue(**{"agent_id": "a", name: value})
    assert same(getattr(round_trip(instance), name), value)


def test_dst_folds_are_two_instants() -> None:
    from zoneinfo import ZoneInfo

    zone = ZoneInfo("America/New_York")
    early = datetime(2024, 11, 3, 1, 30, tzinfo=zone)
    late = early.replace(fold=1)
    first, second = (round_trip(EveryValue(agent_id="a", instant=one)).instant for one in (early, late))
    assert first is not None
    assert second is not None
    assert second - first == timedelta(hours=1)


def test_plain_types_are_settled_at_assignment() -> None:
    class Word(str):
        __slots__ = ()

    one = EveryValue(agent_id=7, text=Word("w"), number=3, tags=["b", "a"], data=bytearray(b"x"))
    assert (type(one.text), one.number, one.tags, one.data) == (str, 3.0, {"a", "b"}, b"x")
    assert one.agent_id == "7"
    assert EveryValue(agent_id=UUID(int=1)).agent_id == str(UUID(int=1))


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_equal_decimals_have_one_exact_text(pair: list[Decimal]) -> None:
    texts = [DecimalField().to_exact(value) for value in pair]
    assert (texts[0] == texts[1]) == (pair[0] == pair[1])


def test_exact_texts_of_tag_sets_are_injective() -> None:
    field = TagField()
    sets = [{"a", "b"}, {"ab"}, {"a", "b1:c"}, {"1:a", "b"}, set()]
    assert len({field.to_exact(tags) for tags in sets}) == len(sets)
    assert all(character in string.printable for character in field.to_exact(sets[0]))
