"""mem0 and plain JSON lines: what goes where, what is left out, what is refused."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from journeys import JourneyMemory, Shade, everything

import omoide
from omoide import DictField, TransferError
from omoide.connection import Connection
from omoide.privacy.samples import Maker
from omoide.recipes import DefaultMemory

TOKEN = "gh" + "p_" + Maker(17).body("an", 36)
MEM0 = [
    {
        "id": "3c90c3cc-0d44-4b50-8888-8dd25736052a",
        "memory": "Deploys are blue-green on Tuesdays",
        "user_id": "mia",
        "agent_id": "ada",
        "app_id": None,
        "run_id": "run 7",
        "hash": "0123456789abcdef0123456789abcdef",
        "metadata": {"topic": "deploy", "weight": 0.75},
        "categories": ["work", "habits"],
        "created_at": "2024-07-20T01:30:36.275141-07:00",
        "updated_at": "2024-07-21T01:30:36.275141-07:00",
    },
    {
        "id": "2f0c9f3e-6f0e-4f67-9b0c-6e7a9e6f0a11",
        "memory": "Mia is on call on the 14th",
        "agent_id": "bob",
        "actor_id": "Mia",
        "role": "user",
        "hash": "fedcba9876543210fedcba9876543210",
        "metadata": None,
        "score": 0.3,
        "created_at": "2024-07-22T00:00:00+00:00",
        "updated_at": None,
    },
]


class Mem0Memory(DefaultMemory):
    metadata = DictField(null=True)


def taken(data: Any, **options: Any) -> Any:
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return omoide.import_memories(options.pop("model", DefaultMemory), io.BytesIO(text), **options)


@pytest.mark.parametrize(
    "data",
    [
        MEM0,
        {"results": MEM0},
        {"count": 2, "next": None, "previous": None, "results": MEM0},
        {"results": MEM0, "relations": []},
        {"memories": MEM0},
        b"\n".join(json.dumps(one).encode() for one in MEM0),
        json.dumps({"results": MEM0}, indent=2).encode(),
    ],
    ids=["list", "results", "page", "graph", "memories", "lines", "indented"],
)
def test_mem0_in_every_shape_it_comes_in(connection: Connection, data: Any) -> None:
    done = taken(data, file_format="mem0")
    assert (done.stored, done.partitions) == (2, 2)
    assert done.ignored == {"metadata": 1, "role": 1, "user_id": 1}
    one = DefaultMemory.query.get(agent_id="ada", memory_id=MEM0[0]["id"])
    assert one.content == MEM0[0]["memory"]
    assert (one.session_id, one.author, one.tags) == ("run 7", None, {"work", "habits"})
    assert one.created_at == datetime(2024, 7, 20, 8, 30, 36, 275141, tzinfo=UTC)
    assert one.confidence == 0.5
    two = DefaultMemory.query.get(agent_id="bob", memory_id=MEM0[1]["id"])
    assert (two.author, two.tags) == ("Mia", set())


def test_mem0_goes_where_the_caller_says(connection: Connection) -> None:
    names = {"user_id": "agent_id", "agent_id": "", "metadata.topic": "tags", "metadata.weight": "importance"}
    done = taken(MEM0[:1], file_format="mem0", field_map=names)
    assert done.ignored == {"categories": 1}
    one = DefaultMemory.query.get(agent_id="mia", memory_id=MEM0[0]["id"])
    assert (one.tags, one.importance) == ({"deploy"}, 0.75)
    with pytest.raises(TransferError, match=r"memory 2: DefaultMemory\.agent_id: a value is required"):
        taken(MEM0, file_format="mem0", field_map={"user_id": "agent_id", "agent_id": ""})
    assert taken(MEM0, file_format="mem0", field_map={"agent_id": ""}, agent_id="all").partitions == 1


def test_metadata_is_kept_where_the_model_has_a_place_for_it(connection: Connection) -> None:
    done = taken(MEM0, file_format="mem0", model=Mem0Memory)
    assert done.ignored == {"role": 1, "user_id": 1}
    one = Mem0Memory.query.get(agent_id="ada", memory_id=MEM0[0]["id"])
    assert one.metadata == {"topic": "deploy", "weight": 0.75}


def test_what_is_no_mem0_changes_nothing(connection: Connection, raw: Any) -> None:
    before = everything(raw)
    for data, why in (
        (b"", "not JSON"),
        (b"[", "not JSON"),
        (json.dumps(MEM0).encode()[:-2], "not JSON"),
        ({"results": 5}, "no list"),
        (5, "no list"),
        ([5], "memory 1: a JSON object"),
        ([MEM0[0], {"id": "x", "agent_id": "ada"}], "memory 2: an object without a memory"),
        ([{**MEM0[0], "created_at": "yesterday"}], "memory 1: DefaultMemory.created_at: must be an ISO 8601"),
        ([{**MEM0[0], "created_at": "2024-07-20T01:30:36"}], "created_at: must be aware"),
        ([{**MEM0[0], "memory": ["not", "text"]}], "without a memory"),
    ):
        with pytest.raises(TransferError, match=why):
            taken(data, file_format="mem0")
    assert everything(raw) == before


def test_json_lines_of_every_field(connection: Connection) -> None:
    line = {
        "memory_id": "m1",
        "agent_id": "ada",
        "content": "昨日",
        "importance": 2,
        "occurred_at": "2026-03-02T09:00:00+09:00",
        "day": "2026-02-28",
        "number": 7,
        "share": 0.5,
        "price": "1E+3",
        "open": False,
        "blob": "AP8=",
        "shade": "DARK",
        "code": "3c90c3cc-0d44-4b50-8888-8dd25736052a",
        "tags": ["a", "b"],
        "parts": [1, None],
        "facts": {"x": {}},
        "label": None,
        "confidence": 0.9,
    }
    done = taken(line, file_format="jsonl", model=JourneyMemory)
    assert (done.records, done.stored) == (1, 1)
    one = JourneyMemory.query.get(agent_id="ada", memory_id="m1")
    assert (one.content, one.importance, one.number, one.share) == ("昨日", 2.0, 7, 0.5)
    assert one.occurred_at == datetime(2026, 3, 2, tzinfo=UTC)
    assert (one.day, one.price, one.open, one.blob) == (date(2026, 2, 28), Decimal("1E+3"), False, b"\0\xff")
    assert (one.shade, one.code) == (Shade.DARK, UUID(int=UUID(str(line["code"])).int))
    assert (one.tags, one.parts, one.facts, one.label) == ({"a", "b"}, [1, None], {"x": {}}, None)
    assert one.confidence == pytest.approx(0.9)
    assert one.marks is None


def test_names_are_mapped_and_unknown_ones_refused(connection: Connection, raw: Any, tmp_path: Path) -> None:
    lines = (
        b'{"text": "one", "who": "ada", "extra": 1}\n\n{"text": "two", "who": "bob", "when": 1700000000.5}\n'
    )
    with pytest.raises(TransferError, match="line 1: DefaultMemory has no field 'text'"):
        taken(lines, file_format="jsonl")
    assert everything(raw) == {}
    names = {"text": "content", "who": "agent_id", "extra": "", "when": "occurred_at"}
    assert taken(lines, file_format="jsonl", field_map=names).stored == 2
    (two,) = DefaultMemory.query.filter(agent_id="bob").all()
    assert two.occurred_at == datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)


def test_lines_without_an_id_are_the_same_memories_again(connection: Connection, raw: Any) -> None:
    lines = b'{"content": "one"}\n{"content": "two"}\n{"content": "one"}\n'
    done = taken(lines, file_format="jsonl", agent_id="ada")
    assert (done.records, done.stored, done.present) == (3, 2, 1)
    before = everything(raw)
    assert taken(lines, file_format="jsonl", agent_id="ada").present == 3
    assert everything(raw) == before
    assert taken(lines, file_format="jsonl", agent_id="bob").stored == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[1]", "line 2: a JSON object"),
        (b'{"content": "x"', "line 2: this is not JSON"),
        (b'{"content": "\xff"}', "line 2: this is not JSON"),
        (b'{"content": NaN}', "line 2: this is not JSON"),
        (b'{"content": 5}', "line 2: DefaultMemory.content: must be a string"),
        (b'{"content": "x", "importance": "high"}', "line 2: DefaultMemory.importance: must be a float"),
        (b'{"content": "x", "tags": [1]}', "line 2: DefaultMemory.tags"),
        (b'{"content": "x", "relevance": 1.0}', "line 2: DefaultMemory.relevance"),
        (b'{"content": "x", "confidence": 1.0}', "line 2: DefaultMemory.confidence"),
        (b'{"content": "x", "id": "a", "memory_id": "b"}', "line 2: two values for DefaultMemory.memory_id"),
        (b'{"content": "x", "memory_id": ""}', "line 2: DefaultMemory.memory_id"),
        (b'{"content": "x", "agent_id": ""}', "line 2: DefaultMemory.agent_id: must not be empty"),
    ],
)
def test_a_bad_line_changes_nothing(connection: Connection, raw: Any, line: bytes, why: str) -> None:
    with pytest.raises(TransferError, match=why):
        taken(b'{"content": "good"}\n' + line, file_format="jsonl", agent_id="ada")
    assert everything(raw) == {}


def test_the_firewall_reads_what_others_wrote(connection: Connection, raw: Any) -> None:
    lines = json.dumps({"content": f"the token is {TOKEN}"}).encode() + b'\n{"content": "fine"}\n'
    done = taken(lines, file_format="jsonl", agent_id="ada")
    assert (done.stored, done.refused) == (1, {"credential": 1})
    assert TOKEN not in repr(everything(raw))
