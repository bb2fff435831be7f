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

from omoide.privacy import headers, names, normalise, offrecord, personal, shapes, speech, tokens
from omoide.privacy.gates import Hits, Look, make_gate, occurs
from omoide.privacy.names import Strength
from omoide.privacy.options import Options
from omoide.privacy.tokens import find_tokens, head_words, long_words, may_be_cut
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
        low = normalise.lower(text)
        for finding in self._findings(text, low, gate()(low), depth):
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

    def _findings(self, text: str, low: str, hits: Hits, depth: int) -> Iterator[Finding]:
        options, found = self.options, hits.words
        if depth == 0:
            finding = offrecord.off_the_record(low, found, frozenset())
            if finding is not None:
                yield finding
                if finding.rule in options.disabled:
                    finding = offrecord.off_the_record(low, found, options.disabled)
                    if finding is not None:
                        yield finding
        raw = text.encode("utf-8", "replace")
        solid = normalise.outline(raw)
        long = long_words(text, solid)
        blob, started = "\n".join(long), False
        if blob:
            matches, started = find_tokens(blob, long, found)
            yield from _located(text, matches)
        yield from shapes.find_shapes(text, low, found, long=bool(long))
        yield from _named(text, low, hits)
        yield from _spoken(text, low, found)
        for rule in options.extra:
            yield from rule(text, low)
        if depth == 0 and options.personal and personal.has_digits(raw):
            finding = personal.personal(text)
            if finding is not None:
                yield finding
        if depth < DEPTH:
            yield from self._views(text, blob, solid, found, depth, started=started)
        if long and depth == 0:
            self.suspect = any(_is_unexplained(word) for word in long[:64])

    def _views(
        self, text: str, blob: str, solid: bytes, found: set[str], depth: int, *, started: bool
    ) -> Iterator[Finding]:
        for view in normalise.decoded(text, blob, solid, rows=normalise.may_be_spelled(found)):
            if not view.text:
                continue
            self._spend(len(view.text))
            finding = self.find(view.text, depth + 1)
            if finding is not None:
                yield Finding(finding.reason, f"{finding.rule}+{view.kind}", view.start, view.end)
        if "\n" in text and (started or (not found.isdisjoint(head_words()) and may_be_cut(text))):
            joined = normalise.rejoined(text)
            for rule, match in find_tokens("\n".join(joined), joined, found).matches:
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
    found, stems = hits
    if occurs(low, _ASSIGNING):
        found = found.union(
            [stem for stem in names.SUBSTRING_STEMS if stem in low] if stems is None else stems
        )
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
        finding = speech.elsewhere(text)
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
    return make_gate(*gate_words())


def gate_words() -> tuple[list[str], list[str], list[str]]:
    """Words, literals and stems of all rules."""
    every = {
        *offrecord.vocabulary(),
        *shapes.vocabulary(),
        *tokens.vocabulary(),
        *names.vocabulary(),
        *_WALLET,
        *_ANSWER,
        *_ANSWER_TO,
    }
    every |= normalise.SINGLE_LETTERS | _LOGGING_IN
    return sorted(every), sorted(set(shapes.literals())), sorted(names.SUBSTRING_STEMS)
