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

BEGIN_ANEW = ("hybrid", "long-term", "mirror", "time")
"""Pages that show what is there, and so erase what an earlier run left."""

ID = re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b")
WITH_CODE = [page for page in pages() if blocks(page, "python")]


def _run(program: str, url: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=program,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        cwd=folder,
        env={
            **os.environ,
            "OMOIDE_URL": url,
            "OMOIDE_DATA_DIR": str(folder / "data"),
            "PYTHONIOENCODING": "utf-8",
        },
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_blocks_of_a_page_run_and_run_again(page: Path, store_url: str, tmp_path: Path) -> None:
    first, second = (_run("\n".join(blocks(page, "python")), store_url, tmp_path) for _ in range(2))
    if page.stem in BEGIN_ANEW:
        assert ID.sub("id", second) == ID.sub("id", first)


def test_the_example_of_the_readme_is_short_and_remembers(store_url: str, tmp_path: Path) -> None:
    body, across = blocks(ROOT / "README.md", "python")
    assert len([line for line in body.splitlines() if line.strip()]) <= 15
    assert len([line for line in across.splitlines() if line.strip()]) <= 20
    out = _run(f"{body}\nimport json; print(json.dumps(messages))", store_url, tmp_path)
    block, question = json.loads(out)
    assert "blue-green, on Tuesdays" in block["content"]
    assert question == {"role": "user", "content": "How do we deploy?"}
