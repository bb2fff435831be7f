"""Stand-ins for terms the index does not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.text.vocabulary import Vocabulary, similar, trigrams

TERMS = st.text(st.sampled_from("abcdé漢字=\x01"), min_size=1, max_size=9)


def test_weight_is_a_share_of_dice() -> None:
    [(term, weight)] = similar("krankenversicherung", ["versicherung", "krank", "haus"])
    assert term == "versicherung"
    assert weight == pytest.approx(0.3 * 2 * 11 / (19 + 12))


def test_best_three_ties_by_term() -> None:
    found = similar("deployment", ["deploymenta", "deploymentc", "deploymentb", "deploymentd", "deploy"])
    assert [term for term, _ in found] == ["deploymenta", "deploymentb", "deploymentc"]
    assert found[0][1] == found[1][1] > 0.15


def test_what_takes_no_part() -> None:
    vocabulary = Vocabulary(["=deploy.py", "\x01deploy", "dep", "deploy", "漢字"])
    assert [term for term, _ in vocabulary.similar("deploy")] == []
    assert [term for term, _ in vocabulary.similar("deployy")] == ["deploy"]
    assert vocabulary.similar("dep") == vocabulary.similar("=deploy.p") == vocabulary.similar("漢語") == []
    assert similar("deploy", []) == vocabulary.similar("") == []


def test_other_alphabets() -> None:
    assert [term for term, _ in similar("переводчики", ["переводчик", "перевал"])] == ["переводчик"]


def test_one_character_finds_its_pairs() -> None:
    found = similar("猫", ["黒猫", "猫が", "犬が", "猫を", "cat"])
    assert found == [("猫が", pytest.approx(0.2)), ("猫を", pytest.approx(0.2)), ("黒猫", pytest.approx(0.2))]
    assert len(similar("猫", [f"猫{chr(0x4E00 + i)}" for i in range(40)])) == 16


@given(st.lists(TERMS, max_size=40), TERMS)
def test_equals_the_definition(terms: list[str], missing: str) -> None:
    found = similar(missing, terms)
    if len(missing) == 1:
        assert all(missing in term and term != missing for term, _ in found)
        return
    assert len(found) <= 3
    eligible = {
        t for t in terms if len(t) >= 4 and t[0] not in "=\x01" and t[0] not in "漢字" and t != missing
    }
    dice = {
        t: 2 * len(trigrams(t) & trigrams(missing)) / (len(trigrams(t)) + len(trigrams(missing)))
        for t in eligible
    }
    if len(missing) < 4 or missing[0] in "=\x01漢字":
        assert found == []
        return
    best = sorted((-value, term) for term, value in dice.items() if value >= 0.5)[:3]
    assert [term for term, _ in found] == [term for _, term in best]
    assert [weight for _, weight in found] == pytest.approx([-0.3 * value for value, _ in best])
