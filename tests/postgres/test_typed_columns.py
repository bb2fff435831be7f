"""Every value of every field comes back from its column, equal and of the same type."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.postgres.conftest import compared

import omoide
from omoide import (
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
    Model,
    PostgresMirror,
    StringField,
    TagField,
    UUIDField,
)
from omoide.connection import Connection
from omoide.model.instance import scope_of, spec_of
from omoide.stores.postgres.columns import columns_of, escaped, unescaped
from omoide.stores.postgres.tables import row_values, table_of, values_of
from omoide.testing import ValkeyServer


class Mood(Enum):
    GOOD = 1
    BAD = "bad"


class Mark(Flag):
    ONE = 1
    TWO = 2


class Columned(Model):
    thing_id = AutoKeyField()
    agent_id = KeyField()
    text = StringField(null=True)
    number = IntField(null=True)
    real = FloatField(null=True)
    exact = DecimalField(null=True)
    truth = BoolField(null=True)
    data = BytesField(null=True)
    instant = DatetimeField(null=True)
    day = DateField(null=True)
    mood = EnumField(Mood, null=True)
    mark = EnumField(Mark, null=True)
    uuid = UUIDField(null=True)
    tags = TagField()
    items = ListField(null=True)
    table = DictField(null=True)

    class Meta:
        mirror = PostgresMirror(table="everything")


EXTREMES: list[dict[str, Any]] = [
    {},
    {"text": "", "data": b"", "items": [], "table": {}, "tags": set(), "number": 0, "real": 0.0},
    {
        "text": "NUL \0 here, \ufdd0 and \ufdd00 there, 日本語 🎉 ' \" \\ \n\t%s {x}",
        "data": bytes(range(256)),
    },
    {"number": 2**63 - 1, "real": 5e-324, "exact": Decimal("-0"), "truth": False},
    {"number": -(2**63), "real": -0.0, "exact": Decimal("1E+20"), "truth": True},
    {"real": 1.7976931348623157e308, "exact": Decimal("1.10"), "mood": Mood.BAD, "mark": Mark.ONE | Mark.TWO},
    {"exact": Decimal("9E-200"), "mood": Mood.GOOD, "mark": Mark(0), "uuid": UUID(int=2**128 - 1)},
    {"instant": datetime(1, 1, 1, tzinfo=UTC), "day": date(1, 1, 1), "uuid": UUID(int=0)},
    {"instant": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "day": date(9999, 12, 31)},
    {"instant": datetime(2024, 2, 29, 1, 2, 3, 4, timezone(timedelta(hours=9, minutes=30)))},
    {"tags": {"a", "b\0c", "日本", 'q"u,o{t}e\\', "NULL", " "}},
    {"items": [None, True, 1, 1.0, -0.0, 1e16, 1e300, "x\0y", [], {}, [[[{"k\0": None}]]], 2**63 - 1]},
    {"table": {"": 0, "a.b": [1.5], "ключ": {"n": None}, "\ufdd0": "\0"}},
]


def same(first: Any, second: Any) -> bool:
    """Equal, of one type, all the way down; zeros of one sign, decimals of one exponent."""
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(same, first, second))
    return repr(first) == repr(second) if isinstance(first, float | Decimal) else first == second


def test_extremes_come_back_after_all_is_lost(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    written = [Columned(agent_id="a\0b", thing_id=f"id \0 {n}", **one) for n, one in enumerate(EXTREMES)]
    for one in written:
        assert one.save().mirrored
    valkey_server.flush()
    assert omoide.rebuild(Columned) == {("a\0b",): len(written)}
    for one in written:
        found = Columned.query.get(agent_id="a\0b", thing_id=one.thing_id)
        assert found is not None
        for name in spec_of(Columned).fields:
            assert same(getattr(found, name), getattr(one, name)), (one.thing_id, name)
    assert compared(mirrored, scope_of(written[0])).equal
    Columned.delete_partition(agent_id="a\0b")


@given(st.text(alphabet=st.sampled_from("\0\ufdd001a\ufdd1"), max_size=12))
def test_an_escaped_text_is_unescaped(text: str) -> None:
    assert "\0" not in escaped(text)
    assert unescaped(escaped(text)) == text


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*spec_of(Columned).fields, "former", "other"]),
        st.one_of(
            st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(), st.binary(), st.booleans(),
            st.lists(st.text(), max_size=2), st.dictionaries(st.text(), st.booleans(), max_size=2),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_what_fits_no_column_is_kept_beside(values: dict[str, Any]) -> None:
    """A stored value of an older class, of whatever type, is part of the record still."""
    table = table_of(spec_of(Columned))
    columns, extra = row_values(table, values)
    columns = [
        json.loads(value) if column.type == "json" and value is not None else value
        for column, value in zip(table.columns, columns, strict=True)
    ]  # as the client gives them back
    back = values_of(table, columns, extra)
    whole = {column.name: None for column in columns_of(spec_of(Columned))} | values
    assert back.keys() == whole.keys()
    assert all(repr(back[name]) == repr(value) for name, value in whole.items())


@pytest.mark.parametrize("name", ["text", "_row"])
def test_no_field_can_have_the_name_of_a_system_column(name: str) -> None:
    names = [column.name for column in columns_of(spec_of(Columned))]
    assert not any(one.startswith("_") for one in names)
    assert (name in names) is (name == "text")
