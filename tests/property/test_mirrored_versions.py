"""Validity of mirrored models: the rows decide, and both stores answer as the plain model at any instant."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.postgres.conftest import answer_from, compared
from versions import MirroredStory, Versions

import omoide
from omoide.connection import Connection
from omoide.ops import request as ask
from omoide.stores.postgres.projector import sweep
from omoide.testing import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"


@pytest.fixture
def both(store_url: str, postgres_url: str) -> Iterator[Connection]:
    """A connection to an emptied store and the module's database."""
    with omoide.connect(store_url, postgres=postgres_url) as connection:
        yield connection


def writer_of(connection: Connection, agent: str, seed: int, mark: str = "") -> Versions:
    return Versions(connection, agent, random.Random(seed), MirroredStory, mark=mark)


def equal(connection: Connection, writer: Versions) -> None:
    """Both stores say the same, once nothing is left to a projector."""
    deadline = time.monotonic() + 20
    while connection.mirrored.drive(sweep(connection.mirror)) and time.monotonic() < deadline:
        time.sleep(0.02)
    found = compared(connection, writer.scope)
    assert found.equal, found


@pytest.mark.parametrize("seed", range(100 if FULL else 5))
def test_a_random_history_equals_its_model(seed: int, both: Connection) -> None:
    writer = writer_of(both, f"versions-{seed}", seed)
    source = writer.random
    for _ in range(4):
        for _ in range(source.choice([3, 10, 25])):
            writer.work(1)
            assert compared(both, writer.scope).equal
        writer.agrees(both)
        if source.random() < 0.5:
            assert omoide.reindex(MirroredStory, agent_id=writer.agent) == len(writer.known)
            assert compared(both, writer.scope).equal
            writer.agrees(both)


@pytest.mark.parametrize("seed", range(30 if FULL else 3))
def test_what_is_caught_up_is_what_was_written(
    seed: int, both: Connection, valkey_server: ValkeyServer
) -> None:
    """Half of the writes are left to projectors, and replayed from the outbox in pieces."""
    writer = writer_of(both, f"away-{seed}", seed)
    for turn in range(4):
        for step in range(30):
            answer_from(both, "postgres" if step % 6 < 3 else "redis")
            writer.work(1)
        answer_from(both, "redis")
        equal(both, writer)
        writer.agrees(both)
        if turn == 2:
            valkey_server.flush()


@pytest.mark.parametrize("seed", range(30 if FULL else 2))
def test_four_writers_with_versions_of_their_own(
    seed: int, both: Connection, valkey_server: ValkeyServer, postgres_url: str
) -> None:
    """Each knows its own versions; together they are one partition, rebuilt meanwhile."""
    with contextlib.ExitStack() as stack:
        writers = []
        for number in range(4):
            own = stack.enter_context(
                contextlib.closing(Connection(valkey_server.url, postgres=postgres_url))
            )
            writers.append(writer_of(own, f"writers-{seed}", seed * 10 + number, f"w{number}-"))
        writers[0].save()
        with ThreadPoolExecutor(4) as threads:
            working = [threads.submit(writer.work, 30) for writer in writers]
            while not all(future.done() for future in working):
                omoide.reindex(MirroredStory, agent_id=f"writers-{seed}")
            for future in working:
                future.result()
    whole = writer_of(both, f"writers-{seed}", seed)
    for writer in writers:
        whole.known |= writer.known
    equal(both, whole)
    whole.agrees(both)


def test_of_many_that_supersede_one_version_one_does(
    both: Connection, valkey_server: ValkeyServer, postgres_url: str
) -> None:
    writer = writer_of(both, "race", 2)
    writer.save("first", start=0, own=None, topic=None)
    puts = [
        replace(writer.put_of(f"next-{number}", None, 1 + number % 3, None), supersedes="first")
        for number in range(24)
    ]
    with contextlib.closing(Connection(valkey_server.url, postgres=postgres_url)) as other:
        stores = (both.store, other.store)
        with ThreadPoolExecutor(8) as threads:
            replies = threads.map(lambda number: stores[number % 2].execute(puts[number]), range(24))
            statuses = [reply.status for reply in replies]
    assert sorted(statuses) == ["closed"] * 23 + ["stored"]
    equal(both, writer)
    assert both.store.execute(ask.Count(writer.scope, ask.Match(history=True))) == 2
    assert both.store.execute(ask.Count(writer.scope)) == 1
    assert both.store.execute(ask.Check(writer.scope)).findings == ()


@pytest.mark.parametrize("ids", ["v{:02}", "v\0{:02}", "\ufdd0v{:02}"], ids=["plain", "nul", "escape"])
def test_concurrent_versions_of_one_key_end_in_order(ids: str, both: Connection) -> None:
    """The half of them share a start with another one: there the ids decide, whatever bytes they hold."""
    writer = writer_of(both, f"crowd-{ids.encode().hex()}", 3)
    names = [ids.format(number) if number % 4 else f"v{number:02}" for number in range(40)]
    puts = [writer.put_of(name, "home", number // 2, None) for number, name in enumerate(names)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(both.store.execute, random.Random(4).sample(puts, len(puts))))
    equal(both, writer)
    order = sorted(puts, key=lambda put: (put.valid_from_ms, put.id.encode()))
    found = dict(zip(names, both.store.execute(ask.Get(writer.scope, tuple(names))), strict=True))
    starts = [put.valid_from_ms for put in order]
    assert [found[put.id].valid_from_ms for put in order] == starts
    assert [found[put.id].valid_to_ms for put in order] == [*starts[1:], None]
    assert both.store.execute(ask.Check(writer.scope)).findings == ()
