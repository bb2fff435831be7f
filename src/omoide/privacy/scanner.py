"""The scan: one text in, the first finding out.

    plain view -> lower case once -> gate (which words occur)
      -> off the record -> long words: vendor formats -> shapes by place -> names and sentences
      -> wallets, codes, answers -> personal numbers -> decoded views, two levels deep

Most texts leave after the gate. Every step is linear: patterns are anchored at a literal or a
gate, repeats are bounded, and the decoded views of one text may not exceed a budget in total.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from omoide.privacy import headers, names, normalise, offrecord, personal, shapes, speech, tokens, vendors
from omoide.privacy.accelerators import fastest_gate
from omoide.privacy.gates import Hits, Look, Questions, occurs
from omoide.privacy.marks import MARKS
from omoide.privacy.names import Strength
from omoide.privacy.options import Options
from omoide.privacy.reading import Reading
from omoide.privacy.tokens import ends_a_line, find_tokens, head_words, may_be_cut
from omoide.privacy.values import HEX, is_random
from omoide.privacy.verdict import BudgetError, Finding

DEPTH: Final = 2
"""How deep decoded views are decoded again."""

MOST_NAMES: Final = 6_000
"""Secret-bearing names of one text that are looked at; a text with more is refused."""

_WRAPPED: Final = "+wrapped"
"""A token broken over lines: its range is the whole text, so it is judged before it gets one."""
_WALLET: Final = frozenset(
    (
        "seed",
        "mnemonic",
        "recovery",
        "wallet",
        "backup",
        "phrase",
        "ledger",
        "metamask",
        "trezor",
        "rescue",
        "scratch",
        "bip",
    )
)
_LOGGING_IN: Final = frozenset(("log", "logged", "sign", "signed"))
_ANSWER: Final = frozenset(("maiden", "question", "answer", "pet"))
_ANSWER_TO: Final = frozenset(("maiden", "security", "secret", "first"))
_ASSIGNING: Final = ("=", ":", ">", '"', "`", "',")


class Scan:
    """The state of one scan: what was found, allowed and spent."""

    __slots__ = ("allowed", "options", "spent", "suspect")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.spent = 0
        self.suspect = False
        self.allowed = False

    def find(self, text: str, depth: int = 0) -> Finding | None:
        """The first finding in a plain view, offsets in that view; None when the text is clean."""
        for finding in self._findings(Reading(text, gate()), depth):
            if self.options.disabled and finding.rule.partition("+")[0] in self.options.disabled:
                self.allowed = True
                continue
            if self._is_allowed(text, finding):
                self.allowed = True
                continue
            return finding
        return None

    def _is_allowed(self, text: str, finding: Finding) -> bool:
        allows = self.options.allows
        if allows is None or finding.reason == "off_the_record" or finding.rule.endswith(_WRAPPED):
            return False
        part = text[finding.start : finding.end]
        return any(
            allows(piece)
            for piece in {part, *part.replace("=", " ").replace(":", " ").split(), *part.split()}
            for piece in (piece, piece.strip("\"'`,;()[]{}<>"))
        )

    def _findings(self, reading: Reading, depth: int) -> Iterator[Finding]:
        options, text, low, hits = self.options, reading.text, reading.low, reading.hits
        found = hits.words
        if depth == 0:
            yield from self._off_the_record(low, found)
        started: tuple[str, ...] = ()
        if reading.blob:
            matches, started = find_tokens(reading.blob, reading.long, hits)
            yield from _located(text, matches)
        yield from shapes.find_shapes(reading)
        yield from _named(text, low, hits)
        if not vendors.vocabulary().isdisjoint(found):
            finding = vendors.keyed(text, low, found)
            if finding is not None:
                yield finding
        yield from _spoken(text, low, found)
        for rule in options.extra:
            yield from rule(text, low)
        if depth == 0 and options.personal and hits.may("digits") and personal.has_digits(reading.raw):
            finding = personal.personal(text)
            if finding is not None:
                yield finding
        if depth < DEPTH:
            yield from self._views(reading, depth)
            yield from self._wrapped(reading, started)
        if depth == 0 and reading.long:
            self.suspect = any(_is_unexplained(word) for word in reading.long[:64] if len(word) >= 20)

    def _off_the_record(self, low: str, found: set[str]) -> Iterator[Finding]:
        finding = offrecord.off_the_record(low, found, frozenset())
        if finding is not None:
            yield finding
            if finding.rule in self.options.disabled:
                finding = offrecord.off_the_record(low, found, self.options.disabled)
                if finding is not None:
                    yield finding

    def _views(self, reading: Reading, depth: int) -> Iterator[Finding]:
        for view in normalise.decoded(reading):
            if not view.text:
                continue
            self._spend(len(view.text))
            finding = self.find(view.text, depth + 1)
            if finding is not None:
                yield Finding(finding.reason, f"{finding.rule}+{view.kind}", view.start, view.end)

    def _wrapped(self, reading: Reading, started: tuple[str, ...]) -> Iterator[Finding]:
        """Tokens broken over lines, where a line ends in what begins one."""
        text, found = reading.text, reading.hits.words
        if "\n" not in text or not (
            (started and ends_a_line(text, reading.long, started))
            or (not head_words().keys().isdisjoint(found) and may_be_cut(text, found))
        ):
            return
        joined = normalise.rejoined(text)
        for rule, match in find_tokens("\n".join(joined), joined, reading.hits).matches:
            if self.options.allows is not None and self.options.allows(match):
                self.allowed = True
            else:
                yield Finding("credential", rule + _WRAPPED, 0, len(text))

    def _spend(self, characters: int) -> None:
        self.spent += characters
        if self.spent > self.options.most_views:
            raise BudgetError


def _located(text: str, matches: Iterator[tuple[str, str]]) -> Iterator[Finding]:
    """Put vendor tokens back to their place in the text."""
    for rule, match in matches:
        start = text.find(match.split("\n", 1)[0])
        start = max(start, 0)
        yield Finding("credential", rule, start, start + len(match), whole=False)


def _named(text: str, low: str, hits: Hits) -> Iterator[Finding]:
    found = hits.words
    if occurs(low, _ASSIGNING):
        found = found | hits.stems(low)
    if found.isdisjoint(_name_words()):
        return
    judged = cookie_end = 0
    for name in names.names(text, low, found):
        finding = None
        if name.strength is not Strength.NONE:
            judged += 1
            if judged > MOST_NAMES:
                raise BudgetError
            finding = (
                names.assigned(text, name)
                or names.beside(text, name)
                or speech.told(text, name)
                or speech.used_as(text, low, name)
                or names.near(text, name)
                or names.in_column(text, name)
            )
        finding = (
            finding or speech.digits(text, low, name) or speech.pair(text, name) or headers.header(text, name)
        )
        if name.text in headers.COOKIES and finding is None and name.start >= cookie_end:
            finding = headers.cookie(text, name)
            cookie_end = headers.reach(text, name)
        if finding is not None:
            yield finding


@cache
def _name_words() -> frozenset[str]:
    return frozenset(names.vocabulary())


def _spoken(text: str, low: str, found: set[str]) -> Iterator[Finding]:
    finding = None
    if normalise.has_other_script(text):
        finding = speech.elsewhere(text, low)
        if finding is not None:
            yield finding
    if not found.isdisjoint(_WALLET):
        finding = speech.wallet_words(low) or speech.backup_codes(text, low)
        if finding is not None:
            yield finding
    if not found.isdisjoint(_LOGGING_IN):
        finding = speech.logging_in(text, low)
        if finding is not None:
            yield finding
    if not found.isdisjoint(_ANSWER) and not found.isdisjoint(_ANSWER_TO):
        finding = speech.security_answer(text)
        if finding is not None:
            yield finding


def _is_unexplained(word: str) -> bool:
    core = word.strip("\"'`,;()[]{}<>.")
    return core.isalnum() and 20 <= len(core) <= 200 and not HEX.fullmatch(core) and is_random(core, 0.35)


@cache
def gate() -> Look:
    """The gate over the words of all rules, made at the first scan."""
    return fastest_gate(questions())


def questions() -> Questions:
    """What the rules ask of every text."""
    every = {
        *offrecord.vocabulary(),
        *shapes.vocabulary(),
        *tokens.vocabulary(),
        *names.vocabulary(),
        *vendors.vocabulary(),
        *_WALLET,
        *_ANSWER,
        *_ANSWER_TO,
    }
    every |= _LOGGING_IN
    return Questions(
        tuple(sorted(every)),
        tuple(sorted(set(shapes.literals()))),
        tuple(sorted(names.SUBSTRING_STEMS)),
        tokens.prefixes(),
        MARKS,
        tokens.plain_prefixes,
    )
