"""The graph: edges on both sides, entities, and what becomes of them."""

from __future__ import annotations

import struct

import pytest
from memories import Keys, put, record

from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops.request import Check, Erase, Evidence, Link, Observe, Spread


def edges(connection: Connection, scope: Scope, keys: Keys, name: str) -> dict[str, float]:
    """Neighbour's id -> weight, as stored at one record."""
    held = dict(
        struct.iter_unpack(
            "<If", keys.redis.hget(keys.name(scope, "g"), record(connection, scope, name).row) or b""
        )
    )
    ids = {int(row): found.decode() for found, row in keys.redis.hgetall(keys.name(scope, "m")).items()}
    return {ids.get(row, f"row {row}"): weight for row, weight in held.items()}


@pytest.fixture
def four(connection: Connection, scope: Scope) -> Scope:
    for name in "1234":
        connection.store.execute(put(scope, name, f"cat {name}"))
    return scope


def test_an_edge_is_on_both_sides(connection: Connection, four: Scope, keys: Keys) -> None:
    assert connection.store.execute(Link(four, "1", "2", 0.5)) == 0.5
    assert connection.store.execute(Link(four, "2", "1", 0.25)) == 0.75
    assert edges(connection, four, keys, "1") == {"2": 0.75}
    assert edges(connection, four, keys, "2") == {"1": 0.75}
    assert connection.store.execute(Spread(four, {"1": 1.0})) == (("2", 0.5 * 0.75 / 1.75),)
    assert connection.store.execute(Link(four, "1", "2", -0.5)) == 0.25
    assert connection.store.execute(Link(four, "1", "2", -0.5)) == 0.0
    assert keys.redis.exists(keys.name(four, "g")) == 0
    for first, second in (("1", "1"), ("1", "nobody")):
        assert connection.store.execute(Link(four, first, second, 1.0)) == 0.0
    assert keys.redis.exists(keys.name(four, "g")) == 0


def test_edges_follow_an_update(connection: Connection, four: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(Link(four, "1", "2", 0.5))
    execute(Link(four, "1", "3", 0.25))
    execute(Link(four, "2", "3", 2.0))
    execute(put(four, "1", "cat again"))
    assert edges(connection, four, keys, "1") == {"2": 0.5, "3": 0.25}
    assert edges(connection, four, keys, "2") == {"1": 0.5, "3": 2.0}
    assert edges(connection, four, keys, "3") == {"2": 2.0, "1": 0.25}
    assert execute(Check(four)).findings == ()


def test_edges_vanish_on_both_sides(connection: Connection, four: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    for name in "234":
        execute(Link(four, "1", name, 1.0))
    execute(Link(four, "2", "3", 1.0))
    execute(Erase(four, ("1",)))
    assert edges(connection, four, keys, "2") == {"3": 1.0}
    assert edges(connection, four, keys, "4") == {}
    execute(Erase(four, ("3",)))
    assert keys.redis.exists(keys.name(four, "g")) == 0
    assert execute(Check(four)).findings == ()


def test_the_64_strongest_stay(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(scope, "hub", "cat"))
    for number in range(70):
        execute(put(scope, f"{number}", "cat"))
    for number in range(70):
        execute(Link(scope, "hub", f"{number}", 1.0 + number))
    held = edges(connection, scope, keys, "hub")
    assert held == {f"{number}": 1.0 + number for number in range(6, 70)}
    assert edges(connection, scope, keys, "5") == {}
    assert execute(Link(scope, "hub", "0", 0.5)) == 0.0
    assert edges(connection, scope, keys, "0") == {}
    assert execute(Link(scope, "0", "hub", 0.5)) == 0.0
    assert edges(connection, scope, keys, "hub") == held
    assert execute(Check(scope)).findings == ()


def test_records_that_name_the_same_are_linked(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat", entities=("Bob", "Ann")))
    execute(put(scope, "2", "cat", entities=("Bob",)))
    execute(put(scope, "3", "cat", entities=("Ann", "Bob", "Bob")))
    assert edges(connection, scope, keys, "3") == {"1": 0.5, "2": 0.5}
    assert edges(connection, scope, keys, "2") == {"1": 0.5, "3": 0.5}
    execute(Erase(scope, ("1",)))
    assert keys.redis.hget(keys.name(scope, "g"), "e:Bob") == struct.pack("<II", 2, 3)
    assert execute(Check(scope)).findings == ()
    execute(Erase(scope, ("2", "3")))
    assert keys.redis.exists(keys.name(scope, "g")) == 0


def test_an_update_that_names_the_same_changes_no_edge(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    for name in "123":
        execute(put(scope, name, "cat", entities=("Bob",)))
    execute(Link(scope, "1", "2", 2.0))
    for text in ("dog", "fish"):
        execute(put(scope, "1", text, entities=("Bob",)))
        assert edges(connection, scope, keys, "1") == {"2": 2.5, "3": 0.5}
        assert edges(connection, scope, keys, "2") == {"1": 2.5, "3": 0.5}
        assert edges(connection, scope, keys, "3") == {"1": 0.5, "2": 0.5}
    assert execute(Check(scope)).findings == ()


def test_an_update_that_names_more_keeps_old_edges_and_adds_new_ones(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "cat", entities=("Bob",)))
    execute(put(scope, "2", "cat", entities=("Bob",)))
    execute(put(scope, "3", "cat"))
    execute(put(scope, "4", "cat"))
    execute(Link(scope, "3", "4", 3.0))
    execute(put(scope, "3", "cat", entities=("Bob",)))
    assert edges(connection, scope, keys, "3") == {"4": 3.0, "1": 0.5, "2": 0.5}
    assert edges(connection, scope, keys, "1") == {"2": 0.5, "3": 0.5}
    assert execute(Check(scope)).findings == ()


def test_sixteen_records_of_a_name_are_kept(connection: Connection, scope: Scope, keys: Keys) -> None:
    for number in range(1, 41):
        connection.store.execute(put(scope, f"{number}", "cat", entities=("Bob",)))
    named = keys.redis.hget(keys.name(scope, "g"), "e:Bob")
    assert [row for (row,) in struct.iter_unpack("<I", named)] == list(range(25, 41))
    assert len(edges(connection, scope, keys, "20")) <= 64
    assert connection.store.execute(Check(scope)).findings == ()


def test_a_record_is_never_linked_to_itself(connection: Connection, four: Scope, keys: Keys) -> None:
    connection.store.execute(
        Observe(four, (Evidence("1", 1.0), Evidence("2", 1.0)), linked=("1", "1", "2"), link=1.0)
    )
    assert "1" not in edges(connection, four, keys, "1")
    assert edges(connection, four, keys, "2").keys() == {"1"}


def test_records_used_together_are_linked(connection: Connection, four: Scope, keys: Keys) -> None:
    told = tuple(Evidence(name, 1.0) for name in "123")
    connection.store.execute(Observe(four, told, linked=("1", "2", "3"), link=0.5))
    for name, others in (("1", "23"), ("2", "13"), ("3", "12")):
        assert edges(connection, four, keys, name) == dict.fromkeys(others, 0.5)
    assert edges(connection, four, keys, "4") == {}


def test_spreading_takes_the_best_path(connection: Connection, four: Scope) -> None:
    execute = connection.store.execute
    for first, second, weight in (("1", "2", 1.0), ("2", "3", 3.0), ("1", "3", 0.1), ("3", "4", 1.0)):
        execute(Link(four, first, second, weight))
    half, three, tenth = 0.5 * 1 / 2, 0.5 * 3 / 4, 0.5 * 0.1 / 1.1
    assert dict(execute(Spread(four, {"1": 1.0}))) == {"2": half, "3": pytest.approx(tenth)}
    assert execute(Spread(four, {"1": 1.0}, hops=3)) == (
        ("2", half),
        ("3", half * three),
        ("4", half * three * half),
    )
    assert execute(Spread(four, {"1": 1.0, "2": 0.5}, hops=1)) == (("3", 0.5 * three),)
    assert execute(Spread(four, {"3": 1.0}, fan_out=1)) == (("2", three),)
    assert execute(Spread(four, {"1": 1.0}, hops=3, limit=1)) == (("2", half),)
    assert execute(Spread(four, {"nobody": 1.0})) == ()
