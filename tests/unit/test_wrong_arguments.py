"""Arguments that cannot be meant are refused by omoide's own errors, before anything is asked or stored."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

import omoide
from omoide import BM25Field, ConfidenceField, ContextAssembler, EmbeddingField, ValidityField
from omoide.connection import Connection
from omoide.errors import ModelError, QueryError
from omoide.fields import DecayingSortedField
from omoide.privacy.samples import Maker
from omoide.recipes import (
    DefaultMemory,
    LongTermMemory,
    SubconsciousMemory,
    ThreadMemory,
    ledger,
    maintain,
    tools_of,
)

AGENT = {"agent_id": "ada"}
TOKEN = "gh" + "p_" + Maker(41).body("an", 36)
ANY: Any = 5

FIELDS: list[Callable[[], object]] = [
    lambda: ValidityField(key=ANY),
    lambda: ValidityField(key=(ANY,)),
    lambda: BM25Field(source=ANY),
    lambda: BM25Field(source=(ANY,)),
    lambda: BM25Field(source="content", k1="x"),  # type: ignore[arg-type]
    lambda: EmbeddingField(source=ANY, provider=len),
    lambda: EmbeddingField(source="content", provider=len, timeout="x"),  # type: ignore[arg-type]
    lambda: EmbeddingField(source="content", provider=len, least="x"),  # type: ignore[arg-type]
    lambda: DecayingSortedField(half_life="x"),  # type: ignore[arg-type]
    lambda: DecayingSortedField(exponent="x"),  # type: ignore[arg-type]
    lambda: ConfidenceField(initial="x"),  # type: ignore[arg-type]
    lambda: omoide.PostgresMirror(table=ANY),
]

CALLS: list[Callable[[], object]] = [
    lambda: maintain(now="x"),  # type: ignore[arg-type]
    lambda: maintain(now=datetime(2026, 1, 1)),
    lambda: ledger("ada", limit=-1),
    lambda: ledger("ada", limit=True),
    lambda: ledger(ANY),
    lambda: LongTermMemory(ANY),
    lambda: LongTermMemory("  "),
    lambda: LongTermMemory("ada", session_id=ANY),
    lambda: LongTermMemory("ada", deadline=-1),
    lambda: ThreadMemory("monday", resource_id="\u3000 "),
    lambda: ThreadMemory.sessions("ada", limit=-1),
    lambda: ThreadMemory.delete_sessions("ada", ANY),
    lambda: ThreadMemory.delete_sessions("ada", "monday"),
    lambda: tools_of(LongTermMemory("ada"), "nope"),
    lambda: tools_of(LongTermMemory("ada"), ANY),
    lambda: tools_of(LongTermMemory("ada"), [ANY]),
    lambda: SubconsciousMemory(**AGENT, extractor=ANY),
    lambda: SubconsciousMemory(**AGENT, extractor_deadline=0),
    lambda: SubconsciousMemory(**AGENT).report_outcomes("turn", ANY),
    lambda: ContextAssembler(DefaultMemory, token_counter=ANY),
    lambda: ContextAssembler(DefaultMemory, deadline="x"),  # type: ignore[arg-type]
    lambda: ContextAssembler(DefaultMemory).assemble("tea", exclude=ANY, **AGENT),
    lambda: DefaultMemory.delete_many("abc", **AGENT),
    lambda: DefaultMemory.query.filter(**AGENT).exclude("abc"),
    lambda: DefaultMemory.query.filter(**AGENT).order_by(ANY),
    lambda: omoide.export_memories(DefaultMemory, ANY, **AGENT),
    lambda: omoide.import_memories(DefaultMemory, ANY, **AGENT),
    lambda: omoide.import_memories(
        DefaultMemory, io.BytesIO(b"{}\n"), file_format="jsonl", field_map=ANY, **AGENT
    ),
    lambda: omoide.scan_memories(DefaultMemory, cursor=ANY),
    lambda: omoide.forget(DefaultMemory, patience="x", **AGENT),  # type: ignore[arg-type]
]


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    with Connection(store_url) as connection, connection.use():
        yield connection


@pytest.mark.parametrize("make", FIELDS)
def test_an_option_of_a_field_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ModelError):
        make()


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_is_refused(connection: Connection, call: Callable[[], object]) -> None:
    before = connection.round_trips
    with pytest.raises(QueryError):
        call()
    assert connection.round_trips == before


def test_letters_of_a_text_are_no_ids(connection: Connection) -> None:
    for name in "abc":
        assert DefaultMemory(memory_id=name, content=name, **AGENT).save()
    with pytest.raises(QueryError, match="list of strings"):
        DefaultMemory.delete_many("abc", **AGENT)
    assert DefaultMemory.count(**AGENT) == 3


def test_a_name_in_a_file_is_told_only_where_it_holds_no_secret(connection: Connection) -> None:
    def lines(name: str) -> io.BytesIO:
        return io.BytesIO(f'{{"content": "tea", "{name}": 1}}\n'.encode())

    with pytest.raises(omoide.TransferError, match="has no field 'colour'"):
        omoide.import_memories(DefaultMemory, lines("colour"), file_format="jsonl", **AGENT)
    with pytest.raises(omoide.TransferError, match="has no field") as caught:
        omoide.import_memories(DefaultMemory, lines(TOKEN), file_format="jsonl", **AGENT)
    assert TOKEN[:12] not in str(caught.value)
    memory = f'{{"id": "1", "memory": "tea", "{TOKEN}": 1, "colour": 2}}\n'.encode()
    told = omoide.import_memories(DefaultMemory, io.BytesIO(memory), file_format="mem0", **AGENT)
    assert told.ignored == {"(a name that the firewall keeps out)": 1, "colour": 1}
    export = f'{{"omoide":"export","format":1,"model":"{TOKEN}","id":"a","partition_by":[]}}\n'.encode()
    with pytest.raises(omoide.TransferError) as caught:
        omoide.import_memories(DefaultMemory, io.BytesIO(export))
    assert TOKEN[:12] not in str(caught.value)
