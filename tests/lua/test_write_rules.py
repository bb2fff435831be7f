"""Uniqueness, races, repeated operations, and what a save may not do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from memories import Keys, find, note_spec, put, record, records

from omoide.connection import Connection
from omoide.errors import CorruptRecordError, ModelError, ScriptError
from omoide.model.schema import Scope
from omoide.ops.request import (
    Check,
    Count,
    Erase,
    Evidence,
    GetUnique,
    Increment,
    Observe,
    PutReply,
    ReadCounters,
)

DIGEST = b"0123456789abcdef"


def test_fifty_equal_saves_leave_one(connection: Connection, scope: Scope) -> None:
    writes = [put(scope, f"{number}", "the cat", unique=(DIGEST,)) for number in range(50)]
    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(connection.store.execute, writes))
    (winner,) = [write.id for write, reply in zip(writes, replies, strict=True) if reply.status == "stored"]
    losers = [reply for reply in replies if reply.status != "stored"]
    assert losers == [PutReply("duplicate", 1, duplicate_of=winner)] * 49
    assert connection.store.execute(Count(scope)) == 1
    held = connection.store.execute(GetUnique(scope, DIGEST))
    assert held is not None
    assert held.id == winner
    assert connection.store.execute(Check(scope)).findings == ()


def test_a_unique_value_is_free_again_after_its_record(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "the cat", unique=(DIGEST,)))
    assert execute(put(scope, "1", "the cat again", unique=(DIGEST,))).status == "stored"
    execute(put(scope, "1", "without"))
    assert execute(put(scope, "2", "the cat", unique=(DIGEST,))).status == "stored"
    execute(Erase(scope, ("2",)))
    assert execute(GetUnique(scope, DIGEST)) is None
    assert execute(put(scope, "3", "the cat", unique=(DIGEST,))).status == "stored"


def test_a_race_for_a_version_has_one_winner(connection: Connection, scope: Scope) -> None:
    connection.store.execute(put(scope, "1", "start"))
    writes = [put(scope, "1", f"word{number}", expect_version=1) for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(connection.store.execute, writes))
    assert sorted(reply.status for reply in replies) == ["stored"] + ["version"] * 19
    winner = next(number for number, reply in enumerate(replies) if reply.status == "stored")
    assert record(connection, scope, "1").values["content"] == f"word{winner}"
    assert find(connection, scope, f"word{winner} word{(winner + 1) % 20}")[0][0] == "1"
    assert record(connection, scope, "1").version == 2
    assert connection.store.execute(Check(scope)).findings == ()


@pytest.mark.parametrize(
    ("fields", "there", "status"),
    [
        ({"mode": "create"}, True, "exists"),
        ({"mode": "create"}, False, "stored"),
        ({"mode": "update"}, True, "stored"),
        ({"mode": "update"}, False, "deleted"),
        ({"expect_version": 1}, False, "deleted"),
        ({"expect_version": 0}, False, "stored"),
        ({"expect_version": 0}, True, "version"),
        ({"expect_version": 2}, True, "version"),
    ],
)
def test_what_stands_in_the_way(
    fields: dict[str, object], there: bool, status: str, connection: Connection, scope: Scope, keys: Keys
) -> None:
    connection.store.execute(put(scope, "other", "rain"))
    if there:
        connection.store.execute(put(scope, "1", "start"))
    before = keys.dump()
    assert connection.store.execute(put(scope, "1", "next", **fields)).status == status
    assert (keys.dump() == before) == (status != "stored")


def test_an_update_does_not_bring_back_what_was_erased(connection: Connection, scope: Scope) -> None:
    connection.store.execute(put(scope, "1", "start"))
    connection.store.execute(Erase(scope, ("1",)))
    assert connection.store.execute(put(scope, "1", "next", mode="update")).status == "deleted"
    assert records(connection, scope, "1") == [None]
    assert connection.store.execute(put(scope, "1", "next")) == PutReply("stored", 1, created=True)


def test_a_repeated_operation_answers_as_the_first(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    for number in range(5):
        execute(put(scope, f"{number}", "filler"))
    first = execute(put(scope, "1 a", "start", operation_id="first", cap=2))
    assert (first.created, first.evicted, first.repeated) == (True, 4, False)
    before = keys.dump()
    again = execute(put(scope, "1 a", "start", operation_id="first", cap=2))
    assert again == PutReply("stored", 1, created=True, evicted=4, repeated=True)
    assert keys.dump() == before
    second = execute(put(scope, "1 a", "next", operation_id="second"))
    assert (second.version, second.created) == (2, False)
    before = keys.dump()
    assert execute(put(scope, "1 a", "next", operation_id="second", expect_version=1)).repeated
    assert keys.dump() == before


def test_a_repetition_after_another_writer_s_update_does_not_undo_it(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "mine", operation_id="mine"))
    execute(put(scope, "1", "theirs", operation_id="theirs"))
    before = keys.dump()
    assert execute(put(scope, "1", "mine", operation_id="mine")) == PutReply(
        "stored", 1, created=True, repeated=True
    )
    assert keys.dump() == before


def test_one_operation_sent_at_once_by_many_happens_once(connection: Connection, scope: Scope) -> None:
    write = put(scope, "1", "the cat", operation_id="one")
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(connection.store.execute, [write] * 16))
    assert sum(not reply.repeated for reply in replies) == 1
    assert {(reply.status, reply.version, reply.created) for reply in replies} == {("stored", 1, True)}
    assert record(connection, scope, "1").version == 1


def test_an_update_keeps_statistics_and_first_time(connection: Connection, scope: Scope) -> None:
    connection.store.execute(put(scope, "1", "start", time_ms=1_000))
    connection.store.execute(Observe(scope, (Evidence("1", 3, 0, False, True),)))
    before = record(connection, scope, "1")
    connection.store.execute(put(scope, "1", "next", importance=0.3))
    after = record(connection, scope, "1")
    assert (after.time_ms, after.confidence, after.corroborations, after.access_count) == (
        1_000,
        before.confidence,
        1,
        1,
    )
    assert after.version == 2


def test_another_shape_is_refused_and_changes_nothing(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    connection.store.execute(put(scope, "1", "start"))
    before = keys.dump()
    with pytest.raises(ModelError, match="another shape"):
        connection.store.execute(put(Scope(note_spec(fingerprint="shape-2"), ("a",)), "2", "next"))
    assert keys.dump() == before


@pytest.mark.parametrize("letter", ["h", "a", "m", "r"])
def test_a_partition_that_lost_a_key_is_refused(
    letter: str, connection: Connection, scope: Scope, keys: Keys
) -> None:
    connection.store.execute(put(scope, "1", "start"))
    keys.redis.delete(keys.name(scope, letter))
    before = keys.dump()
    with pytest.raises(CorruptRecordError):
        connection.store.execute(put(scope, "2", "next"))
    assert keys.dump() == before


@pytest.mark.parametrize(
    ("letter", "field"),
    [("f", "3"), ("t", "fish"), ("t", "only3"), ("s", "fish:0"), ("k", "session")],
)
@pytest.mark.parametrize("update", [True, False])
def test_a_damaged_record_is_reported_and_left(
    letter: str, field: str, update: bool, connection: Connection, scope: Scope, keys: Keys
) -> None:
    for number in range(70):
        connection.store.execute(put(scope, f"{number}", f"fish only{number + 1}", session="session"))
    assert keys.redis.hdel(keys.name(scope, letter), field) == 1
    before = keys.dump()
    with pytest.raises(CorruptRecordError):
        connection.store.execute(put(scope, "2", "dog") if update else Erase(scope, ("2",)))
    assert keys.dump() == before


def test_a_row_number_beyond_the_last_is_refused(
    connection: Connection, scope: Scope, keys: Keys, full: bool
) -> None:
    if not full:
        pytest.skip("takes a column of 134 MB; OMOIDE_FULL=1 runs it")
    connection.store.execute(put(scope, "1", "cat"))
    keys.redis.hset(keys.name(scope, "h"), "next", 4_177_919)
    keys.redis.setrange(keys.name(scope, "a"), 4_177_919 * 32 - 1, b"\0")
    assert connection.store.execute(put(scope, "2", "cat")).status == "stored"
    assert [name for name, _ in find(connection, scope, "cat")] == ["2", "1"]
    with pytest.raises(ModelError, match="row numbers"):
        connection.store.execute(put(scope, "3", "cat"))


def test_counters_keep_53_bits(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    assert execute(Increment(scope, "big", 2**53 - 1)) == 2**53 - 1
    with pytest.raises(ScriptError, match="OVERFLOW"):
        execute(Increment(scope, "big", 1))
    assert execute(Increment(scope, "small", -7)) == -7
    assert execute(ReadCounters(scope)) == {"big": 2**53 - 1, "small": -7}


def test_concurrent_counts_add_up(connection: Connection, scope: Scope) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(connection.store.execute, [Increment(scope, "n")] * 200))
    assert connection.store.execute(ReadCounters(scope)) == {"n": 200}


def test_names_of_sessions_and_authors_are_counted(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "one", session="s", author="w"))
    execute(put(scope, "2", "two", session="s"))
    execute(put(scope, "3", "three", session="other", author="w"))
    name = keys.name(scope, "k")

    def held() -> dict[bytes, tuple[int, int]]:
        return {
            field: (int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little"))
            for field, data in keys.redis.hgetall(name).items()
        }

    assert held() == {b"s": (1, 2), b"w": (2, 2), b"other": (3, 1)}
    execute(put(scope, "1", "one", session="other"))
    assert held() == {b"s": (1, 1), b"w": (2, 1), b"other": (3, 2)}
    execute(Erase(scope, ("1", "2", "3")))
    assert held() == {}
    execute(put(scope, "4", "four", session="s"))
    assert held() == {b"s": (4, 1)}
