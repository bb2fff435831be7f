"""Why a memory came, and why another did not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from omoide.connection import Connection
from omoide.context import ContextAssembler
from omoide.core.arms import RankWeights
from omoide.errors import QueryError
from omoide.fields import AutoKeyField, BM25Field, DatetimeField, FloatField, KeyField, StringField, TagField
from omoide.ops.model import Model

START = datetime(2023, 5, 8, 12, tzinfo=UTC)


class ToldRemark(Model):
    remark_id = AutoKeyField()
    owner = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    tags = TagField()
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField(null=True)
    index = BM25Field(source="content")


class ToldBare(Model):
    bare_id = AutoKeyField()
    owner = KeyField()
    content = StringField(default="")
    index = BM25Field(source="content", ranking=RankWeights(cue=1.0, back_off=False))


LINES = [
    ("Ann", "Where did you put the kayak paddle?"),
    ("Bob", "Behind the shed, on Monday"),
    ("Ann", "Thanks, I bought a second kayak last week"),
    ("Bob", "The soup is ready"),
]


@pytest.fixture
def remarks(store_url: str) -> Any:
    with Connection(store_url) as opened, opened.use():
        saved = []
        for number, (author, content) in enumerate(LINES):
            remark = ToldRemark(
                remark_id=f"r{number}",
                owner="a",
                content=content,
                author=author,
                session_id="s",
                occurred_at=START + timedelta(minutes=number),
            )
            remark.save()
            saved.append(remark)
        yield saved


def test_a_tree_names_every_arm_and_adds_up(remarks: Any) -> None:
    result = ContextAssembler(ToldRemark).assemble(
        "When did Ann buy a kayak in May 2023?", owner="a", explain=True
    )
    told = result.metadata["explain"]
    assert result.records[0].remark_id == "r2"
    flat = told["r2"]["parts"]
    assert {"author", "date", "match", "cue", "text", "importance", "confidence"} <= flat.keys()
    assert flat["score"] == pytest.approx(result.items[0].score, abs=1e-9)
    assert told["r2"]["rank"] == 1
    assert told["r3"]["rank_by_own_words"] == 0
    assert "from before" in told["r3"]["parts"]
    assert "from the question before" in told["r1"]["parts"]
    assert [arm["name"] for arm in result.metadata["arms"]][:3] == ["text", "neighbours", "answer"]
    assert result.metadata["round_trips"] <= 2
    again = ContextAssembler(ToldRemark).assemble(
        "When did Ann buy a kayak in May 2023?", owner="a", explain=True
    )
    assert again.metadata["round_trips"] == 1
    assert again.ids == result.ids
    again.to_json()


def test_the_reply_beside_the_match_comes_and_weights_are_felt(remarks: Any) -> None:
    assembler = ContextAssembler(ToldRemark)
    assert "r1" in assembler.assemble("kayak paddle", owner="a").ids
    alone = assembler.assemble("kayak paddle", owner="a", ranking=RankWeights(near=0.0, far=0.0, answer=0.0))
    assert alone.ids == ("r0", "r2")
    quiet = ContextAssembler(ToldRemark, ranking=RankWeights(near=0.0, far=0.0, answer=0.0))
    assert quiet.assemble("kayak paddle", owner="a").ids == alone.ids


def test_a_model_without_session_author_and_time_skips_those_arms(store_url: str) -> None:
    with Connection(store_url) as opened, opened.use():
        ToldBare(bare_id="b1", owner="a", content="Ann has a kayak since May 2023").save()
        ToldBare(bare_id="b2", owner="a", content="nothing of the kind").save()
        result = ContextAssembler(ToldBare).assemble("When did Ann buy kyak in May?", owner="a", explain=True)
        assert result.ids == ("b1",)
        assert {"author", "date", "cue", "from before"}.isdisjoint(result.metadata["explain"]["b1"]["parts"])
        assert "stand_ins" not in result.metadata


def test_a_misspelt_word_is_stood_in_for_and_said(remarks: Any) -> None:
    result = ContextAssembler(ToldRemark, track=False).assemble("kayakk", owner="a")
    assert result.metadata["stand_ins"] == {"kayakk": ["kayak"]}
    assert {"r0", "r2"} <= set(result.ids)


def test_why_a_memory_did_not_come(remarks: Any) -> None:
    assembler = ContextAssembler(ToldRemark, max_items=3)
    ask = assembler.explain_missing
    assert ask("r0", "kayak", owner="a").reason == "delivered"
    assert ask("r9", "kayak", owner="a").reason == "missing"
    assert ask("r0", "kayak", owner="b").reason == "missing"
    assert ask("r0", "kayak", owner="a", tags="x").reason == "filtered"
    assert ask("r0", "kayak", owner="a", exclude=["r0"]).reason == "filtered"
    assert ask("r0", "the", owner="a").reason == "no_terms"
    assert ask("r0", "zeppelin", owner="a").reason == "unmatched"
    behind = ask("r3", "kayak", owner="a")
    assert (behind.reason, behind.tree["name"]) == ("outranked", "score")
    found = assembler.assemble("kayak", owner="a")
    assert behind.score + behind.behind == pytest.approx(found.items[-1].score)
    first = assembler.assemble("kayak", owner="a", max_items=1)
    cut = ask(found.ids[1], "kayak", owner="a", max_tokens=first.metadata["tokens"] + 1)
    assert (cut.reason, cut.cut) == ("cut", "over_budget")
    assert cut.as_json()["says"]
    ToldRemark(remark_id="r2", owner="a").delete()
    assert ask("r2", "kayak", owner="a").reason == "missing"


def test_an_expired_memory_is_said_to_be(store_url: str) -> None:
    class ToldFleeting(Model):
        fleeting_id = AutoKeyField()
        owner = KeyField()
        content = StringField(default="")
        index = BM25Field(source="content")

        class Meta:
            ttl = 0.6

    with Connection(store_url) as opened, opened.use():
        ToldFleeting(fleeting_id="f", owner="a", content="kayak").save()
        assembler = ContextAssembler(ToldFleeting)
        assert assembler.explain_missing("f", "kayak", owner="a").reason == "delivered"
        import time

        time.sleep(0.65)
        assert assembler.explain_missing("f", "kayak", owner="a").reason in ("expired", "missing")


async def test_the_async_twin_says_the_same(store_url: str, remarks: Any) -> None:
    assembler = ContextAssembler(ToldRemark, max_items=2)
    first = assembler.explain_missing("r3", "kayak", owner="a")
    second = await assembler.aexplain_missing("r3", "kayak", owner="a")
    assert first == second


def test_composite_recall_has_no_query_to_explain(remarks: Any) -> None:
    with pytest.raises(QueryError):
        ContextAssembler(ToldRemark, mode="composite").explain_missing("r0", "", owner="a")
