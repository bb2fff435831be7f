"""Why a memory has its score: a tree of named parts that makes the number again.

    score = relevance x cue x asking x importance x confidence    product
      relevance = words + date                                    sum
        words = text x author, or worth x author                  product
          worth = lexical + meaning                               sum
            lexical = text x text scale                           product
            meaning = (mean of cosines + (-least)) x scale        product of a sum
          text = term + term + ...                                sum
            term = idf x weight                                   product
              weight = the greatest of own and what is lent      greatest
                from ... = share x the lender's weight            borrowed: the product, rounded to 2^-20
        date = share x best text x match                          product

Arms that leave the score as it is are left out. Every part is the product, sum or maximum of its parts as
float64 in their order, so the tree adds up to the score to the last bit where the order is that of
`arms.formula`; the bound stated for readers is 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from omoide.core.accumulator import TermList, add_up, borrow, give_back
from omoide.core.arms.dates import fit_of
from omoide.core.arms.formula import factors, share
from omoide.core.bm25 import rounded, term_weight
from omoide.core.columns import ASKING, ASKS, CONFIDENCE_STEPS, Filter
from omoide.core.text.cues import CUES

if TYPE_CHECKING:
    from omoide.core.arms.meaning import Fusion, Meaning
    from omoide.core.columns import Columns, Rows
    from omoide.core.ranking import Arms


@dataclass(frozen=True, slots=True)
class Part:
    """One named number and what it is made of.

    `how`: `sum`, `product`, `greatest` or `borrowed` of its `parts`; `given` without any. `note` says
    what the name does not.
    """

    name: str
    value: float
    how: str = "given"
    parts: tuple[Part, ...] = ()
    note: str = ""

    @classmethod
    def of(cls, name: str, how: str, parts: Sequence[Part], note: str = "") -> Part:
        """A part with the value that its parts make."""
        return cls(name, _combined(how, [part.value for part in parts]), how, tuple(parts), note)

    def again(self) -> float:
        """The value made anew from the leaves."""
        return _combined(self.how, [part.again() for part in self.parts]) if self.parts else self.value

    def flat(self) -> dict[str, float]:
        """Value by name, from the top down; the first of a name counts."""
        found = {self.name: self.value}
        for part in self.parts:
            for name, value in part.flat().items():
                found.setdefault(name, value)
        return found

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = {"name": self.name, "value": self.value}
        if self.parts:
            plain |= {"how": self.how, "parts": [part.as_json() for part in self.parts]}
        return plain | ({"note": self.note} if self.note else {})


def _combined(how: str, values: Sequence[float]) -> float:
    if how == "sum":
        return sum(values[1:], values[0]) if values else 0.0
    if how == "greatest":
        return max(values)
    return rounded(prod(values)) if how == "borrowed" else prod(values)


class Explainer:
    """Explains rows of one query. Its reader holds the lock of the columns.

    Args: as `ranking.rank` took them. `best_text` and `fusion` are those of its result.
    """

    def __init__(
        self,
        terms: Sequence[TermList],
        table: Sequence[float],
        columns: Columns,
        live: int,
        arms: Arms,
        best_text: float = 0.0,
        fusion: Fusion | None = None,
    ) -> None:
        self._terms, self._table, self._columns = terms, table, columns
        self._live, self._arms, self._best_text, self._fusion = live, arms, best_text, fusion

    def tree(self, row: int) -> Part:
        """The score of one row and its parts. Cost: O(terms x log postings)."""
        weights, held = self._arms.weights, self._columns.row(row)
        words = [self._text(row) if self._fusion is None else self._worth(row, self._fusion)]
        if self._arms.author and held.author == self._arms.author and weights.author != 1:
            words.append(Part("author", weights.author, note="the query names its author"))
        summands = [Part.of("words", "product", words) if len(words) > 1 else words[0]]
        fit = fit_of(self._arms.dates, held.time) if self._arms.dates and weights.date else 0.0
        if fit:
            summands.append(self._date(fit))
        product = [Part.of("relevance", "sum", summands) if len(summands) > 1 else summands[0]]
        if held.flags & self._arms.cues and weights.cue != 1:
            told = " and a ".join(name for bit, name in CUES.items() if held.flags & self._arms.cues & bit)
            product.append(Part("cue", weights.cue, note=f"asked for a {told}, and it tells one"))
        if held.flags & ASKING and weights.asking != 1:
            product.append(Part("asking", weights.asking, note="it asks more than it tells"))
        first, second = factors(held.importance, held.confidence / CONFIDENCE_STEPS, weights)
        product += [Part("importance", first), Part("confidence", second)]
        return Part.of("score", "product", product)

    def _worth(self, row: int, fusion: Fusion) -> Part:
        scale = Part("text scale", fusion.scale, note="the words' share / the greatest text of all that pass")
        lexical = Part.of("lexical", "product", (self._text(row), scale))
        meaning = self._arms.meaning
        if meaning is None or not meaning.held[row]:
            return Part.of("worth", "sum", (lexical, Part("meaning", 0.0, note="it has no vector")))
        if meaning.cosines[row] < meaning.least:
            far = Part("meaning", 0.0, note="its cosine is below the least that counts")
            return Part.of("worth", "sum", (lexical, far))
        if not fusion.unit:
            return Part.of("worth", "sum", (lexical, Part("meaning", fusion.share, note="all are as near")))
        above = Part.of("above the least", "sum", self._nearness(row, meaning, fusion))
        unit = Part("meaning scale", fusion.unit, note="share of meaning / (greatest - least)")
        return Part.of("worth", "sum", (lexical, Part.of("meaning", "product", (above, unit))))

    def _nearness(self, row: int, meaning: Meaning, fusion: Fusion) -> list[Part]:
        """The mean of the cosines of a row and its neighbours, and the least of all taken off."""
        cosines, links, weights = meaning.cosines, self._arms.links, self._arms.weights
        parts, count = [Part("cosine", float(cosines[row]))], 1.0
        if links is not None:
            before, after = int(links.before[row]), int(links.after[row])
            for name, share, other in (
                ("cosine before", weights.meaning_near, before),
                ("cosine after", weights.meaning_near, after),
                ("cosine two before", weights.meaning_far, int(links.before[before])),
                ("cosine two after", weights.meaning_far, int(links.after[after])),
            ):
                if meaning.held[other]:
                    two = (Part("share", share), Part("its cosine", float(cosines[other])))
                    parts.append(Part.of(name, "product", two))
                    count += share
        if len(parts) > 1:
            total, mean = Part.of("cosines", "sum", parts), Part("mean", 1.0 / count, note="1 / their shares")
            parts = [Part.of("nearness", "product", (total, mean))]
        return [*parts, Part("least", -fusion.least, note="taken off: that of the memory least alike")]

    def _date(self, fit: float) -> Part:
        parts = (
            Part("share", self._arms.weights.date),
            Part("best text", self._best_text, note="the greatest text among all that pass the filters"),
            Part("match", fit, note="how well its day fits the dates named"),
        )
        return Part.of("date", "product", parts)

    def _text(self, row: int) -> Part:
        lenders = self._lenders(row)
        parts = [part for term in self._terms if (part := self._term(term, row, lenders)) is not None]
        return Part.of("text", "sum", parts)

    def _lenders(self, row: int) -> list[tuple[str, int, float]]:
        """(name, row, share of its weights) of the neighbours that lend to a row."""
        links, weights = self._arms.links, self._arms.weights
        if links is None:
            return []
        length = self._columns.row(row).length
        before, after = int(links.before[row]), int(links.after[row])
        asked = before > 0 and self._answers(row, before)
        near = ("from the question before", weights.answer) if asked else ("from before", weights.near)
        reaches = (
            (near[0], before, near[1]),
            ("from after", after, weights.near),
            ("from two before", int(links.before[before]), weights.far),
            ("from two after", int(links.after[after]), weights.far),
        )
        return [
            (name, lender, share(reach, weights.gate, length)) for name, lender, reach in reaches if lender
        ]

    def _term(self, term: TermList, row: int, lenders: Sequence[tuple[str, int, float]]) -> Part | None:
        """What one term gives to a row; None for nothing."""
        own, *lent = self._weights(term, [row, *(lender for _, lender, _ in lenders)])
        kinds = [Part("own", own)]
        for (name, _, part_of_it), weight in zip(lenders, lent, strict=True):
            if weight and part_of_it:
                parts = (Part("share", part_of_it), Part("lender's weight", weight))
                kinds.append(Part.of(name, "borrowed", parts, note="lent by a neighbour in the session"))
        kinds = [kind for kind in kinds if kind.value > 0 or kind.name == "own"]
        factor = max(term_weight(term.df, self._live, term.weight), 0.0)
        greatest = Part.of(f"weight:{term.name}", "greatest", kinds)
        if factor * greatest.value <= 0:
            return None
        note = f"stands in for {term.stands_for}" if term.stands_for else ""
        return Part.of(f"term:{term.name}", "product", (Part(f"idf:{term.name}", factor), greatest), note)

    def _answers(self, row: int, before: int) -> bool:
        mine, other = self._columns.row(row), self._columns.row(before)
        return other.flags & ASKS > 0 and not mine.author == other.author > 0

    def _weights(self, term: TermList, rows: Sequence[int]) -> list[float]:
        """The weight of a term in each of `rows`, 0 where they lack it."""
        if not len(term.rows):
            return [0.0] * len(rows)
        places, last = term.rows.searchsorted(rows).tolist(), len(term.rows) - 1
        found = []
        for row, place in zip(rows, places, strict=True):
            at = min(place, last)
            found.append(self._table[int(term.codes[at])] if term.rows[at] == row else 0.0)
        return found

    def places_by_own_text(self, rows: Sequence[int], rule: Filter) -> dict[int, int]:
        """The place of each row by the words it has itself, 1 for the best; 0 where it has none.

        Cost: O(postings + rows).
        """
        import numpy as np

        weighted = [(term, term_weight(term.df, self._live, term.weight)) for term in self._terms]
        sums = borrow(self._columns.next)
        add_up(sums, weighted, self._table)
        counting: Rows = rule.keep(np.flatnonzero(sums))
        values = np.sort(sums[counting])
        places = {}
        for row in rows:
            own = float(sums[row])
            places[row] = len(values) - int(np.searchsorted(values, own, "right")) + 1 if own > 0 else 0
        give_back(sums, [term.rows for term, _ in weighted])
        return places


__all__ = ["Explainer", "Part"]
