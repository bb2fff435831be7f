"""Conversations with questions, read from one JSON file.

    {"name", "conversations": [
        {"id",
         "turns":     [{"id", "session", "author", "time", "text"}],
         "questions": [{"id", "text", "time", "category", "gold": [turn id]}]}]}

Times are ISO 8601 with an offset. A turn is one memory; a conversation is one partition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rivals import Turn


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, the kind of question, and the turns that answer it."""

    text: str
    category: str
    gold: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns in the order they were said, and the questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read(path: Path) -> list[Conversation]:
    """Read a data file.

    Raises:
        ValueError: not this format, or a gold id names no turn; the message says where.
        OSError: the file cannot be read.
    """
    document = json.loads(path.read_text(encoding="utf-8"))
    try:
        return [_conversation(entry) for entry in document["conversations"]]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is not a file of conversations: {error!r}") from error


def _conversation(entry: Mapping[str, Any]) -> Conversation:
    turns = tuple(
        Turn(str(turn["id"]), str(turn["session"]), turn["author"], turn["time"], turn["text"])
        for turn in entry["turns"]
    )
    questions = tuple(
        Question(one["text"], one["category"], tuple(one["gold"])) for one in entry["questions"]
    )
    known = {turn.id for turn in turns}
    for place, question in enumerate(questions):
        if not question.gold or not known.issuperset(question.gold):
            raise ValueError(f"conversation {entry['id']}, question {place}: gold names no turn of it")
    return Conversation(str(entry["id"]), turns, questions)
