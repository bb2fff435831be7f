"""Extractors: what of a turn's text becomes a memory.

An extractor takes the text, already without echoes, and returns what to store: strings, or
mappings of field values (`{"content": ..., "importance": 0.9, "tags": {"work"}}`). It may be any
callable, one that asks a language model included, and a coroutine function for the async calls.
An empty list means that there is nothing worth storing; a failure must be raised, so that it is
reported and not mistaken for that.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias

Draft: TypeAlias = str | Mapping[str, Any]
Drafts: TypeAlias = Iterable[Draft]


class Extractor(Protocol):
    """text -> what to store."""

    def __call__(self, text: str, /) -> Drafts | Awaitable[Drafts]: ...


def raw_turn(text: str, /) -> list[Draft]:
    """The turn as it is: nothing is lost, nothing is invented."""
    return [text] if text.strip() else []


_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_STRONG = re.compile(
    r"\b(?:remember|don't forget|do not forget|important|always|never|must|from now on|deadline|allerg\w+)\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"\b(?:i|we)\s+(?:\w+\s+)?(?:prefer|like|love|hate|dislike|use|need|want|live|work|decided|chose|agreed|switched|"
    r"moved|renamed|plan|have|am|are|was|were)\b"
    r"|\b(?:i'm|i've|we're|we've|my|our)\b"
    r"|\b(?:decided|decision|prefers?|is called|is named|is located|runs on|lives in)\b"
    r"|\b(?:works at|due on|owned by)\b",
    re.IGNORECASE,
)
_SHORTEST_WORDS = 3


def statements(text: str, /) -> list[Draft]:
    """Sentences that state something lasting: preferences, decisions, facts about people and systems.

    By English markers only; questions and very short sentences are left out. Cost: linear.
    """
    drafts: list[Draft] = []
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(match.group().split())
        if sentence.endswith(("?", "？")) or len(sentence.split()) < _SHORTEST_WORDS:
            continue
        if _STRONG.search(sentence):
            drafts.append({"content": sentence, "importance": 0.9})
        elif _PLAIN.search(sentence):
            drafts.append({"content": sentence, "importance": 0.6})
    return drafts


__all__ = ["Draft", "Drafts", "Extractor", "raw_turn", "statements"]
