"""The filters of a search or a listing, as a cache of posting lists and columns applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omoide.core.columns import Ranges
from omoide.core.postings import exact_term
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.request import EVERYTHING, Match
from omoide.stores.redis.cache import Partition

if TYPE_CHECKING:
    from omoide.core.columns import Rows


def must(match: Match) -> list[str]:
    """The equality terms that all have to hold."""
    return [exact_term(name, value).decode() for name, value in match.exact]


def instant_of(spec: ModelSpec, match: Match, now_ms: int) -> int | None:
    """The instant whose validity counts, None where none does."""
    if spec.validity is None or match.history:
        return None
    return now_ms if match.as_of is None else match.as_of


def instant_asked(spec: ModelSpec, match: Match = EVERYTHING) -> str | int | None:
    """The same for a script, which has the clock: `now`, milliseconds, or None."""
    if spec.validity is None or match.history:
        return None
    return "now" if match.as_of is None else match.as_of


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


def span_of(partition: Partition, scope: Scope, match: Match, now_ms: int) -> tuple[int, int] | None:
    """The instants at which the same rows are visible as at `now_ms`; None where all are at any time."""
    if not partition.columns.has_intervals:
        return None
    return partition.span(now_ms, clocked=instant_asked(scope.spec, match) == "now")
