"""Links: who lends, what is lent, and how the ranking takes it in."""

from __future__ import annotations

import struct

import pytest

from omoide.core.linking import edges_from, lent_by, linked, seeds_of
from omoide.core.ranking import Ranked


def ranked(*scores: float, time: int = 0) -> Ranked:
    """Rows 1, 2, ... of these scores."""
    rows = list(range(1, len(scores) + 1))
    return Ranked(rows, list(scores), list(scores), [time] * len(scores))


@pytest.mark.parametrize(
    ("scores", "seeds"),
    [
        ((), []),
        ((2.0,), [1]),
        ((5.0, 4.0, 3.0, 2.0), [1, 2, 3]),
        ((5.0, 4.0, 4.0, 4.0, 1.0), [1, 2, 3, 4]),
        ((4.0,) * 8, [1, 2, 3, 4, 5, 6, 7, 8]),
        ((4.0,) * 9, []),
        ((9.0, 8.0, *(4.0,) * 7), []),
    ],
)
def test_the_first_three_lend_and_all_that_tie_with_the_last(
    scores: tuple[float, ...], seeds: list[int]
) -> None:
    assert list(seeds_of(ranked(*scores))) == seeds


def test_a_later_time_breaks_a_tie_of_scores() -> None:
    alone = ranked(4.0, 4.0, 4.0, 4.0)
    alone.times = [9, 8, 7, 6]
    assert list(seeds_of(alone)) == [1, 2, 3]


def test_the_strongest_seed_lends_and_names_alone_lend_nothing() -> None:
    lent = lent_by({1: 10.0, 2: 8.0}, {1: ((7, 1.5), (8, 1.0)), 2: ((7, 4.5),)}, 0.5)
    assert (lent[7].seed, lent[7].value) == (2, 0.5 * 0.8 * 8.0)
    assert (lent[8].seed, lent[8].value) == (1, pytest.approx(0.5 * (1 / 3) * 10.0))
    assert lent_by({1: 10.0}, {1: ()}, 0.5) == {}


def test_no_link_is_worth_more_than_the_share_of_the_best() -> None:
    lent = lent_by({1: 10.0}, {1: ((2, 1e9),)}, 0.5)
    assert lent[2].value <= 5.0


def test_edges_are_read_as_they_are_told() -> None:
    assert edges_from(struct.pack("<IfIf", 3, 2.5, 9, 1.0)) == ((3, 2.5), (9, 1.0))
    assert edges_from(b"") == ()


def test_linked_memories_take_their_places_and_the_limit_holds() -> None:
    alone = ranked(10.0, 6.0, 5.0, 4.0)
    lent = lent_by({1: 10.0}, {1: ((4, 2.5), (9, 1.5))}, 0.5)
    found = linked(alone, lent, {9: (0.0, 5, 0.0)}, 3)
    assert found.rows == [1, 4, 2]
    assert found.scores == [10.0, 4.0 + 0.5 * (2 / 3) * 10.0, 6.0]
    assert linked(alone, {}, {}, 2).rows == [1, 2]
    whole = linked(alone, lent, {9: (0.0, 5, 0.0)}, 9)
    assert whole.rows == [1, 4, 2, 3, 9]
    assert whole.texts[-1] == 0.0


def test_what_ties_with_the_last_place_comes_along() -> None:
    found = linked(ranked(5.0, 4.0, 4.0, 4.0), {}, {}, 2)
    assert (found.rows, found.tied) == ([1, 4, 3, 2], 3)
