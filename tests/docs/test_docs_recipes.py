"""Every program of the cookbook runs, as a process of its own, and uses public names only."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.docs.conftest import ROOT, name_of
from tests.processes import Python

PROGRAMS = sorted((ROOT / "recipes").glob("*/main.py"))
PUBLIC = {"omoide", "omoide.recipes"}


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_recipe_runs(program: Path, store_url: str, tmp_path: Path, python: Python) -> None:
    environment = {**os.environ, "OMOIDE_URL": store_url, "OMOIDE_DATA_DIR": str(tmp_path)}
    done = python("-W", "error", str(program), env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_a_recipe_uses_public_names_only(program: Path) -> None:
    imported = set(re.findall(r"^(?:from|import) (omoide[\w.]*)", program.read_text(), re.MULTILINE))
    assert imported <= PUBLIC
