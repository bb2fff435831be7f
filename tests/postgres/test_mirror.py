"""Authoritative rows and the store that shows them: outages, races, catching up, schema."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.postgres.conftest import compared

import omoide
from omoide import (
    AutoKeyField,
    BM25Field,
    ContextAssembler,
    IntField,
    KeyField,
    Model,
    PostgresMirror,
    StringField,
    batch,
)
from omoide.connection import Connection
from omoide.errors import ConflictError, ModelError, StoreError, StoreUnavailableError
from omoide.model.instance import scope_of, spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.save import prepare
from omoide.recipes import DefaultMemory
from omoide.stores.postgres import rebuild as rebuilding
from omoide.stores.postgres.projector import Projector, sweep
from omoide.stores.postgres.session import Database, Script, Step
from omoide.testing import PostgresServer, ValkeyServer


class Ledgered(DefaultMemory):
    key = StringField(null=True)

    class Meta:
        unique_together = ("key",)
        mirror = PostgresMirror(table="ledgered")


def scope(agent: str = "ada") -> Scope:
    return Scope(spec_of(Ledgered), (agent,))


def note(content: str, agent: str = "ada", **values: Any) -> Ledgered:
    return Ledgered(agent_id=agent, content=content, **values)


def drive(connection: Connection, plan: Any) -> Any:
    return connection.store.drive(plan)  # type: ignore[attr-defined]


def caught_up(connection: Connection, agent: str = "ada") -> bool:
    """Both sides equal, nothing left, after at most a minute of the projector's work."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        swept = drive(connection, sweep(connection.mirror))
        if not swept.left and compared(connection, scope(agent)).equal:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(autouse=True)
def _clean(mirrored: Connection) -> Iterator[None]:
    yield
    for agent in ("ada", "bob"):
        Ledgered.delete_partition(agent_id=agent)


def rows(database: Database, statement: str) -> list[tuple[Any, ...]]:
    def script() -> Script[list[tuple[Any, ...]]]:
        return (yield Step(statement))

    return database.run(script)


# ---- what it costs


def test_a_write_is_one_round_trip_of_the_store_and_reads_cost_what_they_did(mirrored: Connection) -> None:
    one = note("fact", key="k")

    def trips(call: Callable[[], Any]) -> int:
        before = mirrored.round_trips
        call()
        return mirrored.round_trips - before

    one.save()
    assert trips(lambda: one.update(content="other")) == 1
    assert trips(one.touch) == 1
    assert trips(lambda: Ledgered.counters(agent_id="ada").increment("mine")) == 1
    assert trips(lambda: Ledgered.save_many([note(f"fact {n}") for n in range(64)])) == 1
    assert trips(lambda: Ledgered.count(agent_id="ada")) == 1
    assert trips(lambda: Ledgered.query.get(agent_id="ada", memory_id=one.memory_id)) == 1
    assert trips(lambda: Ledgered.query.get(agent_id="ada", memory_id="nobody")) == 3
    assert trips(one.delete) == 1


# ---- outages


def test_the_store_away_saves_succeed_and_catch_up(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    kept = note("before the outage")
    gone = note("to be deleted")
    assert kept.save().mirrored
    assert gone.save().mirrored
    valkey_server.kill9()
    outcome = note("during the outage").save()
    assert outcome
    assert not outcome.mirrored
    assert kept.update(content="changed during the outage")
    assert gone.delete()
    assert Ledgered.count(agent_id="ada") == 2
    with pytest.raises(StoreUnavailableError):
        Ledgered.query.filter(agent_id="ada").top_by_decay(n=3)
    valkey_server.start()
    assert caught_up(mirrored)
    assert Ledgered.count(agent_id="ada") == 2
    contents = {one.content for one in Ledgered.query.filter(agent_id="ada").all()}
    assert contents == {"changed during the outage", "during the outage"}


def test_the_projector_of_the_process_catches_up_by_itself(
    mirrored: Connection, valkey_server: ValkeyServer
) -> None:
    note("before").save()
    valkey_server.kill9()
    assert not note("during").save().mirrored
    valkey_server.start()
    deadline = time.monotonic() + 20
    while not compared(mirrored, scope()).equal and time.monotonic() < deadline:
        time.sleep(0.05)
    assert compared(mirrored, scope()).equal
    assert Ledgered.count(agent_id="ada") == 2


def test_rows_answer_for_a_flushed_store_until_it_is_rebuilt(
    mirrored: Connection, valkey_server: ValkeyServer
) -> None:
    for number in range(5):
        note(f"fact {number}").save()
    valkey_server.flush()
    with pytest.raises(StoreUnavailableError, match="lost"):
        Ledgered.query.filter(agent_id="ada").top_by_decay(n=3)
    assert Ledgered.count(agent_id="ada") == 5
    found = Ledgered.query.filter(agent_id="ada").all()
    assert {one.content for one in found} == {f"fact {number}" for number in range(5)}
    assert Ledgered.query.filter(agent_id="ada").first() == found[0]
    assert Ledgered.count(agent_id="bob") == 0
    assert omoide.reindex(Ledgered, agent_id="ada") == 5
    assert Ledgered.count(agent_id="ada") == 5
    assert compared(mirrored, scope()).equal


def test_a_partition_lost_after_all_was_shown_answers_from_rows_and_comes_back(
    mirrored: Connection, valkey_server: ValkeyServer
) -> None:
    for number in range(3):
        note(f"fact {number}").save()
    omoide.reindex(Ledgered, agent_id="ada")
    drive(mirrored, sweep(mirrored.mirror))
    waits = "SELECT count(*) FROM omoide_outbox WHERE model = 'Ledgered' AND partition = 'ada'"
    assert rows(mirrored.database, waits) == [(0,)]
    valkey_server.flush()
    found = ContextAssembler(Ledgered).assemble("fact", agent_id="ada")
    assert (len(found.ids), found.metadata["store"]) == (3, "postgres")
    assert Ledgered.count(agent_id="ada") == 3
    deadline = time.monotonic() + 20
    while not compared(mirrored, scope()).equal and time.monotonic() < deadline:
        time.sleep(0.05)
    assert compared(mirrored, scope()).equal
    assert ContextAssembler(Ledgered).assemble("fact", agent_id="ada").metadata["store"] == "redis"


def test_a_whole_sweep_finds_what_nobody_read(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    note("a fact").save()
    note("another", agent="bob").save()
    drive(mirrored, sweep(mirrored.mirror))
    valkey_server.flush()
    assert drive(mirrored, sweep(mirrored.mirror)).rebuilt == 0
    swept = drive(mirrored, sweep(mirrored.mirror, whole=True))
    assert (swept.rebuilt, swept.caught_up, swept.left) == (2, 0, 0)
    assert not drive(mirrored, sweep(mirrored.mirror, whole=True))
    assert all(compared(mirrored, scope(agent)).equal for agent in ("ada", "bob"))


def test_a_save_into_a_flushed_store_has_it_rebuilt(
    mirrored: Connection, valkey_server: ValkeyServer
) -> None:
    note("fact").save()
    valkey_server.flush()
    assert not note("another").save().mirrored
    assert caught_up(mirrored)
    assert Ledgered.count(agent_id="ada") == 2


def test_postgres_away_nothing_is_written_and_recall_goes_on(
    valkey_server: ValkeyServer,
) -> None:
    with PostgresServer() as server:
        url = server.url_of(server.create())
        with omoide.Connection(valkey_server.url, postgres=url, timeout=2) as connection, connection.use():
            kept = note("kept", agent="carol")
            assert kept.save()
            server.stop()
            for write in (
                lambda: note("lost", agent="carol").save(),
                lambda: kept.update(content="other"),
                kept.delete,
                kept.touch,
                lambda: Ledgered.counters(agent_id="carol").increment("mine"),
                lambda: Ledgered.delete_partition(agent_id="carol"),
            ):
                with pytest.raises(StoreUnavailableError) as caught:
                    write()
                assert "lost" not in str(caught.value)
            assert [one.content for one in Ledgered.query.filter(agent_id="carol").all()] == ["kept"]
            server.start()
            assert note("written again", agent="carol").save().mirrored
            assert compared(connection, scope("carol")).equal
            assert Ledgered.delete_partition(agent_id="carol") == 2


def test_without_postgres_a_mirrored_model_is_read_only(valkey_server: ValkeyServer) -> None:
    with omoide.Connection(valkey_server.url) as connection, connection.use():
        with pytest.raises(StoreUnavailableError, match="no PostgreSQL is configured"):
            note("x").save()
        with pytest.raises(StoreError):
            Ledgered.delete_partition(agent_id="ada")
        assert Ledgered.count(agent_id="ada") == 0


# ---- races


def test_fifty_equal_saves_at_once_leave_one_row(mirrored: Connection) -> None:
    with ThreadPoolExecutor(50) as threads:
        outcomes = list(threads.map(lambda n: note(f"theme {n}", key="ui.theme").save(), range(50)))
    assert sum(outcome.stored for outcome in outcomes) == 1
    (winner,) = [outcome.id for outcome in outcomes if outcome]
    assert {outcome.duplicate_of for outcome in outcomes if not outcome} == {winner}
    assert Ledgered.count(agent_id="ada") == 1
    assert rows(mirrored.database, "SELECT count(*) FROM ledgered WHERE _partition = 'ada'") == [(1,)]


async def test_fifty_equal_async_saves_leave_one_row(mirrored: Connection) -> None:
    outcomes = await asyncio.gather(*(note(f"theme {n}", key="ui.theme").asave() for n in range(50)))
    assert sum(outcome.stored for outcome in outcomes) == 1
    assert await Ledgered.acount(agent_id="ada") == 1


def test_fifty_saves_of_one_record_are_fifty_versions(mirrored: Connection) -> None:
    with ThreadPoolExecutor(16) as threads:
        outcomes = list(threads.map(lambda n: note(f"version {n}", memory_id="one").save(), range(50)))
    assert sorted(outcome.version for outcome in outcomes) == list(range(1, 51))
    assert all(outcome.mirrored for outcome in outcomes)
    assert compared(mirrored, scope()).equal


def test_writers_see_what_they_wrote(mirrored: Connection) -> None:
    """Eight writers of one partition: a commit that comes before another's is not shown as missing."""

    def work(name: int) -> None:
        for number in range(15):
            one = note(f"{name} {number}")
            assert one.save().mirrored
            assert Ledgered.query.get(agent_id="ada", memory_id=one.memory_id).content == one.content

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert caught_up(mirrored)
    assert Ledgered.count(agent_id="ada") == 120


def test_a_rebuild_loses_no_write_and_shows_no_half(mirrored: Connection) -> None:
    for number in range(200):
        note(f"old {number}").save()
    stop = threading.Event()
    least: list[int] = []

    def write(name: int) -> int:
        made = 0
        while not stop.is_set():
            note(f"new {name} {made}").save()
            made += 1
        return made

    def watch() -> None:
        while not stop.is_set():
            least.append(Ledgered.count(agent_id="ada"))

    with ThreadPoolExecutor(4) as threads:
        writers = [threads.submit(write, name) for name in range(2)]
        watcher = threads.submit(watch)
        try:
            for _ in range(4):
                omoide.reindex(Ledgered, agent_id="ada")
        finally:
            stop.set()
        made = sum(writer.result(30) for writer in writers)
        watcher.result(30)
    assert caught_up(mirrored)
    assert Ledgered.count(agent_id="ada") == 200 + made
    assert min(least) >= 200


def test_a_record_that_is_written_anew_while_it_is_rebuilt_is_loaded_once(
    mirrored: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "STRETCH", 2)
    monkeypatch.setattr(rebuilding, "PAGE", 4)
    ours = [note(f"fact {number}") for number in range(12)]
    for one in ours:
        one.save()
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        ours[len(seen)].update(content=f"changed after {done}")

    assert omoide.reindex(Ledgered, progress=progress, agent_id="ada") == 12
    assert seen == [(4, 12), (8, 12), (12, 12)]
    assert caught_up(mirrored)
    assert Ledgered.count(agent_id="ada") == 12


def test_a_long_transaction_is_told_in_parts(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    """Each has a number of its own, shown at once or by a projector."""
    words = " ".join(f"word{number}" for number in range(200))
    note("first").save()
    before = mirrored.store.execute(ask.Applied(scope()))
    assert before is not None
    Ledgered.save_many([note(f"{words} {number}") for number in range(5)])
    assert mirrored.store.execute(ask.Applied(scope())) == before + 5
    valkey_server.kill9()
    Ledgered.save_many([note(f"{words} more {number}") for number in range(4)])
    valkey_server.start()
    assert caught_up(mirrored)
    assert mirrored.store.execute(ask.Applied(scope())) == before + 5 + 4
    assert Ledgered.count(agent_id="ada") == 10


def test_several_projectors_at_once_agree(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    ours = [note(f"fact {number}") for number in range(30)]
    for one in ours:
        one.save()
    valkey_server.kill9()
    for one in ours[:15]:
        one.update(content="changed")
    for one in ours[15:20]:
        one.delete()
    valkey_server.start()
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda _: drive(mirrored, sweep(mirrored.mirror)), range(6)))
    assert caught_up(mirrored)
    assert Ledgered.count(agent_id="ada") == 25


# ---- writes


def test_outcomes_are_those_of_any_model(mirrored: Connection) -> None:
    one = note("first", key="k")
    outcome = one.save(operation_id="op")
    assert (outcome.version, outcome.created, outcome.repeated) == (1, True, False)
    assert one.save(operation_id="op").repeated
    assert note("second", key="k").save().reason == "duplicate"
    with pytest.raises(ConflictError):
        Ledgered.create(agent_id="ada", content="third", key="k")
    with pytest.raises(ConflictError):
        one.save(expect_version=7)
    assert one.delete()
    assert one.save().reason == "deleted"
    assert one.save(resurrect=True)


def test_a_batch_is_a_transaction_a_partition(mirrored: Connection) -> None:
    with batch() as group:
        for number in range(100):
            note(f"fact {number}", agent=("ada", "bob")[number % 2]).save()
    assert all(outcome and outcome.mirrored for outcome in group.outcomes)
    assert Ledgered.count(agent_id="ada") == Ledgered.count(agent_id="bob") == 50
    assert compared(mirrored, scope("bob")).equal


def test_deliveries_are_counted_within_seconds(mirrored: Connection) -> None:
    one = note("fact")
    one.save()
    for turn in range(3):
        mirrored.store.execute(ask.Deliver(scope(), f"turn {turn}", (one.memory_id,)))
    drive(mirrored, mirrored.mirror.flush())
    (record,) = mirrored.store.execute(ask.Get(scope(), (one.memory_id,)))
    assert record is not None
    assert record.access_count == 3
    assert compared(mirrored, scope()).equal


def test_closing_writes_the_deliveries_that_wait(valkey_server: ValkeyServer, postgres_url: str) -> None:
    one = note("fact")
    with omoide.Connection(valkey_server.url, postgres=postgres_url) as connection, connection.use():
        one.save()
        connection.store.execute(ask.Deliver(scope(), "turn", (one.memory_id,)))
    with omoide.Connection(valkey_server.url, postgres=postgres_url) as connection:
        (record,) = connection.store.execute(ask.Get(scope(), (one.memory_id,)))
        assert record is not None
        assert record.access_count == 1


def test_an_erased_partition_leaves_no_trace_in_either_store(
    mirrored: Connection, valkey_server: ValkeyServer, postgres_server: PostgresServer
) -> None:
    for number in range(3):
        note(f"Mia Berg said it {number}").save()
    Ledgered.counters(agent_id="ada").increment("mine")
    assert Ledgered.delete_partition(agent_id="ada") == 3
    deadline = time.monotonic() + 60
    waiting = "SELECT 1 FROM omoide_outbox WHERE model = 'Ledgered' AND partition = 'ada'"
    while rows(mirrored.database, waiting) and time.monotonic() < deadline:
        drive(mirrored, sweep(mirrored.mirror))
    assert not valkey_server.command("KEYS", "*Ledgered/ada*")
    for table in ("ledgered", "omoide_edges", "omoide_entities", "omoide_counters", "omoide_outbox",
                  "omoide_partitions", "omoide_rebuilds", "omoide_told"):  # fmt: skip
        where = "_partition = 'ada'" if table == "ledgered" else "partition = 'ada' AND model = 'Ledgered'"
        left = rows(mirrored.database, f"SELECT count(*) FROM {table} WHERE {where}")
        assert left == [(0,)], table
    assert note("a new life").save().mirrored
    assert Ledgered.count(agent_id="ada") == 1


def test_two_namespaces_are_two_sets_of_partitions(
    mirrored: Connection, valkey_server: ValkeyServer, postgres_url: str
) -> None:
    note("mine").save()
    with omoide.Connection(valkey_server.url, postgres=postgres_url, namespace="other") as other, other.use():
        assert Ledgered.count(agent_id="ada") == 0
        note("theirs", memory_id="x").save()
        assert compared(other, scope()).equal
        assert Ledgered.delete_partition(agent_id="ada") == 1
    assert Ledgered.count(agent_id="ada") == 1


def test_old_calls_change_nothing(mirrored: Connection) -> None:
    """A call that was on its way for long arrives: it is a thing of the past, or too early."""
    one = note("fact")
    one.save()
    shown = mirrored.store.execute(ask.Applied(scope()))
    assert shown is not None
    for seq in (shown - 5, shown, shown + 2):
        gone = ask.Apply(scope(), seq, seq, ask.Changes(erased=(one.memory_id,)))
        assert mirrored._store.execute(gone) == shown
    assert Ledgered.count(agent_id="ada") == 1


# ---- the outbox and the projector


def test_the_outbox_holds_no_content(
    mirrored: Connection,
    valkey_server: ValkeyServer,
    postgres_server: PostgresServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    valkey_server.kill9()
    note("the secret plan of Mia Berg", key="the secret key").save()
    valkey_server.start()
    told = rows(
        mirrored.database,
        "SELECT string_agg(held::text, ' ') FROM (SELECT to_jsonb(o) FROM omoide_outbox o"
        " UNION ALL SELECT to_jsonb(p) FROM omoide_partitions p"
        " UNION ALL SELECT to_jsonb(e) FROM omoide_entities e"
        " UNION ALL SELECT to_jsonb(a) FROM (SELECT query FROM pg_stat_activity) a) AS held",
    )
    assert "secret" not in told[0][0]
    assert "Mia" not in told[0][0]
    assert "secret" not in postgres_server.running.log.read_text()
    assert "left to a projector" in caplog.text
    assert "secret" not in caplog.text
    assert "Mia" not in caplog.text


def test_a_projector_is_woken_and_stops(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    note("fact").save()
    projector = Projector(mirrored.store, mirrored.database, mirrored.mirror)  # type: ignore[arg-type]
    projector.start()
    valkey_server.kill9()
    note("another").save()
    valkey_server.start()
    deadline = time.monotonic() + 20
    while not compared(mirrored, scope()).equal and time.monotonic() < deadline:
        time.sleep(0.05)
    assert compared(mirrored, scope()).equal
    projector.stop()
    assert projector._thread is not None
    assert not projector._thread.is_alive()


async def test_a_projector_is_a_task_as_well(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    await note("fact").asave()
    valkey_server.kill9()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mirrored.mirror, "_behind", lambda: None)  # no thread does it
        assert not (await note("another").asave()).mirrored
        task = asyncio.create_task(mirrored.project())
        await asyncio.sleep(0.2)
        valkey_server.start()
        deadline = time.monotonic() + 20
        while not compared(mirrored, scope()).equal and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
    assert compared(mirrored, scope()).equal
    assert await Ledgered.acount(agent_id="ada") == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# ---- schema


def _model(name: str, **fields: Any) -> type[Model]:
    meta = fields.pop("Meta", None)
    body: dict[str, Any] = {"note_id": AutoKeyField(), "agent_id": KeyField(), **fields}
    meta = meta or {}
    body["Meta"] = type("Meta", (), {"name": "Growing", "mirror": PostgresMirror(table="growing"), **meta})
    return type(name, (Model,), {**body, "__module__": __name__, "__qualname__": "Growing"})


def test_a_new_field_is_a_new_column_and_a_changed_type_is_refused(mirrored: Connection) -> None:
    first = _model("Growing", words=StringField(default=""))
    first(agent_id="ada", words="hello", note_id="1").save()
    second = _model(
        "Growing", words=StringField(default=""), number=IntField(default=7), text=BM25Field(source="words")
    )
    grown = second(agent_id="ada", words="other", note_id="2").save()
    assert grown
    assert not grown.mirrored
    assert drive(mirrored, sweep(mirrored.mirror)).left >= 1
    assert second.count(agent_id="ada") == 1
    assert omoide.reindex(second, agent_id="ada") == 2
    held = {one.note_id: (one.words, one.number) for one in second.query.filter(agent_id="ada").all()}
    assert held == {"1": ("hello", 7), "2": ("other", 7)}
    renamed = _model("Growing", saying=StringField(default=""), Meta={"aliases": {"words": "saying"}})
    renamed(agent_id="ada", note_id="3", saying="third").save()
    assert rows(mirrored.database, "SELECT saying FROM growing ORDER BY note_id") == [
        ("hello",), ("other",), ("third",),
    ]  # fmt: skip
    changed = _model("Growing", saying=IntField(default=1))
    with pytest.raises(ModelError, match=r"Growing\.saying"):
        changed(agent_id="ada").save()
    renamed.delete_partition(agent_id="ada")


def test_a_table_belongs_to_one_model(mirrored: Connection) -> None:
    note("x").save()

    class Thief(Ledgered):
        class Meta:
            mirror = PostgresMirror(table="ledgered")

    with pytest.raises(ModelError, match="another model"):
        Thief(agent_id="ada", content="x").save()

    class Heir(Ledgered):
        pass

    mirror = spec_of(Heir).mirror
    assert mirror is not None
    assert mirror.table == "omoide_heir"
    assert Heir(agent_id="ada", content="x").save().mirrored
    Heir.delete_partition(agent_id="ada")
    assert scope_of(note("x")).spec.mirror == PostgresMirror(table="ledgered")


@pytest.mark.parametrize("table", ["", "Notes", "a;b", "x" * 64, 'a"b'])
def test_names_of_tables_are_plain(table: str) -> None:
    with pytest.raises(ModelError, match="name of a table"):
        PostgresMirror(table=table)


def test_prepared_writes_are_what_an_unmirrored_store_takes() -> None:
    put = prepare(note("words")).put
    assert put is not None
    assert put.scope.spec.mirror is not None
