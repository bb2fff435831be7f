"""Answers and errors on their way to a terminal, a pipe or a program.

stdout   the answer: text, or with `--json` exactly one JSON object (also for an error)
stderr   progress, notes, and an error as one line with a hint
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from os.path import basename
from typing import Any
from unicodedata import east_asian_width
from uuid import UUID

OK = 0
FAILED = 1
"""The store failed, or the answer is a bad one."""
MISUSED = 2
"""The call cannot be meant: an unknown option, model or partition, a value that breaks a rule."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb says: `data` for programs, `text` for people, and the exit code."""

    data: Mapping[str, Any]
    text: str = ""
    code: int = OK
    notes: tuple[str, ...] = field(default=())


def give(answer: Answer, *, as_json: bool) -> int:
    """Print an answer; its exit code."""
    for note in answer.notes:
        say(note)
    if as_json:
        print(json.dumps(answer.data, ensure_ascii=False, default=plain))
    elif answer.text:
        print(answer.text)
    return answer.code


def fail(message: str, hint: str, code: int, *, as_json: bool, kind: str) -> int:
    """Print an error as one line, and with `as_json` as an object as well; its exit code."""
    line = " ".join(message.split())
    say(f"omoide: {line}" + (f" ({hint})" if hint else ""))
    if as_json:
        print(json.dumps({"error": {"type": kind, "message": line, "hint": hint}}, ensure_ascii=False))
    return code


def place_of(error: BaseException) -> str:
    """`file:line` where an error was raised; of a syntax error where it is."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{basename(error.filename)}:{error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{basename(frame.filename)}:{frame.lineno}"


@contextmanager
def silenced(name: str) -> Iterator[None]:
    """Without the warnings of a logger, where the answer tells the same."""
    log = logging.getLogger(name)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def say(line: str) -> None:
    """One line on stderr."""
    print(line, file=sys.stderr, flush=True)


class Meter:
    """Progress on stderr: a line that counts up on a terminal, nothing where nobody watches."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{self.label} {done:,}/{total:,}", end="", file=sys.stderr, flush=True)
            self._shown = True

    def close(self) -> None:
        """End the line."""
        if self._shown:
            print(file=sys.stderr, flush=True)
            self._shown = False


def plain(value: Any) -> Any:
    """What JSON makes of a value it does not know."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON form for {type(value).__name__}")


def shown(text: str, width: int = 100) -> str:
    """Text of a memory on one line of a terminal, without control characters."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def table(rows: list[tuple[str, ...]], *, indent: str = "") -> str:
    """Left-aligned columns; the last one is as wide as it is."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        (
            indent
            + "  ".join(cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def columns(text: str) -> int:
    """Terminal columns of a text: wide characters take two."""
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)
