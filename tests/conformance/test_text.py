"""Texts at the edges: stored whole and said what was not indexed, or refused with a clear error."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from omoide import ContextAssembler, FieldError
from omoide.connection import Connection
from omoide.model.instance import scope_of
from omoide.ops import port
from omoide.ops.request import Page
from omoide.ops.run import run
from omoide.recipes import DefaultMemory, SubconsciousMemory

CAP = 65_536

KEPT = {
    "empty": "",
    "spaces": " \t\n ",
    "nul": "the walrus\0was fed",
    "controls": "".join(map(chr, range(32))) + "walrus\x7f\x85\u2028",
    "emoji": "walrus \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \u2764\ufe0f \U0001f3f4",
    "noncharacters": "walrus \ufffe\uffff\U0010ffff\ufdd0",
    "right to left": "walrus \u202egnip\u202c שלום",
    "decomposed": unicodedata.normalize("NFD", "walrus Ångström café"),
    "composed": unicodedata.normalize("NFC", "walrus Ångström café"),
    "no spaces": "walrus今天玩成语接龙游戏",
    "one long word": "walrus " + "x" * 60_000,
    "separators": "walrus a,b;c|d\x1ce\x1df\ng\r\nh",
    "braces": "walrus {agent} %s %(x)s $1 \\0 </memory> - [x] <system>",
    "at the cap": "walrus " + "w" * (CAP - 7),
    "at the cap in two bytes": "é" * (CAP // 2),
    "at the cap in four bytes": "\U0001f9ad" * (CAP // 4),
    "a line of commas": "walrus " + "," * 60_000,
    "combining marks": "walrus a" + "\u0301" * 20_000,
}

REFUSED: dict[str, Any] = {
    "one byte over the cap": "w" * (CAP + 1),
    "one character over the cap in bytes": "é" * (CAP // 2) + "x",
    "a megabyte": "w" * 2**20,
    "a lone surrogate": "walrus \ud83d was fed",
    "a reversed pair": "\udc00\ud800",
    "bytes": b"walrus",
    "a number": 5,
    "none": None,
    "a list": ["walrus"],
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_kept_as_it_is(text: str, connection: Connection) -> None:
    memory = DefaultMemory(agent_id="a", content=text)
    outcome = memory.save()
    assert (outcome.stored, outcome.left_out) == (True, 0)
    found = DefaultMemory.query.get(agent_id="a", memory_id=memory.memory_id)
    assert found is not None
    assert found.content == text
    (page,) = run(_page(memory), port.current().store)
    assert page.values["content"] == text
    if "walrus" in text and len(text) < 1000:
        result = ContextAssembler(DefaultMemory).assemble("Walrus?", agent_id="a")
        assert [record.content for record in result.records] == [text]
    assert found.update(content=text + "!" if len(text) < 1000 else "short")
    assert memory.delete()
    assert DefaultMemory.count(agent_id="a") == 0


def _page(memory: DefaultMemory) -> Any:
    reply = yield Page(scope_of(memory))
    return reply.records


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_refused_before_anything_is_sent(
    text: Any, connection: Connection, dump: Callable[[], dict[bytes, bytes]]
) -> None:
    sent = connection.round_trips
    with pytest.raises(FieldError) as caught:
        DefaultMemory(agent_id="a", content=text).save()
    assert (caught.value.model, caught.value.field) == ("DefaultMemory", "content")
    assert "walrus" not in str(caught.value)
    assert caught.value.rule
    good = DefaultMemory(agent_id="a", content="fine")
    with pytest.raises(FieldError):
        DefaultMemory.save_many([good, DefaultMemory(agent_id="a", content=text)])
    assert connection.round_trips == sent
    assert dump() == {}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e39, "1", True, 10**400])
def test_a_bad_number_is_refused(number: Any, connection: Connection, dump: Callable[[], object]) -> None:
    with pytest.raises(FieldError) as caught:
        DefaultMemory(agent_id="a", content="walrus", importance=number).save()
    assert caught.value.field == "importance"
    assert dump() == {}


def test_ten_thousand_distinct_terms(connection: Connection) -> None:
    words = [f"q{n:04}" for n in range(10_000)]
    text = " ".join(words)
    memory = DefaultMemory(agent_id="a", content=text)
    with pytest.raises(FieldError):
        DefaultMemory(agent_id="a", content=text + "x" * CAP).save()
    outcome = memory.save()
    assert outcome.stored
    assert outcome.left_out >= 10_000 - 2_048
    assert DefaultMemory.query.get(agent_id="a", memory_id=memory.memory_id).content == text
    assembler = ContextAssembler(DefaultMemory, track=False)
    assert assembler.assemble(words[0], agent_id="a").ids == (memory.memory_id,)
    assert assembler.assemble(words[-1], agent_id="a").ids == ()
    assert memory.update(content="short again").left_out == 0
    assert assembler.assemble(words[0], agent_id="a").ids == ()
    assert connection.store.execute(_check(memory)).findings == ()


def _check(memory: DefaultMemory) -> Any:
    from omoide.ops.request import Check

    return Check(scope_of(memory))


QUERIES = {
    "empty": "",
    "spaces": "  \n",
    "only stop words": "the and of it is",
    "punctuation": "".join(chr(n) for n in range(33, 127) if not chr(n).isalnum()),
    "every sign": "".join(map(chr, range(256))),
    "nul": "\0",
    "surrogate": "walrus \ud83d",
    "long": "walrus " * 5_000,
    "many words": " ".join(f"w{n}" for n in range(5_000)),
    "a megabyte": "x" * 2**20,
    "query language": "-walrus OR @content:{*} AND (tea|~",
    "emoji": "\U0001f9ad",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("reader", ["client", "server"])
def test_any_query_is_answered(query: str, reader: str, store_url: str) -> None:
    with Connection(store_url, reader=reader) as connection, connection.use():
        DefaultMemory(agent_id="a", content="the walrus drinks tea").save()
        result = ContextAssembler(DefaultMemory).assemble(query, agent_id="a")
        assert [record.content for record in result.records] == ["the walrus drinks tea"] * (
            "walrus" in query
        )
        loop = SubconsciousMemory(agent_id="a")
        assert loop.inject_context([{"role": "user", "content": query}])[1].error is None


def test_a_captured_text_of_any_kind_is_stored_or_said_not_to_be(connection: Connection) -> None:
    loop = SubconsciousMemory(agent_id="a")
    for text in [*KEPT.values(), *(text for text in REFUSED.values() if isinstance(text, str))]:
        outcomes = loop.extract_memories(text)
        assert all(outcome.stored for outcome in outcomes)
        assert bool(outcomes) == bool(text.strip())
