"""Chat messages are read and extended, never changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from omoide.recipes import messages as chat

SYSTEM = {"role": "system", "content": "be kind"}
USER = {"role": "user", "content": "how do we deploy?"}
REPLY = {"role": "assistant", "content": "blue-green"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "a\nb"),
        (["a", "b"], "a\nb"),
        ([{"type": "tool_result", "content": "x"}], ""),
        ([{"type": "text", "text": None}], ""),
        (None, ""),
        (7, ""),
        (b"raw", ""),
    ],
)
def test_text_of_content(content: Any, text: str) -> None:
    assert chat.text_of({"role": "user", "content": content}) == text


def test_the_last_user_message_with_text_is_the_question() -> None:
    tool = {"role": "user", "content": [{"type": "tool_result", "content": "42"}]}
    assert chat.last_user([SYSTEM, USER, REPLY, tool]) == 1
    assert chat.last_user([SYSTEM, REPLY]) is None
    assert chat.last_user([USER, "not a message", None]) == 0


@pytest.mark.parametrize(("position", "place"), [("before_user", 2), ("start", 1), ("end", 3)])
def test_insert_places_a_system_message(position: str, place: int) -> None:
    given = [SYSTEM, REPLY, USER]
    before = copy.deepcopy(given)
    result = chat.insert(given, "BLOCK", position)
    assert given == before
    assert result[place] == {"role": "system", "content": "BLOCK"}
    assert [message for message in result if message.get("content") != "BLOCK"] == before


def test_insert_without_a_user_message_or_block() -> None:
    assert chat.insert([REPLY], "B", "before_user")[1]["content"] == "B"
    assert chat.insert([], "B", "start") == [{"role": "system", "content": "B"}]
    given = [USER]
    result = chat.insert(given, "", "before_user")
    assert result == given
    assert result is not given
