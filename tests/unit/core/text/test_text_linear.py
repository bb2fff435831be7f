"""No text makes reading start over: four times the text, about four times the work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.growth import grows_by

from omoide.core.arms import questions
from omoide.core.entities import named_entities
from omoide.core.text import Analyzer, cues
from omoide.recipes.extractors import statements

HOSTILE = {
    "one letter": "a",
    "capitals": "A",
    "camel": "aB",
    "snake": "a_",
    "underscores": "_",
    "dots": "a.b.",
    "at signs": "a@",
    "schemes": "a://",
    "hyphens": "-",
    "apostrophes": "'",
    "letters and apostrophes": "a'",
    "digit groups": "1,111,",
    "letters and digits": "a1",
    "plus signs": "C++",
    "accents": "\u0301",
    "accents of two classes": "\u0301\u0316",
    "nukta and virama": "\u093c\u094d",
    "split by joiners": "\u093c\u200d\u094d\u200d",
    "expanding ligature": "\ufdfa",
    "han": "漢",
    "han and latin": "漢a",
    "jamo": "ᄀ",
    "emoji": "👍🏽",
    "flags": "🇮",
    "arabic": "ال",
    "nul": "\x00",
    "surrogates": "\ud800",
    "spaces": " \t",
}
SMALL, LARGE = 20_000, 80_000
LINEAR_MAX = 9  # four times the size: 4 when linear, 16 when quadratic
QUICK_SECONDS = 0.02


def assert_linear(work: Callable[[str], object], unit: str) -> None:
    small = "x" + unit * (SMALL // len(unit))
    large = "x" + unit * (LARGE // len(unit))
    assert grows_by(LINEAR_MAX, work, (small, large), quick=QUICK_SECONDS)


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
def test_terms(unit: str) -> None:
    assert_linear(Analyzer().terms, unit)


@pytest.mark.parametrize(
    "unit", ["may ", "1 ", "june 1 ", "5月", "2023年", " ", "2023-", "1:00 ", "last", "in may "]
)
def test_cues(unit: str) -> None:
    assert_linear(cues.dates_named, unit)
    assert_linear(cues.cues_of, unit)
    assert_linear(cues.asked_for, unit)


@pytest.mark.parametrize("unit", ["?", "a? ", "a?\n", "...", "？我", "a ?!", "a.b"])
def test_questions(unit: str) -> None:
    assert_linear(questions.asks, unit)
    assert_linear(questions.mostly_asks, unit)


@pytest.mark.parametrize("unit", ["a", "A", "A ", "a.", "_a", "@", '"', "Ab", "1-", "of ", " ", "A'"])
def test_entities(unit: str) -> None:
    assert_linear(named_entities, unit)


@pytest.mark.parametrize("unit", ["a", ".", "i ", "we like ", "?\n", "。"])
def test_statements(unit: str) -> None:
    assert_linear(statements, unit)
