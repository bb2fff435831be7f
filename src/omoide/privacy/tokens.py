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
from omoide.privacy.gates import Hits, occurs
from omoide.privacy.reading import LONG_WORD
from omoide.privacy.rulefiles import read
from omoide.privacy.verdict import BudgetError

VERY_LONG_WORD: Final = 33
"""Characters of the shortest word on which shapes without a prefix are tried."""
FEWEST_DIGITS: Final = 2
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
_NO_DIGITS: Final = bytes(byte for byte in range(256) if not 48 <= byte <= 57)
_RUNS_ONLY: Final = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
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

    stems: dict[bytes, tuple[str, ...]]
    """Heads by their letters and digits: what a text without them cannot begin."""
    heads: dict[str, tuple[Prefixed, ...]]
    tight: dict[str, tuple[Prefixed, ...]]
    """By the whole prefix."""
    twos: dict[bytes, tuple[str, ...]]
    """Tight prefixes by their first two characters."""
    shapes: tuple[tuple[frozenset[str], Format], ...]
    shape_words: frozenset[str]
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
                tight.setdefault(prefix, []).append(made)
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
    stems: dict[bytes, list[str]] = {}
    twos: dict[bytes, list[str]] = {}
    for start in heads:
        stems.setdefault(start[:-1].encode(), []).append(start)
    for start in tight:
        twos.setdefault(start[:2].encode(), []).append(start)
    return Formats(
        {stem: tuple(made) for stem, made in stems.items()},
        {start: tuple(made) for start, made in heads.items()},
        {start: tuple(made) for start, made in tight.items()},
        {two: tuple(made) for two, made in twos.items()},
        tuple(shapes),
        frozenset(word for words, _ in shapes for word in words),
        tuple(long),
    )


def vocabulary() -> tuple[str, ...]:
    """The words of the gate: those of shapes that are tried on long words, and of prefixes."""
    return (*(word for words, _ in formats().shapes for word in words), *head_words())


@cache
def head_words() -> dict[str, tuple[str, ...]]:
    """The words with which prefixes begin: a text without them cannot hold a cut token."""
    words: dict[str, list[str]] = {}
    for head in formats().heads:
        word = _LETTERS.match(head.lower())
        if word is not None and word.group(0) not in _USUAL_HEADS:
            words.setdefault(word.group(0), []).append(head)
    return {word: tuple(heads) for word, heads in words.items()}


def _prefixed(row: dict[str, Any], prefix: str) -> Prefixed:
    least, most = row["size"]
    check = CHECKS[row.get("check", "random")]
    return Prefixed(row["id"], prefix, _body(row["body"]), least, most, bool(row.get("end")), check)


@cache
def _body(name: str) -> re.Pattern[str]:
    return re.compile(BODIES[name] + "*")


class Found(NamedTuple):
    """What a look at the long words gave."""

    matches: Iterator[tuple[str, str]]
    """(rule, match), found as they are asked for."""
    started: tuple[str, ...]
    """The prefixes of formats that occur, whole or cut."""


def find_tokens(blob: str, words: list[str], hits: Hits) -> Found:
    """Every credential in the long words.

    Args:
        blob: The words of `LONG_WORD` and more characters, joined by newlines.
        words: The same words.
        hits: What the gate said about the text.
    Raises:
        BudgetError: while the matches are read, when very many of them fail their check.
    Cost: linear in the blob; one look for all prefixes.
    """
    known = formats()
    raw = blob.encode("utf-8", "replace")
    started = hits.prefixes(raw)
    heads = {head for head in started if head in known.heads}
    starts = sorted(start for start in started if start in known.tight)
    return Found(_checked(_candidates(blob, raw, words, hits.words, heads, starts)), tuple(started))


def plain_prefixes(raw: bytes) -> list[str]:
    """The prefixes that may begin a run of letters and digits in UTF-8, without an accelerator."""
    known = formats()
    runs = set(raw.translate(_RUNS_ONLY).split())
    found = [head for stem in known.stems.keys() & runs for head in known.stems[stem] if head.encode() in raw]
    twos = known.twos.keys() & {run[:2] for run in runs}
    return found + [start for two in twos for start in known.twos[two] if start.encode() in raw]


def prefixes() -> tuple[str, ...]:
    """The beginnings of formats that are looked for."""
    known = formats()
    return (*known.heads, *known.tight)


def may_be_cut(text: str, found: set[str]) -> bool:
    """A line ends in the beginning of a token that is shorter than a long word."""
    known = formats()
    heads = head_words()
    if not any(head in text for word in heads.keys() & found for head in heads[word]):
        return False
    for line in text.split("\n"):
        tail = line[-LONG_WORD:].rsplit(None, 1)
        if tail and len(tail[-1]) >= 6:
            run = _RUN.match(tail[-1])
            if run is not None and (run.group(0) in known.heads or tail[-1][:2].encode() in known.twos):
                return True
    return False


def ends_a_line(text: str, words: list[str], started: tuple[str, ...]) -> bool:
    """A long word with the beginning of a token is the last of its line, so that the token may go on."""
    return any(
        f"{word}{end}" in text
        for word in words
        if occurs(word, started)
        for end in ("\n", "\r\n", " \n", "  \n")
    )


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
    blob: str,
    raw: bytes,
    words: list[str],
    found: set[str],
    heads: set[str],
    starts: list[str],
) -> Iterator[_Candidate]:
    known = formats()
    if heads:
        yield from _headed(blob, known, heads)
    for start in starts:
        for made in known.tight[start]:
            yield from _tight(blob, made)
    if not known.shape_words.isdisjoint(found):
        for gate, shape in known.shapes:
            if not gate.isdisjoint(found) and (not shape.literals or occurs(blob, shape.literals)):
                yield from _each(shape, blob)
    longest = _very_long(raw, words)
    if longest:
        run = max(map(len, raw.translate(_RUNS_ONLY).split()), default=0)
        for shape in known.long:
            if run >= shape.run and (not shape.literals or occurs(longest, shape.literals)):
                yield from _each(shape, longest)


def _very_long(raw: bytes, words: list[str]) -> str:
    """The words on which shapes without a prefix are tried, joined; `raw` holds all words."""
    if len(raw.translate(None, _NO_DIGITS)) < FEWEST_DIGITS:
        return ""
    return "\n".join(
        [
            word
            for word in words
            if len(word) >= VERY_LONG_WORD
            and len(word.encode("utf-8", "replace").translate(None, _NO_DIGITS)) >= FEWEST_DIGITS
        ]
    )


def _each(shape: Format, blob: str) -> Iterator[_Candidate]:
    for match in shape.pattern.finditer(blob):
        yield _Candidate(shape.rule, shape.check, match["v"], match.group(0))


def _headed(blob: str, known: Formats, heads: set[str]) -> Iterator[_Candidate]:
    places = []
    for head in heads:
        place = blob.find(head)
        while place >= 0:
            # In the middle of a run of letters and digits it is no head.
            if not place or not _LETTER_OR_DIGIT.match(blob, place - 1):
                places.append((place, head))
            place = blob.find(head, place + 1)
    for place, head in sorted(places):
        for made in known.heads[head]:
            if blob.startswith(made.prefix, place):
                value = made.value(blob, place + len(made.prefix))
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
