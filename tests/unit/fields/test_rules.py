"""A value that breaks a rule is named by model, field and rule, before anything is written."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest

from omoide.errors import FieldError
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
from omoide.model.draft import Draft
from omoide.model.instance import add_entries, id_of, scope_of, stored_values
from omoide.ops.model import Model


class Level(IntEnum):
    LOW = 1


class Ruled(Model):
    record_id = AutoKeyField()
    agent_id = KeyField()
    text = StringField(default="", max_bytes=8)
    indexed = StringField(default="", index=True)
    whole = IntField(default=0)
    importance = FloatField(default=0.0)
    exact = DecimalField(default=Decimal(0))
    truth = BoolField(default=False)
    data = BytesField(default=b"", max_bytes=4)
    instant = DatetimeField(null=True)
    day = DateField(null=True)
    level = EnumField(Level, default=Level.LOW)
    uuid = UUIDField(null=True)
    tags = TagField()
    items = ListField(default=[], max_bytes=64)
    document = DictField(default={}, max_bytes=64)


def _deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


def _write(**values: Any) -> None:
    """All that happens to a record before it is sent."""
    instance = Ruled(**values)
    scope_of(instance)
    id_of(instance)
    add_entries(instance, Draft(stored_values(instance)))


BAD: list[tuple[str, Any, str]] = [
    ("agent_id", None, "required"),
    ("agent_id", "", "empty"),
    ("agent_id", 1.5, "string"),
    ("agent_id", True, "string"),
    ("agent_id", "x" * 513, "512 bytes"),
    ("agent_id", "\ud800", "surrogate"),
    ("record_id", "", "empty"),
    ("record_id", "é" * 65, "128 bytes"),
    ("text", None, "required"),
    ("text", 5, "string"),
    ("text", b"x", "string"),
    ("text", "\ud83d", "surrogate"),
    ("text", "123456789", "8 bytes"),
    ("text", "ééééé", "8 bytes"),
    ("indexed", "x" * 513, "512 bytes"),
    ("whole", True, "whole number"),
    ("whole", 1.0, "whole number"),
    ("whole", "1", "whole number"),
    ("whole", 2**63, "64 bits"),
    ("importance", float("nan"), "finite"),
    ("importance", float("-inf"), "finite"),
    ("importance", "1", "float"),
    ("importance", True, "float"),
    ("importance", 2**60 + 1, "float"),
    ("importance", 1e300, "3.4e38"),
    ("exact", Decimal("NaN"), "finite"),
    ("exact", Decimal("sNaN"), "finite"),
    ("exact", 1.5, "Decimal"),
    ("exact", Decimal("1" * 300), "256"),
    ("truth", 1, "True or False"),
    ("data", "x", "bytes"),
    ("data", b"12345", "4 bytes"),
    ("instant", datetime(2024, 1, 1), "naive"),
    ("instant", date(2024, 1, 1), "datetime"),
    ("instant", "2024-01-01", "datetime"),
    ("instant", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "1 to 9999"),
    ("day", datetime(2024, 1, 1, tzinfo=UTC), "not a datetime"),
    ("level", 1, "Level"),
    ("uuid", "00000000-0000-0000-0000-000000000000", "UUID"),
    ("tags", "abc", "set of strings"),
    ("tags", {1}, "set of strings"),
    ("tags", {""}, "1 to 128 bytes"),
    ("tags", {"x" * 129}, "1 to 128 bytes"),
    ("tags", {str(i) for i in range(65)}, "64 tags"),
    ("items", (1,), "list"),
    ("items", [object()], "only None"),
    ("items", [(1, 2)], "only None"),
    ("items", [b"x"], "only None"),
    ("items", [Level.LOW], "only None"),
    ("items", [float("nan")], "finite"),
    ("items", [2**63], "64 bits"),
    ("items", ["\ud800"], "surrogate"),
    ("items", ["x" * 65], "64 bytes"),
    ("items", [0] * 8, "64 bytes"),
    ("items", _deep(40), "32 deep"),
    ("document", [1], "dict"),
    ("document", {1: 2}, "keys must be strings"),
    ("document", {"\ud800": 2}, "surrogate"),
    ("document", {"a": {"b": float("inf")}}, "finite"),
]


@pytest.mark.parametrize(("name", "value", "rule"), BAD, ids=range(len(BAD)))
def test_a_broken_rule_names_model_field_and_rule(name: str, value: Any, rule: str) -> None:
    with pytest.raises(FieldError) as caught:
        _write(**{"agent_id": "a", name: value})
    error = caught.value
    assert (error.model, error.field) == ("Ruled", name)
    assert rule in error.rule
    assert isinstance(error, ValueError)
    if isinstance(value, str) and len(value) > 3:
        assert value not in str(error)


def test_values_at_the_bound_are_kept() -> None:
    _write(agent_id="é" * 256, record_id="x" * 128, text="éééé", data=b"1234", indexed="x" * 512)


def test_a_cycle_is_refused() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(FieldError):
        stored_values(Ruled(agent_id="a", items=cyclic))
