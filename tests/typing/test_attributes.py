"""What type checkers see: run by mypy and pyright; importing it proves that it also runs."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, assert_type
from uuid import UUID

from omoide.fields import (
    AutoKeyField,
    BM25Field,
    BoolField,
    BytesField,
    ConfidenceField,
    DateField,
    DatetimeField,
    DecayingSortedField,
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
from omoide.mixins import AccessTrackerMixin
from omoide.ops.model import Model, SaveOutcome


class Mood(Enum):
    GOOD = 1


class Typed(AccessTrackerMixin, Model):
    memory_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    needed = StringField()
    subject = StringField(null=True)
    number = IntField(default=0)
    maybe_number = IntField(null=True)
    importance = FloatField(default=1.0)
    price = DecimalField(null=True)
    done = BoolField(default=False)
    data = BytesField(default=b"")
    at = DatetimeField(null=True)
    due = DatetimeField()
    day = DateField()
    mood = EnumField(Mood)
    maybe_mood = EnumField(Mood, null=True)
    uuid = UUIDField(null=True)
    tags = TagField()
    items = ListField(default_factory=list)
    document = DictField(default={})
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    text = BM25Field(source="content")


class Sub(Typed):
    project = StringField(default="")


def attributes(one: Sub) -> None:
    assert_type(one.memory_id, str)
    assert_type(one.agent_id, str)
    assert_type(one.content, str)
    assert_type(one.needed, str)
    assert_type(one.subject, str | None)
    assert_type(one.number, int)
    assert_type(one.maybe_number, int | None)
    assert_type(one.importance, float)
    assert_type(one.price, Decimal | None)
    assert_type(one.done, bool)
    assert_type(one.data, bytes)
    assert_type(one.at, datetime | None)
    assert_type(one.due, datetime)
    assert_type(one.day, date)
    assert_type(one.mood, Mood)
    assert_type(one.maybe_mood, Mood | None)
    assert_type(one.uuid, UUID | None)
    assert_type(one.tags, set[str])
    assert_type(one.items, list[Any])
    assert_type(one.document, dict[str, Any])
    assert_type(one.relevance, float)
    assert_type(one.confidence, float)
    assert_type(one.text, str)
    assert_type(one.project, str)
    assert_type(one.access_count, int)
    assert_type(one.last_accessed, datetime | None)
    assert_type(Sub.content, StringField[str])
    assert_type(Sub.subject, StringField[str | None])


def calls(one: Sub) -> None:
    assert_type(one.save(), SaveOutcome)
    assert_type(one.delete(), bool)
    assert_type(one.refresh(), Sub)
    assert_type(Sub.create(agent_id="a"), Sub)
    assert_type(Sub.query.get(agent_id="a", memory_id="m"), Sub | None)
    assert_type(Sub.query.filter(agent_id="a").all(), list[Sub])
    assert_type(Sub.query.filter(agent_id="a").top_by_decay(n=5), list[Sub])
    assert_type(Sub.query.filter(agent_id="a").count(), int)
    assert_type(Sub.count(agent_id="a"), int)
    for each in Sub.query.filter(agent_id="a").iterate():
        assert_type(each, Sub)


async def twins(one: Sub) -> None:
    assert_type(await one.asave(), SaveOutcome)
    assert_type(await Sub.acreate(agent_id="a"), Sub)
    assert_type(await Sub.query.aget(agent_id="a", memory_id="m"), Sub | None)
    assert_type(await Sub.query.filter(agent_id="a").aall(), list[Sub])
    async for each in Sub.query.filter(agent_id="a").aiterate():
        assert_type(each, Sub)


def test_attributes_have_their_types_at_run_time_too() -> None:
    attributes(
        Sub(agent_id="a", needed="n", due=datetime.now().astimezone(), day=date.today(), mood=Mood.GOOD)
    )
