"""From the text of a memory to its score, the same to the last bit in numpy, plain Python and Lua.

    share = rounded(reach x min(1, gate / length))            length of the memory that borrows, in terms
    reach = answer from the memory before when that asks and is not known to be of the same author, else near;
            far from those two away
    used  = max(own, rounded(share x lender's))                per term and memory, lender one or two away
    text  = sum over terms of term_weight x used               exact: see `bm25`
    score = (text x author + date x best text x match) x cue x asking x importance factor x confidence factor

A share and a weight are multiples of 2^-20, so their product is exact before it is rounded to one again;
rounding is monotone, so the strongest lender may be chosen before or after. So `used` is a multiple
of 2^-20 no greater than the table's maximum, or `answer` times that where answer is above 1, and a text
stays an exact sum whatever is borrowed. From the
text on every operation is one float64 operation in the order written, left to right; none may be
contracted or reordered. `best text` is that of the visible memories that pass the filters; ids that are
left out do not change it, so leaving some out changes no other score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omoide.core.bm25 import rounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.arms.weights import RankWeights

    Floats = NDArray[np.float64]

_UNIT = 1048576.0


def share(reach: float, gate: int, length: int) -> float:
    """What a memory of `length` terms borrows of a neighbour's weight, of `reach`; rounded."""
    return rounded(reach * (1.0 if length <= gate else gate / length))


def shares(reach: float | Floats, gate: int, lengths: NDArray[np.uint32]) -> Floats:
    """`share` of every length."""
    import numpy as np

    return rounded_all(reach * np.minimum(1.0, gate / np.maximum(lengths, 1)))


def rounded_all(values: Floats) -> Floats:
    """The nearest multiples of 2^-20, halves up."""
    import numpy as np

    result: Floats = np.floor(values * _UNIT + 0.5) / _UNIT
    return result


def factors(importance: float, confidence: float, weights: RankWeights) -> tuple[float, float]:
    """The two multipliers of a memory, each at most 1; importance is clipped to [0, 1]."""
    clipped = min(max(importance, 0.0), 1.0)
    return (
        (1.0 - weights.importance) + weights.importance * clipped,
        (1.0 - weights.confidence) + weights.confidence * confidence,
    )


def score(
    text: float,
    weights: RankWeights,
    *,
    named: bool = False,
    bonus: float = 0.0,
    match: float = 0.0,
    cue: bool = False,
    asking: bool = False,
    importance: float = 1.0,
    confidence: float = 1.0,
) -> float:
    """The score of one memory. `bonus` is date x best text; `confidence` in [0, 1]."""
    total = text * weights.author if named else text
    if match:
        total = total + bonus * match
    if cue:
        total = total * weights.cue
    if asking:
        total = total * weights.asking
    first, second = factors(importance, confidence, weights)
    return total * first * second
