"""Fixtures of every test: real servers, and an environment without a user's settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.processes import Python

pytest_plugins = ["omoide.testing.plugin"]

_KEPT = {"OMOIDE_DATA", "OMOIDE_FULL"}


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """The suite runs on every core; files and tests that are named one by one, in this process."""
    named = all(".py" in argument for argument in config.args)
    return 0 if named else None


@pytest.fixture(autouse=True)
def _no_user_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test sees, or writes into, what the user of this machine has configured."""
    for name in list(os.environ):
        if name.startswith("OMOIDE_") and name not in _KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv("OMOIDE_DATA_DIR", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture(scope="session")
def python() -> Iterator[Python]:
    """Runs programs in processes of their own."""
    with Python() as python:
        yield python


@pytest.fixture
def dev_data() -> Path:
    """Folder of the development data, given by `OMOIDE_DATA`; skips without it."""
    folder = os.environ.get("OMOIDE_DATA", "")
    if not folder:
        pytest.skip("OMOIDE_DATA names no folder with the development data")
    return Path(folder)
