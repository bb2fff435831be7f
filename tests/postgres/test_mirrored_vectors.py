"""Vectors of mirrored records are in their rows: a rebuild embeds nothing again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest
from tests.postgres.conftest import compared

import omoide
from omoide import EmbeddingField, PostgresMirror
from omoide.connection import Connection
from omoide.model.instance import scope_of
from omoide.ops import request as ask
from omoide.recipes import DefaultMemory
from omoide.testing import ValkeyServer

CALLS: list[Sequence[str]] = []


def provider(texts: Sequence[str]) -> list[list[float]]:
    CALLS.append(tuple(texts))
    return [[1.0 + crc32(f"{text}{place}".encode()) % 7 for place in range(8)] for text in texts]


class MeaningfulMemory(DefaultMemory):
    meaning = EmbeddingField(source="content", provider=provider, name="sevens", timeout=60)

    class Meta:
        mirror = PostgresMirror(table="meaningful")


def memory(content: str, **values: Any) -> MeaningfulMemory:
    return MeaningfulMemory(agent_id="ada", content=content, **values)


@pytest.mark.parametrize("size", [3, 40])
def test_a_rebuild_brings_vectors_back(mirrored: Connection, valkey_server: ValkeyServer, size: int) -> None:
    ours = [memory(f"fact {number}", memory_id=f"id-{number}") for number in range(size)]
    assert all(outcome.embedded and outcome.mirrored for outcome in MeaningfulMemory.save_many(ours))
    CALLS.clear()
    scope, names = scope_of(ours[0]), tuple(one.memory_id for one in ours)
    kept = ours[0].update(importance=0.5)
    assert kept.embedded
    assert CALLS == []
    changed = ours[1].update(content="another fact")
    assert changed.embedded
    assert CALLS == [("another fact",)]
    before = mirrored.store.execute(ask.Digests(scope, names))
    assert all(before)
    valkey_server.flush()
    assert omoide.rebuild(MeaningfulMemory) == {("ada",): size}
    assert mirrored.store.execute(ask.Digests(scope, names)) == before
    assert compared(mirrored, scope).equal
    assert mirrored.store.execute(ask.Check(scope)).findings == ()
    assert len(CALLS) == 1
    MeaningfulMemory.delete_partition(agent_id="ada")
