"""Recall from rows: as good as the index, by the same arms, within one partition."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from benchmarks.retrieval.dialogue import Conversation, read
from benchmarks.retrieval.metrics import mean, score
from tests.postgres.conftest import answer_from

from omoide import Connection, ContextAssembler, Model
from omoide.fields import AutoKeyField, BM25Field, FloatField, IntField, KeyField, StringField, TagField
from omoide.model.mirror import PostgresMirror
from omoide.recipes import DefaultMemory, LongTermRecord
from omoide.stores.postgres.script import Step
from omoide.testing import PostgresServer

FILE = Path(os.environ.get("OMOIDE_DATA", "")) / "retrieval-dev.json"
FULL = os.environ.get("OMOIDE_FULL") == "1"


class RecallNote(Model):
    """Other names for everything, two texts, tags."""

    class Meta:
        mirror = PostgresMirror()

    note = AutoKeyField()
    team = KeyField()
    title = StringField(null=True, max_bytes=1_048_576)
    body = StringField(default="", index=True)
    labels = TagField()
    importance = FloatField(default=1.0)
    places = IntField(default=0, index=True)
    words = BM25Field(source=("title", "body"))


class RecallTurn(DefaultMemory):
    max_records_per_partition = 0

    class Meta:
        mirror = PostgresMirror()


@pytest.fixture(scope="module")
def connection(valkey_url: str, postgres_server: PostgresServer) -> Iterator[Connection]:
    name = postgres_server.create()
    url = postgres_server.url_of(name)
    with Connection(valkey_url, namespace="recall", postgres=url) as connection, connection.use():
        yield connection
    postgres_server.drop(name)


def asked(connection: Connection, query: str, *values: Any) -> list[tuple[Any, ...]]:
    def script() -> Any:
        return (yield Step(query, values))

    return connection.database.run(script)


def _load(conversation: Conversation) -> dict[str, str]:
    """Every turn as one row, every conversation as one partition; record id -> turn id."""
    records = [
        RecallTurn(
            agent_id=conversation.id,
            content=turn.text,
            session_id=turn.session,
            author=turn.author,
            occurred_at=datetime.fromisoformat(turn.time),
        )
        for turn in conversation.turns
    ]
    assert all(RecallTurn.save_many(records))
    return {record.memory_id: turn.id for record, turn in zip(records, conversation.turns, strict=True)}


def test_both_paths_answer_as_well_as_the_index_alone(connection: Any) -> None:
    if not FILE.is_file():
        pytest.skip("retrieval-dev.json is not there: set OMOIDE_DATA")
    scores: dict[str, list[dict[str, float]]] = {"redis": [], "postgres": []}
    assembler = ContextAssembler(RecallTurn, max_items=20, max_tokens=1_000_000, track=False)
    for conversation in read(FILE)[: None if FULL else 1]:
        turns = _load(conversation)
        asked(connection, "ANALYZE omoide_recall_turn")
        for store, found in scores.items():
            answer_from(connection, store)
            for question in conversation.questions:
                if question.category == "adversarial":
                    continue
                result = assembler.assemble(question.text, agent_id=conversation.id)
                assert result.metadata["store"] == store
                found.append(score([turns[one.memory_id] for one in result.records], question.gold))
        answer_from(connection, "redis")
    redis, postgres = (mean(found)["nDCG@10"] for found in scores.values())
    assert postgres >= 0.47
    assert redis >= 0.6
    assert abs(redis - postgres) < 0.03


def test_any_mirrored_model_is_recalled_from_its_rows(connection: Any) -> None:
    RecallNote(team="a", title="Deploys", body="blue-green", labels={"ops", "x'y"}, places=3).save()
    RecallNote(team="a", title=None, body="Deploys are on Tuesdays", labels={"ops"}, importance=0.1).save()
    RecallNote(team="b", title="Deploys", body="are never").save()
    answer_from(connection, "postgres")
    assembler = ContextAssembler(RecallNote, track=False)

    def found(query: str, **filters: Any) -> list[str]:
        result = assembler.assemble(query, **{"team": "a", **filters})
        assert result.metadata["store"] == "postgres"
        return [record.body for record in result.records]

    assert found("when do we deploy?") == ["blue-green", "Deploys are on Tuesdays"]
    assert found("deploys", team="b") == ["are never"]
    assert found("deploys", labels="x'y") == ["blue-green"]
    assert found("deploys", labels="\0") == []
    assert found("deploys", labels={"ops", "x'y"}) == ["blue-green"]
    assert found("deploys", body="Deploys are on Tuesdays") == ["Deploys are on Tuesdays"]
    assert found("deploys", places=3) == ["blue-green"]
    assert found("deploys", importance__gte=0.5) == ["blue-green"]
    assert found("deploys", importance__lt=0.5) == ["Deploys are on Tuesdays"]
    first = assembler.assemble("deploys", team="a").records[0]
    assert found("deploys", exclude=[first.note]) == ["Deploys are on Tuesdays"]
    assert RecallNote.count(team="a") == 2
    assert [one.importance for one in RecallNote.query.filter(team="a").order_by("importance").all()] == [
        0.1,
        1.0,
    ]
    got = RecallNote.query.get(team="a", note=first.note)
    assert (got.title, got.labels, got.places) == ("Deploys", {"ops", "x'y"}, 3)
    answer_from(connection, "redis")


def test_a_row_is_found_again_when_its_dump_is_restored(connection: Connection) -> None:
    """A restore computes the generated column anew, with an empty search path."""
    LongTermRecord(resource_id="dumped", content="Café 成语 hiking", author="Zoë").save()

    def script() -> Any:
        yield Step("SELECT set_config('search_path', '', true)")
        yield Step("UPDATE public.popagent_memories SET content = content || ' again' WHERE author = 'Zoë'")
        return (yield Step("SELECT _words::text FROM public.popagent_memories WHERE author = 'Zoë'"))

    ((words,),) = connection.database.run(script)
    for word in ("cafe", "成语", "hike", "zoe"):
        assert f"'{word}'" in words


@pytest.mark.parametrize("kind", ["words", "pairs", "one"])
def test_the_longest_text_is_stored(connection: Any, kind: str) -> None:
    text = {
        "words": " ".join(f"w{number:x}" for number in range(160_000)),
        "pairs": "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(349_000)),
        "one": "x" * 1_048_000,
    }[kind]
    assert RecallNote(team=f"long {kind}", title=text[:1_048_576], body="the beginning").save()
    answer_from(connection, "postgres")
    found = ContextAssembler(RecallNote, track=False).assemble("w7", team=f"long {kind}")
    answer_from(connection, "redis")
    assert len(found.records) == (kind == "words")


def test_similar_words_are_looked_for_in_short_texts_only(connection: Any) -> None:
    """Each text is compared as a whole, so long ones would cost seconds."""
    short = "The kindergarten opens. " + "So it is. " * 100
    for text in (short, short + "Indeed.", "A rose garden"):
        assert LongTermRecord(resource_id="similar", content=text).save()
    assert len(short) == 1_024
    answer_from(connection, "postgres")
    found = ContextAssembler(LongTermRecord, track=False).assemble("kindergarden", resource_id="similar")
    answer_from(connection, "redis")
    assert [one.content for one in found.records] == [short]


def test_an_answer_of_rows_is_the_answer_of_the_store(connection: Any) -> None:
    record = LongTermRecord(resource_id="same", content="needle in hay", identity="x", author="Ann Lee")
    record.save()
    assembler = ContextAssembler(LongTermRecord)
    assembler.assemble("needle", resource_id="same")
    held = []
    for until in (0.0, float("inf")):
        connection.mirror.away_until = until
        (found,) = assembler.assemble("needle", resource_id="same").records
        told = found._omoide.record
        held.append((told.id, told.values, told.version, told.time_ms, told.importance, told.confidence))
    answer_from(connection, "redis")
    assert held[0] == held[1]


def test_a_query_is_one_statement_that_holds_no_word(connection: Any) -> None:
    answer_from(connection, "postgres")
    ContextAssembler(LongTermRecord, track=False).assemble("haystack in May 2023", resource_id="same")
    answer_from(connection, "redis")
    seen = asked(connection, "SELECT query FROM pg_stat_activity WHERE query LIKE %s", "%WITH wanted%")
    assert all("haystack" not in text for (text,) in seen)
