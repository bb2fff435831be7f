"""The feedback suite: what is reported, what is measured, and what its table says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import feedback
from benchmarks.feedback.history import Agents, halves, questions_of, shortened
from benchmarks.feedback.suite import COLUMNS
from benchmarks.intervals import interval, per_question
from benchmarks.retrieval.dialogue import Conversation, Question, read
from benchmarks.rivals.omoide import memory_model

TIME = "2024-05-01T10:00:00+00:00"
SAID = [
    "a red kettle boils",
    "a blue bicycle",
    "a green gate",
    "a red kettle leaks",
    "rain in Oslo",
    "red ink",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    turns = [
        {"id": f"t{i}", "session": "1", "author": "Ada", "time": TIME, "text": text}
        for i, text in enumerate(SAID)
    ]
    asked = [("red kettle boils", ["t0"]), ("red kettle leaks", ["t3"]), ("green gate", ["t2"])]
    asked += [("Oslo rain", ["t4"]), ("no such thing", ["t5"])]
    questions = [
        {"id": str(i), "text": text, "time": TIME, "category": "single-hop", "gold": gold}
        for i, (text, gold) in enumerate(asked)
    ]
    questions[-1]["category"] = "adversarial"
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"conversations": [{"id": "c", "turns": turns, "questions": questions}]}))
    return path


def test_a_run_tells_each_group_of_questions(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert feedback.main(["--data", str(data), "--splits", "2", "--noise", "0,1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = document["rows"]
    assert document["splits"] == 2
    assert {(row["questions"], row["noise"]) for row in rows} == {
        (name, noise) for name in ("others", "related", "unrelated", "again") for noise in (0.0, 1.0)
    }
    assert all(set(COLUMNS) == set(row) for row in rows)
    counts = {row["questions"]: row["n"] for row in rows if row["noise"] == 0 and row["by"] == "all"}
    assert (counts["others"], counts["again"]) == (4, 4)
    assert counts["related"] + counts["unrelated"] == counts["others"]


def test_gold_is_acted_on_and_the_rest_dismissed(data: Path, store_url: str) -> None:
    import omoide

    omoide.connect(store_url)
    conversations = read(data)
    questions = questions_of(conversations, None)
    assert [one.name for one in questions] == ["c/0", "c/1", "c/2", "c/3"]
    agents = Agents(conversations, "live")
    before = agents.measure({one.name: one.question.text for one in questions}, questions)
    agents.live(questions[:1], 0.0, 0)
    confidence = {one.content: one.confidence for one in memory_model().query.filter(agent_id="live-c").all()}
    assert confidence["a red kettle boils"] > 0.5 > confidence["a red kettle leaks"]
    assert before["c/0"]["R@1"] == 1


def test_halves_are_all_questions_once(data: Path) -> None:
    questions = questions_of(read(data), None)
    for seed in range(5):
        first, second = halves(questions, seed)
        assert len(first) == len(second) == 2
        assert {one.name for one in (*first, *second)} == {one.name for one in questions}


def test_a_question_is_shortened_by_a_telling_word() -> None:
    asked = Question("When did the red kettle boil over?", "temporal", ("t0",))
    shorter = {shortened(asked, seed) for seed in range(20)}
    assert all(len(text.split()) == 6 and text.startswith("When did the ") for text in shorter)
    assert len(shorter) > 1
    assert shortened(Question("red kettle", "x", ("t0",)), 1) == "red kettle"


def test_an_interval_holds_its_mean_and_knows_its_sign() -> None:
    sure = interval([0.1, 0.2, 0.15, 0.12])
    assert sure.low <= sure.mean <= sure.high
    assert (sure.sign, interval([-1.0, 1.0]).sign, interval([-0.2, -0.1]).sign) == ("+", "0", "-")
    assert interval([1.0]) == (1.0, 1.0, 1.0)
    assert per_question({"a": [0.0, 1.0], "b": [1.0]}) == [0.5, 1.0]


def test_wrong_data_is_one_line_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.json"
    path.write_text("{")
    assert feedback.main(["--data", str(path)]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_unanswerable_questions_are_left_out() -> None:
    asked = [Question("a", "adversarial", ("t",)), Question("b", "x", ("t",)), Question("c", "x", ("t",))]
    conversation = Conversation("c", (), tuple(asked))
    assert [one.question.text for one in questions_of([conversation], 1)] == ["b"]
