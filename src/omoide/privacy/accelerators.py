"""Libraries that answer the questions of the gate faster, each when it is installed.

`ahocorasick-rs` says which words, stems and prefixes occur; its answer is narrowed to the same
definition of a word. `google-re2` says which marks occur (see `marks.py`): a step whose mark does
not occur would have found nothing. So a verdict cannot depend on either. The automaton of marks is
also asked for something that always occurs; when it misses that, out of memory for instance,
nothing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from omoide.privacy.gates import Look, Marks, Prefixes, Questions, Words, letters_only, make_gate

_RUN: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ALWAYS: Final = "(?s:.)|^"
"""Occurs in every text."""


def fastest_gate(asked: Questions) -> Look:
    """The fastest gate this machine has."""
    words = prefixes = marks = None
    with suppress(ImportError):
        words, prefixes = fast_words(asked), fast_prefixes(asked.prefixes)
    with suppress(ImportError):
        marks = fast_marks(asked)
    return make_gate(asked, words, prefixes, marks)


def fast_words(asked: Questions) -> Words:
    """Words and stems on `ahocorasick-rs`. Raises ImportError when that is not installed.

    Words are looked up with the spaces around them in the letters of the text, stems without.
    """
    inner = {stem.encode(): stem for stem in asked.stems}
    names = {f" {word} ".encode(): word for word in asked.words}
    look_up = _automaton([*names, *inner])
    values = [*names.values(), *inner.values()]
    first_stem = len(names)

    def look(low: str) -> tuple[set[str], set[str], bool]:
        indexes = {index for index, _, _ in look_up(b" " + letters_only(low) + b" ")}
        found = {values[index] for index in indexes if index < first_stem}
        return found, {values[index] for index in indexes if index >= first_stem}, False

    return look


def fast_prefixes(asked: tuple[str, ...]) -> Prefixes:
    """Prefixes at the beginning of a run of letters and digits, on `ahocorasick-rs`."""
    look_up = _automaton([prefix.encode() for prefix in asked])

    def prefixes(raw: bytes) -> list[str]:
        begun = {index for index, start, _ in look_up(raw) if not start or raw[start - 1] not in _RUN}
        return [asked[index] for index in begun]

    return prefixes


def _automaton(parts: list[bytes]) -> Callable[[bytes], list[tuple[int, int, int]]]:
    """Where the parts occur: (place of the part, start, end)."""
    import ahocorasick_rs  # type: ignore[import-not-found, unused-ignore]

    made: Any = ahocorasick_rs.BytesAhoCorasick(parts, implementation=ahocorasick_rs.Implementation.DFA)
    return lambda raw: made.find_matches_as_indexes(raw, overlapping=True)


def fast_marks(asked: Questions) -> Marks:
    """Marks and literals on `google-re2`. Raises ImportError when that is not installed."""
    import re2  # type: ignore[import-not-found, unused-ignore]

    options: Any = re2.Options()
    options.never_capture = True
    options.log_errors = False
    made: Any = re2.Set.SearchSet(options)
    names = (*asked.marks, *asked.literals)
    for pattern in (*asked.marks.values(), *map(re.escape, asked.literals)):
        made.Add(pattern)
    known = made.Add(_ALWAYS)
    made.Compile()

    def occur(raw: bytes) -> set[str] | None:
        found: list[int] = made.Match(raw) or []
        return {names[index] for index in found if index != known} if known in found else None

    return occur
