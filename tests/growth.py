"""Whether work grows with its input as it should, told by processor time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

ROUNDS = 6


def grows_by(most: float, work: Callable[[str], object], inputs: Sequence[str], *, quick: float) -> bool:
    """Whether each input takes at most `most` times as long as the one before it, or `quick` seconds.

    What else the machine does only adds to a time, so the least of several counts, and more are
    taken while the claim does not hold: work of a higher order fails in every round.
    """
    least = [float("inf")] * len(inputs)
    for _ in range(ROUNDS):
        for place, text in enumerate(inputs):
            start = time.process_time()
            work(text)
            least[place] = min(least[place], time.process_time() - start)
        if all(longer <= max(quick, most * shorter) for shorter, longer in pairwise(least)):
            return True
    return False
