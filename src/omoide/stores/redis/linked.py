"""The graph arm in the client reader: edges of the seeds, held as long as the partition stays as it is.

Edges are read beside a fetch, in the same round trip, and only those of seeds that are not held. Where
they change the answer, the records that come in by them take one call more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omoide.core.explanation import Explainer, Part
from omoide.core.linking import Edges, Lent, edges_from, lent_by, linked, seeds_of
from omoide.core.ranking import Ranked

if TYPE_CHECKING:
    from omoide.core.columns import Filter


@dataclass(slots=True)
class HeldEdges:
    """Edges of rows as of write `v`."""

    v: int = 0
    of: dict[int, Edges] = field(default_factory=dict)

    def learn(self, reply: Sequence[Any]) -> None:
        """Take in a reply of `edges`; an empty one says nothing."""
        if not reply:
            return
        if reply[0] != self.v:
            self.v, self.of = reply[0], {}
        self.of.update(zip(reply[1::2], map(edges_from, reply[2::2]), strict=True))

    def known(self, rows: Mapping[int, float], v: int) -> bool:
        """Whether the edges of all these rows are those of write `v`."""
        return not rows or (self.v == v and rows.keys() <= self.of.keys())


def with_links(
    alone: Ranked, held: HeldEdges, graph: float, explainer: Explainer, rule: Filter, limit: int
) -> tuple[Ranked, dict[int, Lent]]:
    """The ranking with what its seeds lend, and to whom. The edges of the seeds are held.

    Cost: O(linked rows x terms x log postings) beyond those that rank anyway.
    """
    import numpy as np

    lent = lent_by(seeds_of(alone), held.of, graph)
    if not lent:
        return linked(alone, lent, {}, limit), lent
    counting = set(rule.keep(np.array(sorted(lent), np.int64)).tolist())
    lent = {row: one for row, one in lent.items() if row in counting}
    others = {}
    for row in lent.keys() - set(alone.rows):
        tree = explainer.tree(row)
        others[row] = (tree.value, rule.columns.row(row).time, tree.flat()["text"])
    return linked(alone, lent, others, limit), lent


def tree_of(row: int, explainer: Explainer, lent: Mapping[int, Lent], graph: float) -> Part:
    """The score of a row and its parts, what it is lent among them."""
    tree = explainer.tree(row)
    found = lent.get(row)
    if found is None:
        return tree
    alone = Part("alone", tree.value, tree.how, tree.parts, tree.note)
    parts = (
        Part("share", graph),
        Part("strength", found.strength, note="of the edge"),
        Part("seed's score", found.score, note="alone"),
    )
    link = Part.of("linked", "product", parts, note="put to use together with one of the best")
    return Part.of("score", "sum", (alone, link))


def seeds_to_ask(alone: Ranked, held: HeldEdges, v: int) -> tuple[int, ...]:
    """The seeds whose edges have to be read; none when all are held."""
    seeds = seeds_of(alone)
    return () if held.known(seeds, v) else tuple(sorted(seeds))


__all__ = ["HeldEdges", "seeds_to_ask", "tree_of", "with_links"]
