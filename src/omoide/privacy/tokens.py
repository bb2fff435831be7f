"""Credentials that name themselves, found on the long words of a text.

Ordinary text has few words of 16 and more characters, so all vendor formats together cost next to
nothing there. The words are cut into runs of letters and digits; a format is looked up by its head,
the run up to the first separator (`ghp_`, `sk-`, `hvs.`), or, when it is letters all the way (`AKIA`,
`AIza`), by the first two characters of a run. Shapes without a fixed prefix run where one of their
words occurs, or on very long words with digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from omoide.privacy.checks import CHECKS
from omoide.privacy.gates import occurs
from omoide.privacy.rulefiles import read
from omoide.privacy.verdict import BudgetError

LONG_WORD: Final = 16
"""Characters of the shortest word that can be a credential by its form alone."""
VERY_LONG_WORD: Final = 33
"""Characters of the shortest word on which shapes without a prefix are tried."""
FEWEST_DIGITS: Final = 4
MOST_FAILED: Final = 2_000
"""Matches that may fail their check before a text is refused: no honest text has as many."""

BODIES: Final[dict[str, str]] = {
    "an": "[A-Za-z0-9]",
    "url": r"[A-Za-z0-9_\-]",
    "word": "[A-Za-z0-9_]",
    "hex": "[0-9a-f]",
    "hexi": "[0-9A-Fa-f]",
    "hexu": r"[0-9a-f\-]",
    "uuid": r"[0-9a-f\-]",
    "hexw": "[0-9A-Fa-f_]",
    "hexd": "[0-9a-f.]",
    "low": "[a-z0-9]",
    "up": "[A-Z0-9]",
    "upd": r"[A-Z0-9\-]",
    "b32": "[A-Z2-7]",
    "b58": "[1-9A-HJ-NP-Za-km-z]",
    "b64": "[A-Za-z0-9+/]",
    "b64u": r"[A-Za-z0-9+/_\-]",
    "any": r"[A-Za-z0-9_\-.=+/~]",
    "pct": r"[A-Za-z0-9%/+\-=]",
}
_LETTERS: Final = re.compile(r"[a-z]{2,20}(?![a-z])")
_USUAL_HEADS: Final = frozenset(
    (
        *("key", "keys", "secret", "access", "api", "test", "live", "oauth", "persona", "polar", "hyper"),
        *("mercury", "mob", "sdk", "pat", "org", "prod", "sec", "private", "restricted", "token", "re"),
        *("al", "pa", "sl", "fc", "db", "ion", "ls", "md", "rpa", "account"),
    )
)
"""Heads that are words of ordinary text too."""
_BLOCK: Final = re.compile(r"[A-Za-z0-9]+")
_DIGITS: Final = re.compile(r"[0-9]")
_LETTER_OR_DIGIT: Final = re.compile(r"[A-Za-z0-9]")
_SEPARATORS: Final = "_-.:/~+="
_RUN: Final = re.compile(r"[A-Za-z0-9]+[_\-.:/~+=]?")


class Prefixed(NamedTuple):
    """A format with a prefix: a row of the token table for one of its prefixes.

    Its expression would be `prefix body{least,most}`, and with `end` no letter or digit after that.
    There are hundreds of them and few bodies, so only the bodies are compiled.
    """

    rule: str
    prefix: str
    body: re.Pattern[str]
    least: int
    most: int
    end: bool
    check: Callable[[str], bool]

    def value(self, blob: str, start: int) -> str | None:
        """The longest body at a place, as the expression would match it; None when there is none."""
        found = self.body.match(blob, start, start + self.most)
        stop = start if found is None else found.end()
        if self.end:
            while stop - start >= self.least and _LETTER_OR_DIGIT.match(blob, stop):
                stop -= 1
        return blob[start:stop] if stop - start >= self.least else None


class Format(NamedTuple):
    """One compiled shape."""

    rule: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    literals: tuple[str, ...] = ()
    run: int = 0
    """Length of an unbroken run of letters and digits that must occur."""


class Formats(NamedTuple):
    """All formats, by how they are looked up."""

    heads: dict[str, tuple[Prefixed, ...]]
    tight: dict[str, tuple[Prefixed, ...]]
    shapes: tuple[tuple[frozenset[str], Format], ...]
    long: tuple[Format, ...]


@cache
def formats() -> Formats:
    """Compile `rules/tokens.toml` and the token shapes of `rules/shapes.toml`, once."""
    heads: dict[str, list[Prefixed]] = {}
    tight: dict[str, list[Prefixed]] = {}
    for row in read("tokens")["tokens"]:
        for prefix in row["prefixes"]:
            made = _prefixed(row, prefix)
            head = _RUN.match(prefix)
            if head is not None and head.group(0)[-1] in _SEPARATORS:
                heads.setdefault(head.group(0), []).append(made)
            else:
                tight.setdefault(prefix[:2], []).append(made)
    shapes, long = [], []
    for row in read("shapes")["shape"]:
        if row.get("over") not in ("tokens", "long"):
            continue
        flags = 0 if row.get("exact") else re.IGNORECASE
        literals, run = tuple(row.get("literals", ())), row.get("run", 0)
        shape = Format(row["id"], re.compile(row["pattern"], flags), CHECKS[row["check"]], literals, run)
        if row["over"] == "long":
            long.append(shape)
        else:
            shapes.append((frozenset(row["words"]), shape))
    return Formats(
        {head: tuple(made) for head, made in heads.items()},
        {start: tuple(made) for start, made in tight.items()},
        tuple(shapes),
        tuple(long),
    )


def vocabulary() -> tuple[str, ...]:
    """The words of the gate: those of shapes that are tried on long words, and of prefixes."""
    return (*(word for words, _ in formats().shapes for word in words), *head_words())


@cache
def head_words() -> frozenset[str]:
    """The letters with which prefixes begin: a text without them cannot hold a cut token."""
    runs = (_LETTERS.match(head.lower()) for head in formats().heads)
    return frozenset(run.group(0) for run in runs if run is not None) - _USUAL_HEADS


def _prefixed(row: dict[str, Any], prefix: str) -> Prefixed:
    least, most = row["size"]
    check = CHECKS[row.get("check", "random")]
    return Prefixed(row["id"], prefix, _body(row["body"]), least, most, bool(row.get("end")), check)


@cache
def _body(name: str) -> re.Pattern[str]:
    return re.compile(BODIES[name] + "*")


_SOLID: Final = b"x" * LONG_WORD


def long_words(text: str, solid: bytes) -> list[str]:
    """The words of 16 and more characters; `solid` is the outline of the text."""
    place = solid.find(_SOLID)
    if place < 0:
        return []
    if len(solid) != len(text):
        return [word for word in text.split() if len(word) >= LONG_WORD]
    found: list[str] = []
    while place >= 0:
        start, end = solid.rfind(b" ", 0, place) + 1, solid.find(b" ", place)
        end = len(solid) if end < 0 else end
        found.append(text[start:end])
        place = solid.find(_SOLID, end)
    return found


class Found(NamedTuple):
    """What a look at the long words gave."""

    matches: Iterator[tuple[str, str]]
    """(rule, match), found as they are asked for."""
    started: bool
    """A prefix of some format occurs, whole or cut."""


def find_tokens(blob: str, words: list[str], found: set[str]) -> Found:
    """Every credential in the long words.

    Args:
        blob: The words of `LONG_WORD` and more characters, joined by newlines.
        words: The same words.
        found: What the gate said about the text.
    Raises:
        BudgetError: while the matches are read, when very many of them fail their check.
    Cost: linear in the blob; one set look-up for all prefixes.
    """
    known = formats()
    runs = set(_RUN.findall(blob))
    heads = known.heads.keys() & runs
    starts = known.tight.keys() & {run[:2] for run in runs}
    return Found(_checked(_candidates(blob, words, found, heads, starts)), bool(heads or starts))


def may_be_cut(text: str) -> bool:
    """A line ends in the beginning of a token that is shorter than a long word."""
    known = formats()
    for line in text.split("\n"):
        tail = line[-LONG_WORD:].rsplit(None, 1)
        if tail and len(tail[-1]) >= 6:
            run = _RUN.match(tail[-1])
            if run is not None and (run.group(0) in known.heads or tail[-1][:2] in known.tight):
                return True
    return False


class _Candidate(NamedTuple):
    """What has the form of a credential: its rule and validator, the secret, and the whole match."""

    rule: str
    check: Callable[[str], bool]
    value: str
    whole: str


def _checked(candidates: Iterator[_Candidate]) -> Iterator[tuple[str, str]]:
    failed = 0
    for rule, check, value, whole in candidates:
        if check(value):
            yield rule, whole
        else:
            failed += 1
            if failed > MOST_FAILED:
                raise BudgetError


def _candidates(
    blob: str, words: list[str], found: set[str], heads: set[str], starts: set[str]
) -> Iterator[_Candidate]:
    known = formats()
    if heads:
        yield from _headed(blob, known, heads)
    for start in sorted(starts):
        for made in known.tight[start]:
            yield from _tight(blob, made)
    for gate, shape in known.shapes:
        if not gate.isdisjoint(found):
            yield from _each(shape, blob)
    longest = "\n".join(
        [
            word
            for word in words
            if len(word) >= VERY_LONG_WORD and len(_DIGITS.findall(word)) >= FEWEST_DIGITS
        ]
    )
    if longest:
        run = max(map(len, _BLOCK.findall(longest)), default=0)
        for shape in known.long:
            if run >= shape.run and (not shape.literals or occurs(longest, shape.literals)):
                yield from _each(shape, longest)


def _each(shape: Format, blob: str) -> Iterator[_Candidate]:
    for match in shape.pattern.finditer(blob):
        yield _Candidate(shape.rule, shape.check, match["v"], match.group(0))


def _headed(blob: str, known: Formats, heads: set[str]) -> Iterator[_Candidate]:
    for run in _RUN.finditer(blob):
        if run.group(0) in heads:
            for made in known.heads[run.group(0)]:
                if blob.startswith(made.prefix, run.start()):
                    value = made.value(blob, run.start() + len(made.prefix))
                    if value is not None:
                        yield _Candidate(made.rule, made.check, value, made.prefix + value)


def _tight(blob: str, made: Prefixed) -> Iterator[_Candidate]:
    start = blob.find(made.prefix)
    while start >= 0:
        done = start + 1
        value = made.value(blob, start + len(made.prefix))
        if value is not None:
            done = start + len(made.prefix) + len(value)
            before = blob[start - 1] if start else " "
            # A letter, a digit or base64 before a prefix of bare letters: the middle of something else.
            if not ((before.isascii() and before.isalnum()) or before in "+/"):
                yield _Candidate(made.rule, made.check, value, made.prefix + value)
        start = blob.find(made.prefix, done)
