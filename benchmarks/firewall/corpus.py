"""Labelled texts from JSONL files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled text.

    Attributes:
        text: What is scanned.
        secret: True when it must be blocked.
        category, kind: Where it counts; "" when the file does not say.
    """

    text: str
    secret: bool
    category: str
    kind: str


def load(paths: Iterable[Path]) -> list[Sample]:
    """Read JSONL files. Rows without `label` count as secrets when they have a `category`."""
    samples = []
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line.strip():
                    row = json.loads(line)
                    samples.append(
                        Sample(
                            row["text"],
                            bool(row.get("label", "category" in row)),
                            str(row.get("category", "")),
                            str(row.get("kind", "")),
                        )
                    )
    return samples
