"""bm25s as its README recommends: English stop words and the Snowball stemmer, its default BM25 (Lucene)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.rivals.system import Turn


def ranker() -> BM25sRanker:
    import_module("bm25s")
    return BM25sRanker()


class BM25sRanker:
    served = False

    def open(self, url: str) -> None:
        self._library = import_module("bm25s")
        self._stemmer = import_module("Stemmer").Stemmer("english")
        self._indexes: dict[str, tuple[Any, list[str]]] = {}

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        index = self._library.BM25()
        index.index(self._tokens([f"{turn.author}: {turn.text}" for turn in turns]), show_progress=False)
        self._indexes[conversation] = (index, [turn.id for turn in turns])

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        index, ids = self._indexes[conversation]
        found, scores = index.retrieve(self._tokens(question), k=min(depth, len(ids)), show_progress=False)
        return [ids[int(position)] for position, score in zip(found[0], scores[0], strict=True) if score > 0]

    def close(self) -> None:
        self._indexes = {}

    def _tokens(self, texts: str | list[str]) -> Any:
        return self._library.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)
