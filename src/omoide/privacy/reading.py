"""One view of a text as the rules read it: what several steps need is made once, and only when asked for."""

from __future__ import annotations

from typing import Final

from omoide.privacy.gates import Hits, Look

LONG_WORD: Final = 16
"""Characters of the shortest word that can be a credential by its form alone."""
_OUTLINE: Final = bytes(32 if byte in b" \t\n\r\v\f\x1c\x1d\x1e\x1f" else 120 for byte in range(256))
_SOLID: Final = b"x" * LONG_WORD


class Reading:
    """A plain view of a text.

    Attributes:
        text: The view.
        low: The same, lower-cased; offsets are those of the text.
        raw: The same in UTF-8.
        hits: What the gate said.
    """

    __slots__ = ("_blob", "_long", "_solid", "hits", "low", "raw", "text")

    def __init__(self, text: str, look: Look) -> None:
        self.text = text
        self.low = lower(text)
        self.raw = text.encode("utf-8", "replace")
        self.hits: Hits = look(self.low, self.raw)
        self._solid: bytes | None = None
        self._long: list[str] | None = None
        self._blob: str | None = None

    @property
    def solid(self) -> bytes:
        """The outline of the text in UTF-8: x for every byte that is no white space."""
        if self._solid is None:
            self._solid = self.raw.translate(_OUTLINE)
        return self._solid

    @property
    def long(self) -> list[str]:
        """The words of 16 and more characters."""
        if self._long is None:
            self._long = _long_words(self.text, self.solid)
        return self._long

    @property
    def blob(self) -> str:
        """The long words joined by newlines."""
        if self._blob is None:
            self._blob = "\n".join(self.long)
        return self._blob


def lower(text: str) -> str:
    """Lower-case, character by character: offsets stay those of the text."""
    low = text.lower()
    if len(low) != len(text):
        low = "".join([char if len(char.lower()) != 1 else char.lower() for char in text])
    return low


def _long_words(text: str, solid: bytes) -> list[str]:
    place = solid.find(_SOLID)
    if place < 0:
        return []
    if len(solid) != len(text):
        return [word for word in text.split() if len(word) >= LONG_WORD]
    found: list[str] = []
    while place >= 0:
        start, end = solid.rfind(b" ", 0, place) + 1, solid.find(b" ", place)
        end = len(solid) if end < 0 else end
        found.append(text[start:end])
        place = solid.find(_SOLID, end)
    return found
