"""No call looks at more than its budget, and what goes on after it loses nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from memories import Keys, note_spec, put, record

from omoide.connection import Connection
from omoide.lua import load
from omoide.model.schema import DecayIndex, Scope
from omoide.ops.load import decay_rank
from omoide.ops.request import (
    Batch,
    Check,
    Deliver,
    Erase,
    Evidence,
    Find,
    Get,
    Link,
    Match,
    Observe,
    Page,
    ReadTurn,
    Record,
    Spread,
    Top,
)
from omoide.stores.redis.codec import relevance

BODY = "n" * 65_000
_EXPIRE_BUT = """
for _, row in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if row ~= ARGV[1] then redis.call('ZADD', KEYS[1], 1, row) end
end
"""


def fill(connection: Connection, scope: Scope, writes: list[Any]) -> None:
    for start in range(0, len(writes), 1000):
        connection.store.execute(Batch(tuple(writes[start : start + 1000])))


def listed(connection: Connection, scope: Scope, size: int = 500) -> list[Record]:
    found: list[Record] = []
    cursor = ""
    while True:
        page = connection.store.execute(Page(scope, cursor, size))
        found += page.records
        cursor = page.cursor
        if not cursor:
            return found


def power_law(scope: Scope, exponent: float) -> Scope:
    decay = DecayIndex("relevance", "importance", 1.0, 86_400.0, exponent)
    return Scope(replace(scope.spec, decay=decay), scope.values)


# ---- expired, and not yet erased


def test_many_expired_records_hide_none_that_is_left(connection: Connection, keys: Keys) -> None:
    scope = Scope(note_spec(ttl=3600.0), ("a",))
    fill(connection, scope, [put(scope, str(n), ttl_ms=3_600_000) for n in range(5000)])
    connection.store.execute(put(scope, "fresh", importance=1e-9, ttl_ms=3_600_000))
    row = record(connection, scope, "fresh").row
    keys.redis.eval(_EXPIRE_BUT, 1, keys.name(scope, "e"), row)
    for weigh in (False, True):
        before = connection.round_trips
        (found,) = connection.store.execute(Top(scope, 1, weigh_confidence=weigh))
        assert found.id == "fresh"
        assert connection.round_trips - before == (5 if weigh else 3)  # 2,048 places a call, or 1,024
    (found,) = connection.store.execute(Top(scope, 1, Match(importance=(None, 0.5))))
    assert found.id == "fresh"
    before = connection.round_trips
    assert [found.id for found in listed(connection, scope)] == ["fresh"]
    assert connection.round_trips - before == 2  # 4,096 expiries a call


# ---- bytes


@pytest.fixture
def bulky(connection: Connection, scope: Scope) -> list[str]:
    """Ids of 40 records of 65 kB."""
    names = [f"{n:02}" for n in range(40)]
    fill(connection, scope, [replace(put(scope, n), values={"id": n, "content": BODY}) for n in names])
    return names


def test_no_answer_has_much_more_than_a_mebibyte_of_bodies(
    connection: Connection, scope: Scope, bulky: list[str], keys: Keys
) -> None:
    head = keys.name(scope, "h")
    gen = keys.redis.hget(head, "gen")
    connection.store.execute(Deliver(scope, "turn", tuple(bulky)))
    asked = {
        "page": (0, 500),
        "records": (gen, 1_048_576, *range(1, 41)),
        "get": ("id", *bulky),
        "top": (40, 0, 1, 0, "", "", "", 0),
        "turn": ("turn",),
    }
    for verb, arguments in asked.items():
        lists = keys.redis.eval(load(verb).source, 1, head, *arguments)
        (records,) = (part for part in lists if isinstance(part, list) and len(part) == 7)
        assert 0 < sum(map(len, records[1])) <= 1_048_576, verb


def test_what_one_answer_leaves_comes_with_the_next(
    connection: Connection, scope: Scope, bulky: list[str]
) -> None:
    execute = connection.store.execute
    execute(Deliver(scope, "turn", tuple(bulky)))
    backwards = tuple(reversed(bulky))
    assert [found.id for found in listed(connection, scope)] == bulky
    assert [found.id for found in execute(Get(scope, backwards)) if found] == list(backwards)
    assert {found.id for found in execute(Top(scope, 40))} == set(bulky)
    assert {found.id for found in execute(Top(scope, 40, Match(importance=(0.0, None))))} == set(bulky)
    assert {found.id for found in execute(ReadTurn(scope, "turn")) or ()} == set(bulky)
    assert len(execute(Find(scope))) == 40


def test_a_record_beyond_the_budget_comes_alone(connection: Connection, scope: Scope) -> None:
    for name in "12":
        huge = {"id": name, "content": "n" * 1_100_000}
        connection.store.execute(replace(put(scope, name), values=huge))
    page = connection.store.execute(Page(scope))
    assert [found.id for found in page.records] == ["1"]
    assert [found.id for found in listed(connection, scope)] == ["1", "2"]


# ---- words


def test_equality_terms_count_among_what_a_call_looks_at(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    fill(connection, scope, [put(scope, str(n), "fish", tags=(f"t{n}",)) for n in range(9000)])
    source, head = load("vocabulary").source, keys.name(scope, "h")
    cursor: Any = b"0"
    words: list[bytes] = []
    calls = 0
    while calls == 0 or cursor != b"0":
        _, _, cursor, found = keys.redis.eval(source, 1, head, cursor, 10_000)
        words += found
        calls += 1
    assert set(words) == {b"fish"}
    assert calls in (2, 3)


# ---- edges


def edges(connection: Connection, scope: Scope, name: str) -> dict[str, float]:
    found = connection.store.execute(Spread(scope, {name: 1.0}, 1, 64, 1.0, 100))
    return {other: round(score / (1 - score), 3) for other, score in found}


def test_linking_many_at_once_is_linking_two_by_two(connection: Connection, scope: Scope) -> None:
    other = Scope(scope.spec, ("b",))
    source = random.Random(7)
    names = [str(n) for n in range(90)]
    for place in (scope, other):
        fill(connection, place, [put(place, name) for name in names])
    for _ in range(400):
        first, second = source.sample(names, 2)
        weight = source.choice((0.5, 1.5, 3.0))
        for place in (scope, other):
            connection.store.execute(Link(place, first, second, weight))
    together = tuple(source.sample(names, 12))
    told = tuple(Evidence(name, 1) for name in together)
    connection.store.execute(Observe(scope, told, linked=together, link=0.25))
    for at, first in enumerate(together):
        for second in together[at + 1 :]:
            connection.store.execute(Link(other, first, second, 0.25))
    for name in names:
        assert edges(connection, scope, name) == edges(connection, other, name)
    assert connection.store.execute(Check(scope)).findings == ()


def test_full_lists_stay_two_sided(connection: Connection, scope: Scope, keys: Keys) -> None:
    names = [str(n) for n in range(120)]
    fill(connection, scope, [put(scope, name) for name in names])
    source = random.Random(11)
    for round_ in range(30):
        together = tuple(source.sample(names, 32))
        told = tuple(Evidence(name, 1) for name in together)
        link = source.choice((0.25, 1.0))
        connection.store.execute(Observe(scope, told, linked=together, link=link))
        assert connection.store.execute(Check(scope)).findings == (), round_
    lists = keys.redis.hvals(keys.name(scope, "g"))
    assert max(map(len, lists)) == 64 * 8
    connection.store.execute(Erase(scope, tuple(names[:16])))
    assert connection.store.execute(Check(scope)).findings == ()


# ---- one order, whatever the way


@pytest.mark.parametrize("exponent", [None, 0.5, 2.0])
@pytest.mark.parametrize("weigh", [False, True])
def test_every_way_to_the_first_records_is_one_order(
    connection: Connection, scope: Scope, keys: Keys, exponent: float | None, weigh: bool
) -> None:
    scope = scope if exponent is None else power_law(scope, exponent)
    source = random.Random(3)
    now = keys.redis.time()[0]
    writes = [
        put(
            scope,
            str(n),
            "fish",
            importance=source.choice((0.0, 1e-9, 0.2, 0.9, 5.0)),
            tags=("x", f"{n % 2}"),
        )
        for n in range(2600)
    ]
    fill(connection, scope, [replace(w, confidence=source.choice((0.05, 0.5, 0.95))) for w in writes])
    if exponent is not None:
        ages = {str(n): now - source.choice((0, 60, 86_400, 86_400 * 400)) for n in range(1, 2601)}
        keys.redis.zadd(keys.name(scope, "d"), ages)
    alike = {str(n): keys.redis.zscore(keys.name(scope, "d"), n + 1) or 0.0 for n in range(1, 60)}
    keys.redis.zadd(keys.name(scope, "d"), alike)
    at = now * 1000 + 1000  # pages come at instants of their own
    everything = [
        replace(one, relevance=relevance(scope.spec, one.order, one.importance, at))
        for one in listed(connection, scope)
    ]
    everything.sort(key=lambda one: decay_rank(one, scope.spec, weigh_confidence=weigh))
    for limit in (1, 10, 300, 600):
        ways = (Match(), Match(exact=(("tag", "x"),)), Match(importance=(-1.0, None)))
        for match in ways:
            found = connection.store.execute(Top(scope, limit, match, weigh))
            assert names_of(found) == names_of(everything[:limit]), match
        half = [one for one in everything if int(one.id) % 2]
        found = connection.store.execute(Top(scope, limit, Match(exact=(("tag", "1"),)), weigh))
        assert names_of(found) == names_of(half[:limit])
        gone = tuple(one.id for one in half[:3])
        match = Match(exact=(("tag", "1"),), exclude=gone)
        found = connection.store.execute(Top(scope, limit, match, weigh))
        assert names_of(found) == names_of(half[3 : 3 + limit])


def names_of(records: Any) -> list[str]:
    return [one.id for one in records]


def test_a_record_carries_its_place_in_the_order(connection: Connection, scope: Scope, keys: Keys) -> None:
    connection.store.execute(put(scope, "1", "fish", importance=0.3))
    found = record(connection, scope, "1")
    assert found.order == keys.redis.zscore(keys.name(scope, "d"), found.row)
