"""What the firewall says about a text.

A verdict names a class and a rule, nothing else: no text, offset, length or hash of what was
scanned, so that it can be logged, counted and shown without telling the secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "",
    "credential",
    "natural_language",
    "off_the_record",
    "personal",
    "budget",
    "error",
    "self_test",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one scan.

    Attributes:
        blocked: True when the text must not be stored, logged, embedded or shown to a model.
        reason: Class of the block, "" when nothing was blocked.
        rule: Name of the rule that decided, "" when nothing was blocked.
        suspect: A random-looking token was seen that no rule explains. It never blocks.
        allowed: The allow-list, or a rule switched off, let a match through. It is counted, never silent.
    """

    blocked: bool
    reason: Reason
    rule: str
    suspect: bool = False
    allowed: bool = False


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text with its blocked parts taken out.

    Attributes:
        text: What may be used. "" when the blocked parts could not be isolated.
        verdicts: One for each part that was taken out, in the order of discovery.
        removed: How many parts were taken out.
    """

    text: str
    verdicts: tuple[Verdict, ...]
    removed: int


@dataclass(frozen=True, slots=True)
class Finding:
    """A match inside one scan. It holds offsets and therefore never leaves the package.

    Attributes:
        reason, rule: As in `Verdict`.
        start, end: Character range in the text that was scanned, of the match or, in a decoded
            view, of the encoded part; (0, len) when the part cannot be told.
        whole: The secret may go beyond the range, to the end of its line.
    """

    reason: Reason
    rule: str
    start: int
    end: int
    whole: bool = True


class BudgetError(Exception):
    """A text asked for more work than a text can need; the scan gives up and blocks it."""


CLEAN = Verdict(False, "", "")
