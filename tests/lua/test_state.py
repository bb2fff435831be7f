"""A write that brings its state, and the dump that tells it."""

from __future__ import annotations

from typing import Any

import pytest
from memories import Keys, copy_page, note_spec, put

from omoide.connection import Connection
from omoide.errors import CorruptRecordError, StoreUnavailableError
from omoide.model.schema import Scope
from omoide.ops.request import (
    Batch,
    BeginReindex,
    Check,
    Dump,
    Dumped,
    Erase,
    Evidence,
    FinishReindex,
    Kept,
    Link,
    Observe,
    Page,
    Statistics,
)

STATE = Kept(
    version=7,
    time_ms=1_700_000_000_000,
    statistics=Statistics(3.5, 1.25, 2, 1, 9, 1_700_000_000_000),
    order=12.537919283746,
    expires_ms=4_000_000_000_000,
    edges=(("b", 2.5), ("a", 0.5)),
    entities=("Ann", "Bob"),
)


def dumped(connection: Connection, scope: Scope, size: int = 128) -> list[Dumped]:
    found, cursor = [], ""
    while True:
        reply = connection.store.execute(Dump(scope, cursor, size))
        found += reply.records
        cursor = reply.cursor
        if not cursor:
            return found


@pytest.mark.parametrize("size", [1, 2, 128])
def test_a_record_keeps_the_state_it_came_with(connection: Connection, size: int) -> None:
    scope = Scope(note_spec(ttl=60.0), ("a",))
    execute = connection.store.execute
    for name in ("a", "b"):
        execute(put(scope, name, "the cat", kept=Kept(expires_ms=4_000_000_000_000, time_ms=5), time_ms=5))
    given: dict[str, Any] = {"time_ms": STATE.time_ms, "entities": STATE.entities}
    assert execute(put(scope, "c", "the dog", mode="create", kept=STATE, **given)).status == "stored"
    found = dumped(connection, scope, size)
    assert [one.id for one in found] == ["a", "b", "c"]
    assert found[2].kept == STATE
    assert found[2].values == {"id": "c", "content": "the dog"}
    assert execute(Check(scope)).findings == ()


def test_names_make_no_edges_for_a_record_that_brings_its_own(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "a", "x", entities=("Ann",)))
    execute(put(scope, "b", "x", entities=("Ann",), kept=Kept()))
    execute(put(scope, "c", "x", entities=("Ann",)))
    assert [one.kept.edges for one in dumped(connection, scope)] == [(), (), (("a", 0.5), ("b", 0.5))]


def test_an_edge_to_a_record_that_is_not_there_is_left_out(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "a", "x"))
    execute(put(scope, "b", "x", kept=Kept(edges=(("gone", 3.0), ("a", 1.0)))))
    assert dumped(connection, scope)[1].kept.edges == (("a", 1.0),)
    assert execute(Check(scope)).findings == ()


def test_a_full_list_of_edges_keeps_the_strongest_on_both_sides(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "hub", "x"))
    for number in range(64):
        execute(put(scope, f"{number}", "x", kept=Kept(edges=(("hub", 1.0 + number),))))
    execute(put(scope, "weak", "x", kept=Kept(edges=(("hub", 0.5), ("0", 0.25)))))
    execute(put(scope, "strong", "x", kept=Kept(edges=(("hub", 99.0),))))
    edges = {one.id: one.kept.edges for one in dumped(connection, scope)}
    assert (edges["weak"], edges["0"], edges["1"]) == ((("0", 0.25),), (), (("hub", 2.0),))
    assert edges["strong"] == (("hub", 99.0),)
    assert execute(Check(scope)).findings == ()


def test_a_deadline_that_is_over_stores_nothing(connection: Connection, keys: Keys) -> None:
    scope = Scope(note_spec(ttl=60.0), ("a",))
    reply = connection.store.execute(put(scope, "a", "x", kept=Kept(expires_ms=1_000)))
    assert reply.status == "expired"
    assert not keys.redis.keys("omoide*")


def test_a_record_with_its_state_is_in_the_shadow_too(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for name in ("a", "b"):
        execute(put(scope, name, "the cat"))
    state = execute(BeginReindex(scope))
    execute(put(scope, "c", "the dog", time_ms=1_700_000_000_000, kept=Kept(version=3, edges=STATE.edges)))
    page = execute(Page(scope, state.cursor, 100))
    copy_page(connection, scope, state.token, page.records)
    before = {one.id: one.kept for one in dumped(connection, scope)}
    execute(FinishReindex(scope, state.token))
    after = {one.id: one.kept for one in dumped(connection, scope)}
    assert after["c"].version == 3
    links = {frozenset((one, other)): weight for one, kept in before.items() for other, weight in kept.edges}
    assert links == {
        frozenset((one, other)): weight for one, kept in after.items() for other, weight in kept.edges
    }
    assert execute(Check(scope)).findings == ()


def test_each_edge_is_told_once(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for number in range(300):
        execute(put(scope, f"{number}", "x"))
    for number in range(299):
        execute(Link(scope, f"{number}", f"{number + 1}", 1.0 + number))
        execute(Link(scope, f"{number}", f"{(number * 7 + 150) % 300}", 0.5))
    execute(Erase(scope, ("50", "100")))
    for size in (1, 3, 128):
        told: dict[frozenset[str], float] = {}
        for one in dumped(connection, scope, size):
            for other, weight in one.kept.edges:
                assert frozenset((one.id, other)) not in told
                told[frozenset((one.id, other))] = weight
        assert sum(map(len, told)) == 2 * len(told)
        assert {frozenset(("200", "201")), frozenset(("0", "150"))} <= told.keys()
        assert not [pair for pair in told if pair & {"50", "100"}]


def test_what_is_expired_is_not_dumped_and_not_named(connection: Connection, keys: Keys) -> None:
    scope = Scope(note_spec(ttl=60.0), ("a",))
    execute = connection.store.execute
    for name in ("a", "b", "c"):
        execute(put(scope, name, "x", ttl_ms=60_000))
    execute(Link(scope, "a", "b", 1.0))
    execute(Link(scope, "b", "c", 1.0))
    keys.redis.zadd(keys.name(scope, "e"), {"1": 1})
    for size in (1, 128):
        assert [(one.id, one.kept.edges) for one in dumped(connection, scope, size)] == [
            ("b", ()),
            ("c", (("b", 1.0),)),
        ]


def test_a_dump_says_when_rows_were_renumbered(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    for name in ("a", "b"):
        execute(put(scope, name, "x"))
    cursor = execute(Dump(scope, "", 1)).cursor
    state = execute(BeginReindex(scope))
    copy_page(connection, scope, state.token, execute(Page(scope, state.cursor, 100)).records)
    execute(FinishReindex(scope, state.token))
    with pytest.raises(StoreUnavailableError, match="rebuilt"):
        execute(Dump(scope, cursor, 1))


@pytest.mark.parametrize("letter", ["r", "c", "f"])
def test_a_dump_leaves_nothing_damaged_out(
    connection: Connection, scope: Scope, keys: Keys, letter: str
) -> None:
    execute = connection.store.execute
    execute(put(scope, "a", "x"))
    execute(put(scope, "b", "x"))
    execute(Observe(scope, (Evidence("b", 1.0, access=True),)))
    keys.redis.hset(keys.name(scope, letter), "2", b"\xc1")
    with pytest.raises(CorruptRecordError):
        execute(Dump(scope))


def test_a_page_of_hubs_stays_within_its_bound(connection: Connection, keys: Keys) -> None:
    """128 records with 64 edges each to others before the page: no more look-ups than edges."""
    scope = Scope(note_spec(), ("a",))
    count = 256
    writes: list[Any] = [put(scope, f"{number}", "x") for number in range(count)]
    writes += [
        put(
            scope,
            f"h{number}",
            "x",
            kept=Kept(edges=tuple((f"{(number * 2 + n) % count}", 1.0) for n in range(64))),
        )
        for number in range(128)
    ]
    assert {reply.status for reply in connection.store.execute(Batch(tuple(writes)))} == {"stored"}
    cursor = connection.store.execute(Dump(scope, "", 128)).cursor
    cursor = connection.store.execute(Dump(scope, cursor, 128)).cursor
    keys.redis.config_resetstat()
    hubs = connection.store.execute(Dump(scope, cursor, 128)).records
    assert [one.id for one in hubs] == [f"h{number}" for number in range(128)]
    looked = keys.redis.info("commandstats")["cmdstat_hget"]["calls"]
    assert looked == len({other for one in hubs for other, _ in one.kept.edges}) == count
