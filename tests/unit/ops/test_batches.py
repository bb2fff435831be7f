from __future__ import annotations

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
