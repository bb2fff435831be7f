"""Lexemes under which another analyzer, PostgreSQL's `english`, may have indexed a term.

The stems of both are Snowball's. What differs is undone here: a lemma stands for its irregular forms
too, an exact term (`=src/app.py`) is the word itself, and a lone character of a script without spaces
begins a pair.
"""

from __future__ import annotations

from functools import cache

from omoide.core.text.irregular import LEMMA
from omoide.core.text.scripts import UNSPACED_RUN
from omoide.core.text.stemmers import StemmerPool

PREFIX = ":*"


def lexemes(term: str) -> tuple[str, ...]:
    """Lexemes of a term, each in the syntax of a tsquery; none for one that cannot be written."""
    word = term.removeprefix("=")
    if not word or "\x00" in word:
        return ()
    lone = len(word) == 1 and not word.isascii() and UNSPACED_RUN.match(word) is not None
    forms = dict.fromkeys((word, *_forms().get(word, ())))
    return tuple(quoted(form) + (PREFIX if lone else "") for form in forms)


def quoted(lexeme: str) -> str:
    """One lexeme as it is, whatever characters it has."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    """Stem of a lemma -> stems of its irregular forms."""
    stem = StemmerPool("english").stem
    found: dict[str, dict[str, None]] = {}
    for form, lemma in LEMMA.items():
        found.setdefault(stem(lemma), {})[stem(form)] = None
    return {lemma: tuple(forms) for lemma, forms in found.items()}


__all__ = ["lexemes", "quoted"]
