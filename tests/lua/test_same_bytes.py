"""Lua and Python read and write the same bytes, and compute the same numbers, to the last bit."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memories import HALF_LIFE, Keys, Mirror, as_float32, find, note_spec, put, record

from omoide.connection import Connection
from omoide.core import bm25, columns, confidence, decay, postings
from omoide.core.text import cues
from omoide.model.schema import Scope
from omoide.ops.request import Erase, Evidence, Observe, Put
from omoide.stores.redis.codec import STATISTICS, digest, footprint_list

BASES = st.floats(-2, 1e6, width=32).filter(lambda base: base > 1e-30 or base <= 0)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def words(connection: Connection, scope: Scope, keys: Keys, term: str) -> tuple[postings.Tail, bytes]:
    """The tail of a term and every posting it has, as stored."""
    data = keys.redis.hget(keys.name(scope, "t"), term)
    tail = postings.Tail.parse(data)
    sealed = b"".join(
        keys.redis.hget(keys.name(scope, "s"), f"{term}:{number}")
        for number in range(-(-tail.sealed * postings.SEAL // postings.SEGMENT))
    )
    assert len(sealed) == tail.sealed * postings.SEAL * 4
    assert tail.pack() == data
    return tail, sealed + tail.postings


def test_an_attribute_row(connection: Connection, scope: Scope, keys: Keys) -> None:
    connection.store.execute(put(scope, "0", "nothing", session="other"))
    connection.store.execute(
        put(
            scope,
            "1",
            "one two two",
            importance=0.7,
            time_ms=1_700_000_000_123,
            confidence=0.25,
            session="s",
            author="w",
            cues=cues.TIME | cues.NUMBER,
            suspect=True,
        )
    )
    column = keys.redis.get(keys.name(scope, "a"))
    expected = columns.pack(
        flags=cues.TIME | cues.NUMBER | columns.SUSPECT,
        confidence=0.25,
        length=3,
        importance=0.7,
        session=2,
        author=3,
        version=1,
        time=1_700_000_000_123,
    )
    assert column[64:] == expected
    assert columns.unpack(column, 64).importance == as_float32(0.7)
    connection.store.execute(Erase(scope, ("1",)))
    assert keys.redis.get(keys.name(scope, "a"))[64:] == b"\1" + bytes(31)


def test_an_interval_row(connection: Connection, keys: Keys) -> None:
    scope = Scope(note_spec(ttl=60), ("a",))
    connection.store.execute(put(scope, "1", "stays"))
    connection.store.execute(put(scope, "2", "goes", ttl_ms=60_000))
    expires = record(connection, scope, "2").expires_ms
    assert keys.redis.get(keys.name(scope, "w"))[24:] == bytes(24) + struct.pack(
        columns.INTERVAL, expires, 0, 0
    )


def test_a_footprint(connection: Connection, scope: Scope, keys: Keys) -> None:
    write = put(
        scope, "1", "one two", session="s", entities=("Bob",), tags=("x",), operation_id="first", cap=1
    )
    connection.store.execute(put(scope, "0", "goes"))
    connection.store.execute(write)
    data = keys.redis.hget(keys.name(scope, "f"), 2)
    assert data[:11] == digest("first") + struct.pack("<HB", 1, 0)
    assert data[11:13] == b"\x011"
    assert msgspec.msgpack.decode(data[13:]) == [["one", "two", "\1tag\2x"], [], "s", None, ["Bob"]]
    assert footprint_list(data) == msgspec.msgpack.decode(data[13:])


def test_a_footprint_of_a_uuid_that_was_written_before(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    name = "0192f0c4-7a1b-7c3d-8e4f-0123456789ab"
    for operation in ("first", "second"):
        connection.store.execute(put(scope, name, "one", operation_id=operation))
    data = keys.redis.hget(keys.name(scope, "f"), 2)
    assert data[:11] == digest("second") + struct.pack("<HB", 0, 1)
    assert data[11:21] == digest("first") + struct.pack("<H", 0)
    assert data[21:38] == b"\0" + bytes.fromhex(name.replace("-", ""))
    assert footprint_list(data)[0] == ["one"]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 128, 129, 1024, 1025, 1089])
def test_postings_of_any_number(count: int, connection: Connection, scope: Scope, keys: Keys) -> None:
    writes = [put(scope, f"{row}", " ".join(["fish"] * (row % 13 + 1))) for row in range(1, count + 1)]
    for write in writes:
        connection.store.execute(write)
    expected = [(row, postings.code(row % 13 + 1, row % 13 + 1)) for row in range(1, count + 1)]
    tail, data = words(connection, scope, keys, "fish")
    assert data == postings.encode(expected)
    assert tail.sealed == (count - 1) // 64
    assert tail.last == tail.sealed * 64
    assert (tail.count, tail.df) == (count, count)
    gone = sorted({1, count // 2 + 1, count})[: count - 1]
    connection.store.execute(Erase(scope, tuple(map(str, gone))))
    tail, data = words(connection, scope, keys, "fish")
    assert data == postings.encode((0, 0) if row in gone else (row, code) for row, code in expected)
    assert (tail.count, tail.df) == (count, count - len(gone))


@pytest.mark.parametrize(
    ("k1", "b", "pivot"), [(1.2, 0.9, 32), (1.2, 0.75, None), (2.0, 0.0, 1), (0.5, 1.0, 100)]
)
def test_weights_and_idf_agree_to_the_last_bit(
    k1: float, b: float, pivot: int | None, mirror: Callable[..., Mirror]
) -> None:
    held = mirror(k1=k1, b=b, pivot=pivot)
    for number in range(60):
        length = max(1, round(1.17**number)) % 3_000
        tf = number % 15 + 1
        held.save(
            f"{number}",
            " ".join(["fish"] * tf + ["cat"] * (number % 3) + ["filler"] * length),
            importance=(number % 7) / 5,
        )
    held.agrees("fish", "fish cat", "filler cat", "cat nothing", limit=60)


def test_one_score_from_its_definition(server_reader: Connection, scope: Scope) -> None:
    server_reader.store.execute(put(scope, "1", "fish fish cat", importance=0.5))
    server_reader.store.execute(put(scope, "2", "dog", importance=0.5))
    text = bm25.idf(1, 2) * bm25.weight(2, 3)
    assert find(server_reader, scope, "fish") == [
        ("1", text * (0.85 + 0.15 * 0.5) * (0.8 + 0.2 * (32768 / 65535)))
    ]


@QUICK
@given(base=BASES)
def test_the_decay_order(base: float, connection: Connection, scope: Scope, keys: Keys) -> None:
    connection.store.execute(put(scope, "1", "one", importance=base))
    found = record(connection, scope, "1")
    stored = keys.redis.zscore(keys.name(scope, "d"), found.row)
    assert stored == decay.order_score(as_float32(base), found.time_ms / 1000, HALF_LIFE)
    connection.store.execute(Observe(scope, (Evidence("1", touch=True, access=True),)))
    touched = record(connection, scope, "1").accessed_ms / 1000
    assert keys.redis.zscore(keys.name(scope, "d"), found.row) == decay.order_score(
        as_float32(base), touched, HALF_LIFE
    )
    connection.store.execute(Erase(scope, ("1",)))


@QUICK
@given(outcomes=st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3)), min_size=1, max_size=30))
def test_confidence(
    outcomes: list[tuple[float, float]], connection: Connection, scope: Scope, keys: Keys
) -> None:
    certainty = scope.spec.certainty
    assert certainty is not None
    connection.store.execute(put(scope, "1", "one"))
    row = record(connection, scope, "1").row
    state = confidence.prior(certainty.initial, certainty.prior_weight)
    ups = downs = 0
    for support, against in outcomes:
        connection.store.execute(Observe(scope, (Evidence("1", support, against),)))
        if support or against:
            state = confidence.update(state, support, against, certainty.cap)
        ups, downs = ups + (support > 0), downs + (against > 0)
    data = keys.redis.hget(keys.name(scope, "c"), row)
    if ups or downs:
        assert STATISTICS.unpack(data) == (state.alpha, state.beta, ups, downs, 0, 0)
    stored = columns.unpack(keys.redis.get(keys.name(scope, "a")), row * 32).confidence
    assert stored == columns.stored_confidence(state.mean)
    connection.store.execute(Erase(scope, ("1",)))


def test_a_body_is_sorted_by_name(connection: Connection, scope: Scope, keys: Keys) -> None:
    values: Mapping[str, object] = {"z": 1, "id": "1", "a": [None, 1.5, "é\0"], "b": b"\xff"}
    connection.store.execute(Put(scope, "1", values))
    body = keys.redis.hget(keys.name(scope, "r"), 1)
    assert body == msgspec.msgpack.encode({name: values[name] for name in sorted(values)})
    assert record(connection, scope, "1").values == values
