"""Chat messages as harnesses pass them: a list of mappings with `role` and `content`.

`content` is text, or a list of blocks of which those with `{"type": "text", "text": ...}` (and
bare strings) are read. Nothing here changes what it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

POSITIONS = ("before_user", "start", "end")


def text_of(message: object) -> str:
    """The text of a message, blocks joined by newlines; "" when it has none."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        return ""
    parts = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, Mapping) and block.get("type", "text") in ("text", "input_text"):
            text = block.get("text")
            parts.append(text if isinstance(text, str) else "")
    return "\n".join(part for part in parts if part)


def last_user(messages: Sequence[Any]) -> int | None:
    """Position of the last user message that has text, such as not a tool result; None without one."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, Mapping) and message.get("role") == "user" and text_of(message).strip():
            return position
    return None


def insert(messages: Sequence[Any], block: str, position: str) -> list[Any]:
    """A new list with the block as a system message of its own; an equal list for an empty block.

    `before_user`: right before the last user message; `start`: after the leading system messages;
    `end`: last. Without a user message `before_user` is `end`.
    """
    result = list(messages)
    if not block:
        return result
    place = len(result)
    if position == "start":
        place = next((index for index, message in enumerate(result) if not _is_system(message)), len(result))
    elif position == "before_user":
        user = last_user(result)
        place = len(result) if user is None else user
    result.insert(place, {"role": "system", "content": block})
    return result


def _is_system(message: object) -> bool:
    return isinstance(message, Mapping) and message.get("role") in ("system", "developer")


__all__ = ["POSITIONS", "insert", "last_user", "text_of"]
