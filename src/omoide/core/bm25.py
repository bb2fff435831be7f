"""BM25 in exact arithmetic: every reader gets the same score to the last bit.

A text score is a sum of products `idf x weight`. Both factors are rounded to a multiple of 2^-20,
so a product is a multiple of 2^-40, and a float64 (53 bits) holds every sum below 2^13 = 8,192 of
such products without rounding. An exact sum does not depend on its order: numpy, plain Python and
Lua agree bit for bit, equal memories tie exactly, and the parts of a score add up to it.

Room: idf < 16 for any partition (at most 4,177,919 rows) and weight <= k1 + 1, so 64 terms of query
weight 1 stay below 8,192 while k1 <= 7. `ranking` refuses a query beyond that.
Cost of rounding: 2^-21 absolute a factor. A term held by all of more than a million memories has
an idf of 0: it tells nothing, and memories that match nothing else are no matches.

    idf    = ln((n - df + .5) / (df + .5) + 1)                            df of n live memories
    weight = (k1 + 1) tf / (tf + k1 (1 - b + b ratio)),  ratio = max(length, pivot) / pivot
             with pivot None:                            ratio = length / average

An absolute pivot makes a weight independent of all other memories: nothing drifts as a partition
grows. tf and length are the levels of `postings`, so 1,024 weights say everything.

Source: Robertson & Zaragoza 2009, eq. 3.15; the idf with + 1 is Lucene's, never negative.
"""

from __future__ import annotations

import math
from functools import lru_cache

from omoide.core.postings import LENGTH_LEVELS, TF_LEVELS

K1 = 1.2
B = 0.9
PIVOT = 32

EXACT_BELOW = 8192.0
"""Sums of products below this are exact."""


def rounded(value: float) -> float:
    """The nearest multiple of 2^-20, halves up."""
    return math.floor(value * 1048576 + 0.5) / 1048576


def idf(df: int, n: int) -> float:
    """Inverse document frequency of a term that `df` of `n` live memories hold, rounded; >= 0."""
    return term_weight(df, n, 1.0)


def term_weight(df: int, n: int, weight: float) -> float:
    """Query weight x idf, rounded once.

    Evaluation: `x = (n - df + 0.5) / (df + 0.5) + 1`; then `rounded(weight * ln(x))`.

    Args:
        df: Live memories with the term, 0..n.
        n: Live memories.
        weight: Weight of the term in the query, >= 0.
    """
    return rounded(weight * math.log((n - df + 0.5) / (df + 0.5) + 1))


def weight(
    tf: int, length: int, k1: float = K1, b: float = B, pivot: float | None = PIVOT, average: float = 1.0
) -> float:
    """Weight of a term that occurs `tf` times in a memory of `length` terms, rounded; 0..k1 + 1.

    Evaluation, each step in float64: `ratio = max(length, pivot) / pivot` (pivot None:
    `length / average`); `norm = k1 * (1 - b + b * ratio)`; then
    `rounded((k1 + 1) * tf / (tf + norm))`. Operators of equal rank go left to right.

    Args:
        pivot: Length at which normalisation starts; None for textbook BM25.
        average: Mean length of the live memories, > 0; read only when `pivot` is None.
    """
    return rounded((k1 + 1) * tf / (tf + _norm(length, k1, b, pivot, average)))


def weight_table(
    k1: float = K1, b: float = B, pivot: float | None = PIVOT, average: float = 1.0
) -> tuple[float, ...]:
    """The weight of each of the 1,024 posting codes, at index `tf level x 128 + length level`.

    The same arguments give the same object, which readers use to keep derived arrays.
    `average` is ignored unless `pivot` is None. Cost: about 0.2 ms when not cached.
    """
    return _table(float(k1), float(b), pivot, float(average) if pivot is None else 1.0)


@lru_cache(maxsize=64)
def _table(k1: float, b: float, pivot: float | None, average: float) -> tuple[float, ...]:
    norms = [_norm(length, k1, b, pivot, average) for length in LENGTH_LEVELS]
    return tuple(rounded((k1 + 1) * tf / (tf + norm)) for tf in TF_LEVELS for norm in norms)


def _norm(length: int, k1: float, b: float, pivot: float | None, average: float) -> float:
    ratio = length / average if pivot is None else max(length, pivot) / pivot
    return k1 * (1 - b + b * ratio)
