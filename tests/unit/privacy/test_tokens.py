"""Formats with a prefix match as the expression they stand for would."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.privacy import scanner, tokens
from omoide.privacy.gates import beyond_ascii, letters_only
from omoide.privacy.reading import LONG_WORD, Reading
from omoide.privacy.rulefiles import read

ROWS = [(row, prefix) for row in read("tokens")["tokens"] for prefix in row["prefixes"]]


def _expression(row: dict[str, object], prefix: str) -> re.Pattern[str]:
    least, most = row["size"]  # type: ignore[misc]
    end = "(?![A-Za-z0-9])" if row.get("end") else ""
    return re.compile(f"{re.escape(prefix)}(?P<v>{tokens.BODIES[str(row['body'])]}{{{least},{most}}}){end}")


@given(
    which=st.sampled_from(ROWS),
    parts=st.lists(
        st.tuples(st.integers(0, 2), st.integers(-3, 60), st.sampled_from("aZ0_-./+=% :\n")), max_size=4
    ),
)
def test_a_format_is_its_expression(
    which: tuple[dict[str, object], str], parts: list[tuple[int, int, str]]
) -> None:
    row, prefix = which
    least: int = row["size"][0]  # type: ignore[index]
    blob = "".join(prefix * times + "a1B2" * ((least + size) // 4) + last for times, size, last in parts)
    made = tokens._prefixed(row, prefix)
    found, start = [], blob.find(prefix)
    while start >= 0:
        value = made.value(blob, start + len(prefix))
        if value is not None:
            found.append((start, value))
        start = blob.find(prefix, start + 1 if value is None else start + len(prefix) + len(value))
    assert found == [(match.start(), match["v"]) for match in _expression(row, prefix).finditer(blob)]


@given(
    st.lists(st.sampled_from(["a", "bc" * 9, " ", "\n", "\t", "\x1c", "\x85", "é", "\u3000", "’"])).map(
        "".join
    )
)
def test_long_words_are_those_of_a_split(text: str) -> None:
    reading = Reading(text, scanner.gate())
    assert reading.long == [word for word in text.split() if len(word) >= LONG_WORD]


@given(st.text(max_size=80))
def test_what_is_beyond_ascii(text: str) -> None:
    wanted = "".join(char for char in text if ord(char) > 127 and not 0xD800 <= ord(char) <= 0xDFFF)
    assert beyond_ascii(text) == wanted


@pytest.mark.parametrize(
    "text", ["naïve ÷ × 码 ’", "кот pin2 é", "\ud800 pin", "".join(map(chr, range(0x3040, 0x3080)))]
)
def test_letters_are_the_same_with_few_and_many_strange_characters(text: str) -> None:
    many = "".join(map(chr, range(0x3100, 0x3120)))
    assert letters_only(text.lower()).split() == letters_only(f"{text.lower()} {many}").split()


def test_the_rule_that_is_told_does_not_depend_on_the_process() -> None:
    import subprocess
    import sys

    text = "Off the record: don't save this, forget I said it, vergiss das bitte. [[private]] delete this"
    code = f"from omoide.privacy import scan; print(scan({text!r}).rule)"
    rules = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in "123"
    }
    assert len(rules) == 1
