"""What a suite says: progress on stderr, one Markdown table or one JSON object on stdout."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from typing import Any

Cell = str | int | float | None


def progress(line: str) -> None:
    """Tell the person who waits, on stderr, so that stdout stays one table or one object."""
    print(line, file=sys.stderr, flush=True)


def machine() -> str:
    """Describe what a figure was measured on, in one line."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {python}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Draw a Markdown table: text to the left, numbers to the right, None as a dash."""
    body = [[_cell(value) for value in row] for row in rows]
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    widths = [max(3, len(name), *(len(row[i]) for row in body), 3) for i, name in enumerate(header)]
    rule = ["-" * (w - 1) + ":" if right else "-" * w for w, right in zip(widths, numeric, strict=True)]
    return "\n".join(_line(cells, widths, numeric) for cells in [list(header), rule, *body])


def emit(document: Mapping[str, Any], table: str, *, as_json: bool) -> None:
    """Write the result: `document` as one line of JSON, or `table`."""
    sys.stdout.write((json.dumps(document) if as_json else table) + "\n")


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = zip(cells, widths, numeric, strict=True)
    return "| " + " | ".join(c.rjust(w) if right else c.ljust(w) for c, w, right in aligned) + " |"


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value
