"""Export, wipe, import, export: the same bytes. Import twice: nothing changes."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from journeys import JourneyMemory, everything, fill, wipe, written

import omoide
from omoide import AutoKeyField, KeyField, Model, StringField, TransferError
from omoide.connection import Connection
from omoide.errors import StoreUnavailableError
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import port
from omoide.ops.request import Batch, Get
from omoide.recipes import DefaultMemory

QUERIES = ("Mia Berlin", "東京", "memory words", "Ann")


def _found() -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What recalls, the decay order and neighbours say of every partition."""
    told = []
    for part in omoide.status(JourneyMemory)["partitions"]:
        (agent,) = part["partition"]
        query = JourneyMemory.query.filter(agent_id=agent)
        top = [(one.memory_id, one.confidence, one.access_count) for one in query.top_by_decay(50)]
        told.append((agent, top))
        assembler = omoide.ContextAssembler(JourneyMemory, track=False, max_items=20, max_tokens=100_000)
        for text in QUERIES:
            result = assembler.assemble(text, agent_id=agent)
            told.append((text, [(item.id, item.score) for item in result.items]))
        told.append(("links", [tuple(one.links.neighbours(64)) for one in query.limit(40).all()]))
    return told


def test_an_export_comes_back_to_the_last_byte(connection: Connection, tmp_path: Path, full: bool) -> None:
    fill(10_000 if full else 900)
    first = written(tmp_path / "first")
    before = _found()
    wipe()
    done = omoide.import_memories(JourneyMemory, tmp_path / "first")
    assert written(tmp_path / "second") == first
    assert (done.stored, done.partitions) == (done.records, 3)
    assert (done.present, done.expired, done.duplicates, done.refused, done.ignored) == (0, 0, 0, {}, {})
    assert _found() == before
    assert all(health.sound for health in omoide.doctor(JourneyMemory))


def test_the_export_has_all_kinds_of_state(connection: Connection, tmp_path: Path) -> None:
    fill(300)
    lines = [json.loads(line) for line in written(tmp_path / "first").splitlines()]
    records = [line for line in lines if "id" in line and "values" in line]
    assert any(record.get("version", 1) > 1 for record in records)
    assert all(record["expires"] > 1_700_000_000_000 for record in records)
    held = [record["statistics"] for record in records if "statistics" in record]
    assert {name for one in held for name in one} == {
        "accessed",
        "accesses",
        "alpha",
        "beta",
        "contradictions",
        "corroborations",
    }
    assert sum(len(record.get("edges", ())) for record in records) == lines[-1]["end"]["edges"] > 300
    assert any(record.get("entities") for record in records)
    assert any(record.get("bytes") for record in records)
    assert [line["counters"] for line in lines if "partition" in line] == [
        {"debts ☂": -3, "recalls": 5, "zero": 0}
    ] * 3
    assert (
        lines[-1]["end"]["records"]
        == len(records)
        == sum(part["live"] for part in omoide.status(JourneyMemory)["partitions"])
    )


def test_values_come_back_equal_and_of_the_same_type(connection: Connection, tmp_path: Path) -> None:
    fill(200, partitions=1)
    agent = "agent 0/é:{}"
    names = [name for name, field in spec_of(JourneyMemory).fields.items() if field.stored]

    def read() -> dict[str, list[tuple[type, Any]]]:
        found = JourneyMemory.query.filter(agent_id=agent).all()
        return {
            one.memory_id: [(type(getattr(one, name)), getattr(one, name)) for name in names] for one in found
        }

    before = read()
    written(tmp_path / "file")
    wipe()
    omoide.import_memories(JourneyMemory, tmp_path / "file")
    assert read() == before


def test_importing_twice_changes_nothing(connection: Connection, raw: Any, tmp_path: Path) -> None:
    fill(200)
    written(tmp_path / "file")
    wipe()
    omoide.import_memories(JourneyMemory, tmp_path / "file")
    before = everything(raw)
    again = omoide.import_memories(JourneyMemory, tmp_path / "file")
    assert everything(raw) == before
    assert (again.stored, again.present) == (0, again.records)


def test_what_is_there_stays_as_it_is(connection: Connection, tmp_path: Path) -> None:
    mine = DefaultMemory(agent_id="ada", content="as exported")
    assert mine.save()
    DefaultMemory.counters(agent_id="ada").increment("mine", 3)
    written(tmp_path / "file", DefaultMemory)
    assert mine.update(content="as changed")
    DefaultMemory.counters(agent_id="ada").increment("mine", 4)
    done = omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert (done.stored, done.present) == (0, 1)
    assert DefaultMemory.query.get(agent_id="ada", memory_id=mine.memory_id).content == "as changed"
    assert DefaultMemory.counters(agent_id="ada").read("mine") == 7


def test_an_import_that_was_cut_short_is_taken_up(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(700, partitions=1)
    first = written(tmp_path / "file")
    wipe()
    execute, batches = connection.store.execute, []

    def failing(request: Any) -> Any:
        batches.append(request) if isinstance(request, Batch) else None
        if len(batches) == 2:
            raise omoide.StoreUnavailableError("gone")
        return execute(request)

    with monkeypatch.context() as patch:
        patch.setattr(connection.store, "execute", failing)
        with pytest.raises(omoide.StoreUnavailableError):
            omoide.import_memories(JourneyMemory, tmp_path / "file")
    done = omoide.import_memories(JourneyMemory, tmp_path / "file")
    assert (done.present, done.stored) == (256, done.records - 256)
    assert written(tmp_path / "again") == first


def test_one_partition_alone(connection: Connection, tmp_path: Path) -> None:
    for agent in ("ada", "bob"):
        assert DefaultMemory(agent_id=agent, content=f"a note of {agent}").save()
    every = written(tmp_path / "every", DefaultMemory)
    one = written(tmp_path / "one", DefaultMemory, agent_id="ada")
    assert b"a note of bob" in every
    assert b"bob" not in one
    wipe(DefaultMemory)
    done = omoide.import_memories(DefaultMemory, tmp_path / "every", agent_id="bob")
    assert (done.records, done.partitions) == (1, 1)
    assert [part["partition"] for part in omoide.status(DefaultMemory)["partitions"]] == [["bob"]]
    with pytest.raises(omoide.TransferError, match="does not have this partition"):
        omoide.import_memories(DefaultMemory, tmp_path / "every", agent_id="eve")


def test_nothing_stored_takes_no_file_away(connection: Connection, tmp_path: Path) -> None:
    assert DefaultMemory(agent_id="ada", content="kept in a backup").save()
    before = written(tmp_path / "file", DefaultMemory)
    nowhere: list[dict[str, str]] = [{"agent_id": "adda"}, {}]
    for partition in nowhere:
        with pytest.raises(omoide.NotFoundError, match="nothing of DefaultMemory is stored"):
            omoide.export_memories(DefaultMemory, tmp_path / "file", **partition)
        wipe(DefaultMemory)
    assert (tmp_path / "file").read_bytes() == before


def test_counters_of_a_partition_without_records_come_along(connection: Connection, tmp_path: Path) -> None:
    DefaultMemory.counters(agent_id="ada").increment("seen", 2)
    first = written(tmp_path / "file", DefaultMemory)
    wipe(DefaultMemory)
    omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert written(tmp_path / "again", DefaultMemory) == first
    assert DefaultMemory.counters(agent_id="ada").read("seen") == 2


def test_open_files_do_as_well_and_one_that_cannot_go_back(connection: Connection) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: Any) -> int:
            raise OSError("a pipe")

    assert DefaultMemory(agent_id="ada", content="through a pipe").save()
    out = io.BytesIO()
    told = omoide.export_memories(DefaultMemory, out)
    assert told.bytes == len(out.getvalue())
    for source in (io.BytesIO(out.getvalue()), Pipe(out.getvalue())):
        wipe(DefaultMemory)
        assert omoide.import_memories(DefaultMemory, source).stored == 1


def test_the_async_twins_do_the_same(connection: Connection, tmp_path: Path) -> None:
    fill(60, partitions=2)
    first = written(tmp_path / "first")

    async def journey() -> tuple[Any, Any, Any]:
        out = await omoide.aexport_memories(JourneyMemory, tmp_path / "async")
        for part in (await omoide.astatus(JourneyMemory))["partitions"]:
            await JourneyMemory.adelete_partition(agent_id=part["partition"][0])
        done = await omoide.aimport_memories(JourneyMemory, tmp_path / "async")
        return out, done, await omoide.aexport_memories(JourneyMemory, tmp_path / "again")

    out, done, again = asyncio.run(journey())
    assert (tmp_path / "async").read_bytes() == (tmp_path / "again").read_bytes() == first
    assert out == again
    assert done.stored == out.records


def test_round_trips_are_those_stated(connection: Connection, tmp_path: Path) -> None:
    """A partition: its counters and a page of 128; an import: the counters, and 256 records at once."""
    made = [DefaultMemory(agent_id="ada", content=f"note {number}") for number in range(300)]
    assert all(DefaultMemory.save_many(made))
    start = connection.round_trips
    omoide.export_memories(DefaultMemory, tmp_path / "file", agent_id="ada")
    assert connection.round_trips - start == 1 + 1 + 3
    wipe(DefaultMemory)
    start = connection.round_trips
    omoide.import_memories(DefaultMemory, tmp_path / "file")
    assert connection.round_trips - start == 2 + 2


def test_progress_is_told_to_the_end(connection: Connection, tmp_path: Path) -> None:
    made = [DefaultMemory(agent_id="ada", content=f"note {number}") for number in range(300)]
    assert all(DefaultMemory.save_many(made))
    told: list[tuple[int, int]] = []
    omoide.export_memories(DefaultMemory, tmp_path / "file", progress=lambda *at: told.append(at))
    assert told == [(128, 300), (256, 300), (300, 300)]
    told.clear()
    omoide.import_memories(DefaultMemory, tmp_path / "file", progress=lambda *at: told.append(at))
    assert told == [(256, 300), (300, 300)]


def test_a_record_that_is_updated_meanwhile_is_there_once(connection: Connection, tmp_path: Path) -> None:
    made = [DefaultMemory(agent_id="ada", content=f"note {number}") for number in range(300)]
    assert all(DefaultMemory.save_many(made))
    pages: list[int] = []

    def change(done: int, _: int) -> None:
        pages.append(done)
        if len(pages) == 1:
            for one in (made[0], made[299]):
                assert one.update(content="changed meanwhile")
            assert DefaultMemory(agent_id="ada", content="new meanwhile").save()

    omoide.export_memories(DefaultMemory, tmp_path / "file", progress=change)
    ids = [json.loads(line)["id"] for line in (tmp_path / "file").read_bytes().splitlines()[2:-1]]
    assert len(ids) == len(set(ids)) == 301
    assert {one.memory_id for one in made} <= set(ids)


def test_a_failed_export_leaves_the_file_that_was_there(
    connection: Connection, raw: Any, tmp_path: Path
) -> None:
    made = DefaultMemory(agent_id="ada", content="a note")
    assert made.save()
    first = written(tmp_path / "file", DefaultMemory)
    scope = Scope(spec_of(DefaultMemory), ("ada",))
    (record,) = connection.store.execute(Get(scope, (made.memory_id,)))
    assert record is not None
    raw.hset("omoide:{DefaultMemory/ada}:r", record.row, b"\xc1")
    with pytest.raises(omoide.CorruptRecordError):
        omoide.export_memories(DefaultMemory, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == first
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_an_export_that_finds_less_than_there_is_fails(
    connection: Connection, raw: Any, tmp_path: Path
) -> None:
    made = [DefaultMemory(agent_id="ada", content=f"note {number}") for number in range(5)]
    assert all(DefaultMemory.save_many(made))
    key = "omoide:{DefaultMemory/ada}:a"
    raw.setrange(key, 3 * 32, b"\1")  # a row that is said to be dead, and is not
    with pytest.raises(omoide.CorruptRecordError, match="holds 5 records, of which 4 can be found"):
        omoide.export_memories(DefaultMemory, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_changes_meanwhile_is_told(connection: Connection) -> None:
    lines = b'{"content": "one"}\n{"content": "two"}\n'

    class Shrinking(io.BytesIO):
        reads = 0

        def seek(self, *place: Any) -> int:
            self.reads += 1
            if self.reads == 2:
                self.truncate(len(lines) // 2)
            return super().seek(*place)

    with pytest.raises(omoide.TransferError, match="changed while it was imported"):
        omoide.import_memories(DefaultMemory, Shrinking(lines), file_format="jsonl", agent_id="bob")


def test_a_place_that_cannot_be_written_is_one_error(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(omoide.TransferError, match="cannot write"):
        omoide.export_memories(DefaultMemory, tmp_path / "no" / "folder")


def _peak(work: Any) -> int:
    """Most bytes that Python held during a call, beyond what it held before."""
    gc.collect()
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_memory_does_not_grow_with_the_number_of_records(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More records take 8 bytes each at an export, and nothing at an import: two batches are held at most."""
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "0")
    peaks = []
    for number, count in enumerate((600, 1_500)):
        agent = f"agent {number}"
        made = [DefaultMemory(agent_id=agent, content=f"note {one}") for one in range(count)]
        assert all(DefaultMemory.save_many(made))
        del made
        place = tmp_path / agent
        out = _peak(partial(omoide.export_memories, DefaultMemory, place, agent_id=agent))
        DefaultMemory.delete_partition(agent_id=agent)
        peaks.append((out, _peak(partial(omoide.import_memories, DefaultMemory, place))))
    assert peaks[1][0] < peaks[0][0] + 8 * 900 + 65_536
    assert peaks[1][1] < peaks[0][1] + 262_144, peaks


class SingleNote(Model):
    note_id = AutoKeyField()
    content = StringField(default="")

    class Meta:
        partition_by = None


class PairedNote(Model):
    note_id = AutoKeyField()
    team = KeyField()
    agent = KeyField()
    place = KeyField()
    content = StringField(default="")

    class Meta:
        partition_by = ("team", "agent")


@pytest.mark.parametrize(
    ("model", "places"),
    [
        (SingleNote, [{}]),
        (PairedNote, [{"team": team, "agent": agent} for team in ("a/b", "c:{d}") for agent in ("é", "z")]),
    ],
)
def test_models_of_one_partition_and_of_several_fields(
    connection: Connection, tmp_path: Path, model: type[Model], places: list[dict[str, str]]
) -> None:
    for number, place in enumerate(places):
        more = {"place": "here"} if model is PairedNote else {}
        assert model(content=f"note {number}", **place, **more).save()
    first = written(tmp_path / "first", model)
    for place in places:
        model.delete_partition(**place)
    assert omoide.import_memories(model, tmp_path / "first").partitions == len(places)
    assert written(tmp_path / "again", model) == first
    for place in places:
        model.delete_partition(**place)
    assert omoide.import_memories(model, tmp_path / "first", **places[-1]).stored == 1
    assert model.count(**places[-1]) == 1
    if places[-1]:
        with pytest.raises(omoide.QueryError):
            omoide.export_memories(model, tmp_path / "half", team="a/b")


def test_an_outage_during_an_export_is_an_outage(connection: Connection, tmp_path: Path) -> None:
    class Gone:
        def execute(self, request: Any) -> Any:
            raise StoreUnavailableError("no connection")

        store = astore = property(lambda self: self)

    with port.using(Gone()), pytest.raises(StoreUnavailableError):  # type: ignore[arg-type]
        omoide.export_memories(DefaultMemory, tmp_path / "file", agent_id="ada")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["/", ".", "", "n" * 300])
def test_a_name_that_no_file_can_have_is_one_error(connection: Connection, name: str) -> None:
    with pytest.raises(TransferError, match="cannot write"):
        omoide.export_memories(DefaultMemory, name)


def test_an_export_is_its_users_alone(connection: Connection, tmp_path: Path) -> None:
    assert DefaultMemory(agent_id="ada", content="of one user").save()
    omoide.export_memories(DefaultMemory, tmp_path / "file")
    assert (tmp_path / "file").stat().st_mode & 0o077 == 0
