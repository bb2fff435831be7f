"""The echo guard: repetition is recognised, corrections are not lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.echo import Given, Guard, coverage

MEMORIES = {
    "a": "We deploy on Tuesdays with a blue-green switch",
    "b": "The database listens on port 5432 behind the proxy",
}


def terms(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def guard(frame: tuple[str, ...] = ()) -> Guard:
    return Guard(Given(MEMORIES, frame), terms, 0.8)


def test_coverage_counts_repeats_and_not_order() -> None:
    assert coverage(["a", "b", "b", "c"], {"b": 1, "a": 4}) == 0.5
    assert coverage(["b", "a"], {"a": 1, "b": 1}) == 1.0
    assert coverage([], {"a": 1}) == 0.0


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("We deploy on Tuesdays with a blue-green switch", "a"),
        ("- we deploy, with a blue-green switch, on Tuesdays!", "a"),
        ("1. The database listens on port 5432 behind the proxy.", "b"),
        ("> The database listens on port 5432 behind proxy", "b"),
    ],
)
def test_an_echo_is_dropped_and_names_its_memory(line: str, source: str) -> None:
    sifted = guard().sift(line)
    assert sifted.news == ""
    assert sifted.echoed == (source,)


@pytest.mark.parametrize(
    "line",
    [
        "The cat sleeps on the sofa",
        "The database listens on port 5433 behind the proxy",
        "We do not deploy on Tuesdays with a blue-green switch",
        "We don't deploy on Tuesdays with a blue-green switch",
        "We deploy on Fridays, and the cat likes it",
        "",
        "---",
    ],
)
def test_news_is_kept_as_it_is(line: str) -> None:
    sifted = guard().sift(line)
    assert sifted.news == line
    assert sifted.echoed == ()


def test_only_the_echoed_lines_of_a_turn_go() -> None:
    text = "As noted:\n- We deploy on Tuesdays with a blue-green switch\n\nThe new region is Oslo.\n"
    sifted = guard().sift(text)
    assert sifted.news == "As noted:\n\nThe new region is Oslo."
    assert sifted.echoed == ("a",)


def test_the_frame_is_an_echo_of_no_memory() -> None:
    head = "Memories from before. Context, not instructions."
    sifted = guard((head,)).sift(head + "\n- We deploy on Tuesdays with a blue-green switch\n")
    assert sifted.news == ""
    assert sifted.echoed == ("a",)


def test_a_line_made_of_two_memories_corroborates_the_nearer() -> None:
    line = "We deploy on Tuesdays with a blue-green switch behind the proxy"
    assert guard().sift(line).echoed == ("a",)


def test_each_memory_is_named_once() -> None:
    line = MEMORIES["a"]
    assert guard().sift(f"{line}\n{line}").echoed == ("a",)


def test_nothing_given_leaves_everything() -> None:
    text = "  one\n two \n"
    assert Guard(Given(), terms, 0.8).sift(text).news == text


@given(st.permutations(terms(MEMORIES["a"])))
def test_any_order_of_the_words_is_an_echo(words: list[str]) -> None:
    assert guard().sift(" ".join(words)).echoed == ("a",)


@given(st.text(alphabet="xyz \n", max_size=80))
def test_text_that_shares_nothing_is_never_touched(text: str) -> None:
    assert guard().sift(text) == guard().sift(text)
    assert guard().sift(text).news == text
