"""Versions keep what they are through a file: intervals, sealed ends, and chains without a key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import omoide
from omoide import DatetimeField, StringField, ValidityField
from omoide.connection import Connection
from omoide.recipes import DefaultMemory


class MovedFact(DefaultMemory):
    """Facts that leave a store and come back."""

    topic = StringField(null=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def fact(name: str, start: int | None, topic: str | None = None, end: int | None = None) -> MovedFact:
    return MovedFact(
        memory_id=name,
        agent_id="ada",
        content=f"fact {name}",
        topic=topic,
        valid_from=None if start is None else day(start),
        valid_to=None if end is None else day(end),
    )


def intervals() -> dict[str, object]:
    versions = MovedFact.query.filter(agent_id="ada").history().all()
    return {one.memory_id: one.validity for one in versions}


def test_a_file_brings_versions_back_as_they_were(connection: Connection, tmp_path: Path) -> None:
    for number, start in enumerate((5, 1, 9, 3)):
        fact(f"home-{number}", start, "home").save()
    fact("alone", None).save()
    fact("ended", 2, end=4).save()
    fact("first", 1).save()
    fact("second", 2).save(supersedes="first")
    fact("third", 6).save(supersedes="second")
    MovedFact.query.get(agent_id="ada", memory_id="home-0").delete()
    before = intervals()
    assert before["home-3"] == (day(3), day(9))
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    omoide.export_memories(MovedFact, first)
    MovedFact.delete_partition(agent_id="ada")
    omoide.import_memories(MovedFact, first)
    assert intervals() == before
    omoide.export_memories(MovedFact, second)
    assert first.read_bytes() == second.read_bytes()
    (health,) = omoide.doctor(MovedFact)
    assert health.findings == ()

    fact("fourth", 8).save(supersedes="third")
    MovedFact.query.get(agent_id="ada", memory_id="second").delete()
    assert intervals()["first"] == (day(1), day(6))
