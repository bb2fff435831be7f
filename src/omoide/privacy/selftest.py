"""The embedded examples, run once before the first scan.

A firewall that cannot find its own examples (a broken install, a rule file cut short, a patched
regular expression engine) refuses everything rather than letting secrets through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from omoide.privacy.options import Options
from omoide.privacy.rulefiles import read
from omoide.privacy.samples import Maker
from omoide.privacy.scanner import Scan


class Example(NamedTuple):
    """A text and what a scan must say about it. `reason` "" is a look-alike."""

    rule: str
    reason: str
    text: str


_EVERYDAY: Final = (
    "Thanks, that helped a lot. I'll try it tonight and report back.",
    "I forgot my password again and the reset flow is broken.",
    "The token budget for this prompt is 4096.",
    "password = os.environ['DB_PASSWORD']",
    "fixed in commit 3f2a9c1, please pull",
)


def examples() -> Iterator[Example]:
    """All embedded examples."""
    yield from _secrets()
    yield from _placeholders()


def _secrets() -> Iterator[Example]:
    """Every example but the placeholders behind a prefix."""
    yield from _token_examples()
    yield from _shape_examples()
    for row in (*read("offrecord")["rule"], *read("offrecord")["elsewhere"]):
        yield from (Example(row["id"], "off_the_record", text) for text in row["examples"])
        yield from (Example(row["id"], "", text) for text in row["near"])
    maker = Maker(7)
    for row in read("speech")["example"]:
        yield Example("told", "natural_language", maker.fill(row["text"]))
    yield from (Example("everyday", "", text) for text in _EVERYDAY)


def _token_examples() -> Iterator[Example]:
    for index, row in enumerate(read("tokens")["tokens"]):
        maker = Maker(index + 11)
        for prefix in row["prefixes"]:
            body = maker.body(row["body"] if row["body"] != "word" else "an", _size(row))
            yield Example(row["id"], "credential", f"use {prefix}{body} for now")


def _placeholders() -> Iterator[Example]:
    for row in read("tokens")["tokens"]:
        for prefix in row["prefixes"]:
            yield Example(row["id"], "", f"use {prefix}{'x' * _size(row)} for now")


def _size(row: dict[str, Any]) -> int:
    least, most = row["size"]
    return int(min(most, max(least, 32)))


def _shape_examples() -> Iterator[Example]:
    for index, row in enumerate(read("shapes")["shape"]):
        maker = Maker(index + 501)
        reason = row.get("reason", "credential")
        yield from (Example(row["id"], reason, maker.fill(text)) for text in row.get("examples", ()))
        yield from (Example(row["id"], "", maker.fill(text)) for text in row["near"])


def failures() -> list[Example]:
    """The examples a scan gets wrong.

    Placeholders behind a prefix are hundreds and much alike: they are read as one text, and one by
    one only when that is not clean. Cost: about 50 ms.
    """
    placeholders = list(_placeholders())
    together = Example("placeholders", "", "\n".join(example.text for example in placeholders))
    wrong = [example for example in _secrets() if _is_wrong(example)]
    if _is_wrong(together):
        wrong += [example for example in placeholders if _is_wrong(example)] or [together]
    return wrong


def _is_wrong(example: Example) -> bool:
    finding = Scan(Options()).find(example.text)
    return (finding.reason if finding is not None else "") != example.reason
