"""A load is cut so that none of its commands has much to do."""

from __future__ import annotations

from typing import Any

import msgspec

from omoide.ops.request import RowState
from omoide.stores.redis.bulk import BYTES, POSTINGS, RECORDS, TERMS, Packing
from omoide.stores.redis.calls import Call


def row(name: str, terms: list[str], body: bytes = b"body", entities: tuple[str, ...] = ()) -> RowState:
    listed = msgspec.msgpack.encode([terms, [], None, None, entities])
    return RowState(
        id=name,
        body=body,
        operations=b"operated\0\0",
        footprint=bytes((len(name),)) + name.encode() + listed,
        codes=(1,) * len(terms),
        length=len(terms),
        flags=0,
        version=1,
        time_ms=1,
        importance=1.0,
        confidence=0,
        statistics=None,
        order=1.0,
    )


def calls(rows: list[RowState], first: int = 1, step: int = 1) -> list[tuple[Call, dict[str, Any]]]:
    made = list(Packing(b"head", "token", step, "", False).calls(first, rows))
    return [(call, msgspec.msgpack.decode(call.args[0])) for call in made]


def names(listed: list[Any]) -> list[Any]:
    return listed[::2]


def test_records_and_terms_of_a_command_are_bounded() -> None:
    held = [row(f"id-{n}", ["all", f"own-{n}", f"pair-{n // 2}"]) for n in range(2 * RECORDS + 1)]
    made = calls(held, first=1_001, step=7)
    assert [call.verb for call, _ in made] == ["load"] * 3 + ["index"] * 2
    assert [plan["step"] for _, plan in made] == [7, 8, 9, 10, 11]
    loads = [plan for _, plan in made if "rows" in plan]
    assert [plan["rows"] for plan in loads] == [RECORDS, RECORDS, 1]
    assert [plan["first"] for plan in loads] == [1_001, 1_001 + RECORDS, 1_001 + 2 * RECORDS]
    indexed = made[3:]
    assert [len(names(plan["terms"])) for _, plan in indexed] == [TERMS, 1 + 257 + 129 - TERMS]  # each once
    assert sum(len(call.args[1]) for call, _ in indexed) == 4 * 3 * 257


def test_a_record_of_many_terms_is_cut_too() -> None:
    made = calls([row("id", [f"term-{n}" for n in range(2_048)], entities=("ann", "bob"))])
    assert [call.verb for call, _ in made] == ["load"] + ["index"] * 9
    assert [len(names(plan["terms"])) for _, plan in made[1:]] == [TERMS] * 8 + [0]
    assert names(made[-1][1]["entities"]) == ["e:ann", "e:bob"]


def test_bytes_of_a_command_are_bounded_but_for_a_single_record() -> None:
    sizes = [BYTES // 2 - 1_000, BYTES // 2 - 1_000, 2 * BYTES, 10]
    made = calls([row(f"id-{n}", [], bytes(size)) for n, size in enumerate(sizes)])
    assert [plan["rows"] for _, plan in made] == [2, 1, 1]


def test_postings_of_a_command_are_bounded() -> None:
    rows = POSTINGS // 4
    made = calls([row(f"id-{n}", ["all", "each", "last" if n else "first"]) for n in range(rows)])
    indexed = [names(plan["terms"]) for call, plan in made if call.verb == "index"]
    assert indexed == [["all"], ["each"], ["first", "last"]]


def test_nothing_to_load_is_no_command() -> None:
    assert calls([]) == []
