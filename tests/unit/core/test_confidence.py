"""Confidence: exact up to the cap, forgetting beyond it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.confidence import Beta, prior, update

evidence = st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 5.0)), max_size=60)


def test_prior_has_the_mean_it_was_given() -> None:
    state = prior(0.7, 2.0)
    assert state == pytest.approx((1.4, 0.6))
    assert state.mean == pytest.approx(0.7)


def test_mean_is_exact_below_the_cap() -> None:
    state = prior(0.5, 2.0)
    for _ in range(9):
        state = update(state, 1.0, 0.0, 20.0)
    for _ in range(9):
        state = update(state, 0.0, 1.0, 20.0)
    assert state == pytest.approx((10.0, 10.0))
    assert state.mean == pytest.approx(0.5)


def test_beyond_the_cap_each_outcome_weighs_the_same() -> None:
    full = Beta(20.0, 0.0)
    once = update(full, 0.0, 1.0, 20.0)
    assert sum(once) == pytest.approx(20.0)
    assert once.mean == pytest.approx(20 / 21)
    assert update(once, 0.0, 1.0, 20.0).mean == pytest.approx(once.mean * 20 / 21)


def test_what_was_right_a_hundred_times_can_be_unlearnt() -> None:
    state = prior(0.5, 2.0)
    for _ in range(100):
        state = update(state, 1.0, 0.0, 20.0)
    for _ in range(10):
        state = update(state, 0.0, 2.0, 20.0)
    assert state.mean < 0.5


@given(st.floats(0.01, 0.99), evidence)
def test_mean_stays_inside(initial: float, history: list[tuple[float, float]]) -> None:
    state = prior(initial, 2.0)
    for support, against in history:
        before = state.mean
        state = update(state, support, against, 20.0)
        assert 0.0 < state.mean < 1.0
        assert sum(state) <= 20.0 * (1 + 1e-12)
        if against == 0.0:
            assert state.mean >= before - 1e-12
        if support == 0.0:
            assert state.mean <= before + 1e-12
