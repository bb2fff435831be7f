"""What tests take for a fresh interpreter behaves as one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import Python

PROGRAM = """
import atexit, os, sys, threading, time, warnings

def late():
    time.sleep(0.05)
    print("a thread")

class Seen:
    pass

atexit.register(print, "an exit handler")
threading.Thread(target=late).start()
print(sys.argv[1:], os.getcwd(), sorted(os.environ), Seen.__module__, time.tzname[0])
print("told", file=sys.stderr)
warnings.warn("first", UserWarning)
print("reached")
raise SystemExit(3)
"""


@pytest.mark.parametrize("options", [(), ("-W", "error")], ids=" ".join)
def test_a_program_runs_as_in_a_fresh_interpreter(
    options: tuple[str, ...], python: Python, tmp_path: Path
) -> None:
    environment = {"OMOIDE_URL": "none", "TZ": "Asia/Tokyo", "LC_CTYPE": "C.UTF-8"}
    arguments = (*options, "-", "one", "日本")
    forked = python(*arguments, stdin=PROGRAM, cwd=tmp_path, env=environment)
    fresh = subprocess.run(
        [sys.executable, *arguments],
        input=PROGRAM,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env=environment,
    )
    assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout)
    assert forked.stderr.splitlines()[-1] == fresh.stderr.splitlines()[-1]
    assert forked.stdout.splitlines()[-2:] == ["a thread", "an exit handler"]


def test_a_script_finds_its_neighbours(python: Python, tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("NAME = 'next door'")
    (tmp_path / "script.py").write_text("import neighbour, sys; print(neighbour.NAME, sys.argv)")
    done = python(str(tmp_path / "script.py"), "x")
    assert done.stdout == f"next door {[str(tmp_path / 'script.py'), 'x']}\n"


def test_one_program_does_not_see_what_another_did(python: Python, tmp_path: Path) -> None:
    left = "import os, sys, omoide; os.environ['OMOIDE_URL'] = 'x'; omoide.left = 1; sys.path.append('x')"
    assert python("-", stdin=left).returncode == 0
    seen = "import os, sys, omoide; print(os.getpid(), hasattr(omoide, 'left'), 'x' in sys.path)"
    first, second = (python("-", stdin=seen).stdout.split() for _ in range(2))
    assert first[1:] == second[1:] == ["False", "False"]
    assert len({first[0], second[0], str(os.getpid())}) == 3


def test_one_that_does_not_end_is_killed(python: Python) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        python("-", stdin="import time; time.sleep(60)", timeout=0.2)
    assert python("-", stdin="import os; os.kill(os.getpid(), 9)").returncode == -9
    assert python("-", stdin="print('the next')").stdout == "the next\n"
