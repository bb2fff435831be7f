"""The association graph as plain data: undirected weighted edges, at most 64 a record.

A full list drops its weakest edge, on both sides (ties: the greater id). Weights are kept in single
precision, as the store keeps them. `lua/lib/graph.lua` does the same for records that have no
authoritative rows; if you change a rule here, change it there.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from struct import Struct

MOST_EDGES = 64
ENTITY_WEIGHT = 0.5
"""Weight of a new edge between two records that name the same, however many names they have in common."""

MOST_NAMED = 16
"""Records that name an entity to which a new one is linked, latest first."""

_SINGLE = Struct("<f")


class Graph:
    """A part of a partition's graph: all edges of the records it was given, and what changed of them.

    Attributes: `changed`: pairs (first < second) whose edge is another now or gone.
    """

    def __init__(self, edges: Iterable[tuple[str, str, float]] = ()) -> None:
        self._edges: dict[str, dict[str, float]] = {}
        self.changed: set[tuple[str, str]] = set()
        self.take(edges)

    def take(self, edges: Iterable[tuple[str, str, float]]) -> None:
        """Learn of edges that are stored."""
        for first, second, weight in edges:
            if _pair(first, second) not in self.changed:
                self._edges.setdefault(first, {})[second] = weight
                self._edges.setdefault(second, {})[first] = weight

    def weight(self, first: str, second: str) -> float:
        """The weight of an edge, 0.0 for none."""
        return self._edges.get(first, {}).get(second, 0.0)

    def of(self, record: str) -> dict[str, float]:
        """The edges of a record: other -> weight."""
        return dict(self._edges.get(record, {}))

    def add(self, first: str, second: str, delta: float) -> float:
        """Add to an edge (`delta` may be negative); its new weight, 0.0 when it is not there then."""
        if first == second:
            return 0.0
        self._put(first, second, self.weight(first, second) + delta)
        self._trim(first)
        self._trim(second)
        return self.weight(first, second)

    def link_all(self, records: Iterable[str], delta: float) -> None:
        """Add to the edge between every two of these records, then drop what finds no room."""
        names = sorted(set(records))
        for first, second in combinations(names, 2):
            self._put(first, second, self.weight(first, second) + delta)
        for name in names:
            self._trim(name)

    def raise_to(self, first: str, second: str, weight: float) -> None:
        """Make an edge at least this strong."""
        if weight > self.weight(first, second):
            self._put(first, second, weight)

    def trim(self, record: str) -> None:
        """Drop the weakest edges beyond the most a record may have."""
        self._trim(record)

    def remove(self, record: str) -> None:
        """Take out a record with all its edges."""
        for other in list(self._edges.get(record, {})):
            self._put(record, other, 0.0)

    def _put(self, first: str, second: str, weight: float) -> None:
        self.changed.add(_pair(first, second))
        if weight > 0.0:
            single: float = _SINGLE.unpack(_SINGLE.pack(weight))[0]
            self._edges.setdefault(first, {})[second] = single
            self._edges.setdefault(second, {})[first] = single
        else:
            self._edges.get(first, {}).pop(second, None)
            self._edges.get(second, {}).pop(first, None)

    def _trim(self, record: str) -> None:
        held = self._edges.get(record, {})
        if len(held) > MOST_EDGES:
            for other in sorted(held, key=lambda name: (-held[name], name))[MOST_EDGES:]:
                self._put(record, other, 0.0)


def _pair(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first.encode() < second.encode() else (second, first)


__all__ = ["ENTITY_WEIGHT", "MOST_EDGES", "MOST_NAMED", "Graph"]
