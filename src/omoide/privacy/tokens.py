"""Credentials that name themselves, found on the long words of a text.

Ordinary text has few words of 16 and more characters, so all vendor formats together cost next to
nothing there. A format is looked up by its head, the letters up to the first separator (`ghp_`,
`sk-`, `hvs.`), in one dictionary; only formats that are letters all the way (`AKIA`, `AIza`) need
a substring search. Shapes without a fixed prefix run where one of their literals occurs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from omoide.privacy.checks import CHECKS
from omoide.privacy.rulefiles import read

LONG_WORD: Final = 16
"""Characters of the shortest word that can be a credential by its form alone."""
VERY_LONG_WORD: Final = 43

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
    "b32": "[A-Z2-7]",
    "b58": "[1-9A-HJ-NP-Za-km-z]",
    "b64": "[A-Za-z0-9+/]",
    "b64u": r"[A-Za-z0-9+/_\-]",
    "any": r"[A-Za-z0-9_\-.=+/~]",
    "pct": r"[A-Za-z0-9%/+\-=]",
}
_DIGITS: Final = re.compile(r"[0-9]")
_HEAD: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{1,20}[_\-.:/~+=]")


class Format(NamedTuple):
    """One compiled token format or shape."""

    rule: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    folded: bool
    """Matched without regard to case."""


class Formats(NamedTuple):
    """All formats, by how they are looked up."""

    heads: dict[str, tuple[Format, ...]]
    tight: tuple[tuple[str, Format], ...]
    shapes: tuple[tuple[tuple[str, ...], Format], ...]
    long: tuple[Format, ...]


@cache
def formats() -> Formats:
    """Compile `rules/tokens.toml` and the token shapes of `rules/shapes.toml`, once."""
    heads: dict[str, list[Format]] = {}
    tight: list[tuple[str, Format]] = []
    for row in read("tokens")["tokens"]:
        for prefix in row["prefixes"]:
            made = _compile(row, prefix)
            head = _HEAD.match(prefix)
            if head is None:
                tight.append((prefix, made))
            else:
                heads.setdefault(head.group(0), []).append(made)
    shapes, long = [], []
    for row in read("shapes")["shape"]:
        if row.get("over") not in ("tokens", "long"):
            continue
        flags = 0 if row.get("exact") else re.IGNORECASE
        shape = Format(row["id"], re.compile(row["pattern"], flags), CHECKS[row["check"]], not row.get("exact"))
        if row["over"] == "long":
            long.append(shape)
        else:
            shapes.append((tuple(row["literals"]), shape))
    return Formats({k: tuple(v) for k, v in heads.items()}, tuple(tight), tuple(shapes), tuple(long))


def token_pattern(row: dict[str, Any], prefix: str) -> str:
    """The expression of one row of the token table."""
    least, most = row["size"]
    end = "(?![A-Za-z0-9])" if row.get("end") else ""
    return f"{re.escape(prefix)}(?P<v>{BODIES[row['body']]}{{{least},{most}}}){end}"


def _compile(row: dict[str, Any], prefix: str) -> Format:
    check = CHECKS[row.get("check", "random")]
    return Format(row["id"], re.compile(token_pattern(row, prefix)), check, False)


class Found(NamedTuple):
    """What a look at the long words gave."""

    matches: list[tuple[str, str]]
    """(rule, match)."""
    started: bool
    """A prefix of some format occurs, whole or cut."""


def find_tokens(blob: str, words: list[str]) -> Found:
    """Every credential in the long words.

    Args:
        blob: The words of `LONG_WORD` and more characters, joined by newlines.
        words: The same words.
    """
    known = formats()
    heads, matches, started = known.heads, [], False
    if not heads.keys().isdisjoint(_HEAD.findall(blob)):
        started = True
        matches += _headed(blob, heads)
    for literal, made in known.tight:
        if literal in blob:
            started = True
            matches += _tight_matches(blob, made)
    low = blob.lower()
    for literals, made in known.shapes:
        haystack = low if made.folded else blob
        for literal in literals:
            if literal in haystack:
                started = True
                matches += _matches(blob, made)
                break
    longest = "\n".join([word for word in words if len(word) >= VERY_LONG_WORD and len(_DIGITS.findall(word)) >= 4])
    if longest:
        for made in known.long:
            matches += _matches(longest, made)
    return Found(matches, started)


def _headed(blob: str, heads: dict[str, tuple[Format, ...]]) -> Iterator[tuple[str, str]]:
    for head in _HEAD.finditer(blob):
        for made in heads.get(head.group(0), ()):
            match = made.pattern.match(blob, head.start())
            if match is not None and made.check(match["v"]):
                yield made.rule, match.group(0)


def _matches(blob: str, made: Format) -> Iterator[tuple[str, str]]:
    for match in made.pattern.finditer(blob):
        if made.check(match["v"]):
            yield made.rule, match.group(0)


def _tight_matches(blob: str, made: Format) -> Iterator[tuple[str, str]]:
    for match in made.pattern.finditer(blob):
        start = match.start()
        before = blob[start - 1] if start else " "
        # A letter, a digit or base64 before a prefix of bare letters: the middle of something else.
        if (before.isascii() and before.isalnum()) or before in "+/":
            continue
        if made.check(match["v"]):
            yield made.rule, match.group(0)
