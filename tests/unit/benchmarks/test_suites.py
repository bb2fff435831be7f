"""The command line of both suites: shape of the JSON, what goes to stdout, what is refused."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks import retrieval, rivals, speed
from benchmarks.retrieval.suite import COLUMNS as RETRIEVAL_COLUMNS
from benchmarks.rivals import Turn
from benchmarks.rivals.rank_bm25 import tokens

COLUMNS = ["size", "operation", "system", "server_cpu_us", "client_cpu_us", "wall_p50_us", "wall_p99_us"]
COLUMNS += ["round_trips", "bytes_per_document"]
TIME = "2024-05-01T10:00:00+00:00"


class WordCount:
    """A ranker of this test: most shared words first."""

    served = False

    def open(self, url: str) -> None:
        self.turns: dict[str, Sequence[Turn]] = {}

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        self.turns[conversation] = turns

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        asked = set(tokens(question))
        order = sorted(self.turns[conversation], key=lambda turn: -len(asked & set(tokens(turn.text))))
        return [turn.id for turn in order][:depth]

    def close(self) -> None:
        self.turns = {}


class Pile:
    """A store of this test, in this process."""

    served = False
    operations = ("save", "recall", "recall_cold", "observe", "delete", "decay_top")

    def open(self, url: str) -> None:
        self.texts: list[str] = []

    def load(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)

    def crowd(self, texts: Sequence[str], neighbours: int) -> None:
        self.neighbours = neighbours

    def warm(self, queries: Sequence[str]) -> None: ...

    def cool(self) -> None: ...

    def save(self, text: str) -> Any:
        self.texts.append(text)
        return text

    def recall(self, query: str) -> list[str]:
        return self.texts[:10]

    def witness(self, query: str) -> list[str]:
        return self.texts[:7]

    def observe(self, recalled: Any) -> None:
        assert len(recalled) == 7

    def delete(self, saved: Any) -> None:
        self.texts.remove(saved)

    def decay_top(self) -> list[str]:
        return self.texts[-10:]

    def used_bytes(self) -> int:
        return sum(map(len, self.texts))

    def close(self) -> None: ...


@pytest.fixture
def data(tmp_path: Path) -> Path:
    turns = [
        {"id": f"D1:{i}", "session": "1", "author": "Ada", "time": TIME, "text": text}
        for i, text in enumerate(["the red kettle boils", "a blue bicycle", "green garden gate"], start=1)
    ]
    questions = [
        {"id": "q1", "text": "which kettle boils", "time": TIME, "category": "single-hop", "gold": ["D1:1"]},
        {"id": "q2", "text": "whose garden gate", "time": TIME, "category": "adversarial", "gold": ["D1:2"]},
    ]
    path = tmp_path / "talk.json"
    path.write_text(
        json.dumps({"name": "n", "conversations": [{"id": "c", "turns": turns, "questions": questions}]})
    )
    return path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "store", lambda name: Pile())
    monkeypatch.setattr(rivals, "ranker", lambda name: WordCount())


@pytest.fixture
def light() -> Iterator[None]:
    """Measuring collects garbage at each step: what other tests left is not looked through again."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("in_process", "light")
def test_speed_json_is_one_object_with_the_contracts_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert speed.main(["--sizes", "30,60", "--systems", "a,b", "--queries", "4", "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert list(document) == ["runs"]
    assert all(list(row) == COLUMNS for row in document["runs"])
    rows = {(row["size"], row["operation"], row["system"]) for row in document["runs"]}
    assert rows == {
        (size, operation, name) for size in (30, 60) for operation in Pile.operations for name in ("a", "b")
    }
    assert "loaded" in captured.err


@pytest.mark.usefixtures("in_process", "light")
def test_speed_table_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert speed.main(["--sizes", "20", "--systems", "a", "--queries", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(Pile.operations)
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)


@pytest.mark.usefixtures("in_process")
def test_retrieval_json_leaves_adversarial_out_of_all(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert retrieval.main(["--data", str(data), "--systems", "a,b", "--json"]) == 0
    systems = json.loads(capsys.readouterr().out)["systems"]
    assert list(systems) == ["a", "b"]
    assert set(systems["a"]) == {"all", "categories"}
    assert set(systems["a"]["all"]) == set(RETRIEVAL_COLUMNS)
    assert 0 <= systems["a"]["all"]["R@10 low"] <= systems["a"]["all"]["R@10 high"] <= 1
    assert systems["a"]["all"]["tokens@10"] > 0
    assert set(systems["a"]["categories"]) == {"single-hop", "adversarial"}
    assert systems["a"]["all"] == systems["a"]["categories"]["single-hop"]
    assert systems["a"]["all"]["MRR"] == 1
    assert systems["a"]["categories"]["adversarial"]["R@1"] == 0


def test_without_names_all_that_are_installed_take_part(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def only_two(name: str) -> WordCount:
        if name not in ("omoide", "bm25s"):
            raise rivals.MissingSystemError(f"no {name}")
        return WordCount()

    monkeypatch.setattr(rivals, "ranker", only_two)
    assert retrieval.main(["--data", str(data), "--json"]) == 0
    captured = capsys.readouterr()
    assert set(json.loads(captured.out)["systems"]) == {"omoide", "bm25s"}
    assert "popoto is left out: no popoto" in captured.err


def test_an_unknown_or_missing_system_is_one_line_and_code_2(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert speed.main(["--sizes", "10", "--systems", "nosuch"]) == 2
    assert retrieval.main(["--data", str(data), "--systems", "nosuch"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("no system named 'nosuch'") == 2


@pytest.mark.parametrize("text", ["{", "[]", '{"conversations": [{"id": "c"}]}'])
def test_a_wrong_data_file_is_one_line_and_code_2(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    assert retrieval.main(["--data", str(path), "--systems", "omoide"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_gold_that_names_no_turn_is_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text(data.read_text().replace('"gold": ["D1:1"]', '"gold": ["D9:9"]'))
    assert retrieval.main(["--data", str(data), "--systems", "omoide"]) == 2
    assert "gold names no turn" in capsys.readouterr().err
