"""omoide through both suites, at a size that takes a second: what it does counts, not how fast."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks import retrieval, speed
from benchmarks.retrieval.metrics import NAMES
from benchmarks.speed.suite import OPERATIONS

TIME = "2024-05-01T10:00:00+00:00"
TRIPS = {"save": 1, "delete": 1, "observe": 1, "decay_top": 1}


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    from benchmarks.speed.suite import compare

    return compare(["omoide"], [60], queries=8, agents=2)


def test_every_operation_is_measured(rows: list[Any]) -> None:
    assert {(row.size, row.operation, row.system) for row in rows} == {
        (60, name, "omoide") for name in OPERATIONS
    }
    for row in rows:
        assert row.server_cpu_us > 0
        assert row.client_cpu_us > 0
        assert row.wall_p99_us >= row.wall_p50_us > 0
        assert row.bytes_per_document > 0


@pytest.mark.parametrize(("operation", "trips"), TRIPS.items())
def test_one_round_trip_where_one_is_promised(rows: list[Any], operation: str, trips: int) -> None:
    assert [row.round_trips for row in rows if row.operation == operation] == [trips]


@pytest.mark.parametrize(("operation", "most"), [("recall", 1), ("recall_noted", 2), ("recall_cold", 2)])
def test_a_recall_takes_one_trip_or_two_cold_and_one_to_note_the_delivery(
    rows: list[Any], operation: str, most: int
) -> None:
    (row,) = (row for row in rows if row.operation == operation)
    assert 1 <= row.round_trips <= most


def test_json_on_stdout_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert speed.main(["--sizes", "20", "--queries", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["system"] for row in document["runs"]} == {"omoide"}


def test_retrieval_finds_the_turn_that_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = ["We painted the kettle red", "The bicycle lost its chain", "Rain flooded the garden gate"]
    asked = ["What colour is the kettle?", "What happened to the bicycle?", "Which gate flooded?"]
    whole = {"session": "1", "author": "Ada", "time": TIME}
    turns = [{"id": f"D1:{i}", "text": text, **whole} for i, text in enumerate(said)]
    questions = [
        {"id": str(i), "text": text, "time": TIME, "category": "single-hop", "gold": [f"D1:{i}"]}
        for i, text in enumerate(asked)
    ]
    data = tmp_path / "talk.json"
    data.write_text(json.dumps({"conversations": [{"id": "c", "turns": turns, "questions": questions}]}))
    assert retrieval.main(["--data", str(data), "--systems", "omoide", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["systems"]["omoide"]["all"]
    assert {name: found[name] for name in NAMES} == dict.fromkeys(NAMES, 1.0)
