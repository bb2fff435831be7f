"""What each field adds to a write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from omoide.core.text import cues
from omoide.fields import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    CoOccurrenceField,
    DatetimeField,
    DecayingSortedField,
    FloatField,
    IntField,
    KeyField,
    StringField,
    TagField,
)
from omoide.model.draft import Draft
from omoide.model.instance import add_entries
from omoide.ops.model import Model


class Indexed(Model):
    record_id = AutoKeyField()
    agent_id = KeyField()
    title = StringField(default="")
    content = StringField(default="")
    rank = IntField(default=3, index=True)
    importance = FloatField(null=True)
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField(null=True)
    tags = TagField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    text = BM25Field(source=("title", "content"))
    associations = CoOccurrenceField()


def draft_of(**values: Any) -> Draft:
    draft = Draft({})
    add_entries(Indexed(agent_id="a", **values), draft)
    return draft


def test_text_of_all_sources_and_the_author_become_terms() -> None:
    draft = draft_of(title="Deploys", content="We deploy the deploys", author="Ann Lee")
    assert draft.terms == {"deploy": 3, "ann": 1, "lee": 1}
    assert draft.length == 3
    assert draft.left_out == 0
    assert (draft.author, draft.session) == ("Ann Lee", None)


def test_equality_entries_are_texts() -> None:
    draft = draft_of(rank=7, tags={"b", "a"}, session_id="s", author="Ann")
    assert sorted(draft.exact) == [
        ("@", "ann"),
        ("author", "Ann"),
        ("rank", "7"),
        ("session_id", "s"),
        ("tags", "a"),
        ("tags", "b"),
    ]
    assert draft_of().exact == [("rank", "3")]


def test_numbers_and_time() -> None:
    draft = draft_of(importance=0.25, occurred_at=datetime(2024, 1, 1, tzinfo=UTC), confidence=0.8)
    assert (draft.importance, draft.base, draft.confidence, draft.time_ms) == (
        0.25,
        0.25,
        0.8,
        1_704_067_200_000,
    )
    absent = draft_of()
    assert (absent.importance, absent.base, absent.confidence, absent.time_ms) == (1.0, 1.0, None, None)
    assert draft_of(importance=-2).base == -2.0


def test_time_words_and_names_are_noted() -> None:
    assert draft_of(content="See you on Monday at noon").cues == cues.TIME
    assert draft_of(content="two of us near Oslo").cues == cues.PLACE | cues.NUMBER
    assert not draft_of(content="The cache is warm").cues
    assert "acme-1234" in draft_of(content="the outage of ACME-1234 again").entities


def test_an_instance_shows_its_text() -> None:
    one = Indexed(agent_id="a", title="T", content="C")
    assert (one.text, Indexed(agent_id="a").text) == ("T\nC", "")
    assert (one.relevance, Indexed(agent_id="a", importance=-1).relevance) == (1.0, 0.0)
