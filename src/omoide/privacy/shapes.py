"""Credentials known by their place in a text: URLs, key blocks, commands, config of tools.

Each shape of `rules/shapes.toml` names words or literals; it is tried only where one of them occurs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from omoide.privacy.checks import CHECKS, PRINTABLE, decode_base64
from omoide.privacy.gates import occurs
from omoide.privacy.judge import is_secret
from omoide.privacy.reading import Reading
from omoide.privacy.rulefiles import read
from omoide.privacy.values import is_random
from omoide.privacy.verdict import Finding, Reason

_SECRET_ROW: Final = re.compile(
    r"\n\s{1,12}[\w.\-]{1,60}:\s{1,3}(?:[|>]-?\s{1,16})?[\"']?(?P<v>[A-Za-z0-9+/=_\-]{8,4000})[\"']?\s{0,4}"
    r"(?=\n|$)"
)
_MANIFEST: Final = 20_000
"""Characters of a manifest that are read from its kind on."""
_PEM_END: Final = "-----END"


class _Shape(NamedTuple):
    name: str
    reason: Reason
    words: frozenset[str]
    also: frozenset[str]
    stems: frozenset[str]
    needs: tuple[str, ...]
    long: bool
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    special: str
    between: re.Pattern[str] | None


@cache
def _shapes() -> tuple[_Shape, ...]:
    return tuple(
        _Shape(
            row["id"],
            row.get("reason", "credential"),
            frozenset(row.get("words", ())),
            frozenset(row.get("also", ())),
            frozenset(row.get("stems", ())),
            tuple(row.get("needs", ())),
            bool(row.get("long")),
            tuple(row.get("literals", ())),
            re.compile(row["pattern"]),
            CHECKS[row["check"]],
            row.get("scan", row.get("over", "")),
            re.compile(row["between"]) if "between" in row else None,
        )
        for row in read("shapes")["shape"]
        if row.get("over") not in ("tokens", "long")
    )


def vocabulary() -> tuple[str, ...]:
    """Words of the gate."""
    return tuple(word for shape in _shapes() for word in (*shape.words, *shape.also))


def literals() -> tuple[str, ...]:
    """Literals of the gate that are no words."""
    return tuple(
        dict.fromkeys(part for shape in _shapes() for part in shape.literals if shape.special != "numbers")
    )


@cache
def _by_gate() -> dict[str, tuple[int, ...]]:
    """Places of shapes by a word or literal that lets them be tried."""
    places: dict[str, list[int]] = {}
    for place, shape in enumerate(_shapes()):
        if shape.special != "numbers":
            for part in {*shape.words, *shape.literals}:
                places.setdefault(part, []).append(place)
    return {part: tuple(found) for part, found in places.items()}


@cache
def _of_numbers() -> tuple[int, ...]:
    return tuple(place for place, shape in enumerate(_shapes()) if shape.special == "numbers")


def _in_question(text: str, found: set[str]) -> list[_Shape]:
    """The shapes that a text may have, in the order of the file."""
    gate = _by_gate()
    places = {place for part in found & gate.keys() for place in gate[part]}
    if text.count(",") >= 63:
        places.update(_of_numbers())
    every = _shapes()
    return [every[place] for place in sorted(places)]


def find_shapes(reading: Reading) -> Iterator[Finding]:
    """Yield the credentials whose place the text has.

    Cost: one search per shape in question.
    """
    text, low, hits = reading.text, reading.low, reading.hits
    found = hits.words
    for shape in _in_question(text, found):
        if (shape.also and found.isdisjoint(shape.also)) or (shape.long and not reading.long):
            continue
        if (shape.stems and hits.stems(low).isdisjoint(shape.stems)) or (
            shape.needs and not occurs(low, shape.needs)
        ):
            continue
        done = 0
        for match in shape.pattern.finditer(low):
            if shape.special == "kubernetes":
                if match.start() >= done:
                    done = match.start() + _MANIFEST
                    yield from _kubernetes(text, match)
            elif shape.between is not None and shape.between.search(low, match.start(), match.start("v")):
                continue
            elif shape.check(text[match.start("v") : match.end("v")]):
                yield Finding(shape.reason, shape.name, match.start(), _block_end(text, shape, match))


def _block_end(text: str, shape: _Shape, match: re.Match[str]) -> int:
    """A key block goes to its end line, or to the end of the text."""
    if shape.name != "private_key":
        return match.end()
    end = text.find(_PEM_END, match.end())
    if end < 0:
        return len(text)
    line = text.find("\n", end)
    return line if line >= 0 else len(text)


def _kubernetes(text: str, match: re.Match[str]) -> Iterator[Finding]:
    """The values under `data:` of a manifest are base64 of the secrets."""
    start = text.find("data:", match.end())
    if start < 0:
        start = max(0, text.rfind("data:", 0, match.start()))
    for row in _SECRET_ROW.finditer(text, start, start + _MANIFEST):
        value = row["v"]
        raw = decode_base64(value)
        told = (
            bool(raw)
            and PRINTABLE.fullmatch(raw) is not None
            and is_secret(raw.decode("ascii"), quoted=True, strong=True)
        )
        if told or (len(value) >= 12 and is_random(value, 0.25)):
            yield Finding("credential", "kubernetes_secret", row.start(), row.end())
