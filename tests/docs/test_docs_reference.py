"""The reference agrees with what it describes: names, defaults, variables, letters of keys."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from tests.docs.conftest import ROOT

import omoide
from omoide import errors, settings
from omoide.core import bm25
from omoide.model.defaults import DEFAULTS
from omoide.recipes import SubconsciousMemory
from omoide.stores.redis import url

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


def test_the_ranking_page_has_the_numbers_of_the_code() -> None:
    page = (ROOT / "docs" / "explanation" / "ranking.md").read_text()
    weights = omoide.RankWeights()
    assert f"k1 {bm25.K1}, b {bm25.B}, pivot {bm25.PIVOT} terms" in page
    assert f"half of what the term weighs one place away, {weights.far} two places away" in " ".join(
        page.split()
    )
    assert (weights.near, weights.date) == (0.5, 1.0)
    for name, share in (("importance", weights.importance), ("confidence", weights.confidence)):
        assert f"x ({1 - share:g} + {share:g} {name})" in page
    for factor in (weights.author, weights.asking, weights.cue):
        assert f"count x {factor:g}" in page
    assert f"{weights.answer:g} times of it when the memory just before asks" in " ".join(page.split())
    assert f"beyond {weights.gate} terms" in page


@pytest.mark.parametrize(
    "called",
    [
        omoide.BM25Field,
        omoide.ContextAssembler,
        omoide.DecayingSortedField,
        omoide.RankWeights,
        SubconsciousMemory,
        omoide.connect,
    ],
    ids=lambda called: called.__name__,
)
def test_the_options_of_a_call_are_those_of_the_code(called: Any) -> None:
    (row,) = (first for first in _table("api.md") if re.search(rf"\b{called.__name__}\(", first))
    shown = set(
        re.findall(r"\w+", row[row.index(f"{called.__name__}(") :].partition("(")[2].partition(")")[0])
    )
    known = set(inspect.signature(called).parameters) - {"partition_by"}
    assert shown == known


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    def below(kind: type[BaseException]) -> set[str]:
        return {kind.__name__}.union(*(below(one) for one in kind.__subclasses__() if one.__module__ == home))

    home = errors.__name__
    drawn = re.findall(r"^[│├└─ ]*(\w+Error)\b", (REFERENCE / "api.md").read_text(), re.MULTILINE)
    assert set(drawn) == below(errors.OmoideError)


def test_the_options_of_a_url_are_those_that_are_read() -> None:
    page = (ROOT / "docs" / "how-to" / "connect.md").read_text()
    table = page[page.index("| option |") :].partition("\n\n")[0]
    shown = {name for name in re.findall(r"`(\w+)`", table) if not name.startswith(("ssl_", "OMOIDE_"))}
    assert shown - {"connect"} == url._PLAIN_OPTIONS | url._SENTINEL_OPTIONS


def test_the_yes_and_no_of_the_firewall_are_those_that_are_read() -> None:
    (cells,) = (row for name, row in _table("configuration.md").items() if name.endswith("_DISABLE"))
    shown = set(re.findall(r"`(\w+)`", cells[0]))
    assert shown == (settings._TRUE | settings._FALSE) - {""}
