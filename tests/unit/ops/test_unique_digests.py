"""Digests are equal exactly when the values of a rule are equal."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from omoide.fields import AutoKeyField, DecimalField, FloatField, KeyField, StringField, TagField
from omoide.ops.model import Model
from omoide.ops.unique import unique_digests


class DigestNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    first = StringField(default="")
    second = StringField(default="")
    maybe = StringField(null=True)
    number = FloatField(default=0.0)
    price = DecimalField(default=Decimal(0))
    tags = TagField()

    class Meta:
        unique_together = (("first", "second"), ("maybe", "first"), ("number", "price", "tags"))


def digests(**values: object) -> tuple[bytes, ...]:
    return unique_digests(DigestNote(**{"agent_id": "a", **values}))


_TEXT = st.text("ab:1\x00", max_size=3)


@given(_TEXT, _TEXT, _TEXT, _TEXT)
def test_values_do_not_run_into_each_other(a: str, b: str, c: str, d: str) -> None:
    one, other = digests(first=a, second=b)[0], digests(first=c, second=d)[0]
    assert (one == other) == ((a, b) == (c, d))
    assert len(one) == 16


def test_a_rule_with_none_does_not_apply() -> None:
    assert len(digests()) == 2
    assert len(digests(maybe="x")) == 3


def test_equal_numbers_and_sets_are_equal() -> None:
    same = {
        digests(number=0.0, price=Decimal("1.50"), tags={"a", "b"})[-1],
        digests(number=-0.0, price=Decimal("1.5"), tags={"b", "a"})[-1],
        digests(number=0, price=Decimal("15E-1"), tags=["a", "b"])[-1],
    }
    assert len(same) == 1
    assert digests(number=5e-324, price=Decimal("1.5"), tags={"a", "b"})[-1] not in same


def test_a_value_that_spells_a_field_name_is_no_other_value() -> None:
    assert digests(first="second", second="")[0] != digests(first="", second="second")[0]
