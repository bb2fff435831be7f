"""Ranking metrics for questions with one or more gold answers, gains binary.

    R@k      share of the gold ids among the first k            |gold ∩ top k| / |gold|
    hit@10   1 when any gold id is among the first 10
    MRR      1 / rank of the first gold id, 0 when none came back
    nDCG@10  sum over gold ids found at rank r <= 10 of 1 / log2(r + 1), divided by the same sum for a
             ranking that starts with all of them

A summary is the mean over questions; every question weighs the same.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import fmean

NAMES = ("R@1", "R@5", "R@10", "R@20", "hit@10", "MRR", "nDCG@10")
DEPTH = 20

Scores = dict[str, float]


def score(ranked: Sequence[str], gold: Collection[str]) -> Scores:
    """Score one ranking.

    Args:
        ranked: Distinct ids, best first; DEPTH of them are enough.
        gold: The right ids, at least one, in any order.
    Returns:
        dict of NAMES, each in [0, 1].
    Raises:
        ValueError: no gold, or an id is ranked twice.
    """
    wanted = set(gold)
    if not wanted:
        raise ValueError("a question without gold ids has no score")
    if len(set(ranked)) != len(ranked):
        raise ValueError("an id is ranked twice")
    ranks = [rank for rank, found in enumerate(ranked, start=1) if found in wanted]
    scores = {f"R@{k}": sum(rank <= k for rank in ranks) / len(wanted) for k in (1, 5, 10, 20)}
    scores["hit@10"] = float(any(rank <= 10 for rank in ranks))
    scores["MRR"] = 1 / ranks[0] if ranks else 0.0
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(wanted), 10) + 1))
    scores["nDCG@10"] = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 10) / best
    return scores


def mean(scores: Sequence[Scores]) -> Scores:
    """Average over questions, rounded to 4 places; at least one question."""
    return {name: round(fmean(one[name] for one in scores), 4) for name in NAMES}
