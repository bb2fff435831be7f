"""Made-up secrets for the examples of the rule files.

A template such as `ghp_{an:36}` stands for a prefix and 36 characters of a class. The characters
come from a fixed sequence, so that examples are the same everywhere; none is or was a real secret,
and none is written down in the package.
"""

from __future__ import annotations

import re
from typing import Final

_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER: Final = _UPPER.lower()
_DIGITS: Final = "0123456789"
_HEX: Final = "0123456789abcdef"

ALPHABETS: Final[dict[str, str]] = {
    "an": _UPPER + _LOWER + _DIGITS,
    "url": _UPPER + _LOWER + _DIGITS + "_-",
    "word": _UPPER + _LOWER + _DIGITS + "_",
    "hex": _HEX,
    "hexi": _HEX,
    "hexu": _HEX,
    "hexw": _HEX,
    "hexd": _HEX,
    "low": _LOWER + _DIGITS,
    "up": _UPPER + _DIGITS,
    "upd": _UPPER + _DIGITS,
    "b32": _UPPER + "234567",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "b64": _UPPER + _LOWER + _DIGITS + "+/",
    "b64u": _UPPER + _LOWER + _DIGITS,
    "any": _UPPER + _LOWER + _DIGITS,
    "pct": _UPPER + _LOWER + _DIGITS,
    "digits": "123456789",
    "bech32": "023456789acdefghjklmnpqrstuvwxyz",
}
_PLACE: Final = re.compile(r"\{(?P<kind>[a-z0-9]+)(?::(?P<size>\d{1,3}))?\}")


class Maker:
    """A small deterministic generator (Numerical Recipes' 32-bit linear congruence)."""

    def __init__(self, seed: int = 1) -> None:
        self._state = seed

    def _next(self, below: int) -> int:
        self._state = (self._state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self._state >> 8) % below

    def body(self, kind: str, size: int) -> str:
        """`size` characters of a class."""
        if kind == "uuid":
            return "-".join(self.body("hex", part) for part in (8, 4, 4, 4, 12))
        if kind == "word":
            return "Otter" + "Piano"
        alphabet = ALPHABETS[kind]
        digits = "".join(char for char in alphabet if char.isdigit())
        # Every sixth character is a digit, so that no example depends on the luck of the draw.
        sets = [digits if digits and place % 6 == 4 else alphabet for place in range(size)]
        return "".join(chars[self._next(len(chars))] for chars in sets)

    def fill(self, template: str) -> str:
        """A template with its places filled."""
        return _PLACE.sub(self._place, template)

    def _place(self, match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind not in ALPHABETS and kind != "uuid":
            return match.group(0)
        return self.body(kind, int(match["size"] or 0))
