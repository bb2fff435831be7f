"""What went wrong in other memory systems, as things that must not happen here."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from tests.processes import Python

import omoide
from omoide import (
    BM25Field,
    BoolField,
    BytesField,
    ConflictError,
    ContextAssembler,
    CoOccurrenceField,
    CorruptRecordError,
    DateField,
    DatetimeField,
    DecayingSortedField,
    DecimalField,
    DictField,
    EnumField,
    IntField,
    ListField,
    Model,
    StoreError,
    StoreUnavailableError,
    UUIDField,
    batch,
)
from omoide.connection import Connection
from omoide.fields import AutoKeyField, FloatField, KeyField, StringField, TagField
from omoide.model.instance import scope_of
from omoide.ops import request as ask
from omoide.ops.reindex import reindex
from omoide.ops.upkeep import doctor, prune
from omoide.recipes import DefaultMemory, SubconsciousMemory
from omoide.testing import ValkeyServer

Dump = Callable[..., dict[bytes, bytes]]


class Once(Model):
    """One fact, one row."""

    once_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    text = BM25Field(source="content")

    class Meta:
        unique_together = (("content",),)


class Note(Model):
    """A plain record, next to which `Once` uses the same ids."""

    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    status = StringField(default="", index=True)
    count_of = IntField(default=0)
    importance = FloatField(default=1.0)
    tags = TagField()
    links = CoOccurrenceField()
    relevance = DecayingSortedField(base_score_field="importance")
    text = BM25Field(source="content")


def recalled(model: type[Model], query: str, agent: str = "a") -> list[str]:
    result = ContextAssembler(model, track=False, max_items=50, max_tokens=100_000).assemble(
        query, agent_id=agent
    )
    return [record.content for record in result.records]


def sound() -> bool:
    return all(health.sound for health in doctor())


# ---- duplicates, lost writes, concurrency -----------------------------------------------------------


def test_fifty_concurrent_equal_saves_leave_one_row(connection: Connection) -> None:
    barrier = threading.Barrier(50)

    def save(_: int) -> Any:
        once = Once(agent_id="a", content="Ann likes tea")
        barrier.wait()
        with connection.use():
            return once.save()

    with ThreadPoolExecutor(50) as threads:
        outcomes = list(threads.map(save, range(50)))
    (winner,) = [outcome for outcome in outcomes if outcome.stored]
    assert {outcome.duplicate_of for outcome in outcomes if not outcome.stored} == {winner.id}
    assert {outcome.reason for outcome in outcomes if not outcome.stored} == {"duplicate"}
    assert Once.count(agent_id="a") == 1
    assert Once(agent_id="b", content="Ann likes tea").save()
    assert Once(agent_id="a", content="Ann likes teas").save(), "a prefix is another key"
    with pytest.raises(ConflictError) as caught:
        Once.create(agent_id="a", content="Ann likes tea")
    assert caught.value.duplicate_of == winner.id
    assert sound()


def test_every_way_of_writing_finds_the_duplicate(connection: Connection) -> None:
    first = Once(agent_id="a", content="tea")
    first.save()
    assert [outcome.reason for outcome in Once.save_many([Once(agent_id="a", content="tea")] * 2)] == [
        "duplicate",
        "duplicate",
    ]
    with batch() as sent:
        Once(agent_id="a", content="tea").save()
    assert [outcome.reason for outcome in sent.outcomes if isinstance(outcome, omoide.SaveOutcome)] == [
        "duplicate"
    ]
    loop = SubconsciousMemory(model=Once, agent_id="a")
    assert [outcome.reason for outcome in loop.extract_memories("tea")] == ["duplicate"]
    other = Once(agent_id="a", content="coffee")
    other.save()
    assert other.update(content="tea").reason == "duplicate"
    assert other.content == "coffee"
    assert asyncio.run(_aclosing(connection, Once(agent_id="a", content="tea").asave())).reason == "duplicate"
    reindex(Once, agent_id="a")
    assert Once(agent_id="a", content="tea").save().duplicate_of == first.once_id
    assert first.delete()
    assert Once(agent_id="a", content="tea").save()
    assert Once.count(agent_id="a") == 2
    assert sound()


async def _aclosing(connection: Connection, call: Any) -> Any:
    try:
        return await call
    finally:
        await connection.aclose()
        omoide.ops.port.bind(connection)


def test_saving_the_same_again_keeps_it(connection: Connection) -> None:
    memory = DefaultMemory(agent_id="a", content="tea")
    assert memory.save()
    assert memory.save()
    assert DefaultMemory.count(agent_id="a") == 1
    assert recalled(DefaultMemory, "tea") == ["tea"]


def test_concurrent_updates_of_different_fields_all_survive(connection: Connection) -> None:
    Note(note_id="n", agent_id="a").save()
    changes: list[dict[str, Any]] = [{"content": "tea"}, {"status": "open"}, {"count_of": 7}, {"tags": {"t"}}]

    def apply(change: dict[str, Any]) -> bool:
        with connection.use():
            note = Note.query.get(agent_id="a", note_id="n")
            assert note is not None
            time.sleep(0.01)
            return bool(note.update(**change))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(apply, changes))
    found = Note.query.get(agent_id="a", note_id="n")
    assert (found.content, found.status, found.count_of, found.tags) == ("tea", "open", 7, {"t"})


def test_three_concurrent_appends_keep_all_or_say_conflict(connection: Connection) -> None:
    Note(note_id="n", agent_id="a", content="0").save()
    barrier = threading.Barrier(3)

    def append(part: str) -> bool:
        with connection.use():
            note = Note.query.get(agent_id="a", note_id="n")
            barrier.wait()
            note.content += f" {part}"
            try:
                return bool(note.save(expect_version=note._version))
            except ConflictError:
                return False

    with ThreadPoolExecutor(3) as threads:
        kept = dict(zip("xyz", threads.map(append, "xyz"), strict=True))
    (winner,) = [part for part, stored in kept.items() if stored]
    assert Note.query.get(agent_id="a", note_id="n").content == f"0 {winner}"


def test_a_late_write_does_not_bring_a_deleted_record_back(connection: Connection, dump: Dump) -> None:
    memory = DefaultMemory(agent_id="a", content="tea")
    memory.save()
    stale = DefaultMemory.query.get(agent_id="a", memory_id=memory.memory_id)
    loop = SubconsciousMemory(agent_id="a")
    _, result = loop.inject_context([{"role": "user", "content": "tea?"}])
    assert memory.delete()
    keys = set(dump())
    stale.content = "enriched tea"
    assert stale.save().reason == "deleted"
    assert not stale.touch()
    assert loop.report_outcomes(result, "acted").states == {memory.memory_id: "missing"}
    assert connection.store.execute(ask.Link(scope_of(stale), memory.memory_id, "other", 1.0)) == 0.0
    assert stale.update(content="again").reason == "deleted"
    assert DefaultMemory.count(agent_id="a") == 0
    assert recalled(DefaultMemory, "tea enriched") == []
    assert set(dump()) <= keys
    assert sound()
    assert stale.save(resurrect=True)


def test_an_operation_happens_once(connection: Connection) -> None:
    memory = DefaultMemory(agent_id="a", content="tea")
    first = memory.save(operation_id="op-1")
    memory.content = "another text under the same operation"
    again = memory.save(operation_id="op-1")
    assert again.repeated
    assert (again.id, again.version, again.created) == (first.id, first.version, first.created)
    assert recalled(DefaultMemory, "tea operation") == ["tea"]
    elsewhere = DefaultMemory(agent_id="b", memory_id=memory.memory_id, content="of b").save(
        operation_id="op-1"
    )
    assert elsewhere.created
    assert not elsewhere.repeated


def test_work_in_the_background_happens_and_can_be_awaited(connection: Connection) -> None:
    async def main() -> None:
        tasks = [
            asyncio.ensure_future(DefaultMemory(agent_id="a", content=f"tea {n}").asave()) for n in range(20)
        ]
        gc.collect()
        assert all(await asyncio.gather(*tasks))
        assert await DefaultMemory.acount(agent_id="a") == 20
        await connection.aclose()

    asyncio.run(main())


def test_a_batch_that_fails_does_not_take_anothers_writes(connection: Connection) -> None:
    done = threading.Event()

    def other() -> None:
        with connection.use(), batch():
            DefaultMemory(agent_id="a", content="walrus kept").save()
        done.set()

    def broken() -> None:
        with batch():
            DefaultMemory(agent_id="a", content="walrus broken").save()
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        broken()
    assert done.is_set()
    assert recalled(DefaultMemory, "walrus") == ["walrus kept"]


def test_two_models_with_the_same_id_stay_apart(connection: Connection) -> None:
    Once(once_id="7", agent_id="a", content="a fact of tea").save()
    Note(note_id="7", agent_id="a", content="an episode of tea").save()
    assert recalled(Once, "tea") == ["a fact of tea"]
    assert recalled(Note, "tea") == ["an episode of tea"]
    assert Note.query.get(agent_id="a", note_id="7").delete()
    assert type(Once.query.get(agent_id="a", once_id="7")) is Once


# ---- isolation -----------------------------------------------------------------------------------


def test_the_same_document_id_in_two_agents(connection: Connection, dump: Dump) -> None:
    for agent in "ab":
        Note(note_id="doc", agent_id=agent, content="tea", tags={"t"}).save()
    before = dump("/b}")
    mine = Note.query.get(agent_id="a", note_id="doc")
    assert mine.update(tags={"u"})
    assert mine.delete()
    assert dump("/b}") == before


def test_the_same_text_of_two_agents_is_two_rows(connection: Connection) -> None:
    mine, yours = Once(agent_id="a", content="tea"), Once(agent_id="b", content="tea")
    assert mine.save()
    assert yours.save()
    assert yours.delete()
    assert Once.query.get(agent_id="a", content="tea").once_id == mine.once_id


def test_a_rebuild_of_one_agent_leaves_the_others(connection: Connection, dump: Dump) -> None:
    for agent in "abc":
        Note.save_many(Note(agent_id=agent, content=f"tea {n}") for n in range(20))
    before = {**dump("/a}"), **dump("/c}")}
    assert reindex(Note, agent_id="b") == 20
    assert {**dump("/a}"), **dump("/c}")} == before
    assert sound()


# ---- deletion, retention ---------------------------------------------------------------------------


def test_what_expires_or_is_deleted_outside_is_silent_and_reported(
    connection: Connection, valkey_server: ValkeyServer
) -> None:
    class Short(Model):
        short_id = AutoKeyField()
        agent_id = KeyField()
        content = StringField(default="")
        text = BM25Field(source="content")

        class Meta:
            ttl = 0.05

    keeper = Short(agent_id="a", content="the tea that stays")
    put = omoide.ops.prepare.prepare(keeper).put
    connection.store.execute(replace(put, ttl_ms=3_600_000))
    Short.save_many(Short(agent_id="a", content=f"tea {n}") for n in range(200))
    while Short.count(agent_id="a") > 1:
        pass
    assert recalled(Short, "tea") == ["the tea that stays"]
    assert len(Short.query.filter(agent_id="a").all()) == 1
    due = prune(dry_run=True)
    assert 0 < due <= 200  # writes that came after 50 ms took some with them
    assert prune() == due
    assert prune(dry_run=True) == 0
    assert sound()
    valkey_server.command("DEL", connection.store.binding.keys.key(scope_of(keeper), "r"))
    with pytest.raises(CorruptRecordError):
        recalled(Short, "tea")


def test_an_index_deleted_outside_is_reported(connection: Connection, valkey_server: ValkeyServer) -> None:
    note = Note(agent_id="a", content="tea", tags={"t"})
    note.save()
    valkey_server.command("HDEL", connection.store.binding.keys.key(scope_of(note), "t"), "tea")
    assert recalled(Note, "walrus") == []
    assert doctor()[0].findings == (("missing postings", 1),)
    assert reindex(Note, agent_id="a") == 1
    assert sound()
    assert recalled(Note, "tea") == ["tea"]


def test_a_rebuild_with_deletes_in_between_adds_no_key(connection: Connection, dump: Dump) -> None:
    notes = [Note(agent_id="a", content=f"tea {n}") for n in range(600)]
    assert all(Note.save_many(notes))
    keys = set(dump())
    doomed = random.Random(3).sample(notes, 300)

    def erase(done: int, total: int) -> None:
        for note in doomed[:150]:
            note.delete()
        del doomed[:150]

    assert reindex(Note, progress=erase, agent_id="a") == 300
    assert {key for key in dump() if not key.endswith(b":x")} <= keys
    assert Note.count(agent_id="a") == 300
    assert sound()


def test_lifetime_and_cap_are_counted(connection: Connection) -> None:
    class Few(DefaultMemory):
        max_records_per_partition = 5

    for number in range(12):
        Few(agent_id="a", content=f"tea {number}", importance=0.5).save()
    assert Few.count(agent_id="a") == 5
    assert Few.counters(agent_id="a").read("evicted") == 7
    assert [part["counters"]["evicted"] for part in omoide.status("Few")["partitions"]] == [7]
    assert sound()


def test_a_shorter_text_takes_the_rest_out_of_recall(connection: Connection) -> None:
    note = Note(agent_id="a", content="tea in the morning, walrus in the evening")
    note.save()
    assert note.update(content="tea in the morning")
    assert recalled(Note, "walrus evening") == []


def test_a_partial_update_erases_nothing_else(connection: Connection) -> None:
    note = Note(agent_id="a", content="tea", status="open", count_of=4, tags={"x"}, importance=0.25)
    note.save()
    loaded = Note.query.get(agent_id="a", note_id=note.note_id)
    assert loaded.update(content="more tea")
    found = Note.query.get(agent_id="a", note_id=note.note_id)
    assert (found.status, found.count_of, found.tags, found.importance) == ("open", 4, {"x"}, 0.25)
    assert Note.query.filter(agent_id="a", status="open", tags="x").count() == 1


# ---- types and times --------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Everything(Model):
    """A field of each type."""

    everything_id = AutoKeyField()
    agent_id = KeyField()
    string = StringField(null=True)
    whole = IntField(null=True)
    real = FloatField(null=True)
    exact = DecimalField(null=True)
    flag = BoolField(null=True)
    raw = BytesField(null=True)
    when = DatetimeField(null=True)
    day = DateField(null=True)
    colour = EnumField(Colour, null=True)
    uuid = UUIDField(null=True)
    tags = TagField()
    items = ListField(null=True)
    mapping = DictField(null=True)


VALUES: dict[str, list[Any]] = {
    "string": ["", "ü\0\U0001f9ad", "x" * 65_536],
    "whole": [0, -(2**63), 2**63 - 1],
    "real": [0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1],
    "exact": [Decimal("0"), Decimal("-0.10"), Decimal("123456789012345678901234567890.123456789")],
    "flag": [True, False],
    "raw": [b"", bytes(range(256))],
    "when": [
        datetime(1, 1, 2, tzinfo=UTC),
        datetime(9999, 12, 30, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
    ],
    "day": [date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    "colour": [Colour.RED, Colour.BLUE],
    "uuid": [UUID(int=0), UUID(int=2**128 - 1)],
    "tags": [set(), {"ü", "a b", "\U0001f9ad"}],
    "items": [[], [None, True, 1, 1.5, "x", [{}], {"a": []}]],
    "mapping": [{}, {"": None, "1": 1, "deep": {"a": {"b": [1, 2.0, "\0"]}}}],
}


@pytest.mark.parametrize("name", VALUES)
def test_each_type_comes_back_equal_and_of_its_type(name: str, connection: Connection) -> None:
    empty: list[Any] = [] if name == "tags" else [None]
    for value in VALUES[name] + empty:
        one = Everything(agent_id="a", **{name: value})
        assert one.save()
        found = getattr(Everything.query.get(agent_id="a", everything_id=one.everything_id), name)
        assert found == value
        assert type(found) is type(value)
        assert repr(found) == repr(value) or name in ("when", "tags")
        if value is not None and name != "tags":
            equal = Everything.query.filter(agent_id="a", scan=True, **{name: value}).ids()
            assert one.everything_id in equal
    ordered = Everything.query.filter(agent_id="a").scan().order_by("whole").all()
    assert len(ordered) == len(VALUES[name] + empty)


def test_a_damaged_record_breaks_no_other(connection: Connection, valkey_server: ValkeyServer) -> None:
    import msgspec

    good = Everything(agent_id="a", whole=1)
    bad = Everything(agent_id="a", whole=2, mapping={"a": 1})
    assert all(Everything.save_many([good, bad]))
    key = connection.store.binding.keys.key(scope_of(bad), "r")
    body = msgspec.msgpack.decode(valkey_server.command("HGET", key, 2))
    body.update(whole="two", mapping=[1], day=20260101)
    valkey_server.command("HSET", key, 2, msgspec.msgpack.encode(body))
    assert {one.everything_id for one in Everything.query.filter(agent_id="a").all()} == {
        good.everything_id,
        bad.everything_id,
    }
    assert Everything.query.get(agent_id="a", everything_id=good.everything_id).whole == 1
    loaded = Everything.query.get(agent_id="a", everything_id=bad.everything_id)
    with pytest.raises(CorruptRecordError):
        _ = loaded.whole
    assert loaded.string is None
    assert Everything.query.filter(agent_id="a", scan=True, whole=1).count() == 1


TIMES = """
import os, sys, time
from datetime import datetime, timedelta, timezone, UTC
import omoide
from omoide.fields import AutoKeyField, DatetimeField, KeyField

class Moment(omoide.Model):
    moment_id = AutoKeyField()
    agent_id = KeyField()
    when = DatetimeField()

omoide.connect(sys.argv[1])
if sys.argv[2] == "write":
    base = datetime(2025, 11, 2, 5, 30, tzinfo=UTC)
    for minutes in range(0, 120, 30):
        moment = base + timedelta(minutes=minutes)
        assert Moment(moment_id=str(minutes), agent_id="a", when=moment.astimezone()).save()
    try:
        Moment(agent_id="a", when=datetime(2025, 11, 2, 1, 30)).save()
    except omoide.FieldError:
        print("refused")
else:
    query = Moment.query.filter(agent_id="a").scan()
    for moment in query.order_by("when").all():
        print(moment.moment_id, moment.when.isoformat())
    quarter_past_six = datetime(2025, 11, 2, 15, 15, tzinfo=timezone(timedelta(hours=9)))
    print(query.filter(scan=True, when__lt=quarter_past_six).count())
"""


def test_instants_are_the_same_in_every_time_zone(store_url: str, python: Python) -> None:
    def run(zone: str, what: str) -> list[str]:
        done = python("-", store_url, what, stdin=TIMES, env={**os.environ, "TZ": zone})
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    assert run("America/New_York", "write") == ["refused"]
    assert run("Asia/Tokyo", "read") == [
        "0 2025-11-02T05:30:00+00:00",
        "30 2025-11-02T06:00:00+00:00",
        "60 2025-11-02T06:30:00+00:00",
        "90 2025-11-02T07:00:00+00:00",
        "2",
    ]


# ---- connections ------------------------------------------------------------------------------------


def test_several_event_loops_and_threads_share_a_connection(
    connection: Connection, valkey_server: ValkeyServer
) -> None:
    async def once(number: int) -> None:
        assert await DefaultMemory(agent_id="a", content=f"tea {number}").asave()
        assert (await ContextAssembler(DefaultMemory).aassemble("tea", agent_id="a")).records

    connected = _clients(valkey_server)
    for number in range(3):
        asyncio.run(once(number))

    def in_thread(number: int) -> None:
        with connection.use():
            asyncio.run(once(number))
            assert DefaultMemory(agent_id="a", content=f"tea and {number}").save()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(in_thread, range(10, 18)))
    assert DefaultMemory.count(agent_id="a") == 3 + 16
    gc.collect()
    assert _clients(valkey_server) <= connected + 8


def _clients(server: ValkeyServer) -> int:
    info = server.command("INFO", "clients").decode()
    return int(
        next(line for line in info.split("\r\n") if line.startswith("connected_clients:")).split(":")[1]
    )


def test_a_cancelled_call_leaves_the_connection_clean(connection: Connection) -> None:
    source = random.Random(2)

    async def main() -> None:
        await DefaultMemory(agent_id="a", memory_id="kept", content="tea").asave()
        for number in range(60):
            calls: list[Any] = [
                DefaultMemory(agent_id="a", memory_id=f"m{number}", content="tea").asave(),
                DefaultMemory.query.aget(agent_id="a", memory_id="kept"),
                DefaultMemory.asave_many([DefaultMemory(agent_id="b", content="tea") for _ in range(20)]),
                ContextAssembler(DefaultMemory).aassemble("tea", agent_id="a"),
            ]
            tasks = [asyncio.ensure_future(call) for call in calls]
            await asyncio.sleep(source.random() * 0.003)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            found = await DefaultMemory.query.aget(agent_id="a", memory_id="kept")
            assert found.memory_id == "kept"
            assert found.content == "tea"
        await connection.aclose()

    asyncio.run(main())
    with omoide.connect(connection.url):
        assert sound()


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A server of the test's own."""
    with ValkeyServer(aof=True) as server:
        yield server


def restrict(server: ValkeyServer, rules: str) -> None:
    """A user `app` with these rules and our keys only."""
    server.command("ACL", "SETUSER", "app", "on", ">secret", "resetchannels", "~omoide:*", *rules.split())


def test_a_user_with_only_the_commands_needed(server: ValkeyServer) -> None:
    allowed = "+@read +@write +eval +evalsha +evalsha_ro +script|load +script|exists +time +ping -keys"
    restrict(server, f"-@all {allowed}")
    url = server.url.replace("unix://", "unix://app:secret@")
    with omoide.connect(url) as connection:
        memory = DefaultMemory(agent_id="a", content="tea")
        assert memory.save()
        assert recalled(DefaultMemory, "tea") == ["tea"]
        assert reindex(DefaultMemory, agent_id="a") == 1
        assert memory.delete()
        assert connection.capabilities is not None


def test_a_user_who_may_not_write_is_told_and_nothing_changes(server: ValkeyServer) -> None:
    with omoide.connect(server.url):
        DefaultMemory(agent_id="a", content="tea").save()
    restrict(server, "+@all -setrange -append -zadd")
    url = server.url.replace("unix://", "unix://app:secret@")
    with omoide.connect(url):
        with pytest.raises(StoreError):
            DefaultMemory(agent_id="a", content="more tea").save()
        assert recalled(DefaultMemory, "tea") == ["tea"]
        assert sound()


def test_a_server_that_hangs_delays_a_turn_by_its_deadline_only(server: ValkeyServer) -> None:
    with omoide.connect(server.url):
        DefaultMemory(agent_id="a", content="tea").save()
        loop = SubconsciousMemory(agent_id="a", deadline=0.3)
        messages = [{"role": "user", "content": "tea?"}]
        _, result = loop.inject_context(messages)
        assert result
        server.pause()
        try:
            begun = time.monotonic()
            same, hung = loop.inject_context(messages)
            outcomes = loop.extract_memories("a walrus", result=result)
            report = loop.report_outcomes(result, "acted")
            assert time.monotonic() - begun < 4
        finally:
            server.resume()
        assert same == messages
        assert (hung.error, outcomes[0].reason, report.error) == ("timeout", "timeout", "timeout")
        assert loop.inject_context(messages)[1].error is None
        server.kill9()
        assert loop.inject_context(messages)[1].error == "unavailable"
        with pytest.raises(StoreUnavailableError):
            DefaultMemory.count(agent_id="a")
        server.start()
        assert loop.inject_context(messages)[1].records[0].content == "tea"


def test_a_read_only_server_is_left_for_its_successor_once_it_writes_again(server: ValkeyServer) -> None:
    with omoide.connect(server.url):
        assert DefaultMemory(agent_id="a", content="tea").save()
        server.command("REPLICAOF", "127.0.0.1", 1)
        with pytest.raises(StoreError):
            DefaultMemory(agent_id="a", content="more").save()
        assert DefaultMemory.count(agent_id="a") == 1
        server.command("REPLICAOF", "NO", "ONE")
        assert DefaultMemory(agent_id="a", content="more").save()


def test_the_volume_of_writes_is_linear(server: ValkeyServer) -> None:
    """Bytes of the append-only file per save do not grow with the session."""

    def written() -> int:
        info = server.command("INFO", "persistence").decode()
        return int(
            next(line for line in info.split("\r\n") if line.startswith("aof_current_size:")).split(":")[1]
        )

    server.command("CONFIG", "SET", "auto-aof-rewrite-percentage", 0)
    with omoide.connect(server.url):
        volumes = []
        for _ in range(4):
            before = written()
            Note.save_many(
                Note(agent_id="a", content=f"tea with walrus {n} and some other {n % 50} words")
                for n in range(500)
            )
            volumes.append((written() - before) / 500)
    assert max(volumes[1:]) < 1.6 * volumes[0], volumes
    assert max(volumes) < 12_000, volumes


def test_nothing_of_a_memory_is_in_an_error(connection: Connection, valkey_server: ValkeyServer) -> None:
    mark = "zorbalu"
    DefaultMemory(agent_id="a", memory_id="m", content=mark).save()
    errors: list[BaseException] = []
    calls: list[Callable[[], object]] = [
        lambda: DefaultMemory.create(agent_id="a", memory_id="m", content=mark),
        lambda: DefaultMemory(agent_id="a", content=mark * 20_000).save(),
        lambda: DefaultMemory(agent_id="a", content=mark, importance=mark).save(),
        lambda: DefaultMemory.query.filter(agent_id="a", content=mark),
        lambda: DefaultMemory(agent_id="a", content=mark, tags={mark + "\ud800"}).save(),
    ]
    for call in calls:
        with pytest.raises(omoide.OmoideError) as caught:
            call()
        errors.append(caught.value)
    key = connection.store.binding.keys.key(scope_of(DefaultMemory(agent_id="a")), "t")
    valkey_server.command("SET", key, "broken")
    with pytest.raises(StoreError) as broken:
        DefaultMemory(agent_id="a", content=mark).save()
    errors.append(broken.value)
    for error in errors:
        chain: BaseException | None = error
        while chain is not None:
            assert mark not in f"{chain!r} {getattr(chain, 'hint', '')}"
            chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
