"""A word of a memory, asked for alone, finds the memory."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.text import Analyzer, default_analyzer

SAMPLES = """
    deploy Running children getUserName get_user_name v1.2.3 main.py
    ann@example.com C++ it's O'Brien l'école 1,250,000 3fa9c1d
    東京タワー 成语 오늘 ภาษา नमस्ते الكتاب Þórður
    Straße ёлка Ισλανδία 👍🏽 🇮🇸 iPhone手机 ｶﾞｷﾞ
    １２３ naïve well-known
"""
KNOWN = SAMPLES.split()
LETTERS = st.text(
    st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl"]), min_size=1, max_size=12
)
WORDS = st.one_of(st.sampled_from(KNOWN), LETTERS)
SEPARATORS = st.sampled_from(
    [" ", "\n", "/", ".", "-", ", ", "; ", " (", ") ", ":", "@", "…", "\u3000", "—", "。", "|"]
)


@given(st.lists(st.tuples(WORDS, SEPARATORS), min_size=1, max_size=12))
def test_each_word_alone_finds_the_memory(pieces: list[tuple[str, str]]) -> None:
    analyzer = default_analyzer()
    memory = set(analyzer.terms("".join(word + separator for word, separator in pieces)))
    for word, _ in pieces:
        asked = analyzer.query_terms(word)
        assert not asked or memory.intersection(asked), (word, asked)


@given(st.text(max_size=80))
def test_a_query_of_the_whole_text_adds_no_term(text: str) -> None:
    for analyzer in (default_analyzer(), Analyzer(language="german"), Analyzer(stem=False)):
        asked = analyzer.query_terms(text)
        assert set(asked) <= set(analyzer.terms(text))
        assert len(asked) == len(set(asked))


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize("word", KNOWN)
def test_normal_forms_agree(form: str, word: str) -> None:
    analyzer = default_analyzer()
    assert analyzer.terms(unicodedata.normalize(form, word)) == analyzer.terms(word)


@pytest.mark.parametrize(
    "run", ["今日は成語しりとりをした", "끝말잇기놀이", "ภาษาไทยง่ายมาก", "ភាសាខ្មែរ", "မြန်မာစာ"]
)
def test_every_part_of_a_run_finds_it(run: str) -> None:
    analyzer = default_analyzer()
    memory = set(analyzer.terms(run))
    for start in range(len(run) - 1):
        for end in range(start + 2, len(run) + 1):
            assert set(analyzer.query_terms(run[start:end])) <= memory
