"""rank-bm25 (BM25Okapi, its defaults), which scores every document of a list in this process.

Tokens are lower-cased runs of word characters, nothing stemmed or stopped: its example splits at spaces
and leaves the rest to the user. It cannot add or remove a document, so saving or deleting one is
building the index again; nothing survives the process.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.rivals.system import RECALLED, Turn

_WORD = re.compile(r"\w+")


def store() -> RankBM25Store:
    library()
    return RankBM25Store()


def ranker() -> RankBM25Ranker:
    library()
    return RankBM25Ranker()


def library() -> Any:
    return import_module("rank_bm25")


def tokens(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def top(scores: Any, count: int) -> list[int]:
    """Positions of the highest positive scores, best first, earlier documents first among equals."""
    import numpy

    order = numpy.argsort(-scores, kind="stable")[:count]
    return [int(position) for position in order if scores[position] > 0]


class RankBM25Store:
    operations = ("save", "recall", "recall_cold", "delete")
    served = False

    def open(self, url: str) -> None:
        self._texts: list[str] = []
        self._corpus: list[list[str]] = []
        self._index: Any = None

    def load(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        self._corpus = [tokens(text) for text in texts]
        self._build()

    def crowd(self, texts: Sequence[str], neighbours: int) -> None:
        """A list each: the neighbours are other objects."""

    def warm(self, queries: Sequence[str]) -> None:
        self.recall(queries[0])

    def cool(self) -> None:
        self._index = None

    def save(self, text: str) -> int:
        self._texts.append(text)
        self._corpus.append(tokens(text))
        self._build()
        return len(self._texts) - 1

    def recall(self, query: str) -> list[str]:
        if self._index is None:
            self._build()
        scores = self._index.get_scores(tokens(query))
        return [self._texts[position] for position in top(scores, RECALLED)]

    def witness(self, query: str) -> list[str]:
        return self.recall(query)

    def observe(self, recalled: Any) -> None:
        raise TypeError("rank-bm25 has no feedback")

    def delete(self, saved: int) -> None:
        self._texts.pop()
        self._corpus.pop()
        self._build()

    def decay_top(self) -> Any:
        raise TypeError("rank-bm25 has no decay")

    def used_bytes(self) -> int:
        """Size of the index's own tables and of the texts; the words themselves are shared."""
        tables = [*self._index.doc_freqs, self._index.doc_len, self._index.idf, self._index.doc_freqs]
        return sum(map(sys.getsizeof, tables)) + sum(map(sys.getsizeof, self._texts))

    def close(self) -> None:
        self._index = None

    def _build(self) -> None:
        self._index = library().BM25Okapi(self._corpus)


class RankBM25Ranker:
    served = False

    def open(self, url: str) -> None:
        self._indexes: dict[str, tuple[Any, list[str]]] = {}

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        corpus = [tokens(f"{turn.author}: {turn.text}") for turn in turns]
        self._indexes[conversation] = (library().BM25Okapi(corpus), [turn.id for turn in turns])

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        index, ids = self._indexes[conversation]
        return [ids[position] for position in top(index.get_scores(tokens(question)), depth)]

    def close(self) -> None:
        self._indexes = {}
