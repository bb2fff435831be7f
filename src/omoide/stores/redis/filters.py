"""The filters of a search or a listing, as a cache of posting lists and columns applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omoide.core.columns import Ranges
from omoide.core.postings import exact_term
from omoide.ops.request import Match
from omoide.stores.redis.cache import Partition

if TYPE_CHECKING:
    from omoide.core.columns import Rows


def must(match: Match) -> list[str]:
    """The equality terms that all have to hold."""
    return [exact_term(name, value).decode() for name, value in match.exact]


def ranges_of(match: Match) -> Ranges | None:
    """The ranges that have to hold, None for none."""
    if match.time is None and match.importance is None and match.confidence is None:
        return None
    return Ranges(match.time, match.importance, match.confidence)


def allowed_rows(partition: Partition, match: Match) -> Rows | None:
    """Rows that hold every equality term, sorted; None without such a filter."""
    if not match.exact:
        return None
    import numpy as np

    allowed: Rows | None = None
    for name in must(match):
        held = partition.held(name)
        rows = np.zeros(0, np.int64) if held is None else held.as_terms(1.0, name).rows
        allowed = rows if allowed is None else np.intersect1d(allowed, rows, assume_unique=True)
    return allowed
