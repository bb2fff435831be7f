"""Validity: whatever is written in whatever order, every answer equals the plain model at every instant."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from versions import INSTANTS, DatedStory, Versions, intervals, shifted

from omoide.connection import Connection
from omoide.ops import request as ask
from omoide.ops.reindex import rebuild
from omoide.ops.run import run
from omoide.testing import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"


@pytest.fixture(scope="module")
def readers(valkey_server: ValkeyServer) -> Iterator[list[Connection]]:
    """One connection per reader, that live through all histories."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Connection(valkey_server.url, reader=reader))
            for reader in ("client", "server", "auto")
        ]


@pytest.mark.parametrize("seed", range(300 if FULL else 12))
def test_a_random_history_equals_its_model(
    seed: int, valkey_server: ValkeyServer, readers: list[Connection]
) -> None:
    source = random.Random(seed)
    with contextlib.closing(Connection(valkey_server.url, reader="client")) as own:
        writer = Versions(own, f"versions-{seed}", source)
        for _ in range(4):
            writer.work(source.choice([3, 10, 25]))
            writer.agrees(own, *readers)
            if source.random() < 0.4:
                assert run(rebuild(DatedStory, writer.scope), own.store) == len(writer.known)
                writer.agrees(own, readers[1])
        writer.agrees(own, readers[1], instants=len(INSTANTS))


@pytest.mark.parametrize("seed", range(3))
def test_a_rebuild_gets_every_write(
    seed: int, valkey_server: ValkeyServer, readers: list[Connection]
) -> None:
    """Writes between the pages of a rebuild: the copy has the same versions."""
    with contextlib.closing(Connection(valkey_server.url, reader="client")) as own:
        writer = Versions(own, f"rebuilt-{seed}", random.Random(seed))
        writer.work(40)
        plan = rebuild(DatedStory, writer.scope)
        request = next(plan)
        with contextlib.suppress(StopIteration):
            while True:
                reply = own.store.execute(request)
                if not isinstance(request, ask.FinishReindex):
                    writer.work(5)
                request = plan.send(reply)
        writer.agrees(own, *readers)


@pytest.mark.parametrize("seed", range(60 if FULL else 4))
def test_four_writers_with_versions_of_their_own(
    seed: int, valkey_server: ValkeyServer, readers: list[Connection]
) -> None:
    """Each knows its own versions; together they are one partition, rebuilt meanwhile."""
    agent = f"writers-{seed}"
    with contextlib.ExitStack() as stack:
        own = [
            stack.enter_context(Connection(valkey_server.url, reader=reader))
            for reader in ("client", "server", "client", "auto")
        ]
        writers = [
            Versions(one, agent, random.Random(seed * 10 + number), mark=f"w{number}-")
            for number, one in enumerate(own)
        ]
        writers[0].save()
        with ThreadPoolExecutor(5) as threads:
            working = [threads.submit(writer.work, 30) for writer in writers]
            run(rebuild(DatedStory, writers[0].scope), readers[2].store)
            for future in working:
                future.result(60)
        whole = Versions(readers[0], agent, random.Random(seed))
        for writer in writers:
            whole.known |= writer.known
        whole.agrees(*readers, *own)


def test_versions_may_come_in_any_order(readers: list[Connection]) -> None:
    """Five versions, two of one start and one that says when it ends: 120 orders, one state."""
    versions = [("a", 2, None), ("b", 5, None), ("c", 5, None), ("d", 7, 8), ("e", 11, None)]
    states = set()
    for number, order in enumerate(itertools.permutations(versions)):
        writer = Versions(readers[0], f"order-{number}", random.Random(1))
        for name, start, own in order:
            writer.save(name, start=start, own=own, topic="home")
        found = readers[0].store.execute(ask.Get(writer.scope, tuple("abcde")))
        states.add(tuple((one.valid_from_ms, one.valid_to_ms) for one in found if one is not None))
        assert readers[0].store.execute(ask.Check(writer.scope)).findings == ()
    ends = intervals(writer.known)
    assert states == {tuple(shifted(ends[name]) for name in "abcde")}


def test_of_many_that_supersede_one_version_one_does(readers: list[Connection]) -> None:
    writer = Versions(readers[0], "race", random.Random(2))
    writer.save("first", start=0, own=None, topic=None)
    puts = [
        replace(writer.put_of(f"next-{number}", None, 1 + number % 3, None), supersedes="first")
        for number in range(24)
    ]
    with ThreadPoolExecutor(8) as threads:
        statuses = [reply.status for reply in threads.map(readers[0].store.execute, puts)]
    assert sorted(statuses) == ["closed"] * 23 + ["stored"]
    assert readers[1].store.execute(ask.Count(writer.scope, ask.Match(history=True))) == 2
    assert readers[1].store.execute(ask.Count(writer.scope)) == 1
    assert readers[1].store.execute(ask.Check(writer.scope)).findings == ()


def test_concurrent_versions_of_one_key_end_in_order(readers: list[Connection]) -> None:
    writer = Versions(readers[0], "crowd", random.Random(3))
    puts = {f"v{number:02}": writer.put_of(f"v{number:02}", "home", number, None) for number in range(40)}
    shuffled = random.Random(4).sample(sorted(puts), len(puts))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: readers[0].store.execute(puts[name]), shuffled))
    found = readers[1].store.execute(ask.Find(writer.scope, ask.Match(history=True), "valid_from", False))
    assert [one.id for one in found] == sorted(puts)
    assert [one.valid_to_ms for one in found] == [one.valid_from_ms for one in found[1:]] + [None]
