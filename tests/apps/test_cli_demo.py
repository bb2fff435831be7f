"""`omoide demo`: what it shows is true, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apps.conftest import need_binary
from tests.processes import Python

from omoide.apps.cli.conversation import CHANGED, CONVERSATION, OUTDATED, QUESTIONS
from omoide.apps.cli.demo import MARK
from omoide.apps.cli.main import main

COMMAND = ("-m", "omoide.apps.cli.main", "demo")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What the demo leaves behind, it leaves in the folder of the test."""
    need_binary()
    return {**os.environ, "TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8"}


def test_the_demo_shows_what_it_says(tmp_path: Path, python: Python, environment: dict[str, str]) -> None:
    done = python(*COMMAND, "--json", env=environment)
    assert done.stderr == ""
    facts = json.loads(done.stdout)
    assert done.returncode == 0, facts
    assert facts["ok"] is True
    assert facts["stored"]["turns"] == len(CONVERSATION) == facts["stored"]["round_trips"]
    assert [one["found"] for one in facts["questions"]] == [True] * len(QUESTIONS)
    assert facts["warm_recall"]["round_trips"] == 1
    assert OUTDATED in facts["feedback"]["before"][0][1]
    assert CHANGED.answer in facts["feedback"]["after"][0][1]
    assert facts["next_door"] == 0
    assert facts["credential"]["stored"] is False
    assert sum(facts["credential"]["counters"].values()) == 1
    assert facts["restart"]["memories"] == len(CONVERSATION)
    assert list(tmp_path.iterdir()) == []


def test_the_demo_tells_it_to_people(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, *COMMAND], capture_output=True, encoding="utf-8", timeout=60, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "ghp_" not in done.stdout
    assert "track=False" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("What next: ")
    assert [line[0] for line in done.stdout.splitlines() if line[:1].isdigit()] == list("123456")


def test_a_kept_folder_can_be_used_again(tmp_path: Path, python: Python, environment: dict[str, str]) -> None:
    folder = tmp_path / "kept"
    for _ in range(2):
        done = python(*COMMAND, "--folder", str(folder), "--keep", "--json", env=environment)
        assert json.loads(done.stdout)["restart"]["memories"] == len(CONVERSATION)
    assert (folder / MARK).is_file()
    assert python(*COMMAND, "--folder", str(folder), env=environment).returncode == 0
    assert not folder.exists()


def test_a_folder_with_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose")
    assert main(["demo", "--folder", str(tmp_path)]) == 2
    assert (tmp_path / "thesis.txt").read_text() == "do not lose"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_conversation_is_unambiguous() -> None:
    texts = [turn.text for turn in CONVERSATION]
    assert len(set(texts)) == len(texts) >= 40
    for question in (*QUESTIONS, CHANGED):
        assert sum(question.answer in text for text in texts) == 1, question.text
    assert sum(OUTDATED in text for text in texts) == 1
