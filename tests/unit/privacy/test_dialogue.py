"""Nothing in the dialogue of the development set is taken for a secret."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omoide.privacy import scan

DATA = os.environ.get("OMOIDE_DATA", "")


@pytest.mark.skipif(not DATA, reason="OMOIDE_DATA does not name the folder with retrieval-dev.json")
def test_no_turn_of_dialogue_is_blocked() -> None:
    data = json.loads((Path(DATA) / "retrieval-dev.json").read_text("utf-8"))
    texts = [turn["text"] for talk in data["conversations"] for turn in (*talk["turns"], *talk["questions"])]
    assert texts
    blocked = [index for index, text in enumerate(texts) if scan(text).blocked]
    assert blocked == []
