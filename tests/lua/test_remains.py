"""A record with more terms than one command takes out goes at once, its postings in the commands after."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Generator, Mapping
from typing import Any

import faults
import pytest
from memories import Keys, Mirror, copy_page, find, note_spec, put, rebuild, row_of
from situations import SITUATIONS
from test_faults import attempt

import budgets
from omoide.connection import Connection
from omoide.errors import StoreError
from omoide.model.schema import Scope
from omoide.ops.request import (
    Apply,
    BeginReindex,
    Changes,
    Check,
    Count,
    Erase,
    FinishReindex,
    Page,
    Prune,
    Search,
)
from omoide.stores.redis import calls, sweeping, writes

LONG = " ".join(f"w{number}" for number in range(1_000))
OTHER = " ".join(f"v{number}" for number in range(1_000))
WORDS = [f"{first}{second}" for first in "bdfgk" for second in "aeiou"]


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets.die_before_sweeping(monkeypatch)


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets.use_small(monkeypatch)


def remains(keys: Keys, scope: Scope, head: str = "h") -> bytes:
    held = keys.redis.hget(keys.name(scope, head), "remains")
    return bytes(held or b"")


def fields(keys: Keys, scope: Scope) -> dict[str, int]:
    """Entries of the keys that know of terms and records."""
    return {letter: int(keys.redis.hlen(keys.name(scope, letter))) for letter in "tsrmf"}


# ---- what a client does


def test_an_ordinary_record_goes_in_one_round_trip(connection: Connection, keys: Keys, scope: Scope) -> None:
    execute, text = connection.store.execute, " ".join(f"w{number}" for number in range(256))
    execute(put(scope, "1", text))
    before = connection.round_trips
    execute(put(scope, "1", text.replace("w", "v")))
    assert (connection.round_trips - before, remains(keys, scope)) == (1, b"")
    execute(Erase(scope, ("1",)))
    assert connection.round_trips - before == 2
    assert fields(keys, scope) == dict.fromkeys("tsrmf", 0)


def test_a_long_one_takes_one_more(connection: Connection, keys: Keys, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", LONG))
    execute(put(scope, "2", "w1 w2 cat"))
    for text in (OTHER, LONG):
        before = connection.round_trips
        execute(put(scope, "1", text))
        assert connection.round_trips - before == 2
        assert (remains(keys, scope), fields(keys, scope)["f"]) == (b"", 2)
        assert execute(Check(scope)).findings == ()
    before = connection.round_trips
    assert execute(Erase(scope, ("1",))) == (True,)
    assert connection.round_trips - before == 2
    assert fields(keys, scope) == {"t": 3, "s": 0, "r": 1, "m": 1, "f": 1}
    assert execute(Check(scope)).findings == ()


def test_no_command_takes_out_more_than_its_budget(
    connection: Connection, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    send = sweeping.send

    def noted(made: Any) -> Any:
        sent.extend(call.verb for call in made)
        return send(made)

    monkeypatch.setattr(sweeping, "send", noted)
    for name in "1234":
        connection.store.execute(put(scope, name, LONG))
    connection.store.execute(Erase(scope, tuple("1234")))
    assert sent == ["sweep"] * 7  # 4,000 postings, of which the erasure takes 512


def test_the_cache_of_the_writer_stays_current(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", "w1 cat"))
    execute(put(scope, "2", LONG))
    search = Search(scope, {"w1": 1.0, "w9": 1.0}, 5)
    assert len(execute(search).hits) == 2
    execute(put(scope, "2", OTHER))
    before = connection.round_trips
    assert [hit.record.id for hit in execute(search).hits] == ["1"]
    assert connection.round_trips - before == 1


@pytest.mark.usefixtures("dying")
@pytest.mark.parametrize("finish", ["save", "prune", "erase"])
def test_a_later_write_goes_on(connection: Connection, keys: Keys, scope: Scope, finish: str) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", LONG))
    execute(put(scope, "1", OTHER))
    assert remains(keys, scope) != b""
    go_on: dict[str, Callable[[int], Any]] = {
        "save": lambda number: put(scope, f"new {number}", "cat"),
        "prune": lambda number: Prune(scope, 64),
        "erase": lambda number: Erase(scope, ("nobody",)),
    }
    steps = 0
    while remains(keys, scope) and steps < 5:
        execute(go_on[finish](steps))
        steps += 1
    assert steps == 2
    assert fields(keys, scope)["f"] == execute(Count(scope))
    assert execute(Check(scope)).findings == ()


@pytest.mark.usefixtures("dying")
def test_a_mirror_goes_on(connection: Connection, keys: Keys) -> None:
    scope, execute = Scope(note_spec(), ("a",)), connection.store.execute
    apply = Apply(scope, 1, 1, begins=True, changes=Changes(rows=(row_of(put(scope, "1", LONG)),)))
    assert execute(apply) == 1
    assert execute(Apply(scope, 2, 2, begins=False, changes=Changes(erased=("1",)))) == 2
    assert len(remains(keys, scope)) == 12
    assert (
        execute(Apply(scope, 3, 3, begins=False, changes=Changes(rows=(row_of(put(scope, "2", "cat")),))))
        == 3
    )
    assert remains(keys, scope) == b""
    assert fields(keys, scope) == {"t": 1, "s": 0, "r": 1, "m": 1, "f": 1}


def test_a_mirror_sweeps(connection: Connection, keys: Keys) -> None:
    scope, execute = Scope(note_spec(), ("a",)), connection.store.execute
    execute(Apply(scope, 1, 1, begins=True, changes=Changes(rows=(row_of(put(scope, "1", f"{LONG} cat")),))))
    execute(Apply(scope, 2, 2, begins=False, changes=Changes(rows=(row_of(put(scope, "1", "cat")),))))
    assert remains(keys, scope) == b""
    assert fields(keys, scope) == {"t": 1, "s": 0, "r": 1, "m": 1, "f": 1}


def test_a_long_record_of_a_mirror_goes_in_by_parts(
    connection: Connection, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    send = calls.send

    def noted(made: Any) -> Any:
        sent.extend(call.verb for call in made)
        return send(made)

    scope, execute = Scope(note_spec(), ("a",)), connection.store.execute
    execute(Apply(scope, 1, 1, begins=True, changes=Changes(rows=(row_of(put(scope, "0", "w1 cat")),))))
    long = Apply(scope, 2, 2, changes=Changes(rows=(row_of(put(scope, "1", LONG)),)))
    monkeypatch.setattr(calls, "send", noted)
    assert execute(long) == 2
    assert sent == ["stage", "stage", "apply"]
    assert execute(long) == 2  # what is staged for nothing goes again
    assert execute(Apply(scope, 9, 9, changes=long.changes)) == 2
    assert remains(keys, scope) == b""
    assert execute(Check(scope)).findings == ()
    assert [hit.record.id for hit in execute(Search(scope, {"w999": 1.0}, 5)).hits] == ["1"]


# ---- what readers see meanwhile


@pytest.mark.usefixtures("dying", "small_budget")
@pytest.mark.parametrize("seed", range(12))
def test_no_reader_counts_what_is_gone(
    mirror: Callable[..., Mirror], keys: Keys, seed: int, connection: Connection
) -> None:
    """Both readers agree with the oracle after every write, however much is still to be taken out."""
    rng, held = random.Random(seed), mirror()
    left = 0
    for step in range(40):
        if held.documents and rng.random() < 0.3:
            held.erase(rng.choice(sorted(held.documents)))
        else:
            name = rng.choice("abcdefgh")
            text = " ".join(rng.choices(WORDS, k=rng.choice((3, 12, 30))))
            held.save(name, text, time_ms=1_700_000_000_000 + step)
        left += remains(keys, held.scope) != b""
        held.agrees(" ".join(rng.sample(WORDS, 4)), rng.choice(WORDS))
    assert left > 5


@pytest.mark.usefixtures("dying", "small_budget")
def test_a_rebuild_takes_nothing_of_it_along(connection: Connection, keys: Keys, scope: Scope) -> None:
    execute = connection.store.execute
    for name in "123":
        execute(put(scope, name, " ".join(WORDS[:12])))
    state = execute(BeginReindex(scope))
    for found in execute(Page(scope, state.cursor, 10)).records:  # one by one: no part comes between others
        copy_page(connection, scope, state.token, [found])
    execute(put(scope, "1", " ".join(WORDS[8:20])))
    execute(Erase(scope, ("2",)))
    assert len(remains(keys, scope)) == 24
    assert len(remains(keys, scope, "~h")) == 24  # the new version of the first is too long for both
    assert execute(FinishReindex(scope, state.token)) == 2
    assert execute(Check(scope)).findings == ()
    for _ in range(5):
        execute(Prune(scope, 64))
    assert remains(keys, scope) == b""
    assert fields(keys, scope)["f"] == 2
    assert execute(Check(scope)).findings == ()


@pytest.mark.usefixtures("dying", "small_budget")
def test_a_list_is_dropped_and_filled_again_meanwhile(
    mirror: Callable[..., Mirror], connection: Connection, keys: Keys
) -> None:
    held, words = mirror(), " ".join(WORDS[:12])
    for _ in range(6):
        held.save("1", words)
        held.agrees(words)
        held.erase("1")
        held.agrees(words)
    for _ in range(20):
        connection.store.execute(Prune(held.scope, 64))
    held.agrees(words)
    assert fields(keys, held.scope) == dict.fromkeys("tsrmf", 0)


# ---- failures


@pytest.mark.usefixtures("dying")
def test_any_number_of_terms_is_counted(connection: Connection, keys: Keys, scope: Scope) -> None:
    execute = connection.store.execute
    execute(put(scope, "1", " ".join(f"w{number}" for number in range(66_000))))
    assert execute(Erase(scope, ("1",))) == (True,)
    assert struct.unpack("<III", remains(keys, scope)) == (1, 512, 66_000)
    assert execute(Check(scope)).findings == ()


@pytest.mark.parametrize("damage", ["lost", "unreadable", "shorter"])
def test_a_damaged_footprint_is_told_of_and_a_rebuild_mends_it(
    connection: Connection, keys: Keys, scope: Scope, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    execute, name = connection.store.execute, keys.name(scope, "f")
    execute(put(scope, "1", "w1 cat"))
    execute(put(scope, "2", LONG))
    with monkeypatch.context() as patch:
        budgets.die_before_sweeping(patch)
        execute(Erase(scope, ("2",)))
    if damage == "lost":
        keys.redis.hdel(name, "2")
    else:
        keys.redis.hset(name, "2", b"?" if damage == "unreadable" else keys.redis.hget(name, "1"))
    (finding,) = execute(Check(scope)).findings
    assert (
        finding
        == {
            "lost": ("erased records without a footprint", 1),
            "unreadable": ("footprints that cannot be read", 1),
            "shorter": ("wrong numbers of terms of erased records", 1),
        }[damage]
    )
    assert rebuild(connection, scope) == 1
    assert execute(Check(scope)).findings == ()
    assert [name for name, _ in find(connection, scope, "w1")] == ["1"]


TAKING_OUT = [name for name in SITUATIONS if name.startswith(("erase", "prune", "save", "apply"))]


@pytest.mark.usefixtures("one_server", "small_budget")
@pytest.mark.parametrize("rebuilding", [False, True])
def test_a_fault_in_any_call_of_a_sweep_changes_nothing(
    connection: Connection, keys: Keys, scope: Scope, monkeypatch: pytest.MonkeyPatch, rebuilding: bool
) -> None:
    execute = connection.store.execute
    execute(put(scope, "0", "ba be cat"))
    execute(put(scope, "1", " ".join(WORDS)))
    if rebuilding:
        state = execute(BeginReindex(scope))
        copy_page(connection, scope, state.token, execute(Page(scope, state.cursor, 10)).records)
    with monkeypatch.context() as patch:
        budgets.die_before_sweeping(patch)
        execute(Erase(scope, ("1",)))
    monkeypatch.setattr(calls, "load", faults.frugal)
    call = calls.Call("sweep", keys.name(scope, "h").encode())

    def attempt() -> Any:
        (reply,) = connection.store._drive(calls.send([call]))  # type: ignore[attr-defined]
        return reply

    places = 0
    for _ in range(12):
        place, reply = 1, None
        while not isinstance(reply, int):
            faults.fail_at(keys.redis, place)
            before = keys.dump()
            reply = attempt()
            if not isinstance(reply, int):
                assert keys.dump() == before, f"call {place}"
            place += 1
        places = max(places, place)
        if reply == 0:
            break
    assert (reply, places > 8) == (0, True)
    faults.fail_at(keys.redis, 0)
    assert remains(keys, scope) == b""
    assert execute(Check(scope)).findings == ()


@pytest.mark.usefixtures("one_server", "dying")
@pytest.mark.parametrize("name", TAKING_OUT)
def test_a_fault_in_a_write_that_leaves_some_changes_nothing(
    name: str, connection: Connection, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "load", faults.frugal)
    faults.fail_at(keys.redis, 0)
    request = SITUATIONS[name](connection, keys)
    before, place, failed = keys.dump(), 1, True
    while failed:
        faults.fail_at(keys.redis, place)
        failed = attempt(connection, request) is not None
        if failed:
            assert keys.dump() == before, f"call {place}"
            place += 1
    assert place > 3
    assert keys.dump() != before
    assert connection.store.execute(Check(request.scope)).findings == ()


def test_an_erasure_that_cannot_sweep_is_told_and_may_be_repeated(
    connection: Connection, keys: Keys, scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = connection.store.execute
    for name in "12":
        execute(put(scope, name, f"{LONG} {OTHER}"))
    denied = StoreError("denied")

    def failing(left: Mapping[bytes, int]) -> Generator[Any, Any, dict[bytes, Any]]:
        yield from ()
        return {head: denied for head, count in left.items() if count}

    with monkeypatch.context() as patch:
        patch.setattr(writes, "swept", failing)
        with pytest.raises(StoreError, match="denied"):
            execute(Erase(scope, ("1",)))
        assert execute(put(scope, "2", "cat")).status == "stored"
    assert remains(keys, scope) != b""
    assert execute(Erase(scope, ("1",))) == (False,)
    assert remains(keys, scope) == b""
    assert fields(keys, scope) == {"t": 1, "s": 0, "r": 1, "m": 1, "f": 1}
