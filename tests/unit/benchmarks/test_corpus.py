"""The synthetic text: the same every time, with the shape the suite promises."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from benchmarks.corpus import VOCABULARY, synthesize, word


def test_same_seed_same_corpus_on_every_machine() -> None:
    corpus = synthesize(50, queries=5, arrivals=5)
    assert corpus == synthesize(50, queries=5, arrivals=5)
    assert corpus != synthesize(50, queries=5, arrivals=5, seed=8)
    digest = hashlib.sha256("\n".join(corpus.documents + corpus.queries).encode()).hexdigest()
    assert digest[:16] == "85630db3ca94d6ac"


def test_a_larger_corpus_starts_with_the_smaller() -> None:
    small, large = synthesize(20, queries=1), synthesize(40, queries=1)
    assert large.documents[:20] == small.documents


def test_words_are_distinct_and_long_enough_to_be_indexed_everywhere() -> None:
    words = [word(rank) for rank in range(VOCABULARY)]
    assert len(set(words)) == VOCABULARY
    assert min(map(len, words)) >= 4


def test_no_word_is_changed_by_the_stemmer() -> None:
    stemmer = pytest.importorskip("Stemmer").Stemmer("english")
    words = [word(rank) for rank in range(VOCABULARY)]
    assert stemmer.stemWords(words) == words


def test_documents_have_the_distinct_words_asked_for() -> None:
    assert {len(set(text.split())) for text in synthesize(200, distinct=22).documents} == {22}
    assert {len(text.split()) for text in synthesize(50, words=100).documents} == {100}


def test_frequencies_have_a_long_tail() -> None:
    documents = synthesize(2000).documents
    found = Counter(term for text in documents for term in set(text.split()))
    assert 0.05 < found.most_common(1)[0][1] / 2000 < 0.25
    assert sum(count == 1 for count in found.values()) > len(found) / 4


def test_queries_ask_for_words_that_one_document_has() -> None:
    corpus = synthesize(100, queries=30)
    for query in corpus.queries:
        asked = set(query.split())
        assert len(asked) == 5
        assert any(asked <= set(text.split()) for text in corpus.documents)
