"""Decay: the static order agrees with the relevance it stands for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.decay import EPOCH, order_score, relevance, relevance_at, touched_at

DAY = 86_400.0
bases = st.floats(1e-6, 1e6)
instants = st.floats(0.0, 4e9)
half_lives = st.floats(3_600.0, 1e9)


def test_halves_every_half_life() -> None:
    assert relevance(8.0, 3 * DAY, DAY) == pytest.approx(1.0)
    assert relevance(8.0, 0.0, DAY) == pytest.approx(8.0)


@pytest.mark.parametrize("base", [0.0, -1.0, -1e300])
def test_without_a_positive_base_relevance_is_zero_and_order_is_by_touch(base: float) -> None:
    assert relevance(base, 0.0, DAY) == 0.0
    early, late = order_score(base, EPOCH, DAY), order_score(base, EPOCH + 1, DAY)
    assert early < late < order_score(1e-300, 0.0, 3_600.0)
    assert relevance_at(late, EPOCH, DAY) == 0.0
    assert touched_at(late, base, DAY) == EPOCH + 1


def test_epoch_is_where_the_order_score_is_the_logarithm() -> None:
    assert order_score(1.0, EPOCH, DAY) == 0.0
    assert order_score(math.e, EPOCH + DAY, DAY) == pytest.approx(1.0 + math.log(2))


@given(bases, instants, half_lives, st.floats(0.0, 1e8))
def test_order_score_and_relevance_agree(base: float, touched: float, half: float, age: float) -> None:
    score = order_score(base, touched, half)
    wanted = relevance(base, age, half)
    assert relevance_at(score, touched + age, half) == pytest.approx(wanted, rel=1e-6, abs=1e-300)
    assert touched_at(score, base, half) == pytest.approx(touched, abs=1e-3 * half / 3_600)


@given(bases, bases, instants, instants, half_lives, st.floats(0.0, 1e8))
def test_order_never_changes(a: float, b: float, s: float, t: float, half: float, later: float) -> None:
    first, second = order_score(a, s, half), order_score(b, t, half)
    now = max(s, t) + later
    if first - second > 1e-6:
        assert relevance_at(first, now, half) >= relevance_at(second, now, half)


def test_a_touch_in_the_far_future_does_not_overflow() -> None:
    assert math.isfinite(relevance(1.0, -1e12, 1.0))
    assert math.isfinite(relevance_at(order_score(1.0, 1e12, 1.0), 0.0, 1.0))
