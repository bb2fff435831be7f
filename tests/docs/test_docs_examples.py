"""Every Python block of the docs runs, page by page and top to bottom, in a process on a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.conftest import ROOT, blocks, name_of, pages
from tests.processes import Python

BEGIN_ANEW = ("hybrid", "long-term", "mirror", "time")
"""Pages that show what is there, and so erase what an earlier run left."""

ID = re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b")
WITH_CODE = [page for page in pages() if blocks(page, "python")]


COMMAND = ("-W", "error", "-")


@pytest.fixture
def environment(store_url: str, tmp_path: Path) -> dict[str, str]:
    data = str(tmp_path / "data")
    return {**os.environ, "OMOIDE_URL": store_url, "OMOIDE_DATA_DIR": data, "PYTHONIOENCODING": "utf-8"}


def _out(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_blocks_of_a_page_run_and_run_again(
    page: Path, python: Python, environment: dict[str, str], tmp_path: Path
) -> None:
    program = "\n".join(blocks(page, "python"))
    first, second = (_out(python(*COMMAND, stdin=program, cwd=tmp_path, env=environment)) for _ in range(2))
    if page.stem in BEGIN_ANEW:
        assert ID.sub("id", second) == ID.sub("id", first)


def test_the_example_of_the_readme_is_short_and_remembers(
    environment: dict[str, str], tmp_path: Path
) -> None:
    body, across = blocks(ROOT / "README.md", "python")
    assert len([line for line in body.splitlines() if line.strip()]) <= 15
    assert len([line for line in across.splitlines() if line.strip()]) <= 20
    done = subprocess.run(
        [sys.executable, *COMMAND],
        input=f"{body}\nimport json; print(json.dumps(messages))",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        cwd=tmp_path,
        env=environment,
    )
    block, question = json.loads(_out(done))
    assert "blue-green, on Tuesdays" in block["content"]
    assert question == {"role": "user", "content": "How do we deploy?"}
