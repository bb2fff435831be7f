"""A result survives the way to another process."""

from __future__ import annotations

import traceback

import pytest

from omoide.context.result import AssemblyResult, Item
from omoide.errors import QueryError


def test_json_round_trip() -> None:
    result = AssemblyResult(
        [object()],
        "block « »",
        {"mode": "lexical", "terms": ["déploy"], "timings": {"rank_ms": 0.5}, "cut": False, "live": None},
        "0190",
        (Item("a", 1.5, "text\nwith lines 語"), Item("b", 0.0, "")),
    )
    copy = AssemblyResult.from_json(result.to_json())
    assert copy == result
    assert copy.records == []
    assert copy.ids == ("a", "b")
    assert copy.to_json() == result.to_json()
    assert AssemblyResult.from_json(result.to_json().encode()) == result


def test_an_outage_is_not_an_empty_memory() -> None:
    empty, outage = AssemblyResult(), AssemblyResult(metadata={"error": "timeout"})
    assert not empty
    assert empty.error is None
    assert outage.error == "timeout"
    assert AssemblyResult.from_json(outage.to_json()).error == "timeout"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"items": [[1, 2]], "metadata": {}, "turn_id": null, "formatted": ""}',
        "{",
        b"\xff",
        '{"items": [], "metadata": {}, "turn_id": 7, "formatted": ""}',
    ],
)
def test_anything_else_is_refused(text: str | bytes) -> None:
    with pytest.raises(QueryError) as caught:
        AssemblyResult.from_json(text)
    assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1
