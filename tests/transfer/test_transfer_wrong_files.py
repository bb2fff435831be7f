"""A file that is wrong, foreign, changed or cut short is one clear error, and changes nothing."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from journeys import JourneyMemory, everything, fill, lines_of, wipe, written

import omoide
from omoide import AutoKeyField, IntField, KeyField, Model, StringField, TransferError
from omoide.connection import Connection
from omoide.recipes import DefaultMemory


class TransferNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="", max_bytes=50)
    topic = StringField(null=True, index=True)
    number = IntField(default=0)


def sealed(lines: list[Any]) -> bytes:
    """A file of these lines (objects or bytes) with an end line that fits."""
    data = b"".join(
        line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() + b"\n"
        for line in lines
    )
    edges = sum(len(line.get("edges", ())) for line in lines if isinstance(line, dict))
    kinds = [next(iter(line)) for line in lines if isinstance(line, dict)]
    end = {
        "partitions": kinds.count("partition"),
        "records": kinds.count("id"),
        "edges": edges,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return data + json.dumps({"end": end}, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def note(connection: Connection, tmp_path: Path) -> list[dict[str, Any]]:
    """The lines of an export with one note, but for the last; the store is empty again."""
    assert TransferNote(agent_id="ada", content="a note", topic="t").save()
    lines = [json.loads(line) for line in written(tmp_path / "note", TransferNote).splitlines()]
    wipe(TransferNote)
    return lines[:-1]


def refused(raw: Any, place: Path, data: bytes, model: type[Model] = TransferNote) -> str:
    """The error of an import that must not change a byte."""
    place.write_bytes(data)
    before = everything(raw)
    with pytest.raises(TransferError) as error:
        omoide.import_memories(model, place)
    assert everything(raw) == before
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_cut_at_any_line_changes_nothing(connection: Connection, raw: Any, tmp_path: Path) -> None:
    fill(40, partitions=2)
    lines = list(lines_of(written(tmp_path / "whole")))
    wipe()
    DefaultMemory(agent_id="ada", content="there before").save()
    for count in range(len(lines)):
        told = refused(raw, tmp_path / "cut", b"".join(lines[:count]), JourneyMemory)
        assert "cut short" in told or "empty" in told


def test_a_file_cut_or_changed_anywhere_changes_nothing(
    connection: Connection, raw: Any, tmp_path: Path, full: bool
) -> None:
    fill(20, partitions=1)
    data = written(tmp_path / "whole")
    wipe()
    rng = random.Random(7)
    for _ in range(2_000 if full else 150):
        at = rng.randrange(len(data))
        refused(raw, tmp_path / "cut", data[:at], JourneyMemory)
        flipped = bytes([data[at] ^ (1 << rng.randrange(8))])
        refused(raw, tmp_path / "changed", data[:at] + flipped + data[at + 1 :], JourneyMemory)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"\n", "no export"),
        (b"{}\n", "no export"),
        (b'{"content": "a secret thing"}\n', "no export"),
        (b"PK\x03\x04" + bytes(range(256)), "no export"),
        (b"\x00" * 4096, "cut short, or no export"),
        (b"SQLite format 3\x00\n", "no export"),
        (b'{"omoide":"export","format":2,"model":"TransferNote"}\n', "format"),
        (b'{"omoide":"backup","format":1,"model":"x"}\n', "line 1"),
        (b'{"popoto_export": 1, "model": "DefaultMemory"}\n', "no export"),
        (b'{"results": []}\n', "no export"),
    ],
)
def test_a_foreign_file_is_told_apart(
    connection: Connection, raw: Any, tmp_path: Path, data: bytes, why: str
) -> None:
    told = refused(raw, tmp_path / "foreign", data)
    assert why in told
    assert "secret" not in told


def test_a_file_that_is_not_there_is_one_error(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="cannot read"):
        omoide.import_memories(TransferNote, tmp_path / "nothing")
    with pytest.raises(TransferError, match="cannot read"):
        omoide.import_memories(TransferNote, tmp_path)


Change = Callable[[dict[str, Any]], Any]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda line: line.update(secret=1), "line 3: a line that is not as an export has it"),
        (lambda line: line.update(id=5), r"at $.id"),
        (lambda line: line.update(id=""), "state"),
        (lambda line: line.update(version=0), "state"),
        (lambda line: line.update(version=2**32), "state"),
        (lambda line: line.update(time=2**60), "state"),
        (lambda line: line.update(order="first"), "at $.order"),
        (lambda line: line.update(expires=-1), "state"),
        (lambda line: line.update(edges=[["x", 0.0]]), "state"),
        (lambda line: line.update(edges=[["x", 0.1]]), "state"),
        (lambda line: line.update(edges=[["x", 1.0], ["x", 1.0]]), "state"),
        (lambda line: line.update(edges=[[line["id"], 1.0]]), "state"),
        (lambda line: line.update(edges=[[f"{n}", 1.0] for n in range(65)]), "state"),
        (lambda line: line.update(statistics={"alpha": 0.0, "beta": 0.0}), "state"),
        (lambda line: line.update(statistics={"alpha": -1.0, "beta": 3.0}), "state"),
        (lambda line: line.update(statistics={"alpha": 1.0, "beta": 1.0, "accesses": -1}), "state"),
        (lambda line: line["values"].update(agent_id="eve"), "another partition"),
        (lambda line: line["values"].update(note_id="x"), "its id twice"),
        (
            lambda line: line["values"].update(content="x" * 51),
            "TransferNote.content: must be at most 50 bytes",
        ),
        (lambda line: line["values"].update(content=5), "TransferNote.content"),
        (lambda line: line["values"].update(number="five"), "TransferNote.number"),
        (lambda line: line["values"].update(number=2**63), "TransferNote.number: must fit in 64 bits"),
        (lambda line: line["values"].update(topic="x" * 600), "TransferNote.topic: an indexed value"),
        (lambda line: line["values"].update(other=2**70), "TransferNote.other: whole numbers"),
        (lambda line: line.update(expires=1), "expires, of a model without Meta.ttl"),
    ],
)
def test_a_record_that_breaks_a_rule_is_named(
    note: list[dict[str, Any]], raw: Any, tmp_path: Path, change: Change, why: str
) -> None:
    change(note[2])
    assert why in refused(raw, tmp_path / "bad", sealed(note))


def test_a_bad_record_at_the_end_keeps_all_others_out(
    note: list[dict[str, Any]], raw: Any, tmp_path: Path
) -> None:
    good = [{**note[2], "id": f"id {number}"} for number in range(600)]
    bad = {**note[2], "id": "last", "values": {**note[2]["values"], "number": 1.5}}
    assert "line 603: TransferNote.number" in refused(raw, tmp_path / "bad", sealed([*note[:2], *good, bad]))


def test_lines_out_of_place_are_refused(note: list[dict[str, Any]], raw: Any, tmp_path: Path) -> None:
    header, partition, record = note
    for lines, why in (
        ([header, record], "line 2: a line that cannot stand here"),
        ([header, partition, header], "line 3: a line that cannot stand here"),
        ([header, partition, record, partition], "line 4: a partition comes twice"),
        ([header, {"partition": ["a", "b"]}], "line 2: no partition"),
        ([header, {"partition": [""]}], "line 2: no partition"),
        ([header, {"partition": ["a"], "counters": {"x": 2**53}}], "line 2: no partition"),
        ([header, partition, {"what": 1}], "line 3: a line that no export has"),
    ):
        assert why in refused(raw, tmp_path / "bad", sealed(lines))
    whole = sealed(note)
    assert "after the end line" in refused(raw, tmp_path / "bad", whole + b"{}\n")
    counted = whole.replace(b'"records":1', b'"records":2')
    assert "as many records" in refused(raw, tmp_path / "bad", counted)


@pytest.mark.parametrize(
    ("decay", "values", "why"),
    [
        ({"half_life": 1e308}, {}, "decay order"),
        ({"half_life": 0.0}, {}, ""),
        ({"half_life": -5.0}, {}, ""),
        ({"base": "importance", "half_life": 5.0}, {"importance": 1e300}, "decay order"),
        ({"base": "content", "half_life": 5.0}, {}, ""),
        ({"base_default": 1e300, "half_life": 5.0}, {}, "decay order"),
        ({"half_life": 5.0, "exponent": 0.0}, {}, ""),
    ],
)
def test_a_header_with_a_decay_of_its_own_is_no_way_around(
    connection: Connection, raw: Any, tmp_path: Path, decay: dict[str, Any], values: dict[str, Any], why: str
) -> None:
    assert DefaultMemory(agent_id="ada", content="a note").save()
    lines = [json.loads(line) for line in written(tmp_path / "file", DefaultMemory).splitlines()][:-1]
    wipe(DefaultMemory)
    lines[0]["decay"] = {"base": None, "base_default": 1.0, "exponent": None, **decay}
    lines[2]["values"].update(values)
    if why:
        assert why in refused(raw, tmp_path / "bad", sealed(lines), DefaultMemory)
        return
    (tmp_path / "file").write_bytes(sealed(lines))
    assert omoide.import_memories(DefaultMemory, tmp_path / "file").stored == 1
    assert all(health.sound for health in omoide.doctor(DefaultMemory))


def test_an_export_of_another_model_is_taken_only_on_request(connection: Connection, tmp_path: Path) -> None:
    class TransferOther(Model):
        note_id = AutoKeyField()
        agent_id = KeyField()
        content = StringField(default="")
        topic = StringField(null=True, index=True)
        number = IntField(default=0)

    assert TransferNote(agent_id="ada", content="a note").save()
    written(tmp_path / "file", TransferNote)
    with pytest.raises(TransferError, match="an export of 'TransferNote', not of 'TransferOther'"):
        omoide.import_memories(TransferOther, tmp_path / "file")
    done = omoide.import_memories(TransferOther, tmp_path / "file", saved_as="TransferNote")
    assert done.stored == 1
    with pytest.raises(TransferError, match="other fields"):
        omoide.import_memories(DefaultMemory, tmp_path / "file", saved_as="TransferNote")


def test_options_that_cannot_be_meant(connection: Connection, tmp_path: Path) -> None:
    for options in (
        {"file_format": "xml"},
        {"field_map": {"a": "content"}},
        {"file_format": "jsonl", "saved_as": "x"},
        {"file_format": "jsonl", "field_map": {"a": "no_field"}},
        {"file_format": "jsonl", "team": "x"},
        {"team": "x"},
    ):
        with pytest.raises(omoide.QueryError):
            omoide.import_memories(DefaultMemory, tmp_path / "file", **options)
    with pytest.raises(omoide.QueryError):
        omoide.export_memories(DefaultMemory, tmp_path / "file", team="x")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text").write_text("")
    for call in (omoide.import_memories, omoide.export_memories):
        with (tmp_path / "text").open("r+") as text, pytest.raises(omoide.QueryError, match="bytes"):
            call(DefaultMemory, text)
    with omoide.batch(), pytest.raises(omoide.QueryError, match="batch"):
        omoide.import_memories(DefaultMemory, tmp_path / "text")


def test_a_partition_with_other_indexes_is_not_written_to(
    connection: Connection, raw: Any, tmp_path: Path
) -> None:
    assert DefaultMemory(agent_id="ada", content="a note").save()
    assert DefaultMemory(agent_id="bob", content="a note").save()
    written(tmp_path / "file", DefaultMemory)
    for one in DefaultMemory.query.filter(agent_id="ada").all():
        one.delete()
    raw.hset("omoide:{DefaultMemory/bob}:h", "fingerprint", "another")
    before = everything(raw)
    with pytest.raises(omoide.ModelError, match="other indexes"):
        omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert everything(raw) == before


def test_values_of_no_field_survive_and_missing_ones_get_their_default(
    note: list[dict[str, Any]], tmp_path: Path
) -> None:
    record = note[2]
    record["values"].update(former="kept", nested={"a": [1, 2.5, None]})
    record["bytes"] = {"raw": "AP8="}
    del record["values"]["number"], record["values"]["topic"]
    (tmp_path / "file").write_bytes(sealed(note))
    assert omoide.import_memories(TransferNote, tmp_path / "file").stored == 1
    (found,) = TransferNote.query.filter(agent_id="ada").all()
    assert (found.number, found.topic) == (0, None)
    again = json.loads(written(tmp_path / "again", TransferNote).splitlines()[2])
    assert again["values"]["former"] == "kept"
    assert again["values"]["nested"] == {"a": [1, 2.5, None]}
    assert again["bytes"] == {"raw": "AP8="}


def test_no_error_holds_what_a_memory_says(note: list[dict[str, Any]], raw: Any, tmp_path: Path) -> None:
    record = note[2]
    record["values"]["content"] = "the combination is 1234 " * 10
    told = refused(raw, tmp_path / "bad", sealed(note))
    assert "combination" not in told
    line = json.dumps(record).encode().replace(b"1234", b"\xff\xfe") + b"\n"
    assert "combination" not in refused(raw, tmp_path / "bad", sealed([*note[:2], line]))


def test_times_beyond_the_calendar_of_a_server_are_fine(connection: Connection, tmp_path: Path) -> None:
    for moment in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert DefaultMemory(agent_id="ada", content="far away", occurred_at=moment).save()
    first = written(tmp_path / "file", DefaultMemory)
    wipe(DefaultMemory)
    omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert written(tmp_path / "again", DefaultMemory) == first
