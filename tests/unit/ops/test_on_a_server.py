"""The facade over a real server: what a dict cannot show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from notes import OpsCapped, OpsGuarded, OpsNote, OpsSingle, OpsUnique

import omoide
from omoide.errors import ConflictError
from omoide.ops import port
from omoide.ops.batch import batch


@pytest.fixture(autouse=True)
def connection(store_url: str) -> Iterator[Any]:
    before = port.bind(None)
    connection = omoide.connect(store_url)
    yield connection
    connection.close()
    port.bind(before)


def test_a_record_comes_back_whole(connection: Any) -> None:
    note = OpsNote(
        agent_id="a&agent_id=b",
        content="We deploy blue-green",
        project="p",
        importance=0.5,
        occurred_at=datetime(2024, 1, 1, 12, tzinfo=UTC),
        items=[1, {"k": None}, "x\x00y"],
        tags={"ops", "日本"},
        confidence=0.9,
    )
    before = connection.round_trips
    outcome = note.save()
    assert connection.round_trips - before == 1
    assert (outcome.stored, outcome.version, outcome.created) == (True, 1, True)
    back = OpsNote.query.get(agent_id="a&agent_id=b", note_id=note.note_id)
    assert back == note
    assert back is not None
    for name in ("content", "project", "importance", "occurred_at", "items", "tags"):
        assert getattr(back, name) == getattr(note, name)
    assert back.confidence == pytest.approx(0.9, abs=1e-3)
    assert back.relevance == pytest.approx(0.5, rel=1e-3)
    assert OpsNote.count(agent_id="b") == 0


def test_update_delete_and_races(connection: Any) -> None:
    mine = OpsNote(agent_id="a", content="x", project="p")
    mine.save()
    theirs = OpsNote.query.get(agent_id="a", note_id=mine.note_id)
    assert theirs is not None
    theirs.update(project="q")
    assert mine.update(content="y").version == 3
    back = mine.refresh()
    assert (back.content, back.project) == ("y", "q")
    with pytest.raises(ConflictError):
        mine.save(expect_version=1)
    assert mine.save(operation_id="op").version == 4
    again = mine.save(operation_id="op")
    assert (again.version, again.repeated) == (4, True)
    assert mine.touch() is True
    assert mine.delete() is True
    assert mine.delete() is False
    assert mine.save().reason == "deleted"
    assert OpsNote.count(agent_id="a") == 0


def test_queries(connection: Any) -> None:
    notes = [
        OpsNote(
            agent_id="a",
            content=f"n{i}",
            importance=(i + 1) / 10,
            project="even" if i % 2 == 0 else "odd",
            tags={f"t{i}", "all"},
            occurred_at=datetime(2024, 1, 1 + i, tzinfo=UTC),
        )
        for i in range(6)
    ]
    before = connection.round_trips
    assert all(OpsNote.save_many(notes))
    assert connection.round_trips - before <= 2
    query = OpsNote.query.filter(agent_id="a")
    assert query.all() == notes[::-1]
    assert query.order_by("importance").limit(2).offset(1).all() == notes[1:3]
    assert query.filter(project="odd").count() == 3
    assert query.filter(tags={"t2", "all"}).all() == [notes[2]]
    assert (
        query.filter(
            time__gte=datetime(2024, 1, 3, tzinfo=UTC), time__lt=datetime(2024, 1, 5, tzinfo=UTC)
        ).count()
        == 2
    )
    assert query.filter(importance__gte=0.25, importance__lt=0.45).ids() == [
        notes[3].note_id,
        notes[2].note_id,
    ]
    assert query.exclude([notes[5].note_id]).first() == notes[4]
    assert query.top_by_decay(n=2) == [notes[5], notes[4]]
    assert query.filter(colour="red", scan=True).count() == 6
    assert {note.note_id for note in query.iterate(page=2)} == {note.note_id for note in notes}
    assert query.get_many(["gone", notes[0].note_id]) == [None, notes[0]]
    assert query.filter(project="odd").delete() == 3
    assert OpsNote.delete_many([notes[0].note_id, "gone"], agent_id="a") == 1
    assert OpsNote.delete_partition(agent_id="a") == 2
    assert query.all() == []


def test_concurrent_equal_saves_leave_one_row() -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: OpsUnique(agent_id="a", subject="same").save(), range(50)))
    stored = [outcome for outcome in outcomes if outcome]
    assert len(stored) == 1
    assert {outcome.duplicate_of for outcome in outcomes if not outcome} == {stored[0].id}
    found = OpsUnique.query.get(agent_id="a", subject="same", version=0.0)
    assert found is not None
    assert found.note_id == stored[0].id


def test_caps_counters_and_the_single_partition() -> None:
    outcomes = [OpsCapped(agent_id="a", content=str(i)).save() for i in range(5)]
    assert sum(outcome.evicted for outcome in outcomes) == 3
    counters = OpsCapped.counters(agent_id="a")
    assert counters.read("evicted") == 3
    assert counters.increment("mine", 2) == 2
    assert [one.content for one in OpsCapped.query.filter(agent_id="a").order_by("time").all()] == ["3", "4"]
    only = OpsSingle(content="x")
    only.save()
    assert OpsSingle.query.all() == [only]


def test_a_refused_save_is_one_round_trip_and_counted(connection: Any) -> None:
    note = OpsGuarded(agent_id="a", content="my password is " + "hunter2" + "XY99!")
    before = connection.round_trips
    outcome = note.save()
    assert not outcome
    assert connection.round_trips - before == 1
    assert OpsGuarded.never_record_counts(agent_id="a") == {outcome.reason: 1}


def test_a_batch_and_the_graph(connection: Any) -> None:
    before = connection.round_trips
    with batch() as b:
        first, second = OpsNote(agent_id="a", content="one"), OpsNote(agent_id="a", content="two")
        first.save()
        second.save()
    assert connection.round_trips - before == 1
    assert all(b.outcomes)
    assert first.associations.link(second) == pytest.approx(1.0)
    assert first.associations.strengthen(second, by=2.0) == pytest.approx(3.0)
    assert second.associations.neighbours() == [(first.note_id, pytest.approx(0.75))]
    assert first.associations.propagate(hops=2)[0][0] == second.note_id
    second.delete()
    assert first.associations.neighbours() == []


def test_async_works_in_successive_loops() -> None:
    async def turn(content: str) -> int:
        await OpsNote(agent_id="a", content=content).asave()
        return await OpsNote.acount(agent_id="a")

    assert [asyncio.run(turn(str(i))) for i in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7, 0.9])
def test_ranges_include_their_own_bound(share: float) -> None:
    OpsNote(agent_id="a", importance=share, confidence=share).save()
    query = OpsNote.query.filter(agent_id="a")
    assert query.filter(importance__gte=share).count() == 1
    assert query.filter(importance__lt=share).count() == 0
    assert query.filter(confidence__gte=share).count() == 1
    assert query.filter(confidence__lt=share).count() == 0
    assert query.filter(importance__gte=share, colour="red", scan=True).count() == 1
    assert query.filter(confidence__gte=share, colour="red", scan=True).count() == 1


HOSTILE = [
    "a&agent_id=b",
    "*",
    "{x}",
    "a:b",
    "a b",
    "a\nb",
    "🦀",
    "x" * 128,
    "a/b",
    "%2F",
    "[a]",
    "a?",
    "a}",
    "{",
    "\x00",
]


def test_hostile_partitions_are_separate_and_come_back() -> None:
    notes = [OpsNote(agent_id=agent, note_id="same", content=agent) for agent in HOSTILE]
    assert all(OpsNote.save_many(notes))
    for agent in HOSTILE:
        assert OpsNote.count(agent_id=agent) == 1
        found = OpsNote.query.get(agent_id=agent, note_id="same")
        assert found is not None
        assert (found.agent_id, found.content) == (agent, agent)
    assert OpsNote.query.filter(agent_id="*").delete() == 1
    assert [OpsNote.count(agent_id=agent) for agent in HOSTILE] == [
        0 if agent == "*" else 1 for agent in HOSTILE
    ]
