"""Nothing of a memory that is gone is left: in no key of the server, and not in this process' cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import omoide
from omoide import BM25Field, ContextAssembler, CoOccurrenceField, DecayingSortedField, Model
from omoide.connection import Connection
from omoide.fields import AutoKeyField, FloatField, KeyField, StringField, TagField
from omoide.ops.reindex import reindex
from omoide.ops.upkeep import prune
from omoide.recipes import DefaultMemory, SubconsciousMemory

Contents = Callable[[], bytes]

MARKS = ("zorbalu", "quixnefti", "vandrolim", "Hespurina", "wexitag", "jumbrosess", "Kolvauthor", "ydalslot")


class Marked(Model):
    """Every kind of index at once, with a cap, and slots that are unique."""

    max_records_per_partition = 3

    marked_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    note = StringField(default="", index=True)
    slot = StringField(null=True)
    importance = FloatField(default=0.5)
    tags = TagField()
    session_id = StringField(null=True)
    author = StringField(null=True)
    relevance = DecayingSortedField(base_score_field="importance")
    links = CoOccurrenceField()
    text = BM25Field(source="content")

    class Meta:
        unique_together = (("slot",),)


class Fleeting(Model):
    """The same, for a moment."""

    fleeting_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    tags = TagField()
    session_id = StringField(null=True)
    author = StringField(null=True)
    links = CoOccurrenceField()
    text = BM25Field(source="content")

    class Meta:
        ttl = 3


def marked(**values: object) -> Marked:
    """A record with a mark of its own in every place that can hold one."""
    given = {
        "content": f"{MARKS[0]} {MARKS[1]}/{MARKS[2]}.py was named by {MARKS[3]} and {MARKS[0]} again",
        "note": MARKS[1],
        "slot": MARKS[7],
        "tags": {MARKS[4]},
        "session_id": MARKS[5],
        "author": MARKS[6],
        "importance": 0.1,
    }
    return Marked(agent_id="a", **{**given, **values})


def others(count: int = 2) -> None:
    for number in range(count):
        assert Marked(agent_id="a", content=f"plain walrus number {number}", importance=0.9).save()


def read_it_everywhere(connection: Connection) -> None:
    """Have caches hold the marks, and the store know it was recalled."""
    assembler = ContextAssembler(Marked, track=True)
    for _ in range(2):
        assert assembler.assemble(" ".join(MARKS[:3]), agent_id="a").records
    assert Marked.query.filter(agent_id="a", tags=MARKS[4]).count() == 1
    assert Marked.query.filter(agent_id="a", note=MARKS[1], session_id=MARKS[5], author=MARKS[6]).all()


def assert_no_trace(connection: Connection, contents: Contents, *marks: str) -> None:
    held = contents().lower()
    assert held
    found = [mark for mark in marks or MARKS if mark.lower().encode() in held]
    assert not found, "left on the server"
    query = " ".join(marks or MARKS)
    assert not ContextAssembler(Marked, track=False).assemble(query, agent_id="a").records


def test_the_scan_sees_marks_at_all(connection: Connection, contents: Contents) -> None:
    marked().save()
    held = contents().lower()
    assert all(mark.lower().encode() in held for mark in MARKS[:7])


def test_delete(connection: Connection, contents: Contents) -> None:
    others()
    one = marked()
    one.save()
    for other in Marked.query.filter(agent_id="a").all():
        if other.marked_id != one.marked_id:
            one.links.link(other)
    read_it_everywhere(connection)
    assert one.delete()
    assert_no_trace(connection, contents)


def test_delete_of_a_turns_record_takes_its_words(connection: Connection, contents: Contents) -> None:
    memory = DefaultMemory(agent_id="a", content=f"the {MARKS[0]} of {MARKS[1]}")
    memory.save()
    DefaultMemory(agent_id="a", content="a plain walrus").save()
    loop = SubconsciousMemory(agent_id="a")
    _, result = loop.inject_context([{"role": "user", "content": f"{MARKS[0]} walrus?"}])
    loop.report_outcomes(result, "acted")
    memory.delete()
    held = contents()
    assert MARKS[0].encode() not in held
    assert loop.report_outcomes(result, "acted").states[memory.memory_id] == "missing"


def test_update(connection: Connection, contents: Contents) -> None:
    others()
    one = marked(marked_id="plain")
    one.save()
    read_it_everywhere(connection)
    plain = {
        "content": "nothing",
        "note": "",
        "slot": None,
        "tags": set(),
        "session_id": None,
        "author": None,
    }
    assert one.update(**plain)
    assert_no_trace(connection, contents)


def test_update_elsewhere(store_url: str, connection: Connection, contents: Contents) -> None:
    """The cache of this process forgets what another process changed."""
    others()
    one = marked(marked_id="plain")
    one.save()
    read_it_everywhere(connection)
    with Connection(store_url) as other, other.use():
        Marked.query.get(agent_id="a", marked_id="plain").delete()
    assert_no_trace(connection, contents)


def test_eviction(connection: Connection, contents: Contents) -> None:
    marked().save()
    read_it_everywhere(connection)
    others(3)
    assert Marked.counters(agent_id="a").read("evicted") == 1
    assert_no_trace(connection, contents)


def test_reindex_after_delete(connection: Connection, contents: Contents) -> None:
    others()
    one = marked()
    one.save()
    read_it_everywhere(connection)
    reindex(Marked, agent_id="a")
    assert ContextAssembler(Marked, track=False).assemble(MARKS[0], agent_id="a").records
    one.delete()
    assert_no_trace(connection, contents)
    reindex(Marked, agent_id="a")
    assert_no_trace(connection, contents)


def test_expiry_and_prune(connection: Connection, contents: Contents) -> None:
    fleeting = Fleeting(
        agent_id="a", content=" ".join(MARKS[:4]), tags={MARKS[4]}, session_id=MARKS[5], author=MARKS[6]
    )
    assert fleeting.save()
    born = time.monotonic()
    assembler = ContextAssembler(Fleeting, track=False)
    assert assembler.assemble(MARKS[0], agent_id="a").records
    Fleeting(agent_id="a", content="a plain walrus").save()
    while Fleeting.count(agent_id="a"):
        assert time.monotonic() < born + 20
    assert not assembler.assemble(MARKS[0], agent_id="a").records
    assert Fleeting.query.get(agent_id="a", fleeting_id=fleeting.fleeting_id) is None
    prune()
    assert Fleeting(agent_id="a", content="another walrus").save()
    held = contents().lower()
    assert held
    assert not [mark for mark in MARKS if mark.lower().encode() in held]


def test_forget(connection: Connection, contents: Contents) -> None:
    Marked(agent_id="b", content="a plain walrus").save()
    others()
    marked().save()
    read_it_everywhere(connection)
    Marked.counters(agent_id="a").increment(MARKS[1])
    assert Marked.delete_partition(agent_id="a") == 3
    assert_no_trace(connection, contents)
    assert [part["partition"] for part in omoide.status()["partitions"]] == [["b"]]


def cached_words(connection: Connection) -> set[str]:
    """Every term this process keeps postings of."""
    cache = connection.store.binding.cache  # type: ignore[attr-defined]
    return {name for part in cache._partitions.values() for name, held in part.terms.items() if held.count}


def test_the_cache_of_this_process_forgets_the_words_of_what_it_deletes(connection: Connection) -> None:
    others()
    one = marked()
    one.save()
    read_it_everywhere(connection)
    words = cached_words(connection)
    assert any(MARKS[0] in word for word in words)
    assert one.delete()
    left = cached_words(connection)
    assert not [word for word in left if any(mark.lower() in word.lower() for mark in MARKS)]
    assert {word for word in words if "walrus" in word} <= left


def test_the_cache_forgets_what_others_delete(connection: Connection, store_url: str) -> None:
    """Once it has seen that 64 rows died, words that only they held go."""
    records = [DefaultMemory(agent_id="a", content=f"walrus {MARKS[0]}{number}") for number in range(80)]
    DefaultMemory(agent_id="a", content="walrus alone").save()
    DefaultMemory.save_many(records)
    assembler = ContextAssembler(DefaultMemory, track=False)
    assembler.assemble("walrus", agent_id="a")
    assert any(MARKS[0] in word for word in cached_words(connection))
    with Connection(store_url) as other, other.use():
        DefaultMemory.delete_many([record.memory_id for record in records], agent_id="a")
    assembler.assemble("walrus", agent_id="a")
    assert not [word for word in cached_words(connection) if MARKS[0] in word]


def test_a_partition_of_2500_goes_whole_and_is_counted(connection: Connection, contents: Contents) -> None:
    class Numerous(Model):
        numerous_id = AutoKeyField()
        agent_id = KeyField()
        content = StringField(default="")
        text = BM25Field(source="content")

    def fill(agent: str) -> None:
        records = [Numerous(agent_id=agent, content=f"{MARKS[0]} walrus {n}") for n in range(2500)]
        assert all(Numerous.save_many(records))

    for agent in ("a", "b"):
        fill(agent)
    assert Numerous.query.filter(agent_id="a").delete() == 2500
    assert Numerous.count(agent_id="a") == 0
    assert Numerous.count(agent_id="b") == 2500
    assert Numerous.delete_many([f"x{n}" for n in range(600)], agent_id="b") == 0
    ids = Numerous.query.filter(agent_id="b").ids()
    assert len(set(ids)) == 2500
    assert Numerous.delete_many(ids[:1300], agent_id="b") == 1300
    assert Numerous.delete_partition(agent_id="b") == 1200
    assert MARKS[0].encode() not in contents()


@pytest.mark.parametrize("age_days", [0, 400])
def test_a_failed_save_leaves_no_trace(age_days: int, connection: Connection, contents: Contents) -> None:
    """A refused text is in no key; neither is one whose slot was taken."""
    assert marked(slot="taken", content="plain", marked_id="plain", note="", tags=set(), author=None).save()
    outcome = Marked(agent_id="a", content=MARKS[2], slot="taken").save()
    assert (outcome.stored, outcome.reason, outcome.duplicate_of) == (False, "duplicate", "plain")
    secret = "AKIA" + "Q7RZ2LK4XW6MPT3H"
    when = datetime.now(UTC) - timedelta(days=age_days)
    refused = DefaultMemory(agent_id="a", content=f"{MARKS[3]} says the key is {secret}", occurred_at=when)
    assert not refused.save()
    held = contents()
    assert MARKS[2].encode() not in held
    assert MARKS[3].encode() not in held
    assert secret.encode() not in held
