"""The large way of ranking: bounds over many rows, exact scores for the few that can win. See `ranking`.

Two kinds of arrays: over all rows of the partition (`_rows` is None), or over the rows reached, sorted.
Bounds may exceed what they bound, never the reverse: `_SLIGHTLY_MORE` covers the rounding of float64,
`_slack` that of borrowed weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omoide.core.accumulator import Weighted, borrow, give_back, known, leading
from omoide.core.arms.dates import fits_of_days
from omoide.core.arms.formula import rounded_all, shares
from omoide.core.arms.meaning import fuse
from omoide.core.columns import ASKING, ASKS, CONFIDENCE_STEPS, Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.accumulator import TermList
    from omoide.core.arms.meaning import Fusion, Meaning
    from omoide.core.columns import Columns, Rows
    from omoide.core.ranking import Arms

    Floats = NDArray[np.float64]

_SLIGHTLY_MORE = 1 + 1e-9
_SPARSE = 24  # rows whose bounds are found in the time of sorting one posting
_SPARSE_LINKED = 40
_FEW_ALLOWED = 8
_AT_ONCE = 1024
_PER_PROBE = 10  # postings that can be spread out and cleared in the time of one search among them
_REACH = 5  # rows that one posting can give something to: its own, two before, two after


class Pass:
    """One query over the plain sums of its terms.

    Args:
        sums: float64[rows], the plain sums.
    """

    def __init__(
        self, sums: Floats, weighted: Weighted, table: Sequence[float], rule: Filter, arms: Arms
    ) -> None:
        self._sums, self._weighted, self._rule, self._arms = sums, weighted, rule, arms
        self._columns = rule.columns
        _, self._table, greatest = known(table)
        self._dates = arms.dates if arms.weights.date else ()
        lent = 0.0 if arms.links is None else sum(factor for _, factor in weighted)
        self._slack = lent * (1 + greatest) * 2.0**-20
        self.best_text = 0.0
        self.fusion: Fusion | None = None
        self._rows = self._reached()
        self._fits = self._fits_of_rows()
        self._ceilings = self._text_ceilings()
        if arms.meaning is not None:
            self._fuse(arms.meaning)

    def best(self, limit: int) -> tuple[Rows, Floats, Floats]:
        """(rows, scores, texts) among which are the best `limit` and all that tie with the last."""
        import numpy as np

        if self._fits is not None:
            self.best_text = self._best()
        bounds = self._bounds()
        first, _ = leading(bounds, 2 * limit + 16)
        rows = self._keep(first[bounds[first] > 0])
        rows, scores, texts = self._climb(rows, limit, None)
        if len(rows) < limit:
            return self._climb(self._keep(np.flatnonzero(bounds > 0)), limit, None)
        bar = float(np.partition(scores, -limit)[-limit])
        rest = self._keep(np.flatnonzero(bounds >= bar / _SLIGHTLY_MORE))
        rest = np.setdiff1d(rest, rows, assume_unique=True)
        more, more_scores, more_texts = self._climb(rest, limit, bar)
        rows, scores = np.concatenate([rows, more]), np.concatenate([scores, more_scores])
        return self._reaching(rows, scores, np.concatenate([texts, more_texts]), limit)

    def _reaching(self, rows: Rows, scores: Floats, texts: Floats, limit: int) -> tuple[Rows, Floats, Floats]:
        import numpy as np

        if len(rows) <= limit:
            return rows, scores, texts
        near = scores >= np.partition(scores, -limit)[-limit]
        return rows[near], scores[near], texts[near]

    def _climb(self, rows: Rows, limit: int, bar: float | None) -> tuple[Rows, Floats, Floats]:
        """Scores of those of `rows` that can reach the first `limit`, best bound first."""
        import numpy as np

        done: list[tuple[Rows, Floats, Floats]] = []
        fit = self._fit(rows)
        bounds = self._scores(rows, self._at(self._ceilings, rows), fit) * _SLIGHTLY_MORE
        at_once = _AT_ONCE
        while len(rows):
            if bar is not None:
                can = bounds >= bar
                rows, bounds = rows[can], bounds[can]
            now = np.ones(len(rows), np.bool_)
            if len(rows) > at_once:
                now[:] = False
                now[np.argpartition(bounds, -at_once)[-at_once:]] = True
            chosen = rows[now]
            texts = self._worths(chosen)
            scores = self._scores(chosen, texts, self._fit(chosen))
            matching = scores > 0
            done.append((chosen[matching], scores[matching], texts[matching]))
            every = np.concatenate([part for _, part, _ in done])
            if len(every) >= limit:
                reached = float(np.partition(every, -limit)[-limit])
                bar = reached if bar is None else max(bar, reached)
            rows, bounds = rows[~now], bounds[~now]
            at_once *= 4
        if not done:
            return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
        found, scores, texts = (np.concatenate(parts) for parts in zip(*done, strict=True))
        return self._reaching(found, scores, texts, limit)

    # ---- which rows

    def _reached(self) -> Rows | None:
        """Every row that can have a score, sorted; None for all rows."""
        import numpy as np

        allowed, size = self._rule.allowed, len(self._sums)
        if allowed is not None and len(allowed) * _FEW_ALLOWED < size:
            return allowed
        if self._dates or self._arms.meaning is not None:  # every row may have a score
            return None
        lists = [term.rows for term, _ in self._weighted]
        links = self._arms.links
        if sum(map(len, lists)) * (_SPARSE if links is None else _SPARSE_LINKED) >= size:
            return None
        rows = np.unique(np.concatenate(lists))
        if links is not None:
            one = np.concatenate([links.before[rows], links.after[rows]])
            two = np.concatenate([links.before[links.before[rows]], links.after[links.after[rows]]])
            rows = np.unique(np.concatenate([rows, one, two]))
            rows = rows[rows > 0]
        return rows

    def _keep(self, places: Rows) -> Rows:
        """The rows at these places that count."""
        return self._rule.keep(places if self._rows is None else self._rows[places])

    def _at(self, values: Floats, rows: Rows) -> Floats:
        import numpy as np

        return values[rows if self._rows is None else np.searchsorted(self._rows, rows)]

    # ---- bounds

    def _text_ceilings(self) -> Floats:
        """At least the text of each row."""
        links, weights = self._arms.links, self._arms.weights
        sums, rows = self._sums, self._rows
        own = sums if rows is None else sums[rows]
        if links is None:
            return own
        if rows is None:
            before, after = links.before[: len(sums)], links.after[: len(sums)]
            one, other = sums.take(before, mode="clip"), sums.take(after, mode="clip")
            two = one.take(before, mode="clip")
            two += other.take(after, mode="clip")
        else:
            before, after = links.before[rows], links.after[rows]
            one, other = sums[before], sums[after]
            two = sums[links.before[before]] + sums[links.after[after]]
        one *= weights.answer
        other *= weights.near
        one += other
        two *= weights.far
        one += own
        one += two
        one[one > 0] += self._slack
        return one

    def _fits_of_rows(self) -> Floats | None:
        """How well each row's day fits the dates; None without any."""
        if not self._dates:
            return None
        days = self._columns.days
        return fits_of_days(self._dates, days if self._rows is None else days[self._rows])

    def _fit(self, rows: Rows) -> Floats | None:
        return None if self._fits is None else self._at(self._fits, rows)

    def _best(self) -> float:
        """The greatest text, or worth, of the rows that pass the filters."""
        import numpy as np

        everyone, ceilings = self._rule.including_excluded(), self._ceilings

        def greatest(places: Rows) -> float:
            rows = everyone.keep(places if self._rows is None else self._rows[places])
            return float(self._worths(rows).max(initial=0.0))

        low = greatest(leading(ceilings, 16)[0])
        return max(low, greatest(np.flatnonzero((ceilings >= low) & (ceilings > 0))))

    def _fuse(self, meaning: Meaning) -> None:
        """From here on worths take the place of texts."""
        arms, everyone = self._arms, self._rule.including_excluded().matching()
        fusion = fuse(meaning, arms.links, arms.weights, everyone, self._best())
        own = fusion.values if self._rows is None else fusion.values[self._rows]
        self._ceilings = self._ceilings * fusion.scale + own
        self.fusion = fusion

    def _bounds(self) -> Floats:
        """At least the score of each row."""
        weights = self._arms.weights
        bounds = self._ceilings
        if self._arms.author:
            bounds = bounds * weights.author
        if self._fits is not None:
            bounds = bounds + (weights.date * self.best_text) * self._fits
        return bounds * weights.cue if self._arms.cues else bounds

    # ---- exact

    def _worths(self, rows: Rows) -> Floats:
        """The text of each row, or its worth where meaning counts."""
        texts, fusion = self.texts(rows), self.fusion
        return texts if fusion is None else texts * fusion.scale + fusion.values[rows]

    def texts(self, rows: Rows) -> Floats:
        """The text of each row."""
        import numpy as np

        links, weights = self._arms.links, self._arms.weights
        if links is None or not len(rows):
            return self._sums[rows]
        before, after = links.before[rows], links.after[rows]
        probes = np.concatenate([rows, before, after, links.before[before], links.after[after]])
        lengths = self._columns.column("length")[rows]
        authors = self._columns.column("author")
        mine = authors[rows]
        asked = (self._columns.flags[before] & ASKS > 0) & ((mine == 0) | (mine != authors[before]))
        reaches = (np.where(asked, weights.answer, weights.near), weights.near, weights.far)
        from_before, from_after, from_two = (shares(reach, weights.gate, lengths) for reach in reaches)
        scratch = borrow(len(self._sums))
        total = np.zeros(len(rows))
        for term, factor in self._weighted:
            held = self._held(term, probes, scratch).reshape(_REACH, len(rows))
            lent = np.maximum(from_before * held[1], from_after * held[2])
            np.maximum(lent, from_two * np.maximum(held[3], held[4]), out=lent)
            total += factor * np.maximum(held[0], rounded_all(lent))
        give_back(scratch, [])
        return total

    def _held(self, term: TermList, rows: Rows, scratch: Floats) -> Floats:
        """The weight of a term in each of `rows`, 0 where they lack it."""
        import numpy as np

        if len(rows) * _PER_PROBE > len(term.rows):
            scratch[term.rows] = self._table.take(term.codes)
            held: Floats = scratch[rows]
            scratch[term.rows] = 0
            return held
        places = np.searchsorted(term.rows, rows)
        places[places == len(term.rows)] = 0
        return np.where(term.rows[places] == rows, self._table.take(term.codes[places]), 0.0)

    def _scores(self, rows: Rows, texts: Floats, fit: Floats | None) -> Floats:
        dated = None if fit is None else (self._arms.weights.date * self.best_text) * fit
        return scores_of(rows, texts, self._columns, self._arms, dated)


def scores_of(rows: Rows, texts: Floats, columns: Columns, arms: Arms, dated: Floats | None = None) -> Floats:
    """float64[n]: final scores of rows of these texts; `dated` is what a date in the query adds."""
    import numpy as np

    weights, held, total = arms.weights, columns.at(rows), texts
    if arms.author:
        total = np.where(held["author"] == arms.author, total * weights.author, total)
    if dated is not None:
        total = total + dated
    if arms.cues:
        total = np.where(held["flags"] & arms.cues, total * weights.cue, total)
    if weights.asking != 1:
        total = np.where(held["flags"] & ASKING, total * weights.asking, total)
    importance = np.minimum(np.maximum(held["importance"].astype(np.float64), 0.0), 1.0)
    confidence = held["confidence"] / np.float64(CONFIDENCE_STEPS)
    first = (1.0 - weights.importance) + weights.importance * importance
    scores: Floats = total * first * ((1.0 - weights.confidence) + weights.confidence * confidence)
    return scores
