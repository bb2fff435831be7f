"""Recall without a query: in an order, with every filter, and what it costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    ContextAssembler,
    DatetimeField,
    DecayingSortedField,
    FloatField,
    KeyField,
    Model,
    QueryError,
    StringField,
    TagField,
)
from omoide.connection import Connection


class OrderedNote(Model):
    note_id = AutoKeyField()
    owner = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    tags = TagField()
    occurred_at = DatetimeField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    index = BM25Field(source="content")


class TimelessNote(Model):
    """Neither text nor decay."""

    note_id = AutoKeyField()
    owner = KeyField()
    content = StringField(default="")


def day(number: float) -> datetime:
    return datetime(2026, 5, 1, tzinfo=UTC) + timedelta(days=number)


def fill() -> None:
    notes = [
        OrderedNote(
            note_id=name,
            owner=owner,
            content=f"note {name}",
            importance=importance,
            tags={tag},
            occurred_at=day(when),
        )
        for name, owner, importance, tag, when in (
            ("a", "ann", 0.5, "work", 3),
            ("b", "ann", 0.9, "home", 1),
            ("c", "ann", 0.5, "work", 2),
            ("d", "ann", 0.1, "work", 3),
            ("z", "bob", 1.0, "work", 9),
        )
    ]
    assert all(OrderedNote.save_many(notes))


def ids(order: str, **asked: Any) -> str:
    result = ContextAssembler(OrderedNote, track=False).assemble(order=order, owner="ann", **asked)
    assert result.metadata["mode"] == order
    return "".join(result.ids)


def test_each_order_has_its_ties_by_time_then_id(connection: Connection) -> None:
    fill()
    assert ids("recent") == "adcb"
    assert ids("important") == "bacd"
    notes = {one.note_id: one for one in OrderedNote.query.filter(owner="ann").all()}
    assert notes["d"].touch()
    assert ids("relevant")[0] == "b"


def test_every_filter_holds_in_every_order(connection: Connection) -> None:
    fill()
    for order, expected in (("recent", "adc"), ("important", "acd"), ("relevant", "acd")):
        assert sorted(ids(order, tags="work")) == sorted(expected)
    assert ids("recent", tags="work") == "adc"
    assert ids("recent", exclude=["a", "c"]) == "db"
    assert ids("important", exclude=["b"]) == "acd"
    assert ids("recent", time__gte=day(2), time__lt=day(3)) == "c"
    assert ids("recent", time__gte=day(2) + timedelta(microseconds=1)) == "ad"
    assert ids("important", importance__gte=0.5, max_items=2) == "ba"
    assert ids("recent", time__lt=day(0)) == ""


def test_it_is_delivered_like_any_recall(connection: Connection) -> None:
    fill()
    result = ContextAssembler(OrderedNote, max_items=2).assemble(order="important", owner="ann", explain=True)
    assert result.turn_id is not None
    assert "note b" in result.formatted
    assert [item.score for item in result.items] == [pytest.approx(0.9), 0.5]
    told = result.metadata["explain"]["b"]
    assert told["score"] == told["parts"]["importance"]
    assert result.metadata["terms"] == []


@pytest.mark.parametrize(
    ("order", "cold", "warm"), [("recent", 2, 1), ("important", 2, 1), ("relevant", 1, 1)]
)
def test_what_it_costs(connection: Connection, order: str, cold: int, warm: int) -> None:
    fill()
    for expected in (cold, warm):
        before = connection.round_trips
        result = ContextAssembler(OrderedNote, track=False).assemble(order=order, owner="ann")
        assert connection.round_trips - before == expected
        assert result.metadata["round_trips"] == 1


def test_a_model_without_text_has_orders_too(connection: Connection) -> None:
    for name in "ab":
        TimelessNote(note_id=name, owner="ann", content=f"note {name}").save()
    recent = ContextAssembler(TimelessNote, track=False).assemble(order="recent", owner="ann")
    assert set(recent.ids) == {"a", "b"}
    assert "query_ignored" not in recent.metadata


async def test_the_twin_asks_the_same(connection: Connection) -> None:
    fill()
    assembler = ContextAssembler(OrderedNote, track=False)
    result = await assembler.aassemble(order="recent", owner="ann", tags="work")
    assert result.ids == ("a", "d", "c")
    await connection.aclose()


def test_a_call_that_cannot_be_meant(connection: Connection) -> None:
    assembler = ContextAssembler(OrderedNote)
    for query, order, rule in (
        ("tea", "recent", "a query ranks by itself"),
        ("", "newest", "order is one of"),
    ):
        with pytest.raises(QueryError, match=rule):
            assembler.assemble(query, order=order, owner="ann")
    with pytest.raises(QueryError, match="needs owner="):
        assembler.assemble(order="recent")
    assert assembler.assemble("", owner="ann").ids == ()
