"""The edges of a partition in its tables, and the names by which records find each other."""

from __future__ import annotations

from collections.abc import Sequence

from omoide.core.associations import ENTITY_WEIGHT, MOST_NAMED, Graph
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.rows import entity_digest
from omoide.stores.postgres.script import Script, Step
from omoide.stores.postgres.tables import Table

__all__ = ["Edges", "edges_of"]

EdgesOf = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
"""All edges of each of some records, by id."""


class Edges:
    """What one transaction does to the edges of a partition; each method is a script.

    Attributes:
        changed: Ids of the records whose edges are not what they were.
    """

    def __init__(self, table: Table, partition: str, at: tuple[str, str]) -> None:
        self._table, self._partition, self._at = table, partition, at
        self.changed: set[str] = set()

    def link(self, first: str, second: str, delta: float) -> Script[float]:
        """Change one edge; its new weight."""
        graph = yield from graph_of(self._at, [first, second])
        weight = graph.add(first, second, delta)
        yield from self._save(graph)
        return weight

    def link_all(self, ids: Sequence[str], delta: float) -> Script[None]:
        """Change the edge of each two of some records."""
        graph = yield from graph_of(self._at, ids)
        graph.link_all(ids, delta)
        yield from self._save(graph)

    def remove(self, ids: Sequence[str]) -> Script[None]:
        """Take records out, with the names they are filed under."""
        graph = yield from graph_of(self._at, ids)
        for id in ids:
            graph.remove(id)
        yield from self._save(graph)
        yield Step(
            "DELETE FROM omoide_entities WHERE model = %s AND partition = %s AND id = ANY(%s)",
            (*self._at, [escaped(id) for id in ids]),
        )
        self.changed.difference_update(ids)

    def join(self, id: str, edges: dict[str, float]) -> Script[None]:
        """Give a record the edges it comes with, to those that are there."""
        if not edges:
            return
        rows = yield Step(
            self._table.statement("SELECT {id} FROM {table} WHERE _partition = %s AND {id} = ANY(%s)"),
            (self._partition, [escaped(other) for other in edges]),
        )
        there = {unescaped(other) for (other,) in rows}
        graph = yield from graph_of(self._at, [id, *sorted(there)])
        for other, weight in edges.items():
            if other in there:
                graph.add(id, other, weight)
        yield from self._save(graph)

    def name(self, id: str, entities: Sequence[str], row: int, *, link: bool, known: bool) -> Script[None]:
        """File a record under names and, unless told not to, link it with the last that have them.

        Its older edges stay where they are stronger. `known`: it was there before.
        """
        if known:
            yield Step(
                "DELETE FROM omoide_entities WHERE model = %s AND partition = %s AND id = %s",
                (*self._at, escaped(id)),
            )
        if not entities:
            return
        names = [entity_digest(name) for name in entities]
        rows = yield Step(
            "SELECT wanted.at, found.id FROM unnest(%s::bytea[]) WITH ORDINALITY AS wanted (name, at)"
            " CROSS JOIN LATERAL (SELECT id, row FROM omoide_entities WHERE model = %s AND partition = %s"
            " AND name = wanted.name ORDER BY row DESC LIMIT %s) AS found ORDER BY wanted.at, found.row",
            (names, *self._at, MOST_NAMED),
        )
        others = list(dict.fromkeys(unescaped(other) for _, other in rows)) if link else []
        if others:
            graph = yield from graph_of(self._at, [id, *others])
            before = graph.of(id)
            fresh = Graph()
            for other in others:
                fresh.add(id, other, ENTITY_WEIGHT)
            for other, weight in fresh.of(id).items():
                graph.raise_to(id, other, max(weight, before.get(other, 0.0)))
            for name in (id, *others):
                graph.trim(name)
            yield from self._save(graph)
        yield Step(
            "INSERT INTO omoide_entities (model, partition, name, row, id) SELECT %s, %s, name, %s, %s"
            " FROM unnest(%s::bytea[]) AS name ON CONFLICT DO NOTHING",
            (*self._at, row, escaped(id), names),
        )

    def told(self) -> Script[EdgesOf]:
        """All edges of every record whose edges changed."""
        return (yield from edges_of(self._at, sorted(self.changed)))

    def _save(self, graph: Graph) -> Script[None]:
        """Store the edges that changed."""
        if not graph.changed:
            return
        kept = [(first, second, graph.weight(first, second)) for first, second in sorted(graph.changed)]
        gone = [(first, second) for first, second, weight in kept if weight <= 0]
        if gone:
            yield Step(
                "DELETE FROM omoide_edges AS held"
                " USING unnest(%s::text[], %s::text[]) AS gone (first, second)"
                " WHERE model = %s AND partition = %s"
                " AND held.first = gone.first AND held.second = gone.second",
                ([escaped(first) for first, _ in gone], [escaped(second) for _, second in gone], *self._at),
            )
        stored = [edge for edge in kept if edge[2] > 0]
        if stored:
            yield Step(
                "INSERT INTO omoide_edges (model, partition, first, second, weight)"
                " SELECT %s, %s, * FROM unnest(%s::text[], %s::text[], %s::real[])"
                " ON CONFLICT (model, partition, first, second) DO UPDATE SET weight = excluded.weight",
                (
                    *self._at,
                    [escaped(first) for first, _, _ in stored],
                    [escaped(second) for _, second, _ in stored],
                    [weight for _, _, weight in stored],
                ),
            )
        self.changed.update(id for pair in graph.changed for id in pair)


def edges_of(at: tuple[str, str], ids: Sequence[str]) -> Script[EdgesOf]:
    """All edges of each of some records, by id."""
    if not ids:
        return ()
    graph = yield from graph_of(at, ids)
    return tuple((id, tuple(sorted(graph.of(id).items()))) for id in ids)


def graph_of(at: tuple[str, str], ids: Sequence[str]) -> Script[Graph]:
    """All edges of some records of a partition."""
    keys = [escaped(id) for id in ids]
    rows = yield Step(
        "WITH edges AS (SELECT first, second, weight FROM omoide_edges WHERE model = %s AND partition = %s"
        " AND first = ANY(%s)"
        " UNION SELECT first, second, weight FROM omoide_edges WHERE model = %s AND partition = %s"
        " AND second = ANY(%s)) SELECT first, second, weight FROM edges",
        (*at, keys, *at, keys),
    )
    return Graph((unescaped(first), unescaped(second), weight) for first, second, weight in rows)
