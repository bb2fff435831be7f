from __future__ import annotations

import asyncio

import pytest
from notes import OpsFiltered, OpsNote
from recording import RecordingStore

from omoide.errors import FieldError, QueryError, StoreUnavailableError
from omoide.ops.batch import batch
from omoide.ops.request import Batch


def test_a_batch_is_one_request_on_exit(store: RecordingStore) -> None:
    old = OpsNote(agent_id="a")
    old.save()
    store.asked.clear()
    with batch() as b:
        first = OpsNote(agent_id="a", content="x")
        assert first.save().reason == "batched"
        assert OpsFiltered(agent_id="a", importance=0.0).save().reason == "batched"
        assert old.delete() is False
        second = OpsNote.create(agent_id="b", content="y")
        assert store.asked == []
    (request,) = store.asked
    assert isinstance(request, Batch)
    assert [bool(outcome) for outcome in b.outcomes] == [True, False, True, True]
    assert b.outcomes[1].reason == "below_threshold"  # type: ignore[union-attr]
    assert first._version == second._version == 1
    assert OpsNote.count(agent_id="a") == 1


def test_an_exception_sends_nothing(store: RecordingStore) -> None:
    b = batch()

    def leave_early() -> None:
        with b:
            OpsNote(agent_id="a").save()
            raise KeyError

    with pytest.raises(KeyError):
        leave_early()
    assert store.asked == []
    assert b.outcomes == []
    assert OpsNote(agent_id="a").save().stored


def test_one_bad_record_stops_the_whole_batch_before_the_first_byte(store: RecordingStore) -> None:
    def save_both() -> None:
        with batch():
            OpsNote(agent_id="a").save()
            OpsNote(agent_id="a", importance=float("inf")).save()

    with pytest.raises(FieldError):
        save_both()
    assert store.asked == []
    assert OpsNote(agent_id="a").save().stored


def test_an_update_in_a_batch_loses_visibly(store: RecordingStore) -> None:
    mine = OpsNote(agent_id="a", content="x")
    mine.save()
    theirs = OpsNote.query.get(agent_id="a", note_id=mine.note_id)
    assert theirs is not None
    theirs.update(content="z")
    with batch() as b:
        mine.update(content="y")
    assert b.outcomes[0].reason == "version"  # type: ignore[union-attr]


def test_an_outage_raises(store: RecordingStore) -> None:
    store.down = True
    with pytest.raises(StoreUnavailableError), batch():
        OpsNote(agent_id="a").save()


def test_an_empty_batch_sends_nothing_and_is_entered_once(store: RecordingStore) -> None:
    with batch() as b:
        pass
    assert store.asked == []
    with pytest.raises(QueryError), b:
        pass


async def test_an_async_batch(store: RecordingStore) -> None:
    async with batch() as b:
        await OpsNote(agent_id="a").asave()
        OpsNote(agent_id="a").save()
    assert len(store.asked) == 1
    assert all(b.outcomes)


def test_updates_of_one_instance_are_one_write(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x", project="p")
    note.save()
    note.project = "draft"
    store.asked.clear()
    with batch() as b:
        note.update(content="y")
        note.update(importance=0.5)
        assert (note.content, note.importance) == ("y", 0.5)
    assert [outcome.reason for outcome in b.outcomes] == ["", ""]  # type: ignore[union-attr]
    assert len(store.asked[0].writes) == 1
    back = OpsNote.query.get(agent_id="a", note_id=note.note_id)
    assert back is not None
    assert (back.content, back.importance, back.project, back._version) == ("y", 0.5, "p", 2)
    assert (note.project, note._version) == ("draft", 2)


def test_a_save_takes_the_updates_after_it_along(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    with batch() as b:
        note.save()
        note.update(content="y")
        other = OpsNote(agent_id="a", content="z")
        other.save()
        other.delete()
    assert [bool(outcome) for outcome in b.outcomes] == [True, True, True, True]
    assert [one.content for one in OpsNote.query.filter(agent_id="a").all()] == ["y"]
    with batch() as b:
        note.update(content="w")
        note.importance = 0.5
        note.save()
    assert [outcome.version for outcome in b.outcomes] == [2, 3]  # type: ignore[union-attr]
    assert note._version == 3
    assert note.update(content="v").version == 4


def test_a_batch_that_fails_takes_its_updates_back(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x", importance=0.7)
    note.save()

    def fail() -> None:
        with batch():
            note.update(content="y")
            note.update(content="z", importance=0.1)
            raise KeyError

    def send() -> None:
        with batch():
            note.update(content="y")
            OpsNote(agent_id="a", content="other").save()

    with pytest.raises(KeyError):
        fail()
    assert (note.content, note.importance) == ("x", 0.7)
    store.down = True
    with pytest.raises(StoreUnavailableError):
        send()
    store.down = False
    assert note.content == "x"
    store.failing = {note.note_id}
    send()
    assert note.content == "x"
    with batch(), pytest.raises(FieldError):
        note.update(content="y", agent_id="b")
    assert note.content == "x"
    store.failing = set()
    with batch(), pytest.raises(QueryError):
        OpsNote(agent_id="a", note_id="unknown").update(content="y")


async def test_a_block_that_has_ended_collects_nothing(store: RecordingStore) -> None:
    go = asyncio.Event()
    note = OpsNote(agent_id="a")

    async def later() -> bool:
        await go.wait()
        return bool(await note.asave())

    async with batch():
        async with batch() as inner:
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        assert len(inner) == 0
    go.set()
    assert await task
    assert OpsNote.count(agent_id="a") == 1


async def test_calls_on_many_records_keep_their_place_in_a_batch(store: RecordingStore) -> None:
    notes = [OpsNote(agent_id="a", content=str(number)) for number in range(3)]
    with batch() as b:
        assert {outcome.reason for outcome in OpsNote.save_many(notes[:2])} == {"batched"}
        await OpsNote.asave_many(notes[2:])
        query = OpsNote.query.filter(agent_id="a")
        for call in (
            lambda: OpsNote.delete_many(["x"], agent_id="a"),
            lambda: OpsNote.delete_partition(agent_id="a"),
            query.delete,
        ):
            with pytest.raises(QueryError):
                call()
        for twin in (
            OpsNote.adelete_many(["x"], agent_id="a"),
            OpsNote.adelete_partition(agent_id="a"),
            query.adelete(),
        ):
            with pytest.raises(QueryError):
                await twin
        assert store.asked == []
    assert all(b.outcomes)
    assert len(b.outcomes) == len(b) == 3
