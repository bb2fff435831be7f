"""Whatever four concurrent writers did: both readers, listings and counts equal the slow oracle exactly.

About 25 histories by default, 1,000 with OMOIDE_FULL=1; the seed of one that fails is in the test's name.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import histories
import pytest
from histories import SPEC, Tombstones, Writer, at_rest, rebuild, watch, write_in_process

import budgets
from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.testing import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"
THREADED = 900 if FULL else 20
PROCESSES = 100 if FULL else 5
WRITERS = 4


@pytest.fixture(scope="module")
def readers(valkey_server: ValkeyServer) -> Iterator[list[Connection]]:
    """One connection per reader, that live through all histories."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Connection(valkey_server.url, reader=reader))
            for reader in ("client", "server", "auto")
        ]


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(WRITERS, mp_context=get_context("spawn")) as pool:
        yield pool


def stored_ids(server: ValkeyServer, connection: Connection, agent: str) -> set[str]:
    head = connection.store.binding.keys.head(Scope(SPEC, (agent,)))  # type: ignore[attr-defined]
    return {name.decode() for name in server.command("HKEYS", head[:-1] + b"m")}


def settle(connection: Connection, agent: str) -> None:
    """Erase what is due, and have the partition compared with its records."""
    scope = Scope(SPEC, (agent,))
    while connection.store.execute(ask.Prune(scope)):
        pass
    assert connection.store.execute(ask.Check(scope)).findings == ()


def join(futures: list[Future[int]]) -> None:
    for future in futures:
        future.result(60)


@pytest.mark.parametrize("seed", range(THREADED))
def test_four_writing_threads(
    seed: int, valkey_server: ValkeyServer, readers: list[Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In some of them writes take out few postings at once, and in some of those nobody sweeps."""
    if seed % 3 == 0:
        budgets.use_small(monkeypatch)
    if seed % 6 == 0:
        budgets.die_before_sweeping(monkeypatch)
    source = random.Random(seed)
    agent = f"threads-{seed}"
    steps = source.choice([15, 40, 70])
    with contextlib.ExitStack() as stack:
        shared = source.random() < 0.3
        own = [
            stack.enter_context(Connection(valkey_server.url, reader=source.choice(["client", "auto"])))
            for _ in range(1 if shared else WRITERS)
        ]
        writers = [Writer(own[n % len(own)], agent, str(n), seed * 10 + n) for n in range(WRITERS)]
        stop = threading.Event()
        graves = [writer.tombstones for writer in writers]
        with ThreadPoolExecutor(WRITERS + 3) as threads:
            watching = [threads.submit(watch, one, agent, graves, stop) for one in readers[:2]]
            working = [threads.submit(writer.work, steps) for writer in writers]
            try:
                if source.random() < 0.7:
                    rebuild(source.choice(own), agent)
                for future in working:
                    future.result(60)
            finally:
                stop.set()
            join(watching)
        time.sleep(histories.SOON)
        for _ in range(2):
            ids = stored_ids(valkey_server, readers[0], agent)
            at_rest([*readers, *own], agent, writers, seed, ids)
            if source.random() < 0.5:
                rebuild(readers[1], agent)
            settle(readers[1], agent)
    readers[0].store.execute(ask.Drop(Scope(SPEC, (agent,))))


@pytest.mark.parametrize("seed", range(PROCESSES))
def test_four_writing_processes(
    seed: int, valkey_server: ValkeyServer, readers: list[Connection], pool: ProcessPoolExecutor
) -> None:
    agent = f"processes-{seed}"
    stop = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        watching = [threads.submit(watch, one, agent, list[Tombstones](), stop) for one in readers[:2]]
        working = [
            pool.submit(write_in_process, valkey_server.url, agent, str(n), seed * 10 + n, 60, reader)
            for n, reader in enumerate(["client", "auto", "client", "server"])
        ]
        try:
            rebuild(readers[2], agent)
            outcomes = [future.result(60) for future in working]
        finally:
            stop.set()
        join(watching)
    time.sleep(histories.SOON)
    for _ in range(2):
        at_rest(readers, agent, outcomes, seed, stored_ids(valkey_server, readers[0], agent))
        settle(readers[1], agent)
    readers[0].store.execute(ask.Drop(Scope(SPEC, (agent,))))
