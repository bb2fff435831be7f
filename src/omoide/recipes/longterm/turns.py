"""A finished turn as the text of one episode.

    User: what was asked
    Assistant: what was answered

A text beyond its bound is cut there and ends with a mark, the mark within the bound. A line of either
text that would read as the label of a speaker is quoted with `> `, so that nobody speaks in the other's
name.
"""

from __future__ import annotations

import re

USER_CHARS = 4_000
ASSISTANT_CHARS = 8_000
MARK = "… [truncated]"

_BREAKS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_LABEL = re.compile(rf"(?:\A|(?<=[{_BREAKS}]))(?=\s*+(?:user|assistant)\s*+[:：])", re.IGNORECASE)


def capped(text: str, most: int) -> str:
    """The text, or its beginning and the mark: at most `most` characters."""
    return text if len(text) <= most else text[: most - len(MARK)] + MARK


def episode_of(user: str, assistant: str) -> str | None:
    """The content of a turn's episode; None when one of the two said nothing."""
    if not user.strip() or not assistant.strip():
        return None
    return f"User: {_said(user, USER_CHARS)}\nAssistant: {_said(assistant, ASSISTANT_CHARS)}"


def _said(text: str, most: int) -> str:
    return capped(_LABEL.sub("> ", text.strip()), most)


__all__ = ["ASSISTANT_CHARS", "MARK", "USER_CHARS", "capped", "episode_of"]
