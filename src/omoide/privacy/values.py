"""Is this value a secret, or a word, a placeholder, a reference?

A name such as `password` proves nothing: most of what follows it in real text is a call, a type,
an example or the next word of a sentence. Precision is made here.

Randomness is measured as the share of neighbouring letters and digits that change class (lower,
upper, digit). Random base62 gives about 0.6, base36 0.4, hex 0.47, words and identifiers 0.05 to
0.2. Shannon entropy cannot tell a 24-character word from a 24-character key; this can, and it is
linear. All functions look at a bounded prefix of the value.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from typing import Final, NamedTuple

from omoide.privacy.rulefiles import read, words

_RUNS: Final = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_BLOCKS: Final = re.compile(r"[A-Za-z0-9]+")
_REPEATED: Final = re.compile(r"(.)\1{4}")
_REPEATED_RUN: Final = re.compile(r"([A-Z0-9])\1{4,160}")
_LOOK: Final = 160
"""Characters of a value that are looked at."""

UUID: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
HEX: Final = re.compile(r"[0-9a-fA-F]+")
_PAIR_ROWS: Final = (
    "a:abcdefgiklmnprstuvwxyz b:acdeijlnorstuy c:acdefhiklmoprstuy d:abcdefgilmnoprstuvwy "
    "e:abcdefghiklmnopqrstuvwxy f:adefilnorstuy g:aceghilmnoprstu h:aeilmoprstuy "
    "i:abcdefgklmnoprstvxz j:eosu k:acefilnoprsu l:abcdefgiklmnoprstuvy m:abdefilmopstuy "
    "n:abcdefghijklmnoprstuvwy o:abcdefgiklmnoprstuvwxy p:acdefhilmnoprstuy q:lu "
    "r:abcdefgiklmnoprstuvwy s:acdefhiklmnopqrstuvwy t:abcdefghilmnoprstuvwy "
    "u:abcdefgilmnoprst v:aeio w:aehilnors x:acefilmpst y:acdegilmnoprst z:aeio "
)
_USUAL_PAIRS: Final = frozenset(
    first + second for row in _PAIR_ROWS.split() for first, seconds in (row.split(":"),) for second in seconds
)
"""Pairs of letters that make up 98.5 % of English words and of identifiers."""
_BASE58: Final = {c: i for i, c in enumerate("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")}


class Placeholders(NamedTuple):
    """The vocabulary of `rules/placeholders.toml`, compiled."""

    inside: re.Pattern[str]
    rows: frozenset[str]
    words: frozenset[str]
    pieces: dict[str, tuple[str, ...]]
    documentation: frozenset[str]


@cache
def placeholders() -> Placeholders:
    """Read the placeholder vocabulary once."""
    data = read("placeholders")
    pieces: dict[str, list[str]] = {}
    for piece in words(data["pieces"]):
        pieces.setdefault(piece[0], []).append(piece)
    return Placeholders(
        inside=re.compile("|".join(map(re.escape, data["inside"]))),
        rows=frozenset(row[i : i + 6] for row in data["rows"] for i in range(len(row) - 5)),
        words=frozenset(words(data["words"])),
        pieces={first: tuple(group) for first, group in pieces.items()},
        documentation=frozenset(words(data["documentation"])),
    )


def transitions(value: str) -> float:
    """Share of neighbouring alphanumerics that change class, 0..1."""
    blocks = len(_BLOCKS.findall(value))
    runs = _RUNS.findall(value)
    pairs = sum(map(len, runs)) - blocks
    return (len(runs) - blocks) / pairs if pairs > 0 else 0.0


def rare_pairs(value: str) -> float:
    """Share of neighbouring letters that words hardly ever have, 0..1; 0 for fewer than eight pairs.

    Random letters without digits or capitals have about 0.42, words and identifiers under 0.1.
    """
    low = value[:_LOOK].lower()
    pairs = [low[i : i + 2] for i in range(len(low) - 1) if "a" <= low[i] <= "z" and "a" <= low[i + 1] <= "z"]
    return sum(pair not in _USUAL_PAIRS for pair in pairs) / len(pairs) if len(pairs) > 7 else 0.0


def is_degenerate(value: str) -> bool:
    """A placeholder mark, a run of one character or a row of the keyboard is in it."""
    value = value[:_LOOK]
    low = value.lower()
    known = placeholders()
    if known.inside.search(low) or (_REPEATED.search(value) and not _is_padded(value)):
        return True
    rows = known.rows
    return any(low[i : i + 6] in rows for i in range(len(low) - 5))


def has_rare_pair(word: str) -> bool:
    """Two neighbouring letters that words hardly ever have."""
    low = word.lower()
    return any(low[i : i + 2].isascii() and low[i : i + 2] not in _USUAL_PAIRS for i in range(len(low) - 1))


def _is_padded(value: str) -> bool:
    """A run of one character pads a long random part, as in tokens that begin with AAAA."""
    rest = _REPEATED_RUN.sub("", value)
    return len(rest) >= 24 and transitions(rest) >= 0.3


def is_random(value: str, share: float = 0.18) -> bool:
    """Looks machine-made and is no placeholder."""
    mixed = transitions(value[: 2 * _LOOK]) >= share or (share < 0.3 and rare_pairs(value) >= 0.2)
    return mixed and not is_degenerate(value)


def is_hexadecimal_secret(value: str) -> bool:
    """Hex with digits in it and no placeholder mark."""
    return sum(map(str.isdigit, value)) >= 3 and not is_degenerate(value)


def is_vocabulary(value: str) -> bool:
    """Put together from placeholder words only: mypassword, my_db_password, secretKey123."""
    low = value.lower()
    size = len(low)
    if size > 48:
        return False
    pieces = placeholders().pieces
    reach = [True] + [False] * size
    for i in range(size):
        if reach[i]:
            for piece in pieces.get(low[i], ()):
                if low.startswith(piece, i):
                    reach[i + len(piece)] = True
    return reach[size]


def is_documentation(value: str) -> bool:
    """A password that examples use in a connection string."""
    low = value.lower()
    known = placeholders()
    if low in known.documentation or is_vocabulary(low) or is_degenerate(value):
        return True
    return low[0] in "$<{[%*" or "{" in low or "(" in low or "$" in low[:2]


def base58check(value: str) -> bool:
    """The last four bytes are the double SHA-256 of the rest (Bitcoin keys)."""
    number = 0
    for char in value:
        digit = _BASE58.get(char, -1)
        if digit < 0:
            return False
        number = number * 58 + digit
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    raw = b"\0" * (len(value) - len(value.lstrip("1"))) + raw
    return len(raw) > 4 and sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def luhn(digits: str) -> bool:
    """The check digit of payment cards."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        digit = ord(char) - 48
        if place & 1:
            digit = digit * 2 - 9 if digit > 4 else digit * 2
        total += digit
    return total % 10 == 0


def iban(value: str) -> bool:
    """The check digits of a bank account number (ISO 13616)."""
    value = value.replace(" ", "")
    if not 15 <= len(value) <= 34:
        return False
    turned = value[4:] + value[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1
