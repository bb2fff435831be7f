"""Snowball stemmers, shared by threads without a lock.

A PyStemmer object is not safe in two threads at once, and making one costs more than stemming a
thousand words. So they lie in a deque: a call takes one off the end, or makes one, and puts it back.
`pop` and `append` are atomic with and without a GIL, so no object is ever in two hands, and there
are never more of them than calls that ran at the same moment. PyStemmer is imported at first use.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol


class _Stemmer(Protocol):
    maxCacheSize: int

    def stemWord(self, word: str) -> str: ...


class StemmerPool:
    """The stemmers of one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._free: deque[_Stemmer] = deque()

    def stem(self, word: str) -> str:
        """The stem of a lower-case word. About 1 us; 20 us when a stemmer has to be made."""
        try:
            stemmer = self._free.pop()
        except IndexError:
            stemmer = self._make()
        try:
            return stemmer.stemWord(word)
        finally:
            self._free.append(stemmer)

    def _make(self) -> _Stemmer:
        import Stemmer

        stemmer: _Stemmer = Stemmer.Stemmer(self.language)
        stemmer.maxCacheSize = 0  # the analyzer keeps its own, bounded, for whole words
        return stemmer


def languages() -> list[str]:
    """The languages the installed PyStemmer knows, sorted."""
    import Stemmer

    return sorted(Stemmer.algorithms())
