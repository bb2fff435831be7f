"""Relevance of a memory: its base score, halved every half-life since the last touch.

    relevance(now) = base * 2 ** (-(now - touched) / H)
    ln relevance   = [ln base + rate * (touched - EPOCH)] - rate * (now - EPOCH),    rate = ln 2 / H

The bracket does not depend on now, so an order kept by it never has to be rescored: it is the
score of the decay ZSET. EPOCH keeps it small, so that float64 resolves microseconds.

A base score <= 0 has no logarithm: it ranks below every positive one, by last touch, and its
relevance is 0.0. The Lua scripts compute the same; if you change a constant here, change it there.

A power law forgets the old more slowly:

    relevance(now) = base * (1 + (2^(1/r) - 1) (now - touched) / H) ** -r

It too starts at the base score and is half of it after H. It has no static order: the order kept is
that of touching, and the best are found newest first (see `top.lua`).
Source: Wixted & Ebbesen 1991, On the form of forgetting.

All instants and durations are seconds. An instant of touch in the future (a skewed clock) gives
more than the base score, up to the largest float.
"""

from __future__ import annotations

import math

from omoide.types import Seconds

EPOCH: Seconds = 1_577_836_800.0
"""2020-01-01T00:00Z."""

LN2 = 0.6931471805599453
NEVER = -1e13
"""Start of the band of base scores <= 0; positive ones stay far above it."""

_BAND = -1e12
_LARGEST = 709.0


def relevance(base: float, age: Seconds, half_life: Seconds) -> float:
    """The decayed base score after `age` seconds; 0.0 for a base score <= 0."""
    if base <= 0.0:
        return 0.0
    return math.exp(min(math.log(base) - LN2 * age / half_life, _LARGEST))


def power_scale(half_life: Seconds, exponent: float) -> Seconds:
    """The time unit of a power law that halves in `half_life`; infinite exponents are no power law."""
    return half_life / (math.pow(2.0, 1.0 / exponent) - 1.0)


def power_relevance(base: float, age: Seconds, half_life: Seconds, exponent: float) -> float:
    """The base score after `age` seconds of forgetting by a power law; 0.0 for a base score <= 0."""
    if base <= 0.0:
        return 0.0
    return base * math.pow(1.0 + max(0.0, age) / power_scale(half_life, exponent), -exponent)


def order_score(base: float, touched: Seconds, half_life: Seconds) -> float:
    """The score of the static decay order: greater is more relevant, at any time."""
    if base <= 0.0:
        return NEVER + touched
    return math.log(base) + LN2 / half_life * (touched - EPOCH)


def relevance_at(score: float, now: Seconds, half_life: Seconds) -> float:
    """The relevance at `now` of an order score: the inverse of `order_score`."""
    if score < _BAND:
        return 0.0
    return math.exp(min(score - LN2 / half_life * (now - EPOCH), _LARGEST))


def touched_at(score: float, base: float, half_life: Seconds) -> Seconds:
    """The instant of touch behind an order score, given its base score."""
    if base <= 0.0:
        return score - NEVER
    return (score - math.log(base)) * half_life / LN2 + EPOCH


__all__ = [
    "EPOCH",
    "LN2",
    "NEVER",
    "order_score",
    "power_relevance",
    "power_scale",
    "relevance",
    "relevance_at",
    "touched_at",
]
