"""What a script does with bytes that are not what was written: it says so, and heals what it may."""

from __future__ import annotations

import struct

import pytest
from memories import Keys, note_spec, put, rebuild, records

from omoide.connection import Connection
from omoide.errors import CorruptRecordError
from omoide.model.schema import Scope
from omoide.ops.request import Check, Deliver, Erase, Evidence, Get, Link, Observe, ReadTurn

TURNS = {
    "short": b"jun",
    "no MessagePack": struct.pack("<q", 2**52) + b"\xc1",
    "a number": struct.pack("<q", 2**52) + b"\x07",
}


@pytest.mark.parametrize("value", TURNS.values(), ids=TURNS)
def test_a_damaged_turn_is_named(connection: Connection, scope: Scope, keys: Keys, value: bytes) -> None:
    connection.store.execute(put(scope, "1", "fish"))
    keys.redis.hset(keys.name(scope, "i"), "turn", value)
    with pytest.raises(CorruptRecordError):
        connection.store.execute(ReadTurn(scope, "turn"))
    with pytest.raises(CorruptRecordError):
        connection.store.execute(Observe(scope, (Evidence("1", 1),), turn="turn"))


def test_turns_cut_short_go_with_those_that_are_over(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    connection.store.execute(put(scope, "1", "fish"))
    keys.redis.hset(keys.name(scope, "i"), "turn", b"jun")
    connection.store.execute(Deliver(scope, "next", ("1",)))
    assert keys.redis.hkeys(keys.name(scope, "i")) == [b"next"]


def test_damaged_statistics_stop_an_outcome_and_change_nothing(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    for name in "12":
        connection.store.execute(put(scope, name, "fish"))
    keys.redis.hset(keys.name(scope, "c"), "2", b"zz")
    before = keys.dump()
    with pytest.raises(CorruptRecordError):
        connection.store.execute(Observe(scope, (Evidence("1", 1), Evidence("2", 1))))
    assert keys.dump() == before


def test_edges_cut_short_are_healed_by_the_next_change(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    for name in "123":
        connection.store.execute(put(scope, name, "fish"))
    connection.store.execute(Link(scope, "1", "2", 1.0))
    graph = keys.name(scope, "g")
    held = keys.redis.hget(graph, "1")
    assert isinstance(held, bytes)
    keys.redis.hset(graph, "1", held + b"jun")
    assert dict(connection.store.execute(Check(scope)).findings) == {
        "dangling edges": 1,
        "edges that cannot be read": 1,
    }
    connection.store.execute(Link(scope, "1", "3", 1.0))
    assert connection.store.execute(Check(scope)).findings == ()


def test_damaged_versions_are_counted_and_healed_by_a_rebuild(connection: Connection, keys: Keys) -> None:
    scope = Scope(note_spec(validity=True), ("a",))
    execute = connection.store.execute
    for name, start in (("1", 100), ("2", 300), ("3", 500)):
        execute(put(scope, name, "the cat", key="cat", valid_from_ms=start))
    execute(put(scope, "4", "rain", valid_from_ms=100))
    execute(put(scope, "5", "snow", valid_from_ms=200, supersedes="4"))
    sound = [(one.valid_from_ms, one.valid_to_ms) for one in records(connection, scope, *"12345") if one]
    chains, column, over = (keys.name(scope, letter) for letter in "vwo")
    members = keys.redis.zrange(chains, 0, -1)
    keys.redis.zrem(chains, members[1])
    keys.redis.zadd(chains, {b"no version": 0})
    keys.redis.setrange(column, 1 * 24 + 16, struct.pack("<q", 999))
    keys.redis.zrem(over, 1)
    keys.redis.zadd(over, {"5": 7})
    assert dict(execute(Check(scope)).findings) == {
        "ends without a record that ends": 1,
        "records without a place among versions": 1,
        "records without their end": 1,
        "versions that cannot be read": 1,
        "wrong intervals of versions": 1,
    }
    with pytest.raises(CorruptRecordError):
        execute(Erase(scope, ("2",)))
    assert rebuild(connection, scope) == 5
    assert execute(Check(scope)).findings == ()
    healed = [(one.valid_from_ms, one.valid_to_ms) for one in records(connection, scope, *"12345") if one]
    assert healed == sound


def test_an_id_that_leads_nowhere_hides_no_other(connection: Connection, scope: Scope, keys: Keys) -> None:
    for name in "123":
        connection.store.execute(put(scope, name, "fish"))
    keys.redis.hset(keys.name(scope, "m"), "2", "abc")
    found = records(connection, scope, "1", "2", "3")
    assert [one and one.id for one in found] == ["1", None, "3"]
    with pytest.raises(CorruptRecordError):
        connection.store.execute(Get(scope, ("2",)))
    keys.redis.hset(keys.name(scope, "m"), "2", 2)
    assert connection.store.execute(Erase(scope, ("2",))) == (True,)
