"""An update writes the fields it was told to, and an operation that is repeated stays one."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notes import OpsNote, OpsUnique
from recording import RecordingStore, recording

from omoide.errors import FieldError, QueryError, StoreUnavailableError


def stored(note: OpsNote) -> OpsNote:
    found = OpsNote.query.get(agent_id=note.agent_id, note_id=note.note_id)
    assert found is not None
    return found


VALUES: dict[str, Any] = {
    "content": st.text(max_size=5).filter(lambda text: text.isprintable()),
    "project": st.sampled_from([None, "p", "q"]),
    "importance": st.sampled_from([0.1, 0.5, 1.0]),
    "items": st.lists(st.integers(0, 3), max_size=3),
    "tags": st.sets(st.sampled_from("abc")),
}
changes = st.fixed_dictionaries({}, optional=VALUES)


@given(first=changes, drafts=changes, told=changes, theirs=changes, loaded=st.booleans())
def test_an_update_changes_what_it_is_told_and_nothing_else(
    first: dict[str, Any], drafts: dict[str, Any], told: dict[str, Any], theirs: dict[str, Any], loaded: bool
) -> None:
    with recording():
        note = OpsNote(agent_id="a", **first)
        note.save()
        expected = {name: getattr(note, name) for name in VALUES} | copy.deepcopy(theirs | told)
        mine = stored(note) if loaded else note
        original = {name: copy.deepcopy(getattr(mine, name)) for name in VALUES}
        stored(note).update(**copy.deepcopy(theirs))
        for name, value in copy.deepcopy(drafts).items():
            setattr(mine, name, value)
        assert mine.update(**copy.deepcopy(told))
        back = stored(note)
        assert {name: getattr(back, name) for name in VALUES} == expected
        kept = {name: value for name, value in drafts.items() if name not in told and value != original[name]}
        assert {name: getattr(mine, name) for name in VALUES} == {**expected, **kept}


def test_what_is_changed_in_place_is_a_draft_too(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", items=[1], tags={"x"})
    note.save()
    for mine in (note, stored(note)):
        mine.items.append({"two": [2]})
        mine.tags.add("y")
        assert mine.update(importance=0.9)
        assert (stored(note).items, stored(note).tags) == ([1], {"x"})
        assert mine.items[-1] == {"two": [2]}
    note.save()
    assert stored(note).items == [1, {"two": [2]}]


def test_an_instance_that_was_never_loaded_changes_only_what_it_is_told(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="kept", project="p")
    note.save()
    stranger = OpsNote(agent_id="a", note_id=note.note_id)
    assert stranger.update(importance=0.5)
    assert (stored(note).content, stored(note).project, stored(note).importance) == ("kept", "p", 0.5)
    assert (stranger.content, stranger._version) == ("kept", 2)
    assert OpsNote(agent_id="a", note_id="none").update(importance=0.5).reason == "deleted"


def test_a_draft_that_breaks_a_rule_does_not_stand_in_the_way(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    note.importance = float("nan")
    assert note.update(content="y")
    assert stored(note).importance == 1.0
    assert note.importance != note.importance
    with pytest.raises(FieldError):
        note.save()


def test_a_repeat_by_another_process_finds_the_record(store: RecordingStore) -> None:
    first = OpsNote(agent_id="a", content="x")
    assert first.save(operation_id="op").created
    second = OpsNote(agent_id="a", content="x")
    assert second.save(operation_id="op").repeated
    assert first.note_id == second.note_id == str(UUID(first.note_id))
    others: list[OpsNote | OpsUnique] = [
        OpsNote(agent_id="b"),
        OpsUnique(agent_id="a", subject="s"),
        OpsNote(agent_id="a"),
    ]
    for other, operation in zip(others, ("op", "op", "op2"), strict=True):
        assert other.save(operation_id=operation).created
    named = OpsNote(agent_id="a", note_id="mine")
    named.save(operation_id="op")
    assert len({first.note_id, named.note_id, *(one.note_id for one in others)}) == 5
    assert named.note_id == "mine"


def test_an_id_that_a_request_has_named_stays(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a")
    store.down = True
    with pytest.raises(StoreUnavailableError):
        note.save()
    before = note.note_id
    store.down = False
    note.save(operation_id="op")
    assert note.note_id == before


@pytest.mark.parametrize(
    "options", [{"operation_id": ""}, {"operation_id": 5}, {"expect_version": "x"}, {"expect_version": 0.0}]
)
async def test_options_of_a_save_are_checked(store: RecordingStore, options: dict[str, Any]) -> None:
    note = OpsNote(agent_id="a")
    with pytest.raises(QueryError):
        note.save(**options)
    with pytest.raises(QueryError):
        await note.asave(**options)
    for bad in ({"expect_version": True}, {"expect_version": -1}):
        with pytest.raises(QueryError):
            note.save(**bad)
    assert store.asked == []


def test_a_copy_is_saved_on_its_own(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x", confidence=0.9)
    copied = copy.copy(note)
    copied.note_id = "other"
    copied.save()
    assert (note._version, copied._version) == (0, 1)
    note.agent_id = "b"
    assert note.save().created
    loaded = stored(copied)
    again = copy.copy(loaded)
    again.update(content="y")
    assert (loaded.content, loaded._version, again._version) == ("x", 1, 2)
