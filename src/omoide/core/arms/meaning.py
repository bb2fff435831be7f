"""What the query means beside its words: one number a memory, added to the share of its text.

    z      = (cosine + near x (cosine of the memory before + after) + far x (of those two away))
             x 1 / (1 + near and far once for each of those that is there)
    worth  = (1 - share) x text / best text  +  share x (z - least z) / (greatest z - least z)

A worth stands where the text stands in the formula of scores (`arms.formula`), before author, date, cue and
multipliers. Least, greatest and best are those of the visible memories that pass the filters; ids that
are left out count among them, so leaving some out changes no other score. A memory without a vector has only
its words; where all z are equal, each memory with a vector has the share in full. Every operation is one
float64 operation in the order written.

z is a mean, not a sum: else a memory without neighbours, at the ends of a session or in none, would be far
from any question beside those that have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.arms.sessions import Links
    from omoide.core.arms.weights import RankWeights
    from omoide.core.columns import Rows

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Meaning:
    """How near the rows of a partition are to a query.

    `cosines` float64[rows], 0 where there is no vector; `held` bool[rows] says where there is one. A memory
    whose own cosine is below `least` gets nothing for its meaning.
    """

    cosines: Floats
    held: NDArray[np.bool_]
    least: float = -1.0


@dataclass(frozen=True, slots=True)
class Fusion:
    """How texts and cosines of one query become worths.

    `values` float64[rows] is what meaning adds: (z - `least`) x `unit`, or `share` where `unit` is 0. A text
    is multiplied by `scale`.
    """

    values: Floats
    least: float
    unit: float
    share: float
    scale: float


def smoothed(meaning: Meaning, links: Links | None, weights: RankWeights) -> Floats:
    """z of every row."""
    import numpy as np

    own = meaning.cosines
    if links is None:
        return own
    before, after = links.before[: len(own)], links.after[: len(own)]
    total, parts = own, np.ones(len(own))
    for share, others in (
        (weights.meaning_near, before),
        (weights.meaning_near, after),
        (weights.meaning_far, before[before]),
        (weights.meaning_far, after[after]),
    ):
        total = total + share * own[others]
        parts += share * meaning.held[others]
    return total * (1.0 / parts)


def fuse(
    meaning: Meaning, links: Links | None, weights: RankWeights, everyone: Rows, best_text: float
) -> Fusion:
    """The fusion for the memories `everyone` (rows), whose best text is `best_text`."""
    import numpy as np

    counted = everyone[meaning.held[everyone]]
    z = smoothed(meaning, links, weights)
    share = weights.meaning
    scale = (1.0 - share) / best_text if best_text > 0 else 0.0
    if not len(counted):
        return Fusion(np.zeros(len(z)), 0.0, 0.0, 0.0, scale)
    least, greatest = float(z[counted].min()), float(z[counted].max())
    unit = share / (greatest - least) if greatest > least else 0.0
    near = meaning.held & (meaning.cosines >= meaning.least)
    values = np.where(near, (z - least) * unit if unit else share, 0.0)
    return Fusion(values, least, unit, share, scale)


__all__ = ["Fusion", "Meaning", "fuse", "smoothed"]
