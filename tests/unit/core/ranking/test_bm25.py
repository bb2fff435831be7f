import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core import bm25, postings

UNIT = 2**20


def whole(x: float) -> bool:
    return (x * UNIT).is_integer()


@given(st.integers(0, 4_000_000), st.integers(0, 4_000_000), st.floats(0, 1))
def test_idf_is_a_multiple_of_the_unit_and_close(first, second, weight):
    df, n = sorted((first, second))
    exact = weight * math.log1p((n - df + 0.5) / (df + 0.5))
    got = bm25.term_weight(df, n, weight)
    assert whole(got)
    assert 0 <= got < 16
    assert abs(got - exact) <= 0.5 / UNIT + 1e-12
    assert bm25.idf(df, n) == bm25.term_weight(df, n, 1.0)


@pytest.mark.parametrize(("pivot", "average"), [(32, 1.0), (60, 1.0), (None, 24.7)])
def test_table_is_the_weight_of_every_code(pivot, average):
    table = bm25.weight_table(1.2, 0.9, pivot, average)
    assert len(table) == postings.CODES
    for code, held in enumerate(table):
        tf, length = postings.tf_of(code), postings.length_of(code)
        assert held == bm25.weight(tf, length, 1.2, 0.9, pivot, average)
        ratio = Fraction(length) / Fraction(average) if pivot is None else Fraction(max(length, pivot), pivot)
        exact = Fraction(22, 10) * tf / (tf + Fraction(12, 10) * (Fraction(1, 10) + Fraction(9, 10) * ratio))
        assert whole(held)
        assert 0 < held <= 2.2
        assert abs(held - exact) <= 0.5 / UNIT + 1e-12


def test_an_absolute_pivot_ignores_the_average_and_short_texts_weigh_alike():
    assert bm25.weight_table(average=99.0) is bm25.weight_table()
    assert bm25.weight(1, 1) == bm25.weight(1, 32) > bm25.weight(1, 33)


def test_sums_of_64_terms_do_not_depend_on_their_order():
    rng = random.Random(5)
    table = bm25.weight_table()
    for _ in range(50):
        products = [bm25.idf(rng.randint(1, 10**6), 10**6) * rng.choice(table) for _ in range(64)]
        exact = sum(map(Fraction, products))
        for _ in range(5):
            rng.shuffle(products)
            assert Fraction(sum(products)) == exact
    assert bm25.EXACT_BELOW == 64 * 16 * 8


def test_levels_are_no_worse_than_they_say():
    for length in range(1, 4000, 7):
        for tf in (1, 2, 5):
            stored = bm25.weight_table()[postings.code(tf, length)]
            assert stored == pytest.approx(bm25.weight(tf, length), rel=0.045)
