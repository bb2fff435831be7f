"""Damage and foreign keys stay where they are: nothing beside them stops working."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import omoide
from omoide import ContextAssembler, CorruptRecordError, Model, doctor, prune
from omoide.connection import Connection
from omoide.fields import AutoKeyField, BM25Field, KeyField, StringField
from omoide.recipes import DefaultMemory
from omoide.testing import ValkeyServer

LETTERS = "htsaxrmfdqcgkine"


class Log(Model):
    log_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    text = BM25Field(source="content")


class LogArchive(Model):
    log_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")


class Expiring(Model):
    class Meta:
        ttl = 1000.0

    log_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")


# ---- one model is not another


def test_a_model_whose_name_another_begins_with_is_told_apart(connection: Connection) -> None:
    for model in (Log, LogArchive):
        model(agent_id="a", content="deploys").save()
    assert {part["model"] for part in omoide.status("Log")["partitions"]} == {"Log"}
    assert {health.model for health in doctor("Log")} == {"Log"}
    assert {health.model for health in doctor()} == {"Log", "LogArchive"}


async def _described(connection: Connection, model: str) -> set[str]:
    from omoide.ops.request import Partitions

    return {part.model for part in await connection.astore.execute(Partitions(model))}


def test_the_async_face_tells_them_apart_too(connection: Connection) -> None:
    import asyncio

    for model in (Log, LogArchive):
        model(agent_id="a", content="deploys").save()
    assert asyncio.run(_described(connection, "Log")) == {"Log"}


def test_pruning_one_model_leaves_the_other(connection: Connection, valkey_server: ValkeyServer) -> None:
    class ExpiringArchive(Expiring):
        class Meta:
            ttl = 1000.0

    for model in (Expiring, ExpiringArchive):
        model(agent_id="a", log_id="1").save()
        valkey_server.command("ZADD", f"omoide:{{{model.__name__}/a}}:e", "1", "1")
    assert prune("Expiring") == 1
    assert prune("ExpiringArchive") == 1


# ---- foreign keys


FOREIGN: list[tuple[str, list[Any]]] = [
    ("another type at the head", ["SET", "omoide:{Foo/x}:h", "text"]),
    ("a list at the head", ["RPUSH", "omoide:{Foo/x}:h", "text"]),
    ("a tag that is no text", ["HSET", b"omoide:{\xff\xfe}:h", "a", "b"]),
    ("a namespace that is no text", ["HSET", b"omoide\xff:{a}:h", "a", "b"]),
    ("half an escape", ["HSET", "omoide:{Foo/%zz}:h", "a", "b"]),
    ("a lower-case escape", ["HSET", "omoide:{Foo/%2f}:h", "a", "b"]),
    ("a head without most of it", ["HSET", "omoide:{Foo}:h", "next", "5", "n", "1"]),
    ("a head of words", ["HSET", "omoide:{Foo}:h", "next", "abc", "n", "x", "gen", "g", "v", "w"]),
    ("a counter of words", ["HSET", "omoide:{Foo}:n", "recalls", "abc"]),
    ("a counter without a name", ["HSET", "omoide:{Foo}:n", b"\xff", "1"]),
]


@pytest.mark.parametrize("command", [command for _, command in FOREIGN], ids=[name for name, _ in FOREIGN])
def test_a_foreign_key_stops_nothing(
    connection: Connection, valkey_server: ValkeyServer, command: list[Any]
) -> None:
    DefaultMemory(agent_id="a", content="deploys are blue-green").save()
    valkey_server.command(*command)
    parts = {part["model"]: part for part in omoide.status()["partitions"]}
    assert parts["DefaultMemory"]["live"] == 1
    assert all(part["damaged"] for name, part in parts.items() if name != "DefaultMemory")
    sound = [health.sound for health in doctor() if health.model == "DefaultMemory"]
    assert sound == [True]


@pytest.mark.parametrize("letter", LETTERS)
def test_a_key_of_another_type_damages_its_partition_alone(
    connection: Connection, valkey_server: ValkeyServer, letter: str
) -> None:
    for agent in ("a", "b"):
        DefaultMemory(agent_id=agent, memory_id="1", content="deploys are blue-green", author="w").save()
    key = f"omoide:{{DefaultMemory/a}}:{letter}"
    valkey_server.command("DEL", key)
    valkey_server.command("RPUSH", key, "planted")
    parts = {part["partition"][0]: part for part in omoide.status()["partitions"]}
    assert not parts["b"]["damaged"]
    assert parts["a"]["damaged"] == (letter in "harmne")
    health = {found.values[0]: found for found in doctor()}
    assert health["b"].sound
    assert dict(health["a"].findings)["keys of another type"] == 1
    assert prune() == 0
    DefaultMemory.delete_partition(agent_id="a")
    assert valkey_server.command("KEYS", "omoide:{DefaultMemory/a}:*") == []


def test_a_partition_with_a_head_of_words_can_be_deleted(
    connection: Connection, valkey_server: ValkeyServer
) -> None:
    DefaultMemory(agent_id="a", content="deploys").save()
    valkey_server.command("HSET", "omoide:{DefaultMemory/a}:h", "n", "abc", "next", "x")
    assert DefaultMemory.delete_partition(agent_id="a") == 0
    assert valkey_server.command("KEYS", "*") == []


# ---- one damaged record


BODIES = {
    "no MessagePack": b"\xc1",
    "empty": b"",
    "a number": b"\x07",
    "a list": b"\x91\x01",
    "a map without an id": b"\x80",
    "an id that is a number": b"\x81\xa9memory_id\x07",
    "text that is no text": b"\x81\xa9memory_id\xa1\xff",
    "nested too deep": b"\x91" * 100_000 + b"\xc0",
}
STATISTICS = {
    "short": b"zz",
    "zeros": bytes(36),
    "infinite": struct.pack("<ddIIIq", float("inf"), 1.0, 0, 0, 0, 0),
    "negative": struct.pack("<ddIIIq", -3.0, 1.0, 0, 0, 0, 0),
}
DAMAGE = [("r", body) for body in BODIES.values()] + [("c", data) for data in STATISTICS.values()]


@pytest.fixture
def five(connection: Connection) -> list[str]:
    """Ids of five memories, the third of which is to be damaged."""
    names = [f"{n}" for n in range(1, 6)]
    for name in names:
        DefaultMemory(agent_id="a", memory_id=name, content=f"deploy number {name} is blue").save()
    return names


@pytest.mark.parametrize(("letter", "value"), DAMAGE, ids=[*BODIES, *STATISTICS])
@pytest.mark.parametrize("reader", ["client", "server"])
def test_a_damaged_record_breaks_no_other_read(
    store_url: str,
    five: list[str],
    valkey_server: ValkeyServer,
    letter: str,
    value: bytes,
    reader: str,
) -> None:
    valkey_server.command("HSET", f"omoide:{{DefaultMemory/a}}:{letter}", "3", value)
    whole = [name for name in five if name != "3"]
    query = DefaultMemory.query.filter(agent_id="a")
    with omoide.connect(store_url, reader=reader):
        with pytest.raises(CorruptRecordError):
            DefaultMemory.query.get(memory_id="3", agent_id="a")
        many = DefaultMemory.query.get_many(five, agent_id="a")
        assert [one and one.memory_id for one in many] == ["1", "2", None, "4", "5"]
        assert {one.memory_id for one in query.all()} == set(whole)
        assert {one.memory_id for one in query.iterate()} == set(whole)
        assert [one.memory_id for one in query.top_by_decay(4)] == whole[::-1]
        filtered = DefaultMemory.query.filter(agent_id="a", importance__gte=0.0)
        assert [one.memory_id for one in filtered.top_by_decay(4)] == whole[::-1]
        result = ContextAssembler(DefaultMemory).assemble("blue deploy", agent_id="a")
        assert set(result.ids) == set(whole)
        assert [reason for _, reason in result.metadata["dropped"]] == ["corrupt"]
        kinds = [kind for kind, _ in doctor()[0].findings]
        assert any(
            kind in kinds for kind in ("records that cannot be read", "statistics that cannot be read")
        )


def test_the_log_tells_of_it_once_and_without_content(
    connection: Connection,
    five: list[str],
    valkey_server: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from omoide.stores.redis import codec

    monkeypatch.setattr(codec, "_told", set())
    valkey_server.command("HSET", "omoide:{DefaultMemory/a}:r", "3", b"\xa6secret")
    for _ in range(3):
        DefaultMemory.query.filter(agent_id="a").all()
    (told,) = [entry.getMessage() for entry in caplog.records if entry.name == "omoide"]
    assert "DefaultMemory" in told
    assert "secret" not in told


def test_a_damaged_record_can_be_deleted(
    connection: Connection, five: list[str], valkey_server: ValkeyServer
) -> None:
    valkey_server.command("HSET", "omoide:{DefaultMemory/a}:r", "3", b"\xc1")
    assert DefaultMemory.delete_many(["3"], agent_id="a")
    assert doctor()[0].sound


# ---- the doctor


FINDINGS: list[tuple[str, list[Any], str]] = [
    ("body", ["HSET", "r", "1", b"\xc1"], "records that cannot be read"),
    ("statistics", ["HSET", "c", "1", "zz"], "statistics that cannot be read"),
    ("counter", ["HSET", "n", "recalls", "abc"], "counters that cannot be read"),
    ("footprint", ["HSET", "f", "1", "junk"], "footprints that cannot be read"),
    ("short footprint", ["HSET", "f", "1", ""], "footprints that cannot be read"),
    ("edges", ["HSET", "g", "1", "junk!"], "edges that cannot be read"),
    ("entity", ["HSET", "g", "e:Bob", "jun"], "entities that cannot be read"),
    ("tail", ["HSET", "t", "deploy", "jun"], "posting lists that cannot be read"),
    ("ordinal", ["HSET", "k", "w", "jun"], "ordinals that cannot be read"),
    ("turn", ["HSET", "i", "turn", "jun"], "turns that cannot be read"),
    ("id", ["HSET", "m", "1", "abc"], "entries that name no row"),
    ("row", ["HSET", "r", "abc", "x"], "entries that name no row"),
    ("member", ["ZADD", "d", "1", "abc"], "entries that name no row"),
    ("digest", ["HSET", "q", "x", "abc"], "entries that name no row"),
    ("head", ["HSET", "h", "sdl", "abc"], "head values that cannot be read"),
    ("swapped ids", ["HSET", "m", "1", "2"], "ids of another record"),
    ("expiry", ["ZADD", "e", "1", "99"], "expiries without a record"),
    ("log", ["APPEND", "x", "junk!"], "half a change in the change log"),
]


@pytest.mark.parametrize(
    ("command", "kind"), [found[1:] for found in FINDINGS], ids=[found[0] for found in FINDINGS]
)
def test_the_doctor_names_what_is_damaged(
    connection: Connection, five: list[str], valkey_server: ValkeyServer, command: list[Any], kind: str
) -> None:
    assert doctor()[0].sound
    verb, letter, *rest = command
    valkey_server.command(verb, f"omoide:{{DefaultMemory/a}}:{letter}", *rest)
    (health,) = doctor()
    assert kind in dict(health.findings)


def test_the_doctor_reads_in_pieces(connection: Connection, valkey_server: ValkeyServer) -> None:
    DefaultMemory.save_many(
        [DefaultMemory(agent_id="a", content=f"w{n} deploy", session_id=f"s{n}") for n in range(800)]
    )
    valkey_server.command("CONFIG", "RESETSTAT")
    assert doctor()[0].sound
    sent = valkey_server.command("INFO", "commandstats")
    text = sent.decode() if isinstance(sent, bytes) else str(sent)
    assert "hscan" in text
    assert "hkeys" not in text
    for verb in ("smembers", "hvals"):
        assert verb not in text
