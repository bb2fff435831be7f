"""A rebuild under load: nothing lost, nothing reordered, and whoever gave up is cleared away."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from memories import Keys, Mirror, copy_page, find, note_spec, put, rebuild, record, records

from omoide.connection import Connection
from omoide.errors import CorruptRecordError, ModelError, StoreError
from omoide.model.schema import Scope
from omoide.ops.request import (
    BeginReindex,
    Check,
    CopyRecords,
    Count,
    Deliver,
    Erase,
    Evidence,
    FinishReindex,
    Increment,
    Link,
    Observe,
    Page,
    Prune,
    Put,
    ReadCounters,
    ReadTurn,
    Record,
    Spread,
    Top,
)


def shadows(keys: Keys) -> list[bytes]:
    return [key for key in keys.dump() if b":~" in key or key.endswith(b"-")]


def everything(connection: Connection, scope: Scope) -> list[Record]:
    found: list[Record] = []
    cursor = ""
    while True:
        page = connection.store.execute(Page(scope, cursor, 1000))
        found += page.records
        cursor = page.cursor
        if not cursor:
            return found


def filled(connection: Connection, scope: Scope, count: int = 60) -> None:
    execute = connection.store.execute
    for number in range(count):
        execute(
            put(
                scope,
                f"{number}",
                f"cat w{number % 7} fish",
                importance=number % 9 / 9,
                time_ms=1_000 + number,
            )
        )
    for number in range(0, count - 1, 3):
        execute(Link(scope, f"{number}", f"{number + 1}", 1.0 + number))
    told = tuple(
        Evidence(f"{number}", number % 3, number % 2, number % 4 == 0, True) for number in range(count)
    )
    execute(Observe(scope, told))
    execute(Deliver(scope, "turn", ("1", "2")))
    execute(Increment(scope, "recalls", 5))
    for number in range(0, count, 10):
        execute(Erase(scope, (f"{number}",)))


def test_what_the_store_knows_survives(
    connection: Connection, server_reader: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    filled(connection, scope)
    names = [found.id for found in execute(Top(scope, 100))]
    kept = {name: record(connection, scope, name) for name in names}
    answers = find(server_reader, scope, "cat w3", 50)
    assert find(connection, scope, "cat w3", 50) == answers
    seeds = [execute(Spread(scope, {name: 1.0}, hops=2)) for name in names]
    gen = keys.redis.hget(keys.name(scope, "h"), "gen")
    assert rebuild(connection, scope, size=7) == len(names)
    assert keys.redis.hget(keys.name(scope, "h"), "gen") != gen
    assert keys.redis.hget(keys.name(scope, "h"), "dead") == b"0"
    assert [found.id for found in execute(Top(scope, 100))] == names
    for name, before in kept.items():
        after = record(connection, scope, name)
        for part in ("values", "version", "time_ms", "importance", "confidence", "corroborations"):
            assert getattr(after, part) == getattr(before, part), part
        assert (after.contradictions, after.access_count, after.accessed_ms) == (
            before.contradictions,
            before.access_count,
            before.accessed_ms,
        )
        assert before.relevance is not None
        assert after.relevance == pytest.approx(before.relevance, rel=1e-5)
    assert find(server_reader, scope, "cat w3", 50) == answers
    assert find(connection, scope, "cat w3", 50) == answers
    assert [execute(Spread(scope, {name: 1.0}, hops=2)) for name in names] == seeds
    assert execute(ReadCounters(scope)) == {"recalls": 5}
    assert [found.id for found in execute(ReadTurn(scope, "turn")) or ()] == ["1", "2"]
    assert execute(Check(scope)).findings == ()
    assert shadows(keys) == []


def test_a_reader_with_a_cache_sees_the_new_rows(mirror: Callable[..., Mirror]) -> None:
    held = mirror()
    for number in range(120):
        held.save(f"{number}", f"cat w{number % 5} fish")
    for number in range(0, 120, 2):
        held.erase(f"{number}")
    held.agrees("cat", "w1 fish")
    rebuild(held.server, held.scope)  # its cache is forgotten there, the one of `client` is stale
    held.agrees("cat", "w1 fish")
    held.save("new", "cat w1")
    held.agrees("w1")


def test_a_repeated_operation_is_known_after_a_rebuild(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "mine", operation_id="mine"))
    execute(put(scope, "1", "theirs", operation_id="theirs"))
    rebuild(connection, scope)
    for name, version in (("mine", 1), ("theirs", 2)):
        reply = execute(put(scope, "1", name, operation_id=name))
        assert (reply.repeated, reply.version) == (True, version)
    assert record(connection, scope, "1").values["content"] == "theirs"


def test_an_operation_during_a_rebuild_is_known_after_it(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for number in range(4):
        execute(put(scope, f"{number}", "cat"))
    state = execute(BeginReindex(scope))
    copy_page(connection, scope, state.token, execute(Page(scope, "", 2)).records)
    assert execute(put(scope, "new", "cat", operation_id="one", cap=3)).evicted == 2
    copy_page(connection, scope, state.token, execute(Page(scope)).records)
    assert execute(FinishReindex(scope, state.token)) == 3
    again = execute(put(scope, "new", "cat", operation_id="one", cap=3))
    assert (again.repeated, again.version, again.created, again.evicted) == (True, 1, True, 2)


def test_another_shape_is_refused_until_rebuilt(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    filled(connection, scope, 20)
    changed = Scope(note_spec(fingerprint="shape-2"), ("a",))
    with pytest.raises(ModelError):
        execute(put(changed, "new", "dog"))
    state = execute(BeginReindex(changed))
    page = execute(Page(changed, state.cursor))
    puts = tuple(
        Put(changed, found.id, found.values, terms={"other": 1}, length=1, importance=found.importance)
        for found in page.records
    )
    assert execute(
        CopyRecords(changed, state.token, tuple(found.row for found in page.records), puts)
    ) == len(puts)
    with pytest.raises(ModelError):
        execute(put(changed, "new", "dog"))
    assert execute(FinishReindex(changed, state.token)) == len(puts)
    assert execute(put(changed, "new", "dog")).status == "stored"
    with pytest.raises(ModelError):
        execute(put(scope, "old", "dog"))
    assert find(connection, changed, "cat") == []
    assert len(find(connection, changed, "other", 50)) == len(puts)
    assert execute(Check(changed)).findings == ()


def test_a_rebuild_goes_on_where_it_stopped(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    filled(connection, scope, 30)
    state = execute(BeginReindex(scope))
    page = execute(Page(scope, state.cursor, 10))
    assert copy_page(connection, scope, state.token, page.records) == 10
    again = execute(BeginReindex(scope))
    assert again.token == state.token
    assert again.cursor == page.cursor
    rest = execute(Page(scope, again.cursor, 1000))
    assert copy_page(connection, scope, again.token, page.records) == 0
    assert copy_page(connection, scope, again.token, rest.records) == len(rest.records)
    assert execute(FinishReindex(scope, again.token)) == 10 + len(rest.records)
    assert execute(Check(scope)).findings == ()


def test_an_unfinished_rebuild_is_not_swapped_in(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    filled(connection, scope, 30)
    state = execute(BeginReindex(scope))
    copy_page(connection, scope, state.token, execute(Page(scope, state.cursor, 10)).records)
    before = keys.dump()
    assert execute(FinishReindex(scope, state.token)) is None
    with pytest.raises(StoreError, match="given up"):
        execute(FinishReindex(scope, "another token"))
    assert keys.dump() == before


def copied(connection: Connection, scope: Scope) -> str:
    """Save three records and copy them; the token of the rebuild."""
    execute = connection.store.execute
    for name in "123":
        execute(put(scope, name, "the cat"))
    state = execute(BeginReindex(scope))
    copy_page(connection, scope, state.token, execute(Page(scope, state.cursor, 10)).records)
    return state.token


def test_a_long_text_saved_meanwhile_is_copied_at_the_end(
    connection: Connection, keys: Keys, scope: Scope
) -> None:
    execute = connection.store.execute
    token = copied(connection, scope)
    execute(put(scope, "2", " ".join(f"w{number}" for number in range(700))))
    execute(put(scope, "4", "the dog"))
    assert keys.redis.hkeys(keys.name(scope, "~m")) == [b"1", b"3", b"4"]
    assert execute(FinishReindex(scope, token)) is None
    again = execute(BeginReindex(scope))
    assert again.token == token
    copy_page(connection, scope, token, execute(Page(scope, again.cursor, 10)).records)
    assert execute(FinishReindex(scope, token)) == 4
    assert execute(Check(scope)).findings == ()
    assert [name for name, _ in find(connection, scope, "w699")] == ["2"]


def test_a_copy_that_lacks_a_record_is_not_swapped_in(
    connection: Connection, keys: Keys, scope: Scope
) -> None:
    execute = connection.store.execute
    token = copied(connection, scope)
    keys.redis.hincrby(keys.name(scope, "~h"), "n", -1)
    with pytest.raises(CorruptRecordError):
        execute(FinishReindex(scope, token))


def test_an_abandoned_rebuild_is_dropped_by_the_next_write(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    filled(connection, scope, 20)
    state = execute(BeginReindex(scope))
    page = execute(Page(scope, state.cursor, 5))
    copy_page(connection, scope, state.token, page.records)
    assert shadows(keys)
    keys.redis.hset(keys.name(scope, "h"), "lease", 1)
    execute(put(scope, "new", "dog"))
    assert shadows(keys) == []
    with pytest.raises(StoreError, match="given up"):
        copy_page(connection, scope, state.token, page.records)
    with pytest.raises(StoreError, match="given up"):
        execute(FinishReindex(scope, state.token))
    assert execute(Check(scope)).findings == ()
    rebuild(connection, scope)
    assert execute(Check(scope)).findings == ()


def test_records_that_expire_meanwhile_are_no_obstacle(connection: Connection, keys: Keys) -> None:
    execute = connection.store.execute
    scope = Scope(note_spec(ttl=60), ("a",))
    for number in range(6):
        execute(put(scope, f"{number}", "cat", ttl_ms=60_000))
    execute(put(scope, "stays", "cat"))
    due = [record(connection, scope, f"{number}").row for number in range(6)]
    keys.redis.zadd(keys.name(scope, "e"), {due[0]: 1, due[1]: 1})
    state = execute(BeginReindex(scope))
    copy_page(connection, scope, state.token, execute(Page(scope, state.cursor)).records)
    keys.redis.zadd(keys.name(scope, "e"), {due[2]: 1})
    shadow = keys.name(scope, "~e")
    keys.redis.zadd(shadow, {keys.redis.zrange(shadow, 0, 0)[0]: 1})
    assert execute(FinishReindex(scope, state.token)) >= 4
    assert execute(Count(scope)) == 4
    execute(put(scope, "stays", "cat"))
    assert execute(Check(scope)).findings == ()
    assert records(connection, scope, "5")[0] is not None


def test_expiry_of_the_keys_survives(connection: Connection, keys: Keys) -> None:
    scope = Scope(note_spec(ttl=60), ("a",))
    for number in range(5):
        connection.store.execute(put(scope, f"{number}", "cat", ttl_ms=60_000 + number))
    latest = record(connection, scope, "4").expires_ms
    rebuild(connection, scope)
    assert {expiry for _, expiry, _ in keys.dump().values()} == {latest}
    assert record(connection, scope, "4").expires_ms == latest


# ---- with writers


@dataclass
class Writer:
    """One thread's own records, and what they have to be in the end."""

    scope: Scope
    connection: Connection
    name: str
    texts: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    writes: int = 0
    failed: list[BaseException] = field(default_factory=list)

    def one(self, chance: random.Random) -> None:
        execute = self.connection.store.execute
        kind = chance.random()
        if kind < 0.35 or not self.texts:
            name = f"{self.name} {self.writes}"
            self.texts[name] = f"cat {self.name} w{chance.randrange(9)}"
            self.versions[name], self.told[name] = 1, 0
            execute(put(self.scope, name, self.texts[name], entities=("Bob",)))
        elif kind < 0.6:
            name = chance.choice(list(self.texts))
            self.texts[name] = f"dog {self.name} w{chance.randrange(9)} fish"
            self.versions[name] += 1
            execute(put(self.scope, name, self.texts[name], mode="update"))
        elif kind < 0.7:
            name = chance.choice(list(self.texts))
            del self.texts[name]
            assert execute(Erase(self.scope, (name,))) == (True,)
        else:
            pair = chance.sample(list(self.texts), min(2, len(self.texts)))
            for name in pair:
                self.told[name] += 1
            told = tuple(Evidence(name, 1.0, 0.0, True, True) for name in pair)
            execute(Observe(self.scope, told, linked=tuple(pair), link=0.25))
        self.writes += 1

    def run(self, stop: threading.Event) -> None:
        chance = random.Random(self.name)
        try:
            while not stop.is_set():
                self.one(chance)
        except BaseException as error:
            self.failed.append(error)
            raise


def test_nothing_is_lost_beside_writers(
    connection: Connection, server_reader: Connection, scope: Scope, keys: Keys, full: bool
) -> None:
    writers = [Writer(scope, connection, name) for name in ("ann", "bob", "cid", "dan")]
    chance = random.Random(5)
    for writer in writers:
        for _ in range(60):
            writer.one(chance)
    stop = threading.Event()
    threads = [threading.Thread(target=writer.run, args=(stop,)) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20 if full else 3):
            rebuild(server_reader, scope, size=20, until=lambda page: time.sleep(0.001))
            assert find(server_reader, scope, "cat dog", 5)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert [error for writer in writers for error in writer.failed] == []
    assert all(writer.writes > 70 for writer in writers)
    texts = {name: text for writer in writers for name, text in writer.texts.items()}
    found = {held.id: held for held in everything(connection, scope)}
    assert {name: held.values["content"] for name, held in found.items()} == texts
    for writer in writers:
        for name in writer.texts:
            assert found[name].version == writer.versions[name]
            assert found[name].corroborations == writer.told[name]
            assert found[name].access_count == writer.told[name]
    assert connection.store.execute(Check(scope)).findings == ()
    for query in ("cat", "dog fish", "w3 ann"):
        assert find(connection, scope, query, 30) == find(server_reader, scope, query, 30)
    assert shadows(keys) == []


@pytest.mark.parametrize("words", [1, 500])
def test_what_expires_before_it_is_copied_stays_true_of_its_time(
    connection: Connection, keys: Keys, words: int
) -> None:
    """The version before it keeps its end, though the copy never held the one that set it."""
    scope, execute = Scope(note_spec(validity=True), ("a",)), connection.store.execute
    later = put(scope, "b", " ".join(f"w{n}" for n in range(words)), key="k", valid_from_ms=2_000, ttl_ms=400)
    execute(put(scope, "a", "cat", key="k", valid_from_ms=1_000))
    if words == 1:
        execute(later)  # one of many words is not put into the copy at once
    state = execute(BeginReindex(scope))
    page = execute(Page(scope, state.cursor, 1))
    copy_page(connection, scope, state.token, page.records)
    if words > 1:
        execute(later)
    time.sleep(0.5)
    assert execute(Prune(scope, 64)) == 1
    assert execute(FinishReindex(scope, state.token)) == 1
    held = record(connection, scope, "a")
    assert (held.valid_from_ms, held.valid_to_ms) == (1_000, 2_000)
    assert execute(Check(scope)).findings == ()
    execute(put(scope, "c", "cow", key="k", valid_from_ms=1_500))
    assert record(connection, scope, "a").valid_to_ms == 1_500
