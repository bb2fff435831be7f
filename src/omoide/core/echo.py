"""The echo guard: a text that only repeats what a turn was given is no news.

A line counts as an echo when at least `cover` of its terms, repeats included and in any order,
are among the terms the turn was given. Two things are news at any cover: a number that was not
given, and a negation on one side only; "port 5433" after "port 5432", or "we do not deploy on
Fridays" after "we deploy on Fridays", corrects a memory and must not confirm it.

Terms come from the model's analyzer, so a reworded inflection is the same term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Terms = Callable[[str], Sequence[str]]

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NEGATION = re.compile(
    r"(?<!\w)(?:not|no|never|none|without|neither|nor|cannot|\w+n['’]t|nicht|kein\w*|nie|ne|pas|jamais|nunca|non|mai)"
    r"(?!\w)|[不没沒未非无無]|ない|ません|않|없",
    re.IGNORECASE,
)
_WORDY = re.compile(r"\w")
_MARKER = re.compile(r"^\s*(?:[-*•>]+|\(?\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Given:
    """What a turn was given: its memories (id -> text) and what stood around them.

    `frame` lines (header, tags) are echoes as they stand. The words and numbers of `around` (ids,
    dates, authors, the block as it was rendered) count as given too, but are no memory.
    """

    memories: Mapping[str, str] = field(default_factory=dict)
    frame: tuple[str, ...] = ()
    around: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.memories)


@dataclass(frozen=True, slots=True)
class Sifted:
    """`news`: what is left to store, lines joined; `echoed`: ids of the memories repeated, in order."""

    news: str
    echoed: tuple[str, ...]


def coverage(terms: Iterable[str], given: Mapping[str, int]) -> float:
    """Share of `terms` found in the multiset `given`, in [0, 1]; 0.0 for no terms."""
    wanted = Counter(terms)
    total = wanted.total()
    if not total:
        return 0.0
    return sum(min(count, given.get(term, 0)) for term, count in wanted.items()) / total


class Guard:
    """Tells echo from news for one turn. Cost: linear in what was given, then in each text."""

    def __init__(self, given: Given, terms: Terms, cover: float) -> None:
        self._terms = terms
        self._cover = cover
        self._memories = [(id, Counter(terms(text)), text) for id, text in given.memories.items()]
        self._frame = {line.strip() for block in given.frame for line in block.splitlines()}
        self._all: Counter[str] = Counter()
        for _, counts, _ in self._memories:
            self._all += counts
        around = (*given.frame, *given.around)
        self._all |= Counter(term for block in around for term in terms(block))
        texts = (*given.memories.values(), *around)
        self._numbers = {number for text in texts for number in _NUMBER.findall(text)}

    def sift(self, text: str) -> Sifted:
        """Take the lines that repeat what was given out of a text."""
        news: list[str] = []
        echoed: dict[str, None] = {}
        found = False
        for line in text.splitlines():
            source = self._source(line)
            if source is None:
                news.append(line)
                continue
            found = True
            if source:
                echoed.setdefault(source)
        if found and not any(_WORDY.search(line) for line in news):
            return Sifted("", tuple(echoed))
        return Sifted("\n".join(news).strip() if found else text, tuple(echoed))

    def _source(self, line: str) -> str | None:
        """None for news; else the id of the memory the line repeats, or "" for the frame."""
        stripped = line.strip()
        if stripped and stripped in self._frame:
            return ""
        line = _MARKER.sub("", line)
        terms = self._terms(line)
        if not terms or coverage(terms, self._all) < self._cover:
            return None
        if any(number not in self._numbers for number in _NUMBER.findall(line)):
            return None
        best, share = None, 0.0
        for id, counts, text in self._memories:
            own = coverage(terms, counts)
            if own > share:
                best, share = (id, text), own
        if best is None:
            return ""
        if share >= self._cover and self._opposes(line, best[1]):
            return None
        return best[0]

    @staticmethod
    def _opposes(line: str, memory: str) -> bool:
        """One of the two is negated and the other is not."""
        return (_NEGATION.search(line) is None) != (_NEGATION.search(memory) is None)


__all__ = ["Given", "Guard", "Sifted", "coverage"]
