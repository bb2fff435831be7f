"""Rebuilding and pruning as a program calls them: what stays, what is new, what an interruption leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import omoide
from omoide import AutoKeyField, BM25Field, ConfidenceField, KeyField, Model, StringField
from omoide.connection import Connection
from omoide.ops import reindex as reindexing
from omoide.ops.reindex import areindex, rebuild, reindex
from omoide.ops.request import BeginReindex, CopyRecords
from omoide.ops.upkeep import aprune, doctor, prune, scope_named
from omoide.recipes import DefaultMemory, SubconsciousMemory


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    with omoide.connect(store_url) as opened:
        yield opened


def _notes(indexed: bool) -> type[Model]:
    """The class `RebuiltNote`, in one of two shapes; the later definition replaces the earlier one."""

    class RebuiltNote(Model):
        note_id = AutoKeyField()
        agent_id = KeyField()
        text = StringField(default="")
        kind = StringField(default="idea", index=indexed)
        search = BM25Field(source="text")
        trust = ConfidenceField()

    return RebuiltNote


def test_what_the_store_knows_of_a_record_stays(connection: Connection) -> None:
    kept = DefaultMemory(agent_id="a", content="the heron stands by the river", importance=0.25)
    other = DefaultMemory(agent_id="a", content="the heron has flown")
    kept.save()
    other.save()
    kept.associations.link(other, 2.0)
    memory = SubconsciousMemory(agent_id="a")
    _, result = memory.inject_context([{"role": "user", "content": "where is the heron?"}])
    memory.report_outcomes(result, "acted")
    before = _facts(kept)
    assert before["evidence"].corroborations == 1
    DefaultMemory.counters(agent_id="a").increment("mine", 3)

    assert reindex(DefaultMemory, agent_id="a") == 2

    assert _facts(kept) == before
    assert DefaultMemory.counters(agent_id="a").read("mine") == 3
    assert all(one.sound for one in doctor())
    memory.report_outcomes(result, "contradicted")
    assert _facts(kept) == before, "an outcome told before the rebuild applies once"


def _facts(memory: DefaultMemory) -> dict[str, Any]:
    found = DefaultMemory.query.get(agent_id="a", memory_id=memory.memory_id)
    assert found is not None
    return {
        "content": found.content,
        "created": found.created_at,
        "version": found._version,
        "evidence": found.evidence(),
        "accesses": found.access_count,
        "neighbours": found.associations.neighbours(),
        "relevance": round(found.relevance or 0.0, 4),
    }


def test_a_new_index_holds_for_old_records(connection: Connection) -> None:
    old = _notes(indexed=False)
    old.save_many([old(agent_id="a", text=f"note {number}") for number in range(600)])
    new = _notes(indexed=True)
    (health,) = doctor()
    assert (health.outdated, health.sound, health.findings) == (True, False, ())
    with pytest.raises(omoide.ModelError, match="another shape"):
        new(agent_id="a", text="one more").save()

    seen: list[tuple[int, int]] = []
    assert reindex(new, agent_id="a", progress=lambda done, total: seen.append((done, total))) == 600
    assert seen[-1] == (600, 600)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert new.query.filter(agent_id="a", kind="idea").count() == 600
    assert new(agent_id="a", text="one more").save()


def test_a_rebuild_that_was_cut_short_is_taken_up(connection: Connection) -> None:
    note = _notes(indexed=False)
    note.save_many([note(agent_id="a", text=f"note {number}") for number in range(600)])
    (scope,) = (scope_named(part) for part in [_only_partition(connection)])
    plan = rebuild(note, scope)
    request, copied = next(plan), 0
    while not (isinstance(request, CopyRecords) and copied):
        copied += isinstance(request, CopyRecords)
        request = plan.send(connection.store.execute(request))
    plan.close()

    state = connection.store.execute(BeginReindex(scope))
    assert state.cursor.rpartition(":")[2] == str(reindexing.PAGE)
    late = note(agent_id="a", text="written while a rebuild waits")
    late.save()
    first = note.query.filter(agent_id="a").order_by("time").first()
    assert first is not None
    assert first.delete()

    seen: list[int] = []
    assert reindex(note, agent_id="a", progress=lambda done, total: seen.append(done)) == 600
    assert seen[-1] < 600, "what was copied before is not copied again"
    assert note.query.get(agent_id="a", note_id=late.note_id) is not None
    assert all(one.sound for one in doctor())


def _only_partition(connection: Connection) -> Any:
    from omoide.ops.request import Partitions

    (part,) = connection.store.execute(Partitions())
    return part


def test_a_rebuild_of_nothing_creates_nothing(connection: Connection) -> None:
    assert reindex(DefaultMemory, agent_id="nobody") == 0
    assert doctor() == ()
    with pytest.raises(omoide.QueryError):
        reindex(DefaultMemory)


class Shortlived(Model):
    class Meta:
        ttl = timedelta(seconds=1)

    note_id = AutoKeyField()
    agent_id = KeyField()
    text = StringField(default="")
    search = BM25Field(source="text")


def _half_expired() -> None:
    Shortlived.save_many([Shortlived(agent_id="a", text=f"note {number}") for number in range(100)])
    time.sleep(0.6)
    Shortlived(agent_id="a", text="a later one").save()
    time.sleep(0.6)


def test_pruning_counts_first_and_then_erases(connection: Connection) -> None:
    _half_expired()
    assert prune("Shortlived", dry_run=True) == 100
    assert prune("Other", dry_run=True) == 0
    assert prune() == 100
    assert prune(dry_run=True) == 0


def test_a_rebuild_leaves_expired_records_behind(connection: Connection) -> None:
    _half_expired()
    assert reindex(Shortlived, agent_id="a") == 1
    assert prune(dry_run=True) == 0


async def test_the_async_twins_do_the_same(store_url: str) -> None:
    connection = omoide.connect(store_url)
    await DefaultMemory(agent_id="a", content="the heron has flown").asave()
    assert await areindex(DefaultMemory, agent_id="a") == 1
    assert await aprune() == 0
    assert (await DefaultMemory.query.filter(agent_id="a").acount()) == 1
    await connection.aclose()
