"""An import goes the way of every save: firewall, write filter, uniqueness; and it never evicts."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from journeys import everything, wipe, written
from test_transfer_wrong_files import sealed

import omoide
from omoide import (
    AutoKeyField,
    ConfidenceField,
    DecayingSortedField,
    FloatField,
    KeyField,
    Model,
    StringField,
    TransferError,
    WriteFilterMixin,
)
from omoide.connection import Connection
from omoide.core.decay import touched_at
from omoide.mixins import AccessTrackerMixin, NeverRecordMixin
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops.request import Evidence, Observe
from omoide.privacy.samples import Maker
from omoide.recipes import DefaultMemory

TOKEN = "gh" + "p_" + Maker(91).body("an", 36)


class CappedNote(Model):
    max_records_per_partition = 5

    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    kind = StringField(null=True)

    class Meta:
        unique_together = ("kind",)


class FilteredNote(WriteFilterMixin, Model):
    write_threshold = 0.5

    note_id = AutoKeyField()
    agent_id = KeyField()
    importance = FloatField(default=1.0)


class RedactingNote(NeverRecordMixin, Model):
    never_record_mode = "redact"

    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")


class FleetingNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")

    class Meta:
        ttl = timedelta(seconds=100)


def edited(place: Path, model: type[Model], change: Any) -> None:
    """An export with its records changed, and an end line that fits."""
    lines = [json.loads(line) for line in written(place, model).splitlines()][:-1]
    for line in lines:
        if "values" in line:
            change(line)
    place.write_bytes(sealed(lines))


# ---- gates -----------------------------------------------------------------------------------------


def test_a_secret_is_counted_and_told_of_and_is_nowhere(
    connection: Connection, raw: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = [DefaultMemory(agent_id="ada", content=f"note {number}") for number in range(3)]
    assert all(DefaultMemory.save_many(made))
    made[0].associations.link(made[1])

    def leak(line: dict[str, Any]) -> None:
        if line["id"] == made[0].memory_id:
            line["values"]["content"] = f"the token is {TOKEN}"

    edited(tmp_path / "file", DefaultMemory, leak)
    wipe(DefaultMemory)
    with caplog.at_level(logging.DEBUG):
        done = omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert (done.stored, done.refused) == (2, {"credential": 1})
    assert DefaultMemory.never_record_counts(agent_id="ada") == {"credential": 1}
    assert DefaultMemory.count(agent_id="ada") == 2
    for told in (repr(done), caplog.text, repr(everything(raw))):
        assert TOKEN not in told
    (left,) = [one for one in made[1:] if one.memory_id == made[1].memory_id]
    assert left.associations.neighbours() == []


def test_an_id_of_words_is_screened_and_one_of_ours_is_not(connection: Connection, tmp_path: Path) -> None:
    assert DefaultMemory(agent_id="ada", content="a note").save()

    def leak(line: dict[str, Any]) -> None:
        line["id"] = TOKEN

    edited(tmp_path / "file", DefaultMemory, leak)
    wipe(DefaultMemory)
    assert omoide.import_memories(DefaultMemory, tmp_path / "file").refused == {"credential": 1}


def test_a_name_that_is_blocked_gets_no_counter(connection: Connection, raw: Any, tmp_path: Path) -> None:
    DefaultMemory.counters(agent_id="ada").increment("seen", 2)
    lines = [json.loads(line) for line in written(tmp_path / "file", DefaultMemory).splitlines()][:-1]
    lines[1]["counters"][TOKEN] = 7
    lines.append({"partition": [TOKEN], "counters": {"seen": 1}})
    (tmp_path / "file").write_bytes(sealed(lines))
    wipe(DefaultMemory)
    assert omoide.import_memories(DefaultMemory, tmp_path / "file").counters_refused == 2
    assert DefaultMemory.counters(agent_id="ada").all() == {"seen": 2}
    assert TOKEN not in repr(everything(raw))


def test_what_was_stored_as_suspect_is_not_counted_again(connection: Connection, tmp_path: Path) -> None:
    made = DefaultMemory(agent_id="ada", content=f"see {Maker(5).body('an', 44)} for it")
    assert made.save()
    counts = DefaultMemory.never_record_counts(agent_id="ada")
    assert counts == {"suspect": 1}
    first = written(tmp_path / "file", DefaultMemory)
    wipe(DefaultMemory)
    omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert DefaultMemory.never_record_counts(agent_id="ada") == counts
    assert written(tmp_path / "again", DefaultMemory) == first


def test_blocked_parts_are_taken_out_where_the_class_says_so(connection: Connection, tmp_path: Path) -> None:
    made = RedactingNote(agent_id="ada", content="nothing yet")
    assert made.save()

    def leak(line: dict[str, Any]) -> None:
        line["values"]["content"] = f"the deploy token is {TOKEN} and Mia has it"

    edited(tmp_path / "file", RedactingNote, leak)
    wipe(RedactingNote)
    done = omoide.import_memories(RedactingNote, tmp_path / "file")
    assert (done.stored, done.redacted, done.refused) == (1, 1, {})
    found = RedactingNote.query.get(agent_id="ada", note_id=made.note_id)
    assert TOKEN not in found.content
    assert "Mia has it" in found.content
    assert RedactingNote.never_record_counts(agent_id="ada") == {"redacted": 1}


def test_a_write_filter_keeps_out_what_it_would_at_a_save(connection: Connection, tmp_path: Path) -> None:
    assert all(FilteredNote.save_many([FilteredNote(agent_id="ada") for _ in range(3)]))
    levels = iter((0.1, 0.5, 0.9))
    edited(tmp_path / "file", FilteredNote, lambda line: line["values"].update(importance=next(levels)))
    wipe(FilteredNote)
    done = omoide.import_memories(FilteredNote, tmp_path / "file")
    assert (done.stored, done.refused) == (2, {"below_threshold": 1})
    assert FilteredNote.counters(agent_id="ada").read("filtered") == 1


def test_a_unique_value_that_is_taken_keeps_a_record_out(connection: Connection, tmp_path: Path) -> None:
    assert CappedNote(agent_id="ada", content="exported", kind="a").save()
    written(tmp_path / "file", CappedNote)
    wipe(CappedNote)
    assert CappedNote(agent_id="ada", content="mine", kind="a").save()
    done = omoide.import_memories(CappedNote, tmp_path / "file")
    assert (done.stored, done.duplicates) == (0, 1)
    assert [one.content for one in CappedNote.query.filter(agent_id="ada").all()] == ["mine"]


# ---- room ------------------------------------------------------------------------------------------


def test_a_partition_without_room_is_refused_with_both_counts(
    connection: Connection, raw: Any, tmp_path: Path
) -> None:
    assert all(CappedNote.save_many([CappedNote(agent_id="ada", content=f"n {n}") for n in range(4)]))
    assert CappedNote(agent_id="bob", content="with room").save()
    written(tmp_path / "file", CappedNote)
    wipe(CappedNote)
    assert all(CappedNote.save_many([CappedNote(agent_id="ada", content=f"m {n}") for n in range(2)]))
    before = everything(raw)
    with pytest.raises(
        TransferError, match="holds 2 records and would hold 6, more than its cap of 5"
    ) as told:
        omoide.import_memories(CappedNote, tmp_path / "file")
    assert told.value.place == "line 2"
    assert everything(raw) == before
    done = omoide.import_memories(CappedNote, tmp_path / "file", lift_cap=True)
    assert done.stored == 5
    assert CappedNote.count(agent_id="ada") == 6
    assert CappedNote.counters(agent_id="ada").read("evicted") == 0


def test_a_full_partition_takes_its_own_export_again(
    connection: Connection, raw: Any, tmp_path: Path
) -> None:
    assert all(CappedNote.save_many([CappedNote(agent_id="ada", content=f"n {n}") for n in range(5)]))
    written(tmp_path / "file", CappedNote)
    before = everything(raw)
    done = omoide.import_memories(CappedNote, tmp_path / "file")
    assert (done.present, done.stored) == (5, 0)
    assert everything(raw) == before


def test_the_default_cap_is_that_of_the_deployment(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(DefaultMemory.save_many([DefaultMemory(agent_id="ada", content=f"{n}") for n in range(3)]))
    written(tmp_path / "file", DefaultMemory)
    wipe(DefaultMemory)
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "2")
    with pytest.raises(TransferError, match="cap of 2"):
        omoide.import_memories(DefaultMemory, tmp_path / "file")
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "0")
    assert omoide.import_memories(DefaultMemory, tmp_path / "file").stored == 3


# ---- time ------------------------------------------------------------------------------------------


def test_a_deadline_stays_and_what_is_over_is_not_stored(connection: Connection, tmp_path: Path) -> None:
    made = [FleetingNote(agent_id="ada", content=f"note {n}") for n in range(2)]
    assert all(FleetingNote.save_many(made))
    deadlines = {}

    def age(line: dict[str, Any]) -> None:
        line["expires"] = 1_000 if line["id"] == made[0].note_id else line["expires"] - 50_000
        deadlines[line["id"]] = line["expires"]

    edited(tmp_path / "file", FleetingNote, age)
    wipe(FleetingNote)
    done = omoide.import_memories(FleetingNote, tmp_path / "file")
    assert (done.stored, done.expired) == (1, 1)
    (found,) = FleetingNote.query.filter(agent_id="ada").all()
    record: Any = found._omoide.record
    assert record.expires_ms == deadlines[made[1].note_id]


# ---- another class than the one that was exported ---------------------------------------------------


class SlowNote(AccessTrackerMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    importance = FloatField(default=1.0)
    relevance = DecayingSortedField(base_score_field="importance", half_life=timedelta(days=300))
    certainty = ConfidenceField()


class FastNote(AccessTrackerMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    importance = FloatField(default=1.0)
    relevance = DecayingSortedField(base_score_field="importance", half_life=timedelta(days=3))


class PowerNote(AccessTrackerMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    importance = FloatField(default=1.0)
    relevance = DecayingSortedField(base_score_field="importance", exponent=0.5)
    certainty = ConfidenceField(initial=0.8, prior_weight=4.0)


class BareNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    importance = FloatField(default=1.0)


KINDS = (SlowNote, FastNote, PowerNote, BareNote)


def _touches(model: type[Model]) -> dict[str, float]:
    """id -> last touch in seconds, from the decay order."""
    decay = spec_of(model).decay
    found = {}
    for one in model.query.filter(agent_id="ada").all():
        record: Any = one._omoide.record
        power = decay is None or decay.exponent is not None
        touched = record.order if power else touched_at(record.order, record.importance, decay.half_life)
        found[record.id] = touched
    return found


@pytest.mark.parametrize("there", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("here", KINDS, ids=lambda kind: kind.__name__)
def test_the_last_touch_comes_along_whatever_decays(
    connection: Connection, tmp_path: Path, there: type[Model], here: type[Model]
) -> None:
    made = [there(agent_id="ada", importance=value) for value in (1.0, 0.25, 0.0, -3.0, 1e20)]
    assert all(there.save_many(made))
    before = _touches(there)
    written(tmp_path / "file", there)
    wipe(there)
    omoide.import_memories(here, tmp_path / "file", saved_as=there.__name__)
    assert _touches(here) == pytest.approx(before, abs=2e-3, rel=0)
    assert all(health.sound for health in omoide.doctor(here))


def test_evidence_meets_a_class_with_another_prior(connection: Connection, tmp_path: Path) -> None:
    made = SlowNote(agent_id="ada")
    assert made.save()
    scope = Scope(spec_of(SlowNote), ("ada",))
    connection.store.execute(Observe(scope, (Evidence(made.note_id, 3.0, 1.0, access=True),)))
    written(tmp_path / "slow", SlowNote)
    omoide.import_memories(FastNote, tmp_path / "slow", saved_as="SlowNote")
    (plain,) = FastNote.query.filter(agent_id="ada").all()
    assert plain.access_count == 1
    assert plain.last_accessed is not None
    assert plain.evidence().confidence == 1.0
    omoide.import_memories(PowerNote, tmp_path / "slow", saved_as="SlowNote")
    (other,) = PowerNote.query.filter(agent_id="ada").all()
    assert other.evidence() == (4.0 / 6.0, 1, 1)
    written(tmp_path / "fast", FastNote)
    wipe(PowerNote)
    omoide.import_memories(PowerNote, tmp_path / "fast", saved_as="FastNote")
    (prior,) = PowerNote.query.filter(agent_id="ada").all()
    assert prior.certainty == pytest.approx(0.8)
    assert prior.access_count == 1
