"""Two agents with the same words: nothing one of them does is seen by, or changes, the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import omoide
from omoide import ContextAssembler, Model, QueryError
from omoide.connection import Connection
from omoide.errors import FieldError
from omoide.fields import AutoKeyField, BM25Field, DictField, KeyField, StringField
from omoide.model.partition import PARTITION_BYTES
from omoide.ops.reindex import reindex
from omoide.recipes import DefaultMemory, SubconsciousMemory

Dump = Callable[..., dict[bytes, bytes]]

WORDS = ["deploys are blue-green", "the staging database is Postgres", "tea without sugar", "blue tea"]
HOSTILE = [
    "a&agent_id=b",
    "*",
    "{x}",
    "a:b",
    "a/b",
    "%2F",
    "a b",
    " a ",
    "a\nb",
    "\U0001f9e0",
    "nu\0l",
    "x" * 128,
    "}:h",
    "{a",
    "a}",
    "[a-z]",
    "?",
    "\\",
    "..",
    "a|b",
    "'; DROP",
    "A",
    "ä",
    "a\u0308",
]


class Twin(Model):
    """A model with a caller's own ids and a uniqueness rule."""

    twin_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    slot = StringField(default="")
    facts = DictField(default_factory=dict)
    text = BM25Field(source="content")

    class Meta:
        unique_together = (("slot",),)


def fill(agent: str) -> list[DefaultMemory]:
    memories = [
        DefaultMemory(
            memory_id=f"m{n}", agent_id=agent, content=words, tags={"t"}, session_id="s", author="Ann"
        )
        for n, words in enumerate(WORDS)
    ]
    assert all(memory.save() for memory in memories)
    return memories


def every_call(agent: str) -> list[Callable[[], object]]:
    """All that a user can do for one agent, reads first; each also asserts that only own records come."""
    memory = DefaultMemory
    query = memory.query.filter(agent_id=agent)
    loop = SubconsciousMemory(agent_id=agent)

    def own(records: Any) -> None:
        assert all(record is None or record.agent_id == agent for record in records)

    def turn() -> None:
        _, result = loop.inject_context([{"role": "user", "content": "blue tea deploys?"}])
        own(result.records)
        loop.extract_memories("The walrus of the turn was fed.", result=result)
        loop.report_outcomes(result, "acted")
        loop.report_outcomes(result, "contradicted")

    def get(name: str) -> DefaultMemory:
        found = memory.query.get(agent_id=agent, memory_id=name)
        assert found is not None
        return found

    def assembled(**options: Any) -> None:
        own(ContextAssembler(memory, **options).assemble("blue tea deploys staging", agent_id=agent).records)

    return [
        lambda: own([get("m0")]),
        lambda: own(memory.query.get_many(["m0", "m1", "nothing"], agent_id=agent)),
        lambda: own(query.all()),
        lambda: own(query.filter(tags="t").order_by("-importance").limit(3).all()),
        lambda: own(query.filter(scan=True, content__contains="tea").all()),
        lambda: own(query.iterate(page=2)),
        lambda: own(query.top_by_decay(n=10)),
        lambda: query.filter(author="Ann", session_id="s").count(),
        lambda: query.ids(),
        lambda: memory.count(agent_id=agent),
        lambda: assembled(),
        lambda: assembled(mode="composite"),
        lambda: assembled(fallback="recent", format="xml"),
        turn,
        lambda: memory.counters(agent_id=agent).increment("seen", 3),
        lambda: memory.never_record_counts(agent_id=agent),
        lambda: memory(agent_id=agent, content="my key is AKIA" + "Q7RZ2LK4XW6MPT3H").save(),
        lambda: get("m0").touch(),
        lambda: get("m0").evidence(),
        lambda: get("m0").associations.link(get("m1")),
        lambda: get("m0").associations.propagate(),
        lambda: get("m0").associations.weaken(get("m1")),
        lambda: get("m1").update(content="tea with a walrus"),
        lambda: memory(memory_id="m2", agent_id=agent, content="replaced").save(),
        lambda: reindex(memory, agent_id=agent),
        lambda: get("m3").delete(),
        lambda: memory.delete_many(["m2", "m3"], agent_id=agent),
        lambda: query.filter(tags="t").delete(),
        lambda: memory.delete_partition(agent_id=agent),
    ]


def test_no_call_of_one_agent_touches_the_other(connection: Connection, dump: Dump) -> None:
    fill("one")
    fill("two")
    turn = SubconsciousMemory(agent_id="two")
    _, result = turn.inject_context([{"role": "user", "content": "blue tea deploys?"}])
    DefaultMemory.counters(agent_id="two").increment("seen")
    before = dump("/two}")
    ranked = ContextAssembler(DefaultMemory, track=False).assemble("blue tea", agent_id="two", explain=True)
    for number, call in enumerate(every_call("one")):
        call()
        assert dump("/two}") == before, f"call {number}"
    again = ContextAssembler(DefaultMemory, track=False).assemble("blue tea", agent_id="two", explain=True)
    assert again.metadata["explain"] == ranked.metadata["explain"]
    assert dump("/one}") == {}
    assert turn.report_outcomes(result, "acted").states == dict.fromkeys(result.ids, "applied")


@pytest.mark.parametrize("agent", HOSTILE, ids=[repr(agent)[:20] for agent in HOSTILE])
def test_hostile_agent_ids(agent: str, connection: Connection, dump: Dump) -> None:
    neighbours = ["a", "b", "x", "a%2Fb", "agent_id=b"]
    for other in neighbours:
        DefaultMemory(memory_id="m0", agent_id=other, content=f"the tea of {len(other)}").save()
    before = dump()
    for call in every_call_on_new(agent):
        call()
    assert dump() == before
    found = [part["partition"] for part in omoide.status()["partitions"]]
    assert sorted(found) == sorted([other] for other in neighbours)


def every_call_on_new(agent: str) -> list[Callable[[], object]]:
    def begin() -> None:
        assert DefaultMemory.count(agent_id=agent) == 0
        fill(agent)
        assert DefaultMemory.count(agent_id=agent) == len(WORDS)
        listed = [part["partition"] for part in omoide.status()["partitions"] if part["live"] == len(WORDS)]
        assert listed == [[agent]]

    return [begin, *every_call(agent)]


def test_the_longest_partition_and_one_byte_more(connection: Connection) -> None:
    longest = "é" * (PARTITION_BYTES // 2)
    assert DefaultMemory(agent_id=longest, content="tea").save()
    assert DefaultMemory.count(agent_id=longest) == 1
    with pytest.raises(QueryError):
        DefaultMemory.count(agent_id=longest + "x")
    with pytest.raises(FieldError):
        DefaultMemory(agent_id=longest + "x", content="tea").save()


def test_reading_an_unknown_agent_creates_nothing(connection: Connection, dump: Dump) -> None:
    nobody = {"agent_id": "nobody"}
    query = DefaultMemory.query.filter(**nobody)
    assert DefaultMemory.query.get(memory_id="m", **nobody) is None
    assert DefaultMemory.query.get_many(["m"], **nobody) == [None]
    assert query.all() == query.top_by_decay() == list(query.iterate()) == query.ids() == []
    assert query.count() == DefaultMemory.count(**nobody) == query.filter(tags="t").count() == 0
    assert not ContextAssembler(DefaultMemory).assemble("tea", **nobody).records
    assert not ContextAssembler(DefaultMemory, mode="composite", fallback="recent").assemble("tea", **nobody)
    assert DefaultMemory.counters(**nobody).all() == {}
    assert not any(DefaultMemory.never_record_counts(**nobody).values())
    assert DefaultMemory.delete_many(["m"], **nobody) == DefaultMemory.delete_partition(**nobody) == 0
    assert query.delete() == reindex(DefaultMemory, **nobody) == 0
    loop = SubconsciousMemory(**nobody)
    _, result = loop.inject_context([{"role": "user", "content": "tea?"}])
    assert loop.report_outcomes("no-such-turn", "acted").states == {}
    assert not result
    assert omoide.status()["partitions"] == []
    assert dump() == {}


@pytest.mark.parametrize("scope", [{}, {"agent_id": None}, {"agent_id": ""}, {"memory_id": "m0"}])
def test_a_call_without_a_scope_is_refused(scope: dict[str, Any], connection: Connection, dump: Dump) -> None:
    fill("one")
    before = dump()
    calls: list[Callable[[], object]] = [
        lambda: DefaultMemory.query.filter(**scope),
        lambda: DefaultMemory.query.get(**{"memory_id": "m0", **scope}),
        lambda: DefaultMemory.query.get_many(["m0"], **scope),
        lambda: DefaultMemory.query.all(),
        lambda: DefaultMemory.query.delete(),
        lambda: DefaultMemory.query.count(),
        lambda: DefaultMemory.count(**scope),
        lambda: DefaultMemory.delete_many(["m0"], **scope),
        lambda: DefaultMemory.delete_partition(**scope),
        lambda: DefaultMemory.counters(**scope),
        lambda: DefaultMemory.never_record_counts(**scope),
        lambda: ContextAssembler(DefaultMemory).assemble("tea", **scope),
        lambda: SubconsciousMemory(**scope),
        lambda: reindex(DefaultMemory, **scope),
    ]
    for call in calls:
        with pytest.raises(QueryError):
            call()
    with pytest.raises((FieldError, TypeError)):
        DefaultMemory(content="tea", **{k: v for k, v in scope.items() if k == "agent_id"}).save()
    assert dump() == before


def test_metadata_with_reserved_names_moves_nobody(connection: Connection, dump: Dump) -> None:
    names = [
        "agent_id",
        "twin_id",
        "id",
        "version",
        "row",
        "_omoide",
        "text",
        "Meta",
        "__class__",
        "partition",
    ]
    victim = Twin(twin_id="t", agent_id="victim", content="tea", slot="s")
    victim.save()
    before = dump("victim")
    mine = Twin(twin_id="t", agent_id="me", content="tea", facts=dict.fromkeys(names, "victim"), slot="s")
    assert mine.save()
    assert mine.update(facts={name: {"agent_id": "victim"} for name in names})
    with pytest.raises(FieldError):
        Twin(agent_id="me", user_id="victim")
    with pytest.raises(FieldError):
        mine.update(version="9")
    found = Twin.query.get(agent_id="me", twin_id="t")
    assert (found.agent_id, found.twin_id, set(found.facts)) == ("me", "t", set(names))
    assert dump("victim") == before


def test_an_instance_cannot_be_moved_to_another_agent(connection: Connection, dump: Dump) -> None:
    memory = fill("one")[0]
    fill("two")
    before = dump("/two}")
    with pytest.raises(FieldError):
        memory.update(agent_id="two")
    assert dump("/two}") == before


def test_interleaved_agents_in_one_loop(connection: Connection) -> None:
    async def one(agent: str) -> None:
        await asyncio.gather(
            *(DefaultMemory(agent_id=agent, content=f"tea of {agent} {n}").asave() for n in range(20))
        )
        result = await ContextAssembler(DefaultMemory, max_items=20).aassemble("tea", agent_id=agent)
        assert {record.agent_id for record in result.records} == {agent}
        assert await DefaultMemory.acount(agent_id=agent) == 20

    async def main() -> None:
        await asyncio.gather(*(one(f"agent-{n}") for n in range(8)))
        await connection.aclose()

    asyncio.run(main())
