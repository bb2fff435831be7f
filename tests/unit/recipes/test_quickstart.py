"""The quickstart runs as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "recipes" / "quickstart"


def test_the_quickstart_runs(store_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / "main.py")],
        env={**os.environ, "OMOIDE_URL": store_url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "- Deploys are blue-green, on Tuesdays"
    assert lines[2] == "stored: [True]"
    assert lines[3].endswith("'applied'}")
    assert lines[4] == "web: Deploys are blue-green, on Tuesdays (confidence 0.67)"
    assert lines[5] == "next door: 0"


def test_it_fits_in_fifteen_lines() -> None:
    source = (FOLDER / "main.py").read_text(encoding="utf-8").split('"""', 2)[2]
    assert len([line for line in source.splitlines() if line.strip()]) <= 18
