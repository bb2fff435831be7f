"""The command line is documented: every verb has help, and the page shows it as it is."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from tests.docs.conftest import ROOT

from omoide.apps.cli.commands import app
from omoide.apps.cli.reference import _TWINS, help_of, verbs

PAGE = ROOT / "docs" / "reference" / "cli.md"
AGAIN = "python -m omoide.apps.cli.reference > docs/reference/cli.md"


def _section(name: str) -> str:
    found = re.search(rf"^## {name}\n+```text\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{name} is not documented: {AGAIN}"
    return found[1]


def _flat(text: str) -> str:
    return " ".join(text.split())


def _parameters(name: str) -> list[Any]:
    group = typer.main.get_group(app)
    return [one for one in group.commands[name].params if getattr(one, "help", None) is not None]


@pytest.mark.parametrize("name", verbs())
def test_a_verb_has_docs(name: str) -> None:
    help_text = help_of(name)
    assert help_text.startswith(f"Usage: omoide {name} ")
    group = typer.main.get_group(app)
    assert group.commands[name].help
    for parameter in group.commands[name].params:
        assert getattr(parameter, "help", None), f"{name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", verbs())
def test_the_page_has_the_help_of_a_verb(name: str) -> None:
    """Independent of how a version of typer lays out its help: every sentence and option, no more."""
    section = _section(name)
    group = typer.main.get_group(app)
    for paragraph in (group.commands[name].help or "").split("\n\n"):
        assert _flat(paragraph) in _flat(section), AGAIN
    flags = {"--help"}
    for parameter in _parameters(name):
        assert _flat(parameter.help) in _flat(section), AGAIN
        flags.update(option for option in parameter.opts if option.startswith("--"))
    shown = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", section, re.MULTILINE))
    assert shown == flags, AGAIN


def test_the_page_has_every_verb_and_its_twin() -> None:
    text = PAGE.read_text()
    assert tuple(re.findall(r"^## (\S+)$", text, re.MULTILINE))[: len(verbs())] == verbs()
    assert set(_TWINS) == set(verbs())
    for name, twin in _TWINS.items():
        assert f"| [`{name}`](#{name}) | `{twin}` |" in text


@pytest.mark.parametrize("twin", sorted(name for row in _TWINS.values() for name in row.split(", ")))
def test_a_twin_exists(twin: str) -> None:
    from importlib import import_module

    if twin.startswith("benchmarks."):
        pytest.skip("each suite has its own main")
    parts = twin.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        break
    for name in parts[cut:]:
        found = getattr(found, name)
    assert found.__doc__ or callable(found)
