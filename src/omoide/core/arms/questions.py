"""Whether a memory asks something: what follows it in its session is likely the answer."""

from __future__ import annotations

import re
from functools import cache


def asks(text: str) -> bool:
    """Whether a sentence of the text ends with a question mark; one inside a URL or a word does not count."""
    return ("?" in text or not text.isascii()) and _mark().search(text) is not None


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(r"[?？؟](?=[\s\"'”’»)\]}!?.*_]|$)|？")


__all__ = ["asks"]
