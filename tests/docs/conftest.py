"""The pages of the project, as the tests of this folder read them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every Markdown page and llms.txt, README first."""
    patterns = ("*.md", "docs/**/*.md", "docs/*.txt", "*/README.md", "recipes/*/README.md")
    found = {page for pattern in patterns for page in ROOT.glob(pattern)}
    return sorted(found, key=lambda page: (page.name != "README.md", str(page)))


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [body for kind, body in FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def name_of(page: Path) -> str:
    """The page as a test id."""
    return str(page.relative_to(ROOT))
