"""Sums over rows: one float64 a row of the partition, filled by the postings of a query's terms.

Accumulators are kept for reuse, all zero, in a pool that threads share by atomic pops and appends; one
that saw an error is not returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.columns import Rows

    Floats = NDArray[np.float64]

_BLOCK = 8
_POOL: deque[Floats] = deque(maxlen=4)
_TABLES: dict[int, tuple[Sequence[float], Floats, float]] = {}


@dataclass(slots=True)
class TermList:
    """The postings of one query term.

    `rows` int64[n], ascending, and `codes` int16[n]; erased rows may still be among them. `df`: live
    memories with the term. `weight`: of the term in the query. `name` labels explanations. `stands_for`:
    the word of the query that no memory holds, when this one stands in for it.
    """

    rows: Rows
    codes: NDArray[np.int16]
    df: int
    weight: float = 1.0
    name: str = ""
    stands_for: str = ""


Weighted = list[tuple[TermList, float]]
"""Terms with their weight in the query."""


def borrow(rows: int) -> Floats:
    """float64[rows], all zero."""
    import numpy as np

    try:
        held = _POOL.pop()
    except IndexError:
        held = np.zeros(0)
    if len(held) < rows:
        held = np.zeros(rows + rows // 4 + 1024)
    return held[:rows]


def give_back(sums: Floats, weighted: Weighted) -> None:
    """Clear what the terms filled, and return it to the pool."""
    if sum(len(term.rows) for term, _ in weighted) * 4 > len(sums):
        sums.fill(0)
    else:
        for term, _ in weighted:
            sums[term.rows] = 0
    _POOL.append(sums if sums.base is None else sums.base)


def add_up(sums: Floats, weighted: Weighted, table: Sequence[float]) -> None:
    """Add weight x weight of every posting to its row.

    Raises:
        IndexError: a row beyond the accumulator.
    """
    import numpy as np

    weights = known(table)[1]
    for term, factor in weighted:
        np.add.at(sums, term.rows, (weights * factor).take(term.codes))


def leading(values: Floats, size: int) -> Rows:
    """Positions of at least the `size` highest values' worth: every value >= one that `size` reach.

    Maxima of blocks of 8 are partitioned instead of all values: an eighth of the work, a bound as valid.
    """
    import numpy as np

    blocks = len(values) // _BLOCK
    if blocks <= size:
        return np.arange(len(values), dtype=np.int64)
    maxima = values[: blocks * _BLOCK].reshape(_BLOCK, blocks).max(axis=0)
    return np.flatnonzero(values >= np.partition(maxima, -size)[-size])


def known(table: Sequence[float]) -> tuple[Sequence[float], Floats, float]:
    """The table, the same as an array, and its maximum; kept while few tables are in use."""
    import numpy as np

    held = _TABLES.get(id(table))
    if held is None or held[0] is not table:
        if len(_TABLES) >= 64:
            _TABLES.clear()
        held = _TABLES[id(table)] = (table, np.array(table, dtype=np.float64), max(table))
    return held
