"""Payment cards, social security numbers, bank accounts: a class of its own with a switch.

Check digits alone say little (a tenth of all numbers pass Luhn), so a card also needs an issuer
prefix and either its usual grouping or a word near it that speaks of cards.
"""

from __future__ import annotations

import re
from typing import Final

from omoide.privacy.values import iban, luhn
from omoide.privacy.verdict import Finding

_SHAPE: Final = bytes(
    48 if 48 <= byte <= 57 else 65 if 65 <= byte <= 90 else byte if byte in b" -" else 120
    for byte in range(256)
)
_SSN_SHAPE: Final = b"000-00-0000"
_IBAN_SHAPE: Final = b"AA00"
_CARD: Final = re.compile(r"(?<![\d\-.+A-Za-z_/])(?:\d[ \-]?){12,18}\d(?![\d\-A-Za-z_]|\.\d)")
_ISSUER: Final = re.compile(r"4|5[1-5]|2[2-7]|3[47]|3[068]|35|6(?:011|4[4-9]|5)")
_GROUPED: Final = re.compile(r"(?:\d{4}[ \-]){3}\d{4}|3[47]\d{2}[ \-]\d{6}[ \-]\d{5}")
_CARD_WORDS: Final = re.compile(
    r"(?<![a-z])(?:card|cards|visa|master(?:card)?|amex|american express|cvv|cvc|exp|expiry|charge|pay"
    r"|credit|debit|karte|kreditkarte|carte|tarjeta)(?![a-z])",
    re.I,
)
_NEARBY: Final = 100
"""Four groups of digits that are closer to each other are rows of a table."""
_MADE_UP: Final = frozenset(("111-22-3333", "123-45-6789", "078-05-1120", "219-09-9999", "987-65-4321"))
_SSN: Final = re.compile(r"(?<![\d\-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d\-])")
_SSN_WORDS: Final = re.compile(r"(?<![a-z])(?:ssn|social|tax|taxpayer|w-?9|w-?2|1099|form)(?![a-z])", re.I)
_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2} ?(?:[A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}(?![A-Za-z0-9])"
)
_ACCOUNT: Final = b"0" * 9
_CARD_DIGITS: Final = b"0" * 13
"""As many digits as the shortest account and card numbers have."""


def has_digits(raw: bytes) -> bool:
    """Cheap gate on the UTF-8 of a text: it may have the digits of a card, or of another number."""
    shape = raw.translate(_SHAPE)
    if b"000" not in shape:
        return False
    digits = shape.translate(None, b" -")
    return _ACCOUNT in digits and (_CARD_DIGITS in digits or _SSN_SHAPE in shape or _IBAN_SHAPE in shape)


def personal(text: str) -> Finding | None:
    """The first number of a person's card, account or office."""
    for match in _CARD.finditer(text):
        if _is_card(text, match):
            return Finding("personal", "payment_card", match.start(), match.end(), whole=False)
    number = next((one for one in _SSN.finditer(text) if one.group(0) not in _MADE_UP), None)
    if number is not None and _SSN_WORDS.search(text):
        return Finding("personal", "social_security", number.start(), number.end(), whole=False)
    for match in _IBAN.finditer(text):
        if iban(match.group(0)):
            return Finding("personal", "iban", match.start(), match.end(), whole=False)
    return None


def _is_card(text: str, match: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", match.group(0))
    if not 13 <= len(digits) <= 19 or not _ISSUER.match(digits) or len(set(digits)) <= 3 or not luhn(digits):
        return False
    if _GROUPED.fullmatch(match.group(0)):
        groups = [int(group) for group in re.split(r"\D", match.group(0))]
        return max(groups) - min(groups) >= _NEARBY
    return _CARD_WORDS.search(text, max(0, match.start() - 120), match.end() + 80) is not None
