"""The reference agrees with what it describes: names, defaults, variables, letters of keys."""

from __future__ import annotations

import re

from tests.docs.conftest import ROOT

import omoide
from omoide import settings
from omoide.model.defaults import DEFAULTS

REFERENCE = ROOT / "docs" / "reference"


def _table(page: str) -> dict[str, list[str]]:
    """Rows of every table of a page by their first cell, its backticks taken off."""
    rows = re.findall(r"^\| (.+) \|$", (REFERENCE / page).read_text(), re.MULTILINE)
    cells = [row.split(" | ") for row in rows]
    return {first.strip("`"): rest for first, *rest in cells}


def test_every_public_name_is_in_the_api_page() -> None:
    text = (REFERENCE / "api.md").read_text()
    missing = [name for name in omoide.__all__ if not re.search(rf"\b{name}\b", text)]
    assert missing == ["__version__"]


def test_the_defaults_are_those_of_the_code() -> None:
    rows = _table("configuration.md")
    numbers = {
        name: getattr(DEFAULTS, name)
        for name in DEFAULTS.__dataclass_fields__
        if isinstance(getattr(DEFAULTS, name), int | float)
    }
    shown = {name: cells[-1] for name, cells in rows.items() if name in numbers and len(cells) == 2}
    assert shown.keys() == numbers.keys()
    for name, text in shown.items():
        assert float(text.split(" ")[0].replace(",", "")) == numbers[name], name


def test_the_variables_are_those_that_are_read() -> None:
    shown = {name for name in _table("configuration.md") if name.startswith("OMOIDE_")}
    source = (ROOT / "src" / "omoide" / "settings.py").read_text()
    assert shown == set(re.findall(r'"(OMOIDE_[A-Z_]+)"', source))
    assert all(name in (settings.__doc__ or "") for name in shown)


def test_the_letters_are_those_of_the_scripts() -> None:
    source = (ROOT / "src" / "omoide" / "lua" / "lib" / "head.lua").read_text()
    lists = re.findall(r"^local (?:RECORD_)?LETTERS = \{(.*?)\}", source, re.MULTILINE)
    used = set(re.findall(r"'(\w)'", " ".join(lists)))
    shown = {name.strip("`") for row in _table("keys.md") for name in row.split(", ")}
    assert {name for name in shown if len(name) == 1} == used
