"""Whether a memory asks something, and whether it does little else.

What follows a question in its session is likely the answer, and a memory that mostly asks is seldom what
is looked for: its words are those of the question, and what they ask for stands elsewhere. A long question
and one about oneself ("I have two days in Rome, what should I see?") tell something and do not count as
asking alone.
"""

from __future__ import annotations

import re
from functools import cache

MOSTLY = 1 / 3
LONGEST = 60


def asks(text: str) -> bool:
    """Whether a sentence of the text ends with a question mark; one inside a URL or a word does not count."""
    return ("?" in text or not text.isascii()) and _mark().search(text) is not None


def mostly_asks(text: str) -> bool:
    """Whether short questions about others make up a third of the letters or more.

    A question counts that has at most 60 letters and digits and no first person (English, Chinese, Japanese
    and Korean). Cost: linear.
    """
    if not asks(text):
        return False
    asked = told = start = 0
    for end in _end().finditer(text + "\n"):
        sentence, start = text[start : end.start()], end.end()
        letters = sum(map(str.isalnum, sentence))
        about_others = letters <= LONGEST and _first_person().search(sentence) is None
        if about_others and _mark().match(end.group()):
            asked += letters
        else:
            told += letters
    return asked > 0 and asked >= MOSTLY * (asked + told)


@cache
def _mark() -> re.Pattern[str]:
    return re.compile(r"[?？؟](?=[\s\"'”’»)\]}!?.*_]|$)|？")


@cache
def _end() -> re.Pattern[str]:
    """What ends a sentence: a mark before a space or the end, or a line."""
    return re.compile(r"[.!?؟…]++(?=[\s\"'”’»)\]}*_]|$)|[。！？]++|\n++")


@cache
def _first_person() -> re.Pattern[str]:
    return re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b|[我俺僕私]|저는|제가|나는|내가", re.IGNORECASE)


__all__ = ["asks", "mostly_asks"]
