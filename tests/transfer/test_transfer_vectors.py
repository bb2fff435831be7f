"""Vectors are made anew: an import embeds what it stores, once, and an export has none of them."""

from __future__ import annotations

import zlib
from pathlib import Path

from journeys import wipe, written

import omoide
from omoide import EmbeddingField
from omoide.connection import Connection
from omoide.recipes import DefaultMemory

ASKED: list[list[str]] = []


def provider(texts: list[str]) -> list[list[float]]:
    """A direction a text."""
    ASKED.append(list(texts))
    return [[float(zlib.crc32(text.encode()) >> bit & 1) + 0.5 for bit in range(32)] for text in texts]


class MovedMeaning(DefaultMemory):
    meaning = EmbeddingField(source="content", provider=provider)


def test_vectors_are_made_once_and_are_not_part_of_the_file(connection: Connection, tmp_path: Path) -> None:
    made = [MovedMeaning(agent_id="ada", content=f"note {number}") for number in range(300)]
    assert all(MovedMeaning.save_many(made))
    first = written(tmp_path / "first", MovedMeaning)
    found = omoide.ContextAssembler(MovedMeaning, track=False).assemble("note 7", agent_id="ada").ids
    wipe(MovedMeaning)
    ASKED.clear()
    assert omoide.import_memories(MovedMeaning, tmp_path / "first").stored == 300
    assert [len(texts) for texts in ASKED] == [256, 44]
    assert written(tmp_path / "second", MovedMeaning) == first
    assert omoide.ContextAssembler(MovedMeaning, track=False).assemble("note 7", agent_id="ada").ids == found
    assert omoide.embed(MovedMeaning).embedded == 0
    ASKED.clear()
    assert omoide.import_memories(MovedMeaning, tmp_path / "first").present == 300
    assert ASKED == []
