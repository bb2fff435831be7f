"""Cutting what was committed into changes that the store takes without being held up for long.

    records of a transaction ──by work──▶ parts, a sequence number each ──▶ one Apply each

Work is what a change costs the store: terms of the records it writes, and `RECORD` for any record. Edges and
counters come with the last part, when every record they name is there. Changes of when records are valid stay
one part, so that no reader finds two versions of one key at an instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from omoide.ops.request import Changes, RowState

__all__ = ["WORK", "parts_of", "work_of"]

WORK = 256
"""Most work of one part; a single record may have more."""

RECORD = 16
ERASED = 48
"""An erased record, whose terms are not known here."""


def work_of(changes: Changes) -> int:
    """What changes cost the store."""
    told = RECORD * len(changes.spans) + ERASED * len(changes.erased)
    return sum(map(_work, (*changes.rows, *changes.states))) + told


def parts_of(changes: Changes) -> tuple[Changes, ...]:
    """The same changes in parts of at most `WORK`, one at least; those that take out come first."""
    if changes.spans:
        return (changes,)
    parts = list(_cut(changes)) or [Changes(drops=changes.drops)]
    parts[-1] = replace(parts[-1], edges=changes.edges, counters=changes.counters)
    return tuple(parts)


def _cut(changes: Changes) -> Iterator[Changes]:
    rows: list[Any] = []
    states: list[Any] = []
    erased: list[Any] = []
    work = 0
    weighed: tuple[tuple[list[Any], Any, int], ...] = (
        *((erased, id, ERASED) for id in changes.erased),
        *((rows, row, _work(row)) for row in changes.rows),
        *((states, state, _work(state)) for state in changes.states),
    )
    for held, thing, more in weighed:
        if work and work + more > WORK:
            yield Changes(rows=tuple(rows), states=tuple(states), erased=tuple(erased))
            for kept in (rows, states, erased):
                kept.clear()
            work = 0
        held.append(thing)
        work += more
    if work:
        yield Changes(rows=tuple(rows), states=tuple(states), erased=tuple(erased))


def _work(row: RowState) -> int:
    return RECORD + len(row.codes)
