"""The command line as a user runs it: a process of its own, on an embedded store in a temporary folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.processes import Python

from omoide.errors import CapabilityError
from omoide.stores.embedded import EmbeddedServer, server_binary


@dataclass(frozen=True)
class Ran:
    """What a process left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Stdout as the one JSON object it has to be."""
        assert self.out.count("\n") == 1, self.out
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Cli:
    """Runs `omoide` on one store."""

    url: str
    folder: Path
    python: Python

    def __call__(self, *arguments: str, stdin: str = "", cwd: Path | None = None) -> Ran:
        done = self.python(
            "-m",
            "omoide.apps.cli.main",
            *arguments,
            stdin=stdin,
            cwd=cwd or self.folder,
            env={**os.environ, "OMOIDE_URL": self.url},
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)


def need_binary() -> None:
    """Skip where no server comes with the package."""
    try:
        server_binary()
    except CapabilityError as error:
        pytest.skip(str(error))


@pytest.fixture
def cli(tmp_path: Path, python: Python) -> Iterator[Cli]:
    """`omoide` on an empty embedded store; the test keeps its server running between calls."""
    need_binary()
    folder = tmp_path / "store"
    server = EmbeddedServer.acquire(folder)
    yield Cli(f"embedded://{folder}", tmp_path, python)
    server.release()
