"""List and count the rows of a partition that pass filters, in an order of their attributes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omoide.core.columns import Filter
from omoide.errors import QueryError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from omoide.core.columns import Columns, Ranges, Rows


ORDERS = ("time", "importance", "confidence", "valid_from")


@dataclass(slots=True)
class Selected:
    """Rows in order. The page asked for is `rows[skip : skip + limit]` once ties are broken by id.

    Rows before `skip` and beyond `skip + limit` are there because they tie with the page's ends.
    """

    rows: list[int]
    skip: int = 0


def select(
    columns: Columns,
    *,
    limit: int | None,
    offset: int = 0,
    order: str = "time",
    descending: bool = True,
    now_ms: int = 0,
    allowed: Rows | None = None,
    excluded: Collection[int] | Rows = (),
    ranges: Ranges | None = None,
    valid_ms: int | None = None,
) -> Selected:
    """Rows that match, in an order of ORDERS, ties by time, newest first.

    Args:
        limit: Rows; None for all.
        offset: Rows to pass over; they are left out unless they tie with the page's first row.
    Raises:
        QueryError: another order.
    Cost: O(rows), or O(allowed); sorting O(offset + limit).
    """
    import numpy as np

    if order not in ORDERS:
        raise QueryError(f"order is none of {', '.join(ORDERS)}")
    rows = Filter(columns, now_ms, allowed, excluded, ranges, valid_ms).matching()
    keys = columns.column(order)[rows].astype(np.int64 if order in ("time", "valid_from") else np.float64)
    if descending:
        keys = -keys
    end = len(rows) if limit is None else offset + limit
    if end <= offset or offset >= len(rows):
        return Selected([])
    if end < len(rows):
        near = keys <= np.partition(keys, end - 1)[end - 1]
        rows, keys = rows[near], keys[near]
    newest = keys if order == "time" else -columns.time[rows]
    sequence = np.lexsort((newest, keys))
    rows, keys, newest = rows[sequence], keys[sequence], newest[sequence]
    first = _run_start(keys, newest, offset)
    last = _run_end(keys, newest, min(end, len(rows)) - 1)
    return Selected(rows[first:last].tolist(), offset - first)


def count(
    columns: Columns,
    *,
    now_ms: int = 0,
    allowed: Rows | None = None,
    excluded: Collection[int] | Rows = (),
    ranges: Ranges | None = None,
    valid_ms: int | None = None,
) -> int:
    """How many rows match. Cost: O(rows), or O(allowed)."""
    return len(Filter(columns, now_ms, allowed, excluded, ranges, valid_ms).matching())


def _run_start(keys: NDArray[Any], newest: NDArray[Any], position: int) -> int:
    while position > 0 and keys[position - 1] == keys[position] and newest[position - 1] == newest[position]:
        position -= 1
    return position


def _run_end(keys: NDArray[Any], newest: NDArray[Any], position: int) -> int:
    end = position + 1
    while end < len(keys) and keys[end] == keys[position] and newest[end] == newest[position]:
        end += 1
    return end
