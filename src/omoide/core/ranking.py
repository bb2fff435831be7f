"""Rank, list and count the rows of a partition: exact over all that match, in time of what matters.

    score = text x (.85 + .15 importance) x (.8 + .2 confidence)          left to right, in float64
    text  = sum over the query's terms of term_weight x weight            exact, see `bm25`

importance is clipped to [0, 1], so both factors are at most 1 and a score never exceeds its text: in
float64 too, since rounding is monotone. Hence, with k real scores in hand, only rows whose text reaches
the lowest of them can enter the first k. `rank` goes in four steps:

    1. add up the texts of all rows in one accumulator (`np.add.at`: a pass over the postings)
    2. take a few rows of the highest text among those of the rarest term, and score them: the bound
    3. find the rows whose text reaches the bound: densely over the accumulator, or, when the postings are
       few beside the rows, over the postings
    4. drop what is dead, invisible or filtered out, score the rest, sort

Below `small` postings numpy's overhead a call (1 to 5 us) exceeds the work, and the same is done with a
dict. A row whose text is 0 does not match. Order: score, then time, both descending; the caller breaks
what is left by id, and therefore gets every row that ties with the last place.

Accumulators are kept for reuse, all zero, in a pool that threads share by atomic pops and appends; one
that saw an error is not returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heapreplace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from omoide.core.bm25 import EXACT_BELOW, term_weight
from omoide.core.columns import CONFIDENCE_STEPS, DEAD, Filter
from omoide.errors import CorruptRecordError, QueryError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.columns import Columns, Ranges, Rows

    Floats = NDArray[np.float64]

SMALL = 300
_BLOCK = 8
_POOL: deque[Floats] = deque(maxlen=2)
_TABLES: dict[int, tuple[Sequence[float], Floats, float]] = {}


@dataclass(slots=True)
class TermList:
    """The postings of one query term.

    `rows` int64[n], each at most once, and `codes` int16[n]; erased rows may still be among them.
    `df`: live memories with the term. `weight`: of the term in the query. `name` labels explanations.
    """

    rows: Rows
    codes: NDArray[np.int16]
    df: int
    weight: float = 1.0
    name: str = ""


@dataclass(slots=True)
class Ranked:
    """Rows best first, with score, text and time (ms) of each.

    `tied` > 0: the last `tied` rows share score and time, and not all of them fit the limit. Then there
    are more rows than the limit, and which of the last stay is for the caller to say.
    """

    rows: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    texts: list[float] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    tied: int = 0


@dataclass(slots=True)
class Selected:
    """Rows in order. The page asked for is `rows[skip : skip + limit]` once ties are broken by id.

    Rows before `skip` and beyond `skip + limit` are there because they tie with the page's ends.
    """

    rows: list[int]
    skip: int = 0


def factors(importance: float, confidence: float) -> tuple[float, float]:
    """The two multipliers of a text, each at most 1, for an importance and a confidence in [0, 1].

    They are applied one after the other, `text * first * second`, by every reader.
    """
    return 0.85 + 0.15 * min(max(importance, 0.0), 1.0), 0.8 + 0.2 * confidence


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
    small: int = SMALL,
) -> Ranked:
    """The best `limit` rows by score, then time, and all that tie with the last of them.

    Args:
        terms: Query terms, distinct, at most 64.
        table: float[1024], from `bm25.weight_table`.
        live: Live memories of the partition, the N of the idf.
        limit: Rows, >= 1.
        now_ms: Instant for expiry and validity; read only when the columns have intervals.
        allowed: Only these rows, sorted; None for all.
        excluded: Never these rows.
        small: Postings below which plain Python does it; the result is the same.
    Raises:
        QueryError: weights so large that sums would not be exact.
        CorruptRecordError: a posting of a row that the columns do not have.
    Cost: O(postings + rows / 8) worst; about 2 ns a posting and 0.5 ns a row.
    """
    weighted = [(term, term_weight(term.df, live, term.weight)) for term in terms if len(term.rows)]
    weighted = [(term, factor) for term, factor in weighted if factor > 0]
    if not weighted or limit < 1:
        return Ranked()
    if sum(factor for _, factor in weighted) * _known(table)[2] >= EXACT_BELOW:
        raise QueryError("the weights of the query's terms are too large", hint="keep each at most 1")
    rule = Filter(columns, now_ms, allowed, excluded, ranges)
    if sum(len(term.rows) for term, _ in weighted) < small:
        return _rank_small(weighted, table, rule, limit)
    return _rank_large(weighted, table, rule, limit)


def explain(
    row: int, terms: Sequence[TermList], table: Sequence[float], columns: Columns, live: int
) -> dict[str, float]:
    """The named parts of a row's score, for each term of the query that the row holds:

    `term:<name>` = `idf:<name>` (query weight included) x `weight:<name>`; then `text`, their exact sum,
    the multipliers `importance` and `confidence`, and `score`, text x importance x confidence.
    """
    import numpy as np

    parts: dict[str, float] = {}
    text = 0.0
    for position, term in enumerate(terms):
        found = np.flatnonzero(term.rows == row)
        if not len(found):
            continue
        name = term.name or str(position)
        factor = max(term_weight(term.df, live, term.weight), 0.0)
        held = table[int(term.codes[found[0]])]
        parts[f"idf:{name}"], parts[f"weight:{name}"], parts[f"term:{name}"] = factor, held, factor * held
        text += factor * held
    attributes = columns.row(row)
    first, second = factors(attributes.importance, attributes.confidence / CONFIDENCE_STEPS)
    parts.update(text=text, importance=first, confidence=second, score=text * first * second)
    return parts


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
) -> Selected:
    """Rows that match, in order of `time`, `importance` or `confidence`, ties by time, newest first.

    Args:
        limit: Rows; None for all.
        offset: Rows to pass over; they are left out unless they tie with the page's first row.
    Raises:
        QueryError: another order.
    Cost: O(rows), or O(allowed); sorting O(offset + limit).
    """
    import numpy as np

    if order not in ("time", "importance", "confidence"):
        raise QueryError("order is none of time, importance, confidence")
    rows = Filter(columns, now_ms, allowed, excluded, ranges).matching()
    keys = columns.column(order)[rows].astype(np.float64 if order != "time" else np.int64)
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
) -> int:
    """How many rows match. Cost: O(rows), or O(allowed)."""
    return len(Filter(columns, now_ms, allowed, excluded, ranges).matching())


# ---- plain Python ---------------------------------------------------------------------------------


def _rank_small(
    weighted: list[tuple[TermList, float]], table: Sequence[float], rule: Filter, limit: int
) -> Ranked:
    import numpy as np

    columns = rule.columns
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
    found: list[tuple[float, int, int, float]] = []
    for row, text in sorted(texts.items(), key=itemgetter(1), reverse=True):
        full = len(best) == limit
        if text <= 0 or (full and text < best[0]):
            break
        attributes = columns.row(row)
        if attributes.flags & DEAD:
            continue
        first, second = factors(attributes.importance, attributes.confidence / CONFIDENCE_STEPS)
        score = text * first * second
        if not full:
            heappush(best, score)
        elif score > best[0]:
            heapreplace(best, score)
        elif score < best[0]:
            continue
        found.append((score, attributes.time, row, text))
    found.sort(reverse=True)
    return _cut(found, limit)


# ---- numpy ----------------------------------------------------------------------------------------


def _rank_large(
    weighted: list[tuple[TermList, float]], table: Sequence[float], rule: Filter, limit: int
) -> Ranked:
    texts = _accumulator(rule.columns.next)
    try:
        _add_up(texts, weighted, table)
    except IndexError:
        raise _unknown_row() from None
    bound = _bound(texts, weighted, rule, limit)
    rows = _reaching(texts, bound, weighted, rule)
    ranked = _order(rows, texts[rows], rule.columns, limit)
    _clear(texts, weighted)
    return ranked


def _add_up(texts: Floats, weighted: list[tuple[TermList, float]], table: Sequence[float]) -> None:
    import numpy as np

    weights = _known(table)[1]
    for term, factor in weighted:
        np.add.at(texts, term.rows, (weights * factor).take(term.codes))


def _bound(texts: Floats, weighted: list[tuple[TermList, float]], rule: Filter, limit: int) -> float:
    """A score that at least `limit` rows reach, or 0: from the rows of the rarest term that has enough."""
    import numpy as np

    enough = [term.rows for term, _ in weighted if len(term.rows) >= limit]
    if rule.allowed is not None:
        pool = rule.allowed
    elif enough:
        pool = min(enough, key=len)
    else:
        return 0.0
    held = texts[pool]
    rows = rule.keep(pool[_leading(held, 2 * limit + 16)])
    if len(rows) < limit:
        rows = rule.keep(pool[held > 0])
        rows = rows[_leading(texts[rows], 2 * limit + 16)]
    if len(rows) < limit:
        return 0.0
    scores = _scores(rows, texts[rows], rule.columns)
    return float(np.partition(scores, -limit)[-limit])


def _leading(values: Floats, size: int) -> Rows:
    """Positions of at least the `size` highest values' worth: every value >= one that `size` reach.

    Maxima of blocks of 8 are partitioned instead of all values: an eighth of the work, a bound as valid.
    """
    import numpy as np

    blocks = len(values) // _BLOCK
    if blocks <= size:
        return np.arange(len(values), dtype=np.int64)
    maxima = values[: blocks * _BLOCK].reshape(_BLOCK, blocks).max(axis=0)
    return np.flatnonzero(values >= np.partition(maxima, -size)[-size])


def _reaching(texts: Floats, bound: float, weighted: list[tuple[TermList, float]], rule: Filter) -> Rows:
    """The rows that count and whose text is positive and reaches `bound`, sorted."""
    import numpy as np

    lists = [term.rows for term, _ in weighted]
    if rule.allowed is not None and len(rule.allowed) < len(texts):
        lists = [rule.allowed]
    if sum(map(len, lists)) * 8 < len(texts):
        every = lists[0] if len(lists) == 1 else np.concatenate(lists)
        held = texts[every]
        rows = np.unique(every[(held >= bound) & (held > 0)])
    else:
        rows = np.flatnonzero(texts >= bound) if bound > 0 else np.flatnonzero(texts)
    return rule.keep(rows)


def _scores(rows: Rows, texts: Floats, columns: Columns) -> Floats:
    import numpy as np

    importance = np.clip(columns.importance[rows].astype(np.float64), 0.0, 1.0)
    confidence = columns.confidence[rows].astype(np.float64) / CONFIDENCE_STEPS
    scores: Floats = texts * (0.85 + 0.15 * importance) * (0.8 + 0.2 * confidence)
    return scores


def _order(rows: Rows, texts: Floats, columns: Columns, limit: int) -> Ranked:
    import numpy as np

    scores = _scores(rows, texts, columns)
    if len(rows) > limit:
        near = scores >= np.partition(scores, -limit)[-limit]
        rows, texts, scores = rows[near], texts[near], scores[near]
    times = columns.time[rows]
    found = list(zip(scores.tolist(), times.tolist(), rows.tolist(), texts.tolist(), strict=True))
    found.sort(reverse=True)
    return _cut(found, limit)


def _clear(texts: Floats, weighted: list[tuple[TermList, float]]) -> None:
    if sum(len(term.rows) for term, _ in weighted) * 4 > len(texts):
        texts.fill(0)
    else:
        for term, _ in weighted:
            texts[term.rows] = 0
    _POOL.append(texts if texts.base is None else texts.base)


def _accumulator(rows: int) -> Floats:
    """float64[rows], all zero."""
    import numpy as np

    try:
        held = _POOL.pop()
    except IndexError:
        held = np.zeros(0)
    if len(held) < rows:
        held = np.zeros(rows + rows // 4 + 1024)
    return held[:rows]


def _known(table: Sequence[float]) -> tuple[Sequence[float], Floats, float]:
    """The table, the same as an array, and its maximum; kept while few tables are in use."""
    import numpy as np

    held = _TABLES.get(id(table))
    if held is None or held[0] is not table:
        if len(_TABLES) >= 64:
            _TABLES.clear()
        held = _TABLES[id(table)] = (table, np.array(table, dtype=np.float64), max(table))
    return held


# ---- shared ---------------------------------------------------------------------------------------


def _cut(found: list[tuple[float, int, int, float]], limit: int) -> Ranked:
    """The first `limit` of (score, time, row, text), and what ties with the last of them."""
    end, tied = min(limit, len(found)), 0
    if end < len(found):
        last = found[end - 1][:2]
        while end < len(found) and found[end][:2] == last:
            end += 1
        if end > limit:
            tied = sum(entry[:2] == last for entry in found[:end])
    scores, times, rows, texts = map(list, zip(*found[:end], strict=True)) if end else ([], [], [], [])
    return Ranked(rows, scores, texts, times, tied)


def _run_start(keys: NDArray[Any], newest: NDArray[Any], position: int) -> int:
    while position > 0 and keys[position - 1] == keys[position] and newest[position - 1] == newest[position]:
        position -= 1
    return position


def _run_end(keys: NDArray[Any], newest: NDArray[Any], position: int) -> int:
    end = position + 1
    while end < len(keys) and keys[end] == keys[position] and newest[end] == newest[position]:
        end += 1
    return end


def _unknown_row() -> CorruptRecordError:
    return CorruptRecordError("a posting names a row without attributes", hint="omoide doctor")
