"""Which words and literals occur: the cheap question asked before any rule runs.

A text is lower-cased once and cut into runs of letters; a set intersection with the vocabulary of
all rules then says which rules may apply. This costs about 15 microseconds for 1.5 kB and is the
same for 300 words as for 30. A few literals that are no words (`://`, `--`, parts of compound
names) are looked up by substring search.

`ahocorasick-rs`, when it is installed, answers the same question in one pass. It is never asked
anything else, and its answer is narrowed to the same definition of a word, so that a verdict
cannot depend on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

_OUTSIDE: Final = re.compile("[^\\x00-\\x7f\\u00c0-\\u024f]|[×÷]")
_FEW: Final = 12
"""So many different characters are replaced one by one; more by an expression."""
_ASCII: Final = bytes(range(128))
_TABLE: Final = bytes(byte if byte >= 128 or 97 <= byte <= 122 else 32 for byte in range(256))


class Hits(NamedTuple):
    """What occurs in a text."""

    words: set[str]
    """Words and literals of the rules."""
    stems: set[str] | None
    """Stems of names inside words; None when nobody asked yet."""


Look = Callable[[str], Hits]


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


def plain_gate(words: Iterable[str], literals: Iterable[str], stems: Iterable[str]) -> Look:
    """A gate that needs nothing but the standard library. It leaves the stems to the caller."""
    vocabulary = frozenset(word.encode() for word in words)
    names = {word: word.decode() for word in vocabulary}
    groups = _grouped(literals)

    def look(low: str) -> Hits:
        found = {names[word] for word in vocabulary.intersection(letters_only(low).split())}
        _add_literals(low, groups, found)
        return Hits(found, None)

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


def fast_gate(words: Iterable[str], literals: Iterable[str], stems: Iterable[str]) -> Look:
    """The same gate on `ahocorasick-rs`. Raises ImportError when that is not installed.

    Words are looked up with the spaces around them in the letters of the text, stems without.
    """
    import ahocorasick_rs  # type: ignore[import-not-found, unused-ignore]

    inner = {stem.encode(): stem for stem in stems}
    names = {f" {word} ".encode(): word for word in words}
    entries = [*names, *inner]
    automaton: Any = ahocorasick_rs.BytesAhoCorasick(
        entries, implementation=ahocorasick_rs.Implementation.DFA
    )
    groups = _grouped(literals)
    values = [*names.values(), *inner.values()]
    first_stem = len(names)

    def look(low: str) -> Hits:
        indexes = {
            index
            for index, _, _ in automaton.find_matches_as_indexes(
                b" " + letters_only(low) + b" ", overlapping=True
            )
        }
        found = {values[index] for index in indexes if index < first_stem}
        _add_literals(low, groups, found)
        return Hits(found, {values[index] for index in indexes if index >= first_stem})

    return look


def occurs(text: str, parts: Iterable[str]) -> bool:
    """One of the parts is in the text. A plain loop: the hot paths ask this for every text."""
    for part in parts:  # noqa: SIM110 - a generator costs more than the search
        if part in text:
            return True
    return False


def make_gate(words: Iterable[str], literals: Iterable[str], stems: Iterable[str]) -> Look:
    """The fastest gate this machine has."""
    asked = tuple(words), tuple(literals), tuple(stems)
    try:
        return fast_gate(*asked)
    except ImportError:
        return plain_gate(*asked)
