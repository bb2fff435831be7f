"""Extractors: a failure, a hang and an odd answer are told apart from "nothing to store"."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from typing import Any

import pytest

from omoide.recipes.extracting import EXTRACTOR_FAILED, EXTRACTOR_TIMEOUT, ExtractionError, aextract, extract
from omoide.recipes.extractors import raw_turn, statements


def broken(text: str) -> Any:
    raise RuntimeError(f"provider said no to {text}")


def hanging(text: str) -> Any:
    time.sleep(1.0)
    return [text]


async def hanging_async(text: str) -> Any:
    await asyncio.sleep(30)


async def clever(text: str) -> Any:
    await asyncio.sleep(0)
    return [{"content": text.upper(), "importance": 0.5}]


def one_string(text: str) -> Any:
    return text


def numbers(text: str) -> Any:
    return [1, 2]


def nothing(text: str) -> Any:
    return None


def both(extractor: Any, text: str, seconds: float) -> list[Any]:
    """What the sync and the async call make of it; both must agree."""
    results = []
    for is_async in (False, True):
        try:
            if is_async:
                results.append(asyncio.run(aextract(extractor, text, seconds)))
            else:
                results.append(extract(extractor, text, seconds))
        except ExtractionError as error:
            results.append(error.reason)
    assert results[0] == results[1]
    return results[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("extractor", "expected"),
    [
        (broken, EXTRACTOR_FAILED),
        (hanging, EXTRACTOR_TIMEOUT),
        (hanging_async, EXTRACTOR_TIMEOUT),
        (one_string, EXTRACTOR_FAILED),
        (numbers, EXTRACTOR_FAILED),
        (nothing, EXTRACTOR_FAILED),
        (clever, [{"content": "HI", "importance": 0.5}]),
        (lambda text: [], []),
        (lambda text: iter([text, text]), ["hi", "hi"]),
        (raw_turn, ["hi"]),
    ],
)
def test_every_kind_of_answer(extractor: Any, expected: Any) -> None:
    assert both(extractor, "hi", 0.2) == expected


def test_a_hanging_extractor_does_not_delay_the_turn() -> None:
    start = time.perf_counter()
    assert both(hanging, "hi", 0.05) == EXTRACTOR_TIMEOUT
    assert time.perf_counter() - start < 4


def test_the_reason_never_holds_the_text() -> None:
    with pytest.raises(ExtractionError) as caught:
        extract(broken, "the secret plan", 1.0)
    with pytest.raises(ExtractionError) as awaited:
        asyncio.run(aextract(broken, "the secret plan", 1.0))
    for error in (caught.value, awaited.value):
        assert "secret" not in str(error)
        assert "".join(traceback.format_exception(error)).count("Traceback") == 1
        assert error.raised == "RuntimeError"


def test_without_a_thread_extraction_fails_as_it_always_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", exhausted)
    with pytest.raises(ExtractionError) as caught:
        extract(lambda text: [text], "hi", 1.0)
    assert caught.value.reason == EXTRACTOR_FAILED


def test_raw_turn_keeps_everything_but_blanks() -> None:
    assert raw_turn(" a\nb ") == [" a\nb "]
    assert raw_turn(" \n ") == []


def test_statements_keep_facts_and_leave_questions() -> None:
    text = "Hello there! I prefer tea over coffee. Do you like tea? Remember that Ann is allergic to nuts."
    drafts = statements(text)
    assert drafts == [
        {"content": "I prefer tea over coffee.", "importance": 0.6},
        {"content": "Remember that Ann is allergic to nuts.", "importance": 0.9},
    ]


def half(text: str) -> Any:
    yield text
    raise KeyError(text)


def slow_to_tell(text: str) -> Any:
    yield text
    time.sleep(1.0)


async def half_async(text: str) -> Any:
    return half(text)


class Odd(dict[str, Any]):
    """A mapping whose own methods fail."""

    def keys(self) -> Any:
        raise ValueError

    def __iter__(self) -> Any:
        raise ValueError


@pytest.mark.parametrize(
    ("extractor", "expected"),
    [
        (lambda text: [{1: text}], EXTRACTOR_FAILED),
        (lambda text: [text, {None: text}], EXTRACTOR_FAILED),
        (lambda text: [[("content", text)]], EXTRACTOR_FAILED),
        (lambda text: [Odd(content=text)], EXTRACTOR_FAILED),
        (half, EXTRACTOR_FAILED),
        (half_async, EXTRACTOR_FAILED),
        (slow_to_tell, EXTRACTOR_TIMEOUT),
    ],
)
def test_what_is_odd_inside_an_answer_is_a_failure_too(extractor: Any, expected: str) -> None:
    assert both(extractor, "hi", 0.2) == expected
