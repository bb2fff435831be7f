"""How sure a difference is: the bootstrap over questions.

A question is the unit: what was measured of it several times (in several splits) is averaged first, so
that repeating a run makes nothing look surer. The interval holds the middle 95 % of the means of 2,000
samples of as many questions, drawn with replacement from a fixed seed.

Source: Efron 1979; percentile intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

SAMPLES = 2_000
_SEED = 1


class Interval(NamedTuple):
    """A mean and the ends of its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> str:
        """`+` or `-` when the interval leaves out 0, else `0`."""
        return "+" if self.low > 0 else "-" if self.high < 0 else "0"


def interval(values: Sequence[float]) -> Interval:
    """Of the mean of one value a question, at least one; rounded to 4 places.

    Cost: O(SAMPLES x questions).
    """
    import numpy as np

    held = np.asarray(values, dtype=np.float64)
    picks = np.random.default_rng(_SEED).integers(0, len(held), (SAMPLES, len(held)))
    low, high = np.percentile(held[picks].mean(axis=1), [2.5, 97.5])
    return Interval(round(fmean(values), 4), round(float(low), 4), round(float(high), 4))


def per_question(values: Mapping[str, Sequence[float]]) -> list[float]:
    """The mean of each question's values."""
    return [fmean(several) for several in values.values()]
