"""Postings of a long record go in before the command that stores it, and nobody counts them until then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import faults
import pytest
from memories import Keys, Mirror, find, note_spec, put
from test_remains import fields, remains

import budgets
from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops.request import Check, Count, Erase, Prune, Search
from omoide.stores.redis import calls, writes
from omoide.stores.redis.codec import encode_put
from omoide.stores.redis.staging import stages

LONG = " ".join(f"w{number}" for number in range(2_048))


def staging(keys: Keys, scope: Scope, write: Any) -> list[calls.Call]:
    """The commands ahead of a write."""
    plan, _, _, terms = encode_put(write)
    return stages(keys.name(scope, "h").encode(), scope.spec.fingerprint, plan, terms)


def send(connection: Connection, made: list[calls.Call]) -> list[Any]:
    replies: list[Any] = connection.store._drive(calls.send(made))  # type: ignore[attr-defined]
    return replies


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Verbs of the writes, as they go out."""
    verbs: list[str] = []

    def noted(made: Any) -> Any:
        verbs.extend(call.verb for call in made)
        return calls.send(made)

    monkeypatch.setattr(writes, "send", noted)
    return verbs


def test_a_long_record_goes_in_by_parts_in_one_round_trip(
    mirror: Callable[..., Mirror], keys: Keys, sent: list[str]
) -> None:
    held = mirror()
    held.save("1", "w1 w2000 cat")
    before = held.client.round_trips
    held.save("2", LONG)
    assert held.client.round_trips - before == 1
    assert sent == ["save", *["stage"] * 5, "save"]
    assert remains(keys, held.scope) == b""
    held.agrees("w1", "w700 w1300 w2000", "w2047 cat")
    sent.clear()
    held.save("3", " ".join(f"v{number}" for number in range(384)))
    assert sent == ["save"]


def test_the_first_record_of_a_partition_needs_no_parts(connection: Connection, scope: Scope) -> None:
    connection.store.execute(put(scope, "1", LONG))
    assert connection.store.execute(Check(scope)).findings == ()
    assert [name for name, _ in find(connection, scope, "w2047")] == ["1"]


def test_the_cache_of_the_writer_stays_current(connection: Connection, scope: Scope) -> None:
    execute, search = connection.store.execute, Search(scope, {"w1": 1.0, "w2000": 1.0}, 5)
    execute(put(scope, "1", "w1 cat"))
    execute(search)
    execute(put(scope, "2", LONG))
    before = connection.round_trips
    assert {hit.record.id for hit in execute(search).hits} == {"1", "2"}
    assert connection.round_trips - before == 1


def test_readers_see_nothing_of_what_is_staged(
    mirror: Callable[..., Mirror], connection: Connection, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets.die_before_sweeping(monkeypatch)
    held = mirror()
    held.save("1", "w1 w2 cat")
    held.save("2", "w2 w700 dog")
    held.agrees("w1 w2")
    write = put(held.scope, "3", LONG)
    assert send(connection, staging(keys, held.scope, write)) == [384, 768, 1152, 1536, 1920]
    assert len(remains(keys, held.scope)) == 12
    held.agrees("w1 w2", "w700 cat", "w1000", "w5")  # lists held, lists not held, words nobody has
    held.save("4", "w1 w5 w700")  # takes the row, and what is staged becomes a dead one
    held.agrees("w1 w2", "w700 cat", "w1000", "w5")
    assert remains(keys, held.scope) != b""
    for _ in range(4):
        connection.store.execute(Prune(held.scope, 1))
    assert remains(keys, held.scope) == b""
    held.agrees("w1 w2", "w700 cat", "w1000", "w5")
    assert fields(keys, held.scope)["f"] == 3


def test_a_write_in_between_costs_nothing_but_the_parts(
    mirror: Callable[..., Mirror], connection: Connection, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = mirror()
    held.save("1", "w1 cat")

    def interrupted(made: Any) -> Any:
        """Another client is served after the second part."""
        if any(call.ahead for call in made):
            yield from ()
            replies = send(connection, list(made[:2]))
            held.save("between", "w1 w700 w1400")
            replies += send(connection, list(made[2:]))
            return replies
        return (yield from calls.send(made))

    with monkeypatch.context() as patch:
        patch.setattr(writes, "send", interrupted)
        held.save("2", LONG)
    assert remains(keys, held.scope) == b""
    held.agrees("w1", "w700", "w1400 cat", "w2047")


def test_a_part_that_is_sent_again_is_taken_once(
    mirror: Callable[..., Mirror], connection: Connection, keys: Keys
) -> None:
    held = mirror()
    held.save("1", "w1 cat")
    made = staging(keys, held.scope, put(held.scope, "2", LONG))
    assert send(connection, made[:2]) == [384, 768]
    assert send(connection, made) == [768, 768, 1152, 1536, 1920]
    assert send(connection, made) == [1920] * 5
    held.agrees("w1", "w700")
    held.save("2", LONG)  # another writer of the same: under another name
    held.agrees("w1", "w700")


def test_a_refused_write_leaves_nothing(connection: Connection, keys: Keys, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat"))
    assert execute(put(scope, "2", LONG, mode="update")).status == "deleted"
    assert remains(keys, scope) == b""
    assert fields(keys, scope) == {"t": 1, "s": 0, "r": 1, "m": 1, "f": 1}
    assert execute(Check(scope)).findings == ()


def test_a_repeated_write_leaves_nothing(connection: Connection, keys: Keys, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat"))
    for _ in range(2):
        assert execute(put(scope, "2", LONG, operation_id="once")).status == "stored"
        assert remains(keys, scope) == b""
    assert (execute(Count(scope)), fields(keys, scope)["f"]) == (2, 2)
    assert execute(Check(scope)).findings == ()


@pytest.mark.usefixtures("one_server")
def test_the_rest_goes_in_with_the_record(
    connection: Connection, keys: Keys, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much that is: a server may lose its scripts after the first parts."""
    execute, text = connection.store.execute, " ".join(f"w{number}" for number in range(10_000))
    execute(put(scope, "1", "cat"))

    def flushed(made: Any) -> Any:
        if any(call.ahead for call in made):
            yield from ()
            replies = send(connection, list(made[:2]))
            keys.redis.script_flush()
            return replies + send(connection, list(made[2:]))
        return (yield from calls.send(made))

    execute(put(scope, "2", LONG))  # loads the scripts
    execute(put(scope, "2", LONG))
    with monkeypatch.context() as patch:
        patch.setattr(writes, "send", flushed)
        assert execute(put(scope, "3", text)).status == "stored"
    assert execute(Check(scope)).findings == ()


@pytest.mark.usefixtures("one_server")
def test_a_server_that_is_out_of_memory_takes_it_out(
    connection: Connection, keys: Keys, scope: Scope
) -> None:
    connection.store.execute(put(scope, "1", "w1 cat"))
    for _ in range(2):
        send(connection, staging(keys, scope, put(scope, "2", LONG)))
    assert remains(keys, scope)
    keys.redis.config_set("maxmemory", 1)
    try:
        assert connection.store.execute(Prune(scope, 64)) == 0
    finally:
        keys.redis.config_set("maxmemory", 0)
    assert remains(keys, scope) == b""
    assert fields(keys, scope) == {"t": 2, "s": 0, "r": 1, "m": 1, "f": 1}


@pytest.mark.parametrize("texts", [[""], ["w1"] * 64])
def test_what_is_staged_expires_with_the_records(
    connection: Connection, keys: Keys, scope: Scope, texts: list[str]
) -> None:
    """With the keys that it makes too: the first lists of a partition, its first sealed segment."""
    execute = connection.store.execute
    for number, text in enumerate(texts):
        execute(put(scope, str(number), text, ttl_ms=60_000))
    for _ in range(2):
        send(connection, staging(keys, scope, put(scope, "long", LONG)))
    assert remains(keys, scope)
    held = keys.dump()
    assert {expiry for _, expiry, _ in held.values()} == {held[keys.name(scope, "h").encode()][1]}
    assert keys.redis.pexpiretime(keys.name(scope, "h")) > 0


def test_a_dead_row_has_an_interval_as_others_have(
    connection: Connection, server_reader: Connection, keys: Keys
) -> None:
    """A reply that comes after another reader of the process took the same rows gives them again."""
    scope = Scope(note_spec(ttl=60.0), ("a",))
    execute, search = connection.store.execute, Search(scope, {"w1": 1.0}, 5)
    execute(put(scope, "1", "w1 cat", ttl_ms=60_000))
    execute(search)
    server_reader.store.execute(put(scope, "2", "w1 dog", ttl_ms=60_000))
    for _ in range(2):
        send(connection, staging(keys, scope, put(scope, "long", LONG)))

    def overtaken() -> Any:
        """The same search, while its first reply is under way."""
        slow, replies = connection.store.binding.handle(search), None  # type: ignore[attr-defined]
        while True:
            try:
                commands = slow.send(replies)
            except StopIteration as end:
                return end.value
            replies = yield commands
            execute(search)

    assert len(connection.store._drive(overtaken()).hits) == 2  # type: ignore[attr-defined]


@pytest.mark.usefixtures("one_server")
def test_a_server_that_lost_its_scripts_stores_it_whole(
    connection: Connection, keys: Keys, scope: Scope
) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat"))
    for name in "234":
        keys.redis.script_flush()
        assert execute(put(scope, name, LONG)).status == "stored"
        assert remains(keys, scope) == b""
    execute(Erase(scope, tuple("234")))
    assert fields(keys, scope) == {"t": 1, "s": 0, "r": 1, "m": 1, "f": 1}


@pytest.mark.usefixtures("one_server")
def test_a_fault_in_any_call_of_a_part_changes_nothing(
    connection: Connection, keys: Keys, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.store.execute(put(scope, "1", "w1 w2 cat"))
    made = staging(keys, scope, put(scope, "2", LONG))
    other = staging(keys, scope, put(scope, "3", LONG))
    monkeypatch.setattr(calls, "load", faults.frugal)
    faults.fail_at(keys.redis, 0)
    send(connection, made[:1])  # a server that lacks the script takes no part
    for call in (made[0], made[1], other[0]):
        place, reply = 1, None
        while not isinstance(reply, int):
            faults.fail_at(keys.redis, place)
            before = keys.dump()
            (reply,) = send(connection, [call])
            if not isinstance(reply, int):
                assert keys.dump() == before, f"call {place}"
            place += 1
        assert (reply > 0, place > 5) == (True, True)
    faults.fail_at(keys.redis, 0)
    assert connection.store.execute(Check(scope)).findings == ()
