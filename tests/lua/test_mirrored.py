"""What authoritative rows say is set as it is: in order, once, and in bulk with the same bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from memories import Keys, note_spec, put, row_of

from omoide.connection import Connection
from omoide.errors import StoreError
from omoide.model.schema import Scope
from omoide.ops.request import (
    Adopt,
    Applied,
    Apply,
    BeginRestore,
    Changes,
    Check,
    Count,
    LoadRows,
    RowState,
    Span,
)


def rows(scope: Scope, count: int, first: int = 1) -> tuple[RowState, ...]:
    words = ("the cat likes fish", "the dog likes meat", "rain " * 70, "the cow")
    return tuple(
        row_of(
            put(
                scope,
                f"id-{number}",
                f"{words[number % 4]} n{number}",
                session=("s", None)[number % 2],
                author=("w", "v", None)[number % 3],
                entities=("Bob", "Ann")[: number % 3],
                unique=(number.to_bytes(16, "big"),) if number % 5 == 0 else (),
                tags=("x",) if number % 2 else (),
                confidence=0.7 if number % 7 == 0 else None,
            )
        )
        for number in range(first, first + count)
    )


def test_only_what_comes_next_is_applied(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    one, two, three = rows(scope, 3)
    assert execute(Apply(scope, 7, 7, Changes((one,)))) == -1
    assert execute(Applied(scope)) is None
    assert execute(Apply(scope, 7, 7, Changes((one,)), begins=True)) == 7
    assert execute(Apply(scope, 9, 9, Changes((three,)))) == 7
    assert execute(Apply(scope, 8, 8, Changes((two,)))) == 8
    assert execute(Apply(scope, 8, 8, Changes(erased=("id-1",)))) == 8
    assert execute(Apply(scope, 6, 9, Changes((three,)))) == 9
    assert execute(Count(scope)) == 3
    assert execute(Applied(scope)) == 9


def test_a_dropped_partition_takes_nothing_old(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    (one,) = rows(scope, 1)
    execute(Apply(scope, 7, 7, Changes((one,), counters=(("mine", 3),)), begins=True))
    assert execute(Apply(scope, 8, 8, Changes(drops=True))) == 8
    assert not keys.dump()
    assert execute(Apply(scope, 7, 7, Changes((one,)))) == -1
    execute(Apply(scope, 20, 20, Changes((one,)), begins=True))
    assert execute(Apply(scope, 8, 8, Changes(drops=True))) == 20
    assert execute(Count(scope)) == 1


def test_evidence_of_a_record_that_is_not_there_changes_nothing(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    one, two = rows(scope, 2)
    connection.store.execute(Apply(scope, 7, 7, Changes((one,)), begins=True))
    before = keys.dump()
    with pytest.raises(StoreError):
        connection.store.execute(Apply(scope, 8, 8, Changes(states=(one, two))))
    assert keys.dump() == before


def versions(scope: Scope, count: int) -> tuple[RowState, ...]:
    """Rows of three kinds: of a chain, with an end of their own, and neither."""
    found = []
    for number, row in enumerate(rows(scope, count)):
        chain = "k" + f"{number % 5:-<16}" if number % 3 == 0 else None
        following = number + 15 if chain and number + 15 < count else None
        own = number + 7 if number % 4 == 0 else None
        end = min((one for one in (following, own) if one is not None), default=None)
        write = put(scope, row.id, "the cat likes fish")
        found.append(row_of(write, Span(number, end, own, chain)))
    return tuple(found)


@pytest.mark.parametrize("dated", [False, True], ids=["plain", "dated"])
@pytest.mark.parametrize("page", [1, 7, 200])
def test_a_bulk_load_leaves_what_single_writes_leave(
    page: int, dated: bool, connection: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    if dated:
        scope = replace(scope, spec=note_spec(validity=True))
    held = versions(scope, 200) if dated else rows(scope, 200)
    for number, row in enumerate(held):
        execute(Apply(scope, 1 + number, 1 + number, Changes((row,)), begins=not number))
    by_one = told(keys)
    execute(BeginRestore(scope, "token"))
    step = 1
    for start in range(0, len(held), page):
        load = LoadRows(scope, "token", held[start : start + page], start + 1, step)
        step = execute(load)
        before = keys.dump()
        assert execute(load) == step
        assert keys.dump() == before
    assert execute(Adopt(scope, "token", 200)) == 200
    in_bulk = told(keys)
    assert in_bulk == by_one
    assert execute(Check(scope)).findings == ()


@pytest.mark.parametrize("page", [100, 1_300])
def test_a_bulk_load_seals_lists_where_single_writes_do(
    page: int, connection: Connection, scope: Scope, keys: Keys
) -> None:
    execute = connection.store.execute
    held = tuple(row_of(put(scope, f"id-{n}", "always" + " often" * (n % 5 > 0))) for n in range(1_300))
    for start in range(0, len(held), 100):
        execute(Apply(scope, start + 1, start + 100, Changes(held[start : start + 100]), begins=not start))
    by_one = told(keys)
    assert len(by_one[keys.name(scope, "s").encode()][2]) == 3  # always:0, always:1, often:0
    execute(BeginRestore(scope, "token"))
    step = 1
    for start in range(0, len(held), page):
        step = execute(LoadRows(scope, "token", held[start : start + page], start + 1, step))
    assert execute(Adopt(scope, "token", 1_300)) == 1_300
    assert told(keys) == by_one


def test_a_load_that_is_not_the_next_is_refused(connection: Connection, scope: Scope, keys: Keys) -> None:
    execute = connection.store.execute
    one, two = rows(scope, 2)
    execute(BeginRestore(scope, "token"))
    before = keys.dump()
    with pytest.raises(StoreError, match="given up"):
        execute(LoadRows(scope, "token", (two,), 2, 2))
    assert keys.dump() == before
    step = execute(LoadRows(scope, "token", (one,)))
    assert step == 4  # of the records, of their terms, of the entities
    assert execute(LoadRows(scope, "token", (two,), 2, step)) > step


def told(keys: Keys) -> dict[Any, Any]:
    """All keys but the head, without what room was made for."""
    dump = {name: held for name, held in keys.dump().items() if not name.endswith(b":h")}
    return {
        name: held if not name.endswith((b":a", b":w")) else (held[0], held[1], [held[2][0].rstrip(b"\0")])
        for name, held in dump.items()
    }


def test_a_rebuild_is_one_of_its_name(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    (one,) = rows(scope, 1)
    execute(BeginRestore(scope, "first"))
    execute(BeginRestore(scope, "second"))
    for request in (
        LoadRows(scope, "first", (one,)),
        Adopt(scope, "first", 1),
    ):
        with pytest.raises(StoreError, match="given up"):
            execute(request)
    assert execute(Apply(scope, 1, 1, Changes((one,)), token="first")) == -1
    execute(LoadRows(scope, "second", (one,)))
    assert execute(Count(scope)) == 0
    assert execute(Adopt(scope, "second", 5, (("mine", 2),))) == 1
    assert execute(Applied(scope)) == 5


def test_a_copy_does_not_take_the_place_of_what_shows_more(connection: Connection, scope: Scope) -> None:
    execute = connection.store.execute
    one, two = rows(scope, 2)
    execute(Apply(scope, 7, 7, Changes((one,)), begins=True))
    execute(BeginRestore(scope, "token"))
    execute(LoadRows(scope, "token", (one,)))
    execute(Apply(scope, 8, 8, Changes((two,))))
    assert execute(Adopt(scope, "token", 7)) == -1
    assert execute(Count(scope)) == 2
    execute(Apply(scope, 8, 8, Changes((two,)), token="token"))
    assert execute(Adopt(scope, "token", 8)) == 2
    execute(BeginRestore(scope, "token"))
    assert execute(Adopt(scope, "token", 7, force=True)) == 0
    assert execute(Applied(scope)) == 7
