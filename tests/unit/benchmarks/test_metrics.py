"""The metrics against rankings worked out by hand, and against what must hold for any ranking."""

from __future__ import annotations

import math

import pytest
from benchmarks.retrieval.metrics import NAMES, mean, score
from hypothesis import given
from hypothesis import strategies as st

IDS = st.lists(st.sampled_from([f"t{i}" for i in range(40)]), unique=True, max_size=30)
GOLD = st.sets(st.sampled_from([f"t{i}" for i in range(40)]), min_size=1, max_size=12)


def test_two_gold_ids_at_ranks_two_and_seven() -> None:
    scores = score(["a", "G", "b", "c", "d", "e", "H", "f"], ["G", "H"])
    assert scores["R@1"] == 0.0
    assert scores["R@5"] == 0.5
    assert scores["R@10"] == scores["R@20"] == 1.0
    assert scores["hit@10"] == 1.0
    assert scores["MRR"] == 0.5
    assert scores["nDCG@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(8)) / (1 + 1 / math.log2(3)))


def test_rank_eleven_counts_at_twenty_and_in_mrr_only() -> None:
    scores = score([*"abcdefghij", "G"], ["G"])
    assert scores == {"R@1": 0, "R@5": 0, "R@10": 0, "R@20": 1, "hit@10": 0, "MRR": 1 / 11, "nDCG@10": 0}


def test_nothing_found() -> None:
    assert set(score([], ["G"]).values()) == {0.0}


def test_gold_given_twice_counts_once() -> None:
    assert score(["G"], ["G", "G"]) == score(["G"], ["G"])


def test_no_gold_and_repeated_ids_are_errors() -> None:
    with pytest.raises(ValueError, match="gold"):
        score(["a"], [])
    with pytest.raises(ValueError, match="twice"):
        score(["a", "a"], ["a"])


def test_mean_of_two() -> None:
    averaged = mean([score(["G"], ["G"]), score(["a"], ["G"])])
    assert averaged == dict.fromkeys(NAMES, 0.5)


@given(ranked=IDS, gold=GOLD)
def test_bounds_and_monotone_recall(ranked: list[str], gold: set[str]) -> None:
    scores = score(ranked, gold)
    assert tuple(scores) == NAMES
    assert all(0 <= value <= 1 + 1e-12 for value in scores.values())
    assert scores["R@1"] <= scores["R@5"] <= scores["R@10"] <= scores["R@20"]
    assert (scores["hit@10"] == 1) == (scores["R@10"] > 0) == (scores["nDCG@10"] > 0)


@given(ranked=IDS, gold=GOLD)
def test_gold_first_is_perfect_and_moving_gold_up_never_hurts(ranked: list[str], gold: set[str]) -> None:
    best = score([*sorted(gold), *(found for found in ranked if found not in gold)], gold)
    assert best["MRR"] == 1
    assert best["nDCG@10"] == pytest.approx(1)
    for place in range(1, len(ranked)):
        if ranked[place] in gold and ranked[place - 1] not in gold:
            better = [*ranked]
            better[place - 1], better[place] = ranked[place], ranked[place - 1]
            before, after = score(ranked, gold), score(better, gold)
            assert all(after[name] >= before[name] - 1e-12 for name in NAMES)
