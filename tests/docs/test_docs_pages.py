"""Pages hang together: links lead somewhere, every page is listed, README's commands are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.conftest import ROOT, blocks, name_of, pages

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PRIVATE = (
    re.compile(r"(?<![\w.])/(?:work|home|root|tmp|Users)/\w"),
    re.compile(r"(?<!&)#\d+\b"),
    re.compile(r"\b(?:TODO|FIXME|XXX)\b"),
)


def _anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        assert there.is_relative_to(ROOT), target
        if anchor:
            assert anchor in _anchors(there), target


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_a_page_speaks_of_the_project_alone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for pattern in PRIVATE:
        found = pattern.search(text)
        assert found is None, found


def test_every_page_is_listed_for_programs_and_for_people() -> None:
    docs = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").glob("**/*.md")}
    for listing, base in ((ROOT / "docs" / "llms.txt", ROOT / "docs"), (ROOT / "README.md", ROOT)):
        linked = {(base / target.partition("#")[0]).resolve() for target in LINK.findall(listing.read_text())}
        assert {page for page in docs if (ROOT / "docs" / page) not in linked} == set(), listing


def test_every_recipe_is_in_the_cookbook() -> None:
    index = (ROOT / "recipes" / "README.md").read_text()
    for main in (ROOT / "recipes").glob("*/main.py"):
        assert f"]({main.parent.name}/README.md)" in index


def test_the_readme_has_its_two_commands_and_no_badge() -> None:
    page = ROOT / "README.md"
    assert [body.strip() for body in blocks(page, "bash")] == [
        "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/omoide demo",
        ".venv/bin/pip install '.[test]' && .venv/bin/python -m pytest",
    ]
    text = page.read_text()
    assert "![" not in text
    assert len(re.findall(r"^- \*\*", text, re.MULTILINE)) == 4
