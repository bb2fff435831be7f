"""Rank the rows of a partition: exact over all that match, in time of what matters.

    score = (text x author + date x best text x match) x cue x asking x importance factor x confidence factor

`arms.formula` defines it to the last bit. A text is a sum over the query's terms, each with the greatest
of what the memory has itself and what it borrows from its neighbours in the session. To take that maximum
for every row and term would cost fifty times the plain sum. But for every row

    plain sum  <=  text  <=  plain sum + answer x before + near x after + far x (sums two away)

and the other arms have greatest values, so `rank` goes in these steps:

    1. add up the plain sums of all rows in one accumulator: a pass over the postings
    2. bound every score from above: over all rows, or, when the postings are few beside the rows, over
       the rows reached only
    3. score a few rows of the highest bound exactly; the lowest of the first k is the bar
    4. drop what cannot reach the bar, is dead, invisible or filtered out; tighten the bounds of the rest
       by their own author, date, cue and multipliers; score what is left, best bound first, raising the bar

Below `small` postings, when neither neighbours nor dates count, numpy's overhead a call (1 to 5 us)
exceeds the work, and the same is done with a dict. A row with a score of 0 does not match. Order: score,
then time, both descending; the caller breaks what is left by id, and therefore gets every row that ties
with the last place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from operator import itemgetter
from typing import TYPE_CHECKING

from omoide.core.accumulator import TermList, Weighted, add_up, add_up_rows, borrow, give_back, known, leading
from omoide.core.arms.formula import score
from omoide.core.arms.weights import DEFAULT_WEIGHTS, RankWeights
from omoide.core.bm25 import EXACT_BELOW, term_weight
from omoide.core.columns import ASKING, CONFIDENCE_STEPS, DEAD, Filter
from omoide.errors import CorruptRecordError, QueryError

if TYPE_CHECKING:
    from omoide.core.accumulator import Floats
    from omoide.core.arms.meaning import Fusion, Meaning
    from omoide.core.arms.sessions import Links
    from omoide.core.columns import Columns, Ranges, Rows
    from omoide.core.text.cues import PartialDate

SMALL = 60
_SPREAD = 2  # rows that are looked through in the time of noting a new one
_FEW = 256


@dataclass(frozen=True, slots=True)
class Arms:
    """What else counts in one query.

    `links`: of the sessions, None where nothing is lent. `author`: ordinal of the one author named, 0 for
    none. `dates` named. `cues`: bits of what the query asks for, see `core.text.cues`. `meaning`: how
    near the rows are to what it means.
    """

    weights: RankWeights = DEFAULT_WEIGHTS
    links: Links | None = None
    author: int = 0
    dates: Sequence[PartialDate] = ()
    cues: int = 0
    meaning: Meaning | None = None


TEXT_ONLY = Arms()


@dataclass(slots=True)
class Ranked:
    """Rows best first, with score, text and time (ms) of each.

    `tied` > 0: the last `tied` rows share score and time, and not all of them fit the limit. Then there
    are more rows than the limit, and which of the last stay is for the caller to say. `best_text`: of all
    that pass the filters, the best worth where meaning counts; 0 unless dates count. `fusion`: where it does.
    """

    rows: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    texts: list[float] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    tied: int = 0
    best_text: float = 0.0
    fusion: Fusion | None = None


Found = list[tuple[float, int, int, float]]
"""(score, time, row, text)."""


def rank(
    terms: Sequence[TermList],
    table: Sequence[float],
    columns: Columns,
    *,
    live: int,
    limit: int,
    now_ms: int = 0,
    allowed: Rows | None = None,
    excluded: Collection[int] | Rows = (),
    ranges: Ranges | None = None,
    valid_ms: int | None = None,
    arms: Arms = TEXT_ONLY,
    small: int = SMALL,
) -> Ranked:
    """The best `limit` rows by score, then time, and all that tie with the last of them.

    Args:
        terms: Query terms, distinct.
        table: float[1024], from `bm25.weight_table`.
        live: Live memories of the partition, the N of the idf.
        limit: Rows, >= 1.
        now_ms: Instant for expiry; read only when the columns have intervals.
        valid_ms: Instant for validity, None where that does not count.
        allowed: Only these rows, sorted; None for all.
        excluded: Never these rows; they still count for the best text.
        small: Postings below which plain Python does it; the result is the same.
    Raises:
        QueryError: weights so large that sums would not be exact.
        CorruptRecordError: a posting of a row that the columns do not have.
    Cost: O(postings + rows / 8) worst; about 2 ns a posting and 0.5 ns a row, 10 ns a row with neighbours.
    """
    weighted = weigh(terms, table, live, max(1.0, arms.weights.answer))
    if limit < 1 or (not weighted and arms.meaning is None):
        return Ranked()
    rule = Filter(columns, now_ms, allowed, excluded, ranges, valid_ms)
    plain = arms.links is None and arms.meaning is None and not (arms.dates and arms.weights.date)
    if plain and sum(len(term.rows) for term, _ in weighted) < small:
        return _rank_small(weighted, table, rule, limit, arms)
    if plain and arms.weights.author >= 1 and arms.weights.cue >= 1:
        return _rank_plain(weighted, table, rule, limit, arms)
    return _rank_large(weighted, table, rule, limit, arms)


def weigh(terms: Sequence[TermList], table: Sequence[float], live: int, most_lent: float = 1.0) -> Weighted:
    """The terms that have postings and tell something, with their weights.

    `most_lent`: how much of a weight a neighbour may lend.

    Raises:
        QueryError: weights so large that sums would not be exact.
    """
    weighted, total = [], 0.0
    for term in terms:
        factor = term_weight(term.df, live, term.weight) if len(term.rows) else 0.0
        if factor > 0:
            weighted.append((term, factor))
            total += factor
    if total * known(table)[2] * most_lent >= EXACT_BELOW:
        raise QueryError("the weights of the query's terms are too large", hint="keep each at most 1")
    return weighted


def _rank_small(weighted: Weighted, table: Sequence[float], rule: Filter, limit: int, arms: Arms) -> Ranked:
    import numpy as np

    columns, weights = rule.columns, arms.weights
    texts: dict[int, float] = {}
    get = texts.get
    for term, factor in weighted:
        for row, code in zip(term.rows.tolist(), term.codes.tolist(), strict=True):
            texts[row] = get(row, 0.0) + factor * table[code]
    if max(texts) >= columns.next:
        raise _unknown_row()
    if not rule.plain:
        kept = rule.keep(np.fromiter(texts, np.int64, len(texts))).tolist()
        texts = {row: texts[row] for row in kept}
    best: list[float] = []  # a heap of the highest `limit` scores
    gain = _greatest_gain(arms)
    found: Found = []
    for row, text in sorted(texts.items(), key=itemgetter(1), reverse=True):
        full = len(best) == limit
        if text <= 0 or (full and text * gain < best[0]):
            break
        attributes = columns.row(row)
        if attributes.flags & DEAD:
            continue
        total = score(
            text,
            weights,
            named=arms.author > 0 and attributes.author == arms.author,
            cue=attributes.flags & arms.cues > 0,
            asking=attributes.flags & ASKING > 0,
            importance=attributes.importance,
            confidence=attributes.confidence / CONFIDENCE_STEPS,
        )
        if not full:
            heappush(best, total)
        elif total > best[0]:
            heapreplace(best, total)
        elif total < best[0]:
            continue
        found.append((total, attributes.time, row, text))
    found.sort(reverse=True)
    return cut(found, limit)


def _greatest_gain(arms: Arms) -> float:
    """What author and cue can make of a text at most, a little more for rounding."""
    author = arms.weights.author if arms.author else 1.0
    cue = arms.weights.cue if arms.cues else 1.0
    return author * cue * (1 + 1e-12)


def _rank_plain(weighted: Weighted, table: Sequence[float], rule: Filter, limit: int, arms: Arms) -> Ranked:
    """Without neighbours and dates a score is its text times factors of which only two can exceed 1."""
    import numpy as np

    from omoide.core.bounded import scores_of

    columns = rule.columns
    sums = borrow(columns.next)
    reached = _add_up(sums, weighted, table)
    every = sums[reached]
    first, below = leading(every, len(weighted) * limit + 16)
    rows = rule.keep(_distinct(reached[first]))
    texts = sums[rows]
    scores = scores_of(rows, texts, columns, arms)
    bar = _bar(scores, limit)
    least = bar / _greatest_gain(arms)
    if least < below:  # else what can reach the bar is among the first
        rows = rule.keep(_distinct(reached[every >= least]))
        texts = sums[rows]
        scores = scores_of(rows, texts, columns, arms)
        bar = _bar(scores, limit)
    near = np.flatnonzero(scores >= bar if bar > 0 else scores > 0)
    rows = rows[near]
    found = list(
        zip(
            scores[near].tolist(),
            columns.time[rows].tolist(),
            rows.tolist(),
            texts[near].tolist(),
            strict=True,
        )
    )
    found.sort(reverse=True)
    give_back(sums, [reached])
    return cut(found, limit)


def _bar(scores: Floats, limit: int) -> float:
    """The lowest of the best `limit` scores; 0 where there are fewer."""
    if len(scores) < limit:
        return 0.0
    place = len(scores) - limit
    ordered = scores.copy()
    ordered.partition(place)
    return float(ordered[place])


def _distinct(rows: Rows) -> Rows:
    """The rows without repetitions; by a set where they are few, which takes less than a sort's calls."""
    import numpy as np

    if len(rows) > _FEW:
        return np.unique(rows)
    found = set(rows.tolist())
    return rows if len(found) == len(rows) else np.fromiter(found, np.int64, len(found))


def _add_up(sums: Floats, weighted: Weighted, table: Sequence[float]) -> Rows:
    """Fill the sums of a query; the rows that have one, some of them repeated."""
    import numpy as np

    try:
        if sum(len(term.rows) for term, _ in weighted) * _SPREAD < len(sums):
            return add_up_rows(sums, weighted, table)
        add_up(sums, weighted, table)
    except IndexError:
        raise _unknown_row() from None
    return np.flatnonzero(sums)


def _rank_large(weighted: Weighted, table: Sequence[float], rule: Filter, limit: int, arms: Arms) -> Ranked:
    from omoide.core.bounded import Pass

    sums = borrow(rule.columns.next)
    try:
        add_up(sums, weighted, table)
    except IndexError:
        raise _unknown_row() from None
    run = Pass(sums, weighted, table, rule, arms)
    rows, scores, texts = run.best(limit)
    if run.fusion is not None:
        texts = run.texts(rows)
    times = rule.columns.time[rows]
    found = list(zip(scores.tolist(), times.tolist(), rows.tolist(), texts.tolist(), strict=True))
    found.sort(reverse=True)
    ranked = cut(found, limit)
    ranked.best_text, ranked.fusion = run.best_text, run.fusion
    give_back(sums, [term.rows for term, _ in weighted])
    return ranked


def cut(found: Found, limit: int) -> Ranked:
    """The first `limit`, and what ties with the last of them."""
    end, tied = min(limit, len(found)), 0
    if end < len(found):
        last = found[end - 1][:2]
        while end < len(found) and found[end][:2] == last:
            end += 1
        if end > limit:
            tied = sum(entry[:2] == last for entry in found[:end])
    scores, times, rows, texts = map(list, zip(*found[:end], strict=True)) if end else ([], [], [], [])
    return Ranked(rows, scores, texts, times, tied)


def _unknown_row() -> CorruptRecordError:
    return CorruptRecordError("a posting names a row without attributes", hint="omoide doctor")


__all__ = ["SMALL", "TEXT_ONLY", "Arms", "Ranked", "TermList", "cut", "rank", "weigh"]
