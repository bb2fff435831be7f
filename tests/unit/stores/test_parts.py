"""What one transaction changed reaches the store in parts of bounded work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omoide.ops.request import Changes, RowState, Span
from omoide.stores.postgres import outbox
from omoide.stores.postgres.parts import WORK, parts_of, work_of


def row(name: str, terms: int = 0) -> RowState:
    return RowState(
        id=name,
        body=b"",
        operations=b"",
        footprint=b"",
        codes=(1,) * terms,
        length=terms,
        flags=0,
        version=1,
        time_ms=1,
        importance=1.0,
        confidence=0,
        statistics=None,
        order=1.0,
    )


@given(st.lists(st.integers(0, 400), max_size=80), st.integers(0, 80), st.integers(0, 80), st.booleans())
def test_parts_are_bounded_and_together_the_whole(
    terms: list[int], states: int, erased: int, linked: bool
) -> None:
    whole = Changes(
        rows=tuple(row(f"r{place}", count) for place, count in enumerate(terms)),
        states=tuple(row(f"s{place}") for place in range(states)),
        erased=tuple(f"e{place}" for place in range(erased)),
        edges=(("r0", (("r1", 1.0),)),) if linked else (),
        counters=(("mine", 1),),
    )
    parts = parts_of(whole)
    assert tuple(one for part in parts for one in part.rows) == whole.rows
    assert tuple(one for part in parts for one in part.states) == whole.states
    assert tuple(one for part in parts for one in part.erased) == whole.erased
    assert [part.edges for part in parts if part.edges] == [whole.edges] * linked
    assert (parts[-1].edges, parts[-1].counters) == (whole.edges, whole.counters)
    for part in parts:
        assert work_of(part) <= WORK or len(part.rows) + len(part.states) + len(part.erased) == 1


def test_versions_change_together() -> None:
    rows = tuple(row(f"r{place}", 200) for place in range(3))
    whole = Changes(rows=rows, spans=(("r0", Span(1, 9, 5, "k1")),))
    assert parts_of(whole) == (whole,)


def test_what_changes_no_record_is_one_part() -> None:
    assert parts_of(Changes(counters=(("mine", 1),))) == (Changes(counters=(("mine", 1),)),)


def test_entries_that_link_the_same_records_are_one_change() -> None:
    """A new record a commit, each linked with the 16 before it: many commits a step, not one."""
    linked = [[f"{number - back}" for back in range(17)] for number in range(100)]
    entries = [(number, "put", False, [f"{number}"], linked[number], []) for number in range(100)]
    taken = outbox._together(entries)
    assert len(taken) == outbox.RECORDS - 16
    assert len({id for entry in taken for id in (*entry[3], *entry[4])}) == outbox.RECORDS


def test_an_entry_of_many_records_is_taken_alone() -> None:
    entries = [(number, "put", False, [f"{number} {one}" for one in range(70)], [], []) for number in (1, 2)]
    assert outbox._together(entries) == entries[:1]
