"""pyproject.toml and the wheel's data agree with the tree."""

from __future__ import annotations

import tomllib

from tests.docs.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_test_extra_is_the_test_group() -> None:
    """pip before 25.1, which a fresh environment of Python 3.11 has, knows no groups."""
    assert PROJECT["project"]["optional-dependencies"]["test"] == PROJECT["dependency-groups"]["test"]


def test_the_command_is_the_one_of_the_docs() -> None:
    assert PROJECT["project"]["scripts"] == {"omoide": "omoide.apps.cli.main:main"}


def test_the_layers_of_the_docs_are_those_that_are_checked() -> None:
    (contract,) = (one for one in PROJECT["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    layers = [layer.replace("omoide.", "") for layer in contract["layers"]]
    drawn = " -> ".join(layers)
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "explanation" / "design.md"):
        assert drawn in " ".join(page.read_text().replace("`", "").split()), page


def test_the_licence_is_there() -> None:
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert "omoide contributors" in (ROOT / "LICENSE").read_text()
