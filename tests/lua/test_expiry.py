"""Expiry, eviction and turns: what goes by itself, when, and how much at a time."""

from __future__ import annotations

import struct
import time

import pytest
from memories import Keys, find, note_spec, put, record, records

from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops.request import (
    Check,
    CheckReply,
    Count,
    Deliver,
    Erase,
    Evidence,
    Find,
    GetUnique,
    Increment,
    Link,
    Observe,
    Page,
    Prune,
    ReadCounters,
    ReadTurn,
    Spread,
    Top,
)

DIGEST = b"0123456789abcdef"


@pytest.fixture
def brief() -> Scope:
    """A partition of a model with expiry."""
    return Scope(note_spec(ttl=60), ("a",))


def wait(milliseconds: int = 3) -> None:
    time.sleep(milliseconds / 1000)


def expiries(keys: Keys, scope: Scope) -> dict[str, int]:
    """Letter -> expiry of every key there is."""
    found = {letter: keys.redis.pexpiretime(keys.name(scope, letter)) for letter in "htsaxrmfdecgkwnqvo"}
    return {letter: at for letter, at in found.items() if at != -2}


def test_an_expired_record_is_invisible_at_once(
    connection: Connection, server_reader: Connection, brief: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    execute(put(brief, "stays", "the cat"))
    execute(put(brief, "goes", "the cat", ttl_ms=400, unique=(DIGEST,), entities=("Bob",)))
    execute(put(brief, "friend", "a dog", entities=("Bob",)))
    execute(Deliver(brief, "turn", ("goes", "stays")))
    assert {name for name, _ in find(connection, brief, "cat")} == {"stays", "goes"}
    time.sleep(0.45)
    before = keys.dump()
    for reader in (connection, server_reader):
        assert [name for name, _ in find(reader, brief, "cat")] == ["stays"]
    assert records(connection, brief, "goes") == [None]
    assert execute(GetUnique(brief, DIGEST)) is None
    assert execute(Count(brief)) == 2
    assert {found.id for found in execute(Find(brief))} == {"stays", "friend"}
    assert {found.id for found in execute(Top(brief, 10))} == {"stays", "friend"}
    assert {found.id for found in execute(Top(brief, 10, weigh_confidence=True))} == {"stays", "friend"}
    assert [found.id for found in execute(Page(brief)).records] == ["stays", "friend"]
    assert [found.id for found in execute(ReadTurn(brief, "turn")) or ()] == ["stays"]
    assert execute(Spread(brief, {"friend": 1.0})) == ()
    assert execute(Link(brief, "stays", "goes", 1.0)) == 0.0
    assert execute(Observe(brief, (Evidence("goes", 1.0),))).states == ("missing",)
    assert keys.dump() == before
    assert execute(Erase(brief, ("goes",))) == (False,)
    assert execute(Check(brief)).findings == ()
    assert keys.redis.hlen(keys.name(brief, "r")) == 2


def test_an_expired_record_is_no_obstacle(connection: Connection, brief: Scope) -> None:
    execute = connection.store.execute
    execute(put(brief, "1", "start", ttl_ms=1, unique=(DIGEST,)))
    execute(put(brief, "anchor", "rain"))
    wait()
    assert execute(put(brief, "1", "next", mode="update")).status == "deleted"
    reply = execute(put(brief, "1", "next", mode="create", unique=(DIGEST,)))
    assert (reply.status, reply.version, reply.created) == ("stored", 1, True)
    assert execute(Check(brief)).findings == ()


def test_a_write_erases_sixteen_that_are_due(connection: Connection, brief: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(brief, "anchor", "rain"))
    execute(put(brief, "second", "snow"))
    pipeline = keys.redis.pipeline()
    for number in range(40):
        execute(put(brief, f"{number}", f"cat w{number}", ttl_ms=60_000))
        pipeline.zadd(keys.name(brief, "e"), {record(connection, brief, f"{number}").row: 1 + number})
    pipeline.execute()
    left = []
    for number in range(4):
        execute(put(brief, "anchor", f"rain w{number}"))
        left.append(keys.redis.zcard(keys.name(brief, "e")))
    assert left == [24, 8, 0, 0]
    assert execute(Check(brief)) == CheckReply(2, ())


def test_prune_takes_what_it_is_told(connection: Connection, brief: Scope) -> None:
    execute = connection.store.execute
    execute(put(brief, "anchor", "rain"))
    for number in range(12):
        execute(put(brief, f"{number}", "cat", ttl_ms=1 if number < 11 else 60_000))
    wait()
    went = [execute(Prune(brief, 4)), execute(Prune(brief, 64)), execute(Prune(brief, 64))]
    assert sum(went) < 12  # the saves took those that were due by then
    assert went[2] == 0
    assert execute(Check(brief)).records == 2
    assert execute(Check(brief)).findings == ()


def test_the_keys_of_a_partition_go_with_its_last_record(
    connection: Connection, brief: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    execute(put(brief, "1", "one cat", ttl_ms=60_000, session="s"))
    execute(put(brief, "2", "two cats", ttl_ms=90_000, entities=("Bob",)))
    execute(put(brief, "3", "three cats", ttl_ms=30_000))
    latest = record(connection, brief, "2").expires_ms
    assert set(expiries(keys, brief).values()) == {latest}
    execute(put(brief, "permanent", "stays"))
    assert set(expiries(keys, brief).values()) == {-1}
    execute(Erase(brief, ("permanent",)))
    assert set(expiries(keys, brief).values()) == {latest}
    execute(Erase(brief, ("2",)))
    assert set(expiries(keys, brief).values()) == {record(connection, brief, "1").expires_ms}


def test_every_later_key_of_an_expiring_partition_expires_too(
    connection: Connection, brief: Scope, keys: Keys
) -> None:
    """A key without would outlive its partition, and give its rows' edges or statistics to the next one's."""
    execute = connection.store.execute
    for name in "12":
        execute(put(brief, name, "cat", ttl_ms=60_000))
    until = record(connection, brief, "2").expires_ms
    execute(Link(brief, "1", "2", 1.0))
    assert expiries(keys, brief)["g"] == until
    execute(Deliver(brief, "turn", ("1",), counters=(("deliveries", 1),)))
    assert expiries(keys, brief)["c"] == until
    assert expiries(keys, brief)["n"] == until
    execute(Erase(brief, ("1",)))
    keys.redis.delete(keys.name(brief, "n"))
    execute(Observe(brief, (Evidence("nobody", 1.0),), counters=(("outcomes", 1),)))
    execute(Increment(brief, "recalls"))
    assert set(expiries(keys, brief).values()) == {until}


def test_a_partition_is_new_after_it_expired_whole(connection: Connection, brief: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(brief, "1", "cat", ttl_ms=30, entities=("Bob",)))
    execute(put(brief, "2", "cat", ttl_ms=30, entities=("Bob",)))
    execute(Deliver(brief, "", ("1", "2")))
    execute(Link(brief, "1", "2", 1.0))
    assert find(connection, brief, "cat") != []
    time.sleep(0.05)
    assert keys.dump() == {}
    assert find(connection, brief, "cat") == []
    assert execute(Count(brief)) == 0
    execute(put(brief, "3", "cat"))
    assert record(connection, brief, "3").access_count == 0
    assert [name for name, _ in find(connection, brief, "cat")] == ["3"]
    assert execute(Check(brief)).findings == ()


# ---- eviction


def test_the_cap_takes_the_lowest_of_the_decay_order(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    importance = {"1": 0.5, "2": 0.1, "3": 0.9, "4": 0.3, "5": 0.0}
    for name, value in importance.items():
        execute(put(scope, name, "cat", importance=value))
    reply = execute(put(scope, "new", "cat", importance=0.0, cap=4))
    assert (reply.status, reply.evicted) == ("stored", 2)
    assert {found.id for found in execute(Find(scope))} == {"1", "3", "4", "new"}
    execute(Observe(scope, (Evidence("4", touch=True),)))
    assert execute(put(scope, "newer", "cat", importance=0.4, cap=4)).evicted == 1
    assert {found.id for found in execute(Find(scope))} == {"1", "3", "4", "newer"}
    assert execute(put(scope, "1", "cat again", cap=4)).evicted == 0
    assert execute(ReadCounters(scope)) == {"evicted": 3}
    assert execute(Check(scope)).findings == ()


def test_at_most_sixteen_go_at_once(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for number in range(40):
        execute(put(scope, f"{number}", "cat"))
    went = [execute(put(scope, f"new {number}", "cat", cap=5)).evicted for number in range(4)]
    assert went == [16, 16, 6, 1]
    assert execute(ReadCounters(scope)) == {"evicted": sum(went)}
    assert execute(Count(scope)) == 5
    assert execute(Check(scope)).findings == ()


def test_the_row_just_written_stays(connection: Connection, scope: Scope) -> None:
    connection.store.execute(put(scope, "1", "cat", importance=1.0))
    reply = connection.store.execute(put(scope, "new", "cat", importance=-5.0, cap=1))
    assert reply.evicted == 1
    assert records(connection, scope, "1")[0] is None
    assert record(connection, scope, "new").importance == -5.0


# ---- turns


def test_an_outcome_counts_once_per_turn_and_record(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for name in "123":
        execute(put(scope, name, f"cat {name}"))
    execute(Deliver(scope, "t", ("1", "2", "nobody")))
    assert [found.id for found in execute(ReadTurn(scope, "t")) or ()] == ["1", "2"]
    first = execute(Observe(scope, (Evidence("1", 1.0), Evidence("3", 1.0)), turn="t"))
    assert first.states == ("applied", "missing")
    before = record(connection, scope, "1")
    again = execute(Observe(scope, (Evidence("1", 1.0), Evidence("2", 1.0)), turn="t"))
    assert again.states == ("repeated", "applied")
    assert (
        record(connection, scope, "1") == before
        or record(connection, scope, "1").confidence == before.confidence
    )
    assert execute(Observe(scope, (Evidence("1", 1.0),), turn="unknown")).states == ("missing",)
    assert execute(ReadTurn(scope, "unknown")) is None
    assert record(connection, scope, "1").access_count == 1


def test_a_turn_is_kept_for_24_hours(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat"))
    execute(Deliver(scope, "t", ("1",)))
    name = keys.name(scope, "i")
    held = keys.redis.hget(name, "t")
    (at,) = struct.unpack_from("<q", held)
    assert at - record(connection, scope, "1").accessed_ms == 86_400_000
    assert at <= keys.redis.pexpiretime(name) <= at + 3_600_000
    execute(Deliver(scope, "t2", ("1",)))
    keys.redis.hset(name, "t", struct.pack("<q", 1) + held[8:])
    assert execute(ReadTurn(scope, "t")) is None
    execute(Deliver(scope, "t3", ("1",)))
    assert set(keys.redis.hkeys(name)) == {b"t2", b"t3"}


def test_turns_that_are_over_do_not_pile_up(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat"))
    name = keys.name(scope, "i")
    for number in range(300):
        execute(Deliver(scope, f"t{number}", ("1",)))
        keys.redis.hset(name, f"t{number}", struct.pack("<q", 1) + keys.redis.hget(name, f"t{number}")[8:])
    assert keys.redis.hlen(name) < 20


def test_a_turn_survives_update_and_erasure(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for name in "12":
        execute(put(scope, name, "cat"))
    execute(Deliver(scope, "t", ("1", "2")))
    execute(put(scope, "1", "cat again"))
    execute(Erase(scope, ("2",)))
    assert [found.id for found in execute(ReadTurn(scope, "t")) or ()] == ["1"]
    assert execute(Observe(scope, (Evidence("1", 1.0), Evidence("2", 1.0)), turn="t")).states == (
        "applied",
        "missing",
    )


# ---- the change log


def test_a_stale_reader_survives_a_trimmed_log(
    connection: Connection, server_reader: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    for number in range(20):
        execute(put(scope, f"{number}", "cat fish" if number % 2 else "cat", importance=0.5))
    stale = find(connection, scope, "cat fish", 20)
    write = server_reader.store.execute
    for start in range(0, 4_200, 20):
        write(Observe(scope, tuple(Evidence(f"{number}", float(start % 3), 0.5) for number in range(20))))
    assert int(keys.redis.hget(keys.name(scope, "h"), "x0")) > 4_000
    assert keys.redis.strlen(keys.name(scope, "x")) <= 4_096 * 4 + 80
    write(Erase(scope, ("3", "4")))
    write(put(scope, "new", "fish"))
    now = find(server_reader, scope, "cat fish", 20)
    assert find(connection, scope, "cat fish", 20) == now
    assert now != stale
    assert execute(Check(scope)).findings == ()
