"""Over a real server: ranges, orders, updates and repeats that indexes and instances once told otherwise."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    ContextAssembler,
    DatetimeField,
    DecayingSortedField,
    DictField,
    FloatField,
    KeyField,
    Model,
    StringField,
    batch,
)
from omoide.connection import Connection

pytestmark = pytest.mark.usefixtures("connection")

START = datetime(2024, 1, 1, tzinfo=UTC)


class FoundNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    occurred_at = DatetimeField(null=True)
    extra = DictField(default={})
    confidence = ConfidenceField()
    text = BM25Field(source="content")


class FoundFleeting(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    relevance = DecayingSortedField(base_score_field="importance", half_life=0.0001)


class FoundLasting(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    relevance = DecayingSortedField(base_score_field="importance", half_life=3600.0, exponent=0.5)


def test_a_time_is_compared_to_the_microsecond() -> None:
    for offset in (-100, 200, 950):
        FoundNote(
            agent_id="a", content=f"deploy {offset}", occurred_at=START + timedelta(microseconds=offset)
        ).save()
    query = FoundNote.query.filter(agent_id="a")
    end = START + timedelta(microseconds=900)
    assert [one.content for one in query.filter(occurred_at__lt=end).all()] == ["deploy 200", "deploy -100"]
    assert query.filter(occurred_at__lt=end).count() == 2
    assert [one.content for one in query.filter(occurred_at__gte=end).all()] == ["deploy 950"]
    assert query.filter(occurred_at__gte=end).count() == 1
    assembler = ContextAssembler(FoundNote)
    recalled = assembler.assemble("deploy", agent_id="a", occurred_at__lt=end)
    assert {one.content for one in recalled.records} == {"deploy 200", "deploy -100"}
    late = query.filter(occurred_at__gte=end).ids()[0]
    assert assembler.explain_missing(late, "deploy", agent_id="a", occurred_at__lt=end).reason == "filtered"
    assert query.filter(occurred_at__lt=end).delete() == 2
    assert query.count() == 1


def test_an_importance_finer_than_its_index_is_compared_exactly() -> None:
    FoundNote(agent_id="a", importance=0.1).save()
    query = FoundNote.query.filter(agent_id="a")
    assert query.filter(importance__lt=0.1 + 1e-10).count() == 1
    assert len(query.filter(importance__lt=0.1 + 1e-10).all()) == 1
    assert query.filter(importance__gte=0.1 + 1e-10).all() == []
    assert query.filter(importance__gte=0.1).count() == 1
    assert query.filter(importance__lt=0.1).count() == 0


@pytest.mark.parametrize("model", [FoundFleeting, FoundLasting])
def test_the_decay_order_is_the_same_by_every_way(model: type[FoundFleeting] | type[FoundLasting]) -> None:
    for number in range(12):
        model(agent_id="a", content="x", importance=[0.2, 0.9, 0.0, -1.0][number % 4]).save()
    time.sleep(0.2)
    query = model.query.filter(agent_id="a")
    expected = [one.note_id for one in query.top_by_decay(n=12)]
    scanned = query.filter(content="x", scan=True)
    assert [one.note_id for one in scanned.top_by_decay(n=12)] == expected
    everything = query.filter(importance__gte=-5.0)
    for n in (1, 3, 12):
        assert [one.note_id for one in scanned.top_by_decay(n=n)] == expected[:n]
        assert [one.note_id for one in everything.top_by_decay(n=n)] == expected[:n]


def test_an_update_writes_what_it_is_told() -> None:
    note = FoundNote(agent_id="a", content="stored", extra={"k": [1]})
    note.save()
    note.content = "draft"
    note.extra["k"].append(2)
    assert note.update(importance=0.9)
    back = FoundNote.query.get(agent_id="a", note_id=note.note_id)
    assert back is not None
    assert (back.content, back.extra, back.importance) == ("stored", {"k": [1]}, 0.9)
    assert (note.content, note.extra) == ("draft", {"k": [1, 2]})
    with batch() as grouped:
        note.update(importance=0.5)
        note.update(importance=0.6)
    assert all(grouped.outcomes)
    assert note.refresh().importance == 0.6
    assert note._version == 3


def test_a_repeat_of_an_operation_is_one_record(connection: Connection) -> None:
    first = FoundNote(agent_id="a", content="x")
    assert first.save(operation_id="turn-1").created
    again = FoundNote(agent_id="a", content="x").save(operation_id="turn-1")
    assert (again.id, again.repeated) == (first.note_id, True)
    assert FoundNote.count(agent_id="a") == 1


def test_thousands_of_ids_can_be_left_out_of_a_count() -> None:
    note = FoundNote(agent_id="a")
    note.save()
    out = [f"none {number}" for number in range(9_000)]
    query = FoundNote.query.filter(agent_id="a")
    assert query.exclude(out).count() == 1
    assert query.exclude([*out, note.note_id]).count() == 0
