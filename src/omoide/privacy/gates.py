"""What occurs in a text: the cheap questions asked before any rule runs.

A text is lower-cased once and cut into runs of letters; a set intersection with the vocabulary of
all rules then says which rules may apply. This costs about 15 microseconds for 1.5 kB and is the
same for 300 words as for 30. A few literals that are no words (`://`, `--`) are looked up by
substring search, and every step has a cheap question of its own.

Accelerators answer the same questions faster, see `accelerators.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from typing import AnyStr, Final, NamedTuple

Prefixes = Callable[[bytes], list[str]]
Marks = Callable[[bytes], "set[str] | None"]
_OUTSIDE: Final = re.compile("[^\\x00-\\x7f\\u00c0-\\u024f]|[×÷]")
_FEW: Final = 12
"""So many different characters are replaced one by one; more by an expression."""
_ASCII: Final = bytes(range(128))
_TABLE: Final = bytes(byte if byte >= 128 or 97 <= byte <= 122 else 32 for byte in range(256))
_SINGLES: Final = frozenset(letter.encode() for letter in "bcefghjklnopqruvwxyz")
"""Letters that are no words of English prose, nor what an apostrophe leaves of one."""
_FEWEST_SINGLES: Final = 3
_WRITTEN: Final = frozenset(("letters", "pairs"))
"""Marks of texts written letter by letter."""


class Questions(NamedTuple):
    """What is asked of every text.

    Attributes:
        words, literals, stems: Of the lower-cased text; a word is a whole run of letters.
        prefixes: Beginnings of credentials, of its long words as they stand.
        marks: Expressions by name, of the text as it stands.
        plain_prefixes: How prefixes are looked up without an accelerator.
    """

    words: tuple[str, ...]
    literals: tuple[str, ...]
    stems: tuple[str, ...]
    prefixes: tuple[str, ...]
    marks: Mapping[str, str]
    plain_prefixes: Prefixes


class Hits:
    """What occurs in a text.

    Attributes:
        words: Words and literals of the rules.
        prefixes: Which prefixes occur in UTF-8.
    """

    __slots__ = ("_asked", "_found", "_marks", "prefixes", "words")

    def __init__(
        self,
        words: set[str],
        stems: set[str] | None,
        asked: tuple[str, ...],
        marks: Set[str] | None,
        prefixes: Prefixes,
    ) -> None:
        self.words = words
        self.prefixes = prefixes
        self._found = stems
        self._asked = asked
        self._marks = marks

    def stems(self, low: str) -> set[str]:
        """Stems of names, also inside words; looked up at the first call when the gate did not."""
        if self._found is None:
            self._found = {stem for stem in self._asked if stem in low}
        return self._found

    def may(self, mark: str) -> bool:
        """The mark occurs, or nobody asked."""
        return self._marks is None or mark in self._marks


Look = Callable[[str, bytes], Hits]
"""(lower-cased text, UTF-8 of the text) -> what occurs."""
Words = Callable[[str], "tuple[set[str], set[str] | None, bool]"]
"""Lower-cased text -> its words, its stems or None when nobody asked, and whether it is not spelled."""


def beyond_ascii(text: str) -> str:
    """The characters of a text that are not ASCII, lone surrogates aside: most texts have few."""
    return text.encode("utf-8", "ignore").translate(None, _ASCII).decode("utf-8")


def letters_only(low: str) -> bytes:
    """The text with everything but letters turned into spaces, as UTF-8."""
    if not low.isascii():
        others = set(beyond_ascii(low))
        if len(others) > _FEW:
            low = _OUTSIDE.sub(" ", low)
        else:
            for char in others:
                if _OUTSIDE.match(char):
                    low = low.replace(char, " ")
    return low.encode("utf-8", "replace").translate(_TABLE)


def is_spelled(words: Iterable[bytes]) -> bool:
    """Several letters stand alone that seldom do, as in `g h p _ 4` or `67 68 5f`."""
    return len(_SINGLES.intersection(words)) >= _FEWEST_SINGLES


def make_gate(
    asked: Questions, words: Words | None = None, prefixes: Prefixes | None = None, marks: Marks | None = None
) -> Look:
    """A gate of the accelerators there are; with none it is the one of the standard library."""
    words_of, prefixes_of = words or plain_words(asked), prefixes or asked.plain_prefixes
    literals, groups = frozenset(asked.literals), _grouped(asked.literals)
    unspelled = frozenset(asked.marks) - _WRITTEN

    def look(low: str, raw: bytes) -> Hits:
        found, stems, is_plain = words_of(low)
        marked = marks(raw) if marks is not None else None
        if marked is None:
            _add_literals(low, groups, found)
            return Hits(found, stems, asked.stems, unspelled if is_plain else None, prefixes_of)
        found |= marked & literals
        return Hits(found, stems, asked.stems, marked, prefixes_of)

    return look


def plain_words(asked: Questions) -> Words:
    """Words by the standard library. It leaves the stems to the caller."""
    vocabulary = frozenset(word.encode() for word in asked.words)
    names = {word: word.decode() for word in vocabulary}

    def look(low: str) -> tuple[set[str], None, bool]:
        words = set(letters_only(low).split())
        return {names[word] for word in vocabulary & words}, None, not is_spelled(words)

    return look


def _grouped(literals: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    groups: dict[str, list[str]] = {}
    for part in literals:
        groups.setdefault(_rarest(part), []).append(part)
    return [(mark, tuple(parts)) for mark, parts in groups.items()]


def _add_literals(low: str, groups: list[tuple[str, tuple[str, ...]]], found: set[str]) -> None:
    for mark, parts in groups:
        if mark in low:
            found.update([part for part in parts if part in low])


def _rarest(part: str) -> str:
    """A character that is asked for first: punctuation before letters."""
    return min(part, key=lambda char: (char.isalnum(), char == " ", char))


def occurs(text: AnyStr, parts: Iterable[AnyStr]) -> bool:
    """One of the parts is in the text. A plain loop: the hot paths ask this for every text."""
    for part in parts:  # noqa: SIM110 - a generator costs more than the search
        if part in text:
            return True
    return False
