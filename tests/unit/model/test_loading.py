from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from omoide.errors import CorruptRecordError, FieldError, ModelError
from omoide.fields import (
    AutoKeyField,
    ConfidenceField,
    DatetimeField,
    DecayingSortedField,
    KeyField,
    StringField,
    TagField,
)
from omoide.mixins import AccessTrackerMixin
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.instance import add_entries, stored_values
from omoide.ops.model import Model
from omoide.ops.request import Record


class Loaded(AccessTrackerMixin, Model):
    memory_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="nothing")
    subject = StringField(null=True)
    topic = StringField()
    tags = TagField()
    relevance = DecayingSortedField()
    confidence = ConfidenceField()

    class Meta:
        aliases = {"title": "subject"}


def _record(**values: Any) -> Record:
    return Record(
        "m",
        1,
        {"memory_id": "m", "agent_id": "a", **values},
        3,
        1000,
        1.0,
        0.75,
        access_count=4,
        accessed_ms=1500,
        relevance=0.5,
    )


def test_what_the_store_says_is_shown() -> None:
    one = Loaded.from_record(_record(content="x"))
    assert (one.memory_id, one.agent_id, one.content, one._version) == ("m", "a", "x", 3)
    assert (one.confidence, one.relevance, one.access_count) == (0.75, 0.5, 4)
    assert one.last_accessed == datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)
    assert Loaded(agent_id="a").last_accessed is None


def test_missing_fields_get_their_default_and_old_names_are_renamed() -> None:
    one = Loaded.from_record(_record(title="old"))
    assert (one.content, one.subject, one.tags) == ("nothing", "old", set())
    both = Loaded.from_record(_record(title="old", subject="new"))
    assert both.subject == "new"
    one.topic = "t"
    assert stored_values(one)["subject"] == "old"
    assert "title" not in stored_values(one)


def test_a_bad_stored_value_breaks_its_attribute_only() -> None:
    one = Loaded.from_record(_record(content=7, topic="t", unknown={"k": 1}))
    assert one.topic == "t"
    with pytest.raises(CorruptRecordError, match=r"Loaded\.content"):
        _ = one.content
    values = stored_values(one)
    assert (values["content"], values["unknown"]) == (7, {"k": 1})
    assert list(values) == sorted(values)


def test_a_null_where_none_is_allowed_reads_as_the_default() -> None:
    assert Loaded.from_record(_record(content=None)).content == "nothing"


def test_time_is_the_event_else_the_creation_else_the_servers() -> None:
    class Timed(Model):
        memory_id = AutoKeyField()
        agent_id = KeyField()
        occurred_at = DatetimeField(null=True)
        created_at = DatetimeField(null=True)

    def time_of(**values: Any) -> int | None:
        draft = Draft({})
        add_entries(Timed(agent_id="a", **values), draft)
        return draft.time_ms

    first, second = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)
    assert time_of(occurred_at=first, created_at=second) == 1_704_067_200_000
    assert time_of(created_at=second) == 1_704_153_600_000
    assert time_of() is None


def test_defaults_can_be_overridden_by_a_model() -> None:
    class Quick(Loaded):
        class Meta:
            defaults = Defaults(half_life=60.0, confidence_initial=0.25, base_score=2.0)

    spec = Quick.__omoide_spec__
    assert spec is not None
    assert spec.decay is not None
    assert spec.certainty is not None
    assert (spec.decay.half_life, spec.decay.base_default, spec.certainty.initial) == (60.0, 2.0, 0.25)
    new = Quick(agent_id="a")
    assert (new.confidence, new.relevance) == (0.25, 2.0)
    assert Loaded.defaults().half_life == 30 * 86_400
    with pytest.raises(AttributeError):
        Quick.defaults().half_life = 1.0  # type: ignore[misc]


def test_the_bytes_of_text_are_a_default_of_the_model_too() -> None:
    class Short(Loaded):
        stated = StringField(default="", max_bytes=6)

        class Meta:
            defaults = Defaults(string_bytes=4, text_terms=2)

    stored_values(Short(agent_id="a", content="1234", topic="t", stated="123456"))
    with pytest.raises(FieldError, match="4 bytes"):
        stored_values(Short(agent_id="a", content="12345", topic="t"))
    stored_values(Loaded(agent_id="a", content="12345", topic="t"))


@pytest.mark.parametrize(
    "bad",
    [
        {"half_life": 0},
        {"max_items": -1},
        {"deadline": float("nan")},
        {"confidence_initial": 1.0},
        {"confidence_cap": 1.0},
        {"string_bytes": 2**21},
    ],
)
def test_defaults_that_cannot_work_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ModelError):
        Defaults(**bad)  # type: ignore[arg-type]
