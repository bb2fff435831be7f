"""A mirrored model goes to a file and comes back, in both stores; and is forgotten in both."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.postgres.conftest import compared

import omoide
from omoide.connection import Connection
from omoide.model.instance import spec_of
from omoide.model.mirror import PostgresMirror
from omoide.model.schema import Scope
from omoide.recipes import DefaultMemory


class MirroredJourney(DefaultMemory):
    class Meta:
        mirror = PostgresMirror(table="mirrored_journeys")
        ttl = timedelta(days=30)


SCOPE = Scope(spec_of(MirroredJourney), ("ada",))


def _fill(count: int) -> None:
    """So many memories, one of them gone again, in a partition that held what an earlier test left."""
    MirroredJourney.delete_partition(agent_id="ada")
    made: list[Any] = [
        MirroredJourney(
            agent_id="ada", content=f"Mia moved to Berlin, note {number}", tags={f"t{number % 3}"}
        )
        for number in range(count)
    ]
    assert all(MirroredJourney.save_many(made))
    for one, other in zip(made[::2], made[1::2], strict=False):
        one.associations.link(other, 1.5)
    assert made[3].update(content="Mia stays")
    assert made[4].delete()
    assembler = omoide.ContextAssembler(MirroredJourney)
    result = assembler.assemble("Mia Berlin", agent_id="ada")
    memory = omoide.recipes.SubconsciousMemory(agent_id="ada", model=MirroredJourney)
    memory.report_outcomes(result, "acted")
    MirroredJourney.counters(agent_id="ada").increment("seen", 2)


def test_a_mirrored_partition_comes_back_in_both_stores(mirrored: Connection, tmp_path: Path) -> None:
    _fill(150)
    omoide.export_memories(MirroredJourney, tmp_path / "first", agent_id="ada")
    MirroredJourney.delete_partition(agent_id="ada")
    done = omoide.import_memories(MirroredJourney, tmp_path / "first")
    assert done.stored == done.records == 149
    omoide.export_memories(MirroredJourney, tmp_path / "second", agent_id="ada")
    assert (tmp_path / "second").read_bytes() == (tmp_path / "first").read_bytes()
    assert compared(mirrored, SCOPE).equal
    assert omoide.import_memories(MirroredJourney, tmp_path / "first").present == 149
    omoide.export_memories(MirroredJourney, tmp_path / "third", agent_id="ada")
    assert (tmp_path / "third").read_bytes() == (tmp_path / "first").read_bytes()


def test_a_mirrored_partition_is_forgotten_in_both_stores(mirrored: Connection) -> None:
    _fill(20)
    told = omoide.forget(MirroredJourney, agent_id="ada", certify=True)
    assert told.records == 19
    assert any("PostgreSQL" in place for place in told.out_of_reach)
    assert MirroredJourney.count(agent_id="ada") == 0
    assert compared(mirrored, SCOPE).equal
