"""Marks: what must occur in a text for a step of the scan to find anything, for RE2.

A mark may occur where its step finds nothing; it must never be missing where the step finds
something. Where you change a step, change its mark: the two are compared over all examples and
over random texts. Marks are few and short, because an automaton of many or of long counts has to be
built anew for every text.
"""

from __future__ import annotations

from typing import Final

_SPACE: Final = r"[ \t\n\r\x{0b}\x{0c}\x{1c}-\x{1f}]"

MARKS: Final[dict[str, str]] = {
    "percent": r"%[0-9A-Fa-f]{2}",
    "html": r"&#",
    "escape": r"\\[ux]",
    "octal": r"\\1",
    "quoted": r"=[0-9A-F]{2}=[0-9A-F]{2}=",
    "codes": r"[0-9]{2}\)?[ \n]*[,+][ \n]*(?:chr\(|char\()?[ ]?[0-9]{2}",
    "joined": r"""(?:^|[^"'`])["'`][ \t\n\r\\+.~|&]*["'`][A-Za-z0-9_\-+/=]""",
    "letters": rf"{_SPACE}(?:[^ \t\n\r]{_SPACE}){{6}}",
    "pairs": r"(?:[0-9A-Fa-f]{2}[ :,]{1,2}(?:0x|\\x)?){4}",
    "hex": r"(?:[02-7][0-9A-Fa-f]){10}",
    "base64": r"(?:^|[^A-Za-z0-9+/_\-])(?:[C-DI-Za-f][A-Za-z0-9+/_\-]{3}){5}",
    "digits": r"(?:[0-9][ \-]*){8}[0-9]",
}
"""By the name of the step."""
