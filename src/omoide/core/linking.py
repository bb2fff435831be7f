"""The graph arm: what was put to use together with the best memories of a query comes with them.

    score    = alone + the greatest of  graph x strength x the seed's score alone       over edges to seeds
    strength = (w - 0.5) / (w + 0.5)                                   of an edge of weight w, above 0.5

Seeds are the first three memories by score, then time, with all that tie with the last of them; where
those are more than eight, nothing stands out and nothing is added. Only the strongest 16 edges of a seed
are followed, one hop. A use together adds 1 to an edge, and names in common are worth 0.5 however many
they are: names alone lend nothing, and an edge used once has a strength of 1/3. A linked memory may come
without a word of the query, at less than `graph` of the best score alone.

Exact at no search: who is not linked keeps its score, so the first k are among the first k alone and the
linked ones.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omoide.core.ranking import Ranked, cut

SEEDS = 3
MOST_SEEDS = 8

_FLOOR = 0.5
_EDGE = struct.Struct("<If")

Edges = Sequence[tuple[int, float]]
"""(row, weight) of those linked to a row, strongest first, weights above 0.5, at most 16."""


@dataclass(frozen=True, slots=True)
class Lent:
    """What a linked row gets: `value` = weight of the arm x `strength` x `score` of the row `seed`."""

    value: float
    strength: float
    score: float
    seed: int


def edges_from(data: bytes) -> Edges:
    """The edges of a row as the server tells them: u32 row, f32 weight, little endian."""
    return tuple(_EDGE.iter_unpack(data))


def seeds_of(alone: Ranked) -> dict[int, float]:
    """Row -> score of the memories that lend."""
    end, last = min(SEEDS, len(alone.rows)), len(alone.rows)
    while 0 < end < last and _place(alone, end) == _place(alone, end - 1):
        end += 1
    if end > MOST_SEEDS:
        return {}
    return dict(zip(alone.rows[:end], alone.scores[:end], strict=True))


def lent_by(seeds: Mapping[int, float], edges: Mapping[int, Edges], graph: float) -> dict[int, Lent]:
    """Row -> what it gets of the seed that gives it most."""
    found: dict[int, Lent] = {}
    for seed, score in seeds.items():
        for row, weight in edges[seed]:
            strength = (weight - _FLOOR) / (weight + _FLOOR)
            value = graph * strength * score
            if row not in found or value > found[row].value:
                found[row] = Lent(value, strength, score, seed)
    return found


def linked(
    alone: Ranked,
    lent: Mapping[int, Lent],
    others: Mapping[int, tuple[float, int, float]],
    limit: int,
) -> Ranked:
    """The ranking with what is lent.

    Args:
        alone: At least the first `limit`, and all that tie with the last of them.
        lent: Of rows that count.
        others: (score alone, time, text) of the rows that are lent something and are not in `alone`.
    """
    if not lent and len(alone.rows) <= limit:
        return alone
    found = [
        (score + lent[row].value if row in lent else score, time, row, text)
        for score, time, row, text in zip(alone.scores, alone.times, alone.rows, alone.texts, strict=True)
    ]
    found += [(score + lent[row].value, time, row, text) for row, (score, time, text) in others.items()]
    found.sort(reverse=True)
    ranked = cut(found, limit)
    return replace(
        alone,
        rows=ranked.rows,
        scores=ranked.scores,
        texts=ranked.texts,
        times=ranked.times,
        tied=ranked.tied,
    )


def _place(alone: Ranked, at: int) -> tuple[float, int]:
    return alone.scores[at], alone.times[at]


__all__ = ["MOST_SEEDS", "SEEDS", "Edges", "Lent", "edges_from", "lent_by", "linked", "seeds_of"]
