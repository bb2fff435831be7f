from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from notes import OpsCapped, OpsFiltered, OpsGuarded, OpsNote, OpsUnique
from recording import RecordingStore

from omoide.errors import ConflictError, FieldError, NotFoundError, PolicyError, StoreUnavailableError
from omoide.ops.request import Batch, Get, Observe, Put
from omoide.privacy import Verdict


def test_a_save_is_one_request(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="blue green deploys", tags={"ops"}, importance=0.5)
    outcome = note.save()
    (put,) = store.asked
    assert isinstance(put, Put)
    assert (outcome.stored, outcome.version, outcome.created, outcome.reason) == (True, 1, True, "")
    assert outcome
    assert outcome.id == note.note_id
    assert put.mode == "upsert"
    assert put.terms == {"blue": 1, "green": 1, "deploy": 1}
    assert put.exact == (("tags", "ops"),)
    assert put.base == 0.5
    assert "relevance" not in put.values
    assert put.values["note_id"] == note.note_id


def test_a_second_save_updates_and_a_stale_one_does_not_resurrect(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    note.content = "y"
    assert note.save().version == 2
    assert store.asked[-1].mode == "update"
    assert note.delete() is True
    outcome = note.save()
    assert not outcome
    assert outcome.reason == "deleted"
    assert note.save(resurrect=True).stored
    assert note.delete() is True
    assert note.delete() is False


def test_a_lost_compare_and_set_raises_and_changes_nothing(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    note.save(expect_version=1)
    with pytest.raises(ConflictError) as caught:
        note.save(expect_version=1)
    assert caught.value.reason == "version"
    assert note._version == 2


def test_an_operation_id_applies_once(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    first = note.save(operation_id="op")
    again = note.save(operation_id="op")
    assert again.repeated
    assert again.version == first.version
    assert len({put.operation_id for put in store.asked}) == 1
    note.save()
    note.save()
    assert len({put.operation_id for put in store.asked}) == 3


def test_an_invalid_record_sends_nothing(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x", importance=float("nan"))
    with pytest.raises(FieldError) as caught:
        note.save()
    assert (caught.value.model, caught.value.field, caught.value.rule) == (
        "OpsNote",
        "importance",
        "must be finite",
    )
    with pytest.raises(FieldError):
        OpsNote(agent_id="", content="x").save()
    with pytest.raises(FieldError):
        OpsNote(content="x").save()
    with pytest.raises(FieldError):
        OpsNote.save_many([OpsNote(agent_id="a"), note])
    assert store.asked == []


def test_an_update_keeps_what_another_writer_changed(store: RecordingStore) -> None:
    mine = OpsNote(agent_id="a", content="x", project="p")
    mine.save()
    theirs = OpsNote.query.get(agent_id="a", note_id=mine.note_id)
    assert theirs is not None
    theirs.update(project="q", tags={"t"})
    store.asked.clear()
    outcome = mine.update(content="y")
    assert outcome.version == 3
    assert [type(request) for request in store.asked] == [Put, Get, Put]
    stored = OpsNote.query.get(agent_id="a", note_id=mine.note_id)
    assert stored is not None
    assert (stored.content, stored.project, stored.tags) == ("y", "q", {"t"})
    assert (mine.content, mine.project) == ("y", "q")


def test_a_failed_update_leaves_the_instance_as_it_was(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    for changes in ({"importance": float("inf")}, {"nothing": 1}, {"agent_id": "b"}):
        with pytest.raises(FieldError):
            note.update(content="y", **changes)
        assert note.content == "x"
    store.down = True
    with pytest.raises(StoreUnavailableError):
        note.update(content="y")
    assert note.content == "x"
    store.down = False
    note.delete()
    assert note.update(content="y").reason == "deleted"
    assert note.content == "x"
    with pytest.raises(NotFoundError):
        note.refresh()


def test_unknown_stored_fields_survive_and_untouched_values_are_written_back(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    (partition,) = store.partitions.values()
    partition.records[note.note_id].values.update(later_field=[1, {"k": None}], colour=5)
    loaded = OpsNote.query.get(agent_id="a", note_id=note.note_id)
    assert loaded is not None
    loaded.content = "y"
    loaded.save()
    values = partition.records[note.note_id].values
    assert (values["later_field"], values["colour"], values["content"]) == ([1, {"k": None}], 5, "y")


def test_a_mutated_list_is_saved(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", items=[1])
    note.save()
    loaded = OpsNote.query.get(agent_id="a", note_id=note.note_id)
    assert loaded is not None
    loaded.items.append({"two": 2})
    loaded.save()
    assert note.refresh().items == [1, {"two": 2}]
    assert OpsNote(agent_id="a").items == []


def test_create_raises_when_nothing_was_stored(store: RecordingStore) -> None:
    first = OpsUnique.create(agent_id="a", subject="s")
    with pytest.raises(ConflictError) as caught:
        OpsUnique.create(agent_id="a", subject="s")
    assert (caught.value.reason, caught.value.duplicate_of) == ("duplicate", first.note_id)
    with pytest.raises(ConflictError) as caught:
        OpsUnique.create(agent_id="a", note_id=first.note_id, subject="t")
    assert caught.value.reason == "exists"
    with pytest.raises(PolicyError) as refused:
        OpsFiltered.create(agent_id="a", importance=0.1)
    assert refused.value.reason == "below_threshold"


def test_a_unique_clash_is_a_falsy_outcome_and_only_within_a_partition(store: RecordingStore) -> None:
    first = OpsUnique(agent_id="a", subject="s")
    first.save()
    clash = OpsUnique(agent_id="a", subject="s").save()
    assert (clash.stored, clash.reason, clash.duplicate_of) == (False, "duplicate", first.note_id)
    assert OpsUnique(agent_id="b", subject="s").save()
    assert OpsUnique(agent_id="a", subject="s", version=1).save()
    assert OpsUnique.query.get(agent_id="a", subject="s", version=0) == first


def test_save_many_is_one_batch_and_counts_refusals_in_it(store: RecordingStore) -> None:
    notes = [OpsFiltered(agent_id=agent, importance=i) for agent in "ab" for i in (0.1, 0.9, 0.2)]
    outcomes = OpsFiltered.save_many(notes)
    (request,) = store.asked
    assert isinstance(request, Batch)
    assert [bool(outcome) for outcome in outcomes] == [False, True, False] * 2
    assert [outcome.reason for outcome in outcomes][:3] == ["below_threshold", "", "below_threshold"]
    assert OpsFiltered.counters(agent_id="a").read("filtered") == 2
    assert OpsFiltered.save_many([]) == []


def test_save_many_names_the_records_that_failed(store: RecordingStore) -> None:
    notes = [OpsNote(agent_id="a", content=str(i)) for i in range(3)]
    store.failing = {notes[1].note_id}
    outcomes = OpsNote.save_many(notes)
    assert [outcome.reason for outcome in outcomes] == ["", "error", ""]
    assert isinstance(outcomes[1].error, StoreUnavailableError)
    store.failing = {note.note_id for note in notes}
    with pytest.raises(StoreUnavailableError):
        OpsNote.save_many(notes)


def test_a_refusal_is_one_request_and_stands_when_it_cannot_be_counted(
    store: RecordingStore, caplog: pytest.LogCaptureFixture
) -> None:
    note = OpsGuarded(agent_id="a", content="my password is " + "hunter2" + "XY99!")
    outcome = note.save()
    assert not outcome
    assert outcome.reason
    (request,) = store.asked
    assert isinstance(request, Observe)
    assert OpsGuarded.never_record_counts(agent_id="a") == {outcome.reason: 1}
    store.down = True
    assert note.save().reason == outcome.reason
    assert "hunter2" not in caplog.text
    assert "could not be counted" in caplog.text


def test_eviction_warns_once_per_partition(store: RecordingStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="omoide")
    outcomes = [OpsCapped(agent_id="evict-once", content=str(i)).save() for i in range(5)]
    assert [outcome.evicted for outcome in outcomes] == [0, 0, 1, 1, 1]
    levels = [record.levelno for record in caplog.records if "max_records_per_partition=2" in record.message]
    assert levels == [logging.WARNING, logging.DEBUG, logging.DEBUG]
    assert "permanent" in caplog.text


def test_the_environment_moves_only_the_default_cap(
    store: RecordingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OpsDefaultCap(OpsCapped):
        max_records_per_partition = 1000
        cap_is_default = True

    class OpsInheritedCap(OpsDefaultCap):
        pass

    class OpsOptedOut(OpsDefaultCap):
        max_records_per_partition = None

    def cap(model: type[OpsCapped]) -> int:
        model(agent_id="a").save()
        return int(store.asked[-1].cap)

    models = (OpsDefaultCap, OpsInheritedCap, OpsOptedOut, OpsCapped)
    assert [cap(model) for model in models] == [1000, 1000, 0, 2]
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "7")
    assert [cap(model) for model in models] == [7, 7, 0, 2]
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "0")
    assert [cap(model) for model in models] == [0, 0, 0, 2]


def test_text_beyond_the_index_is_stored_whole_and_said(store: RecordingStore) -> None:
    content = " ".join(f"word{i}x" for i in range(3000))
    note = OpsNote(agent_id="a", content=content)
    outcome = note.save()
    assert len(store.asked[-1].terms) == 2048
    assert outcome.left_out > 0
    assert store.asked[-1].values["content"] == content


def test_confidence_is_set_before_the_first_save_only(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", confidence=0.9)
    note.save()
    assert store.asked[-1].confidence == 0.9
    with pytest.raises(FieldError):
        note.confidence = 0.1
    loaded = OpsNote.query.get(agent_id="a", note_id=note.note_id)
    assert loaded is not None
    assert loaded.confidence == 0.9
    with pytest.raises(FieldError):
        loaded.relevance = 3.0
    assert note.evidence().confidence == 0.9


def test_a_key_of_a_stored_record_cannot_change(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a")
    note.agent_id = "b"
    note.save()
    note.agent_id = "b"
    with pytest.raises(FieldError):
        note.agent_id = "a"
    with pytest.raises(FieldError):
        note.note_id = "other"


def test_touch_says_whether_the_record_was_there(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a")
    assert note.touch() is False
    note.save()
    assert note.touch() is True
    assert store.asked[-1].evidence[0].touch


def test_what_a_gate_counts_about_a_stored_record_costs_no_round_trip(
    store: RecordingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "omoide.privacy.scan_values", lambda values, policy=None: Verdict(False, "", "", suspect=True)
    )
    assert OpsGuarded(agent_id="a", content="x").save()
    (request,) = store.asked
    assert isinstance(request, Batch)
    assert isinstance(request.writes[0], Put)
    assert request.writes[0].suspect
    assert OpsGuarded.never_record_counts(agent_id="a") == {"suspect": 1}
    assert all(OpsGuarded.save_many([OpsGuarded(agent_id="a") for _ in range(3)]))
    assert OpsGuarded.never_record_counts(agent_id="a") == {"suspect": 4}
    note = OpsGuarded(agent_id="a")
    store.failing = {note.note_id}
    with pytest.raises(StoreUnavailableError):
        note.save()


def test_a_race_that_never_ends_is_a_conflict(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    original = store.on_put

    def beaten(put: Put) -> object:
        record = store.at(put.scope).records[put.id]
        store.at(put.scope).records[put.id] = replace(record, version=record.version + 1)
        return original(put)

    store.on_put = beaten  # type: ignore[assignment, method-assign]
    with pytest.raises(ConflictError) as caught:
        note.update(content="y")
    assert caught.value.reason == "version"
    assert note.content == "x"
