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

_LEAST_BLOCK = 8
_BLOCKS_PER_VALUE = 8
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


def give_back(sums: Floats, filled: Sequence[Rows]) -> None:
    """Clear the rows that were filled, and return it to the pool."""
    if sum(map(len, filled)) * 4 > len(sums):
        sums.fill(0)
    else:
        for rows in filled:
            sums[rows] = 0
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


def add_up_rows(sums: Floats, weighted: Weighted, table: Sequence[float]) -> Rows:
    """`add_up` in one go, for few postings; the row of each, those of several terms repeated."""
    import numpy as np

    rows = np.concatenate([term.rows for term, _ in weighted])
    worth = known(table)[1].take(np.concatenate([term.codes for term, _ in weighted]))
    start = 0
    for term, factor in weighted:
        end = start + len(term.rows)
        worth[start:end] *= factor
        start = end
    np.add.at(sums, rows, worth)
    return rows


def leading(values: Floats, size: int) -> tuple[Rows, float]:
    """Positions of every value >= one that at least `size` reach, and that value; -inf where it is all.

    Maxima of blocks are partitioned instead of all values, a bound as valid. Eight blocks a value that is
    asked for: a partition mispredicts its branches, so the fewer it compares the better, and the highest
    values still fall into blocks of their own.
    """
    import numpy as np

    block = max(_LEAST_BLOCK, len(values) // (_BLOCKS_PER_VALUE * size))
    blocks = len(values) // block
    if blocks <= size:
        return np.arange(len(values), dtype=np.int64), -np.inf
    maxima = values[: blocks * block].reshape(block, blocks).max(axis=0)
    maxima.partition(blocks - size)
    least = float(maxima[blocks - size])
    return np.flatnonzero(values >= least), least


def known(table: Sequence[float]) -> tuple[Sequence[float], Floats, float]:
    """The table, the same as an array, and its maximum; kept while few tables are in use."""
    import numpy as np

    held = _TABLES.get(id(table))
    if held is None or held[0] is not table:
        if len(_TABLES) >= 64:
            _TABLES.clear()
        held = _TABLES[id(table)] = (table, np.array(table, dtype=np.float64), max(table))
    return held
