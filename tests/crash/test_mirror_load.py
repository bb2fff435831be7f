"""Eight writers and eight readers while the store, then PostgreSQL, goes and comes back.

Longer with OMOIDE_FULL=1.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import omoide
from omoide import PostgresMirror
from omoide.connection import Connection
from omoide.errors import StoreError, StoreUnavailableError
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.recipes import DefaultMemory
from omoide.stores.postgres.answers import POSTGRES
from omoide.stores.postgres.compare import compare
from omoide.stores.postgres.outbox import waiting
from omoide.stores.postgres.projector import sweep
from omoide.testing import PostgresServer, ValkeyServer

ROUNDS = 10 if os.environ.get("OMOIDE_FULL") == "1" else 1
WORKERS = 8


class LoadedMemory(DefaultMemory):
    max_records_per_partition = 0

    class Meta:
        mirror = PostgresMirror(table="loaded")


AGENTS = ("ada", "bob")


class Load:
    """Writers and readers of two partitions, and what they met."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.saved: list[tuple[str, str]] = []
        self.met: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.shown = dict.fromkeys(AGENTS, 0)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work, number))
            for work in (self.write, self.read)
            for number in range(WORKERS)
        ]

    def __enter__(self) -> Load:
        with self.connection.use():
            for number, _ in enumerate(AGENTS):  # of an empty partition the store asks the rows
                self.write(number, 0)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _run(self, work: Callable[[int, int], None], number: int) -> None:
        step = 0
        with self.connection.use():
            while not self._stop.is_set():
                step += 1
                try:
                    work(number, step)
                except StoreUnavailableError:
                    self.met[f"{work.__name__} refused"] += 1
                    time.sleep(0.005)
                except StoreError as error:
                    self.met[f"{work.__name__} {type(error).__name__}"] += 1
                except BaseException as error:
                    self.wrong.append(repr(error))
                    raise

    def write(self, number: int, step: int) -> None:
        agent = AGENTS[number % 2]
        one = LoadedMemory(agent_id=agent, content=f"writer {number} says {step} of tea in Ottawa")
        outcome = one.save()
        assert outcome
        self.saved.append((agent, one.memory_id))
        self.met["saved" if outcome.mirrored else "saved, to be shown later"] += 1
        if outcome.mirrored:
            self.shown[agent] = 1

    def read(self, number: int, step: int) -> None:
        agent = AGENTS[number % 2]
        scope, known = Scope(spec_of(LoadedMemory), (agent,)), self.shown[agent]
        reply = self.connection.store.execute(ask.Search(scope, {"tea": 1.0, "ottawa": 1.0}, 5))
        assert reply.live >= known, "no memories where there are some"
        self.met["answered by rows" if reply.reader == POSTGRES else "answered"] += 1


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def until(load: Load, what: str, more: int = 5) -> None:
    """Wait until something was met a few more times; a store may be left alone for half a minute."""
    goal, deadline = load.met[what] + more, time.monotonic() + 90
    while load.met[what] < goal:
        assert time.monotonic() < deadline, f"{what}: {dict(load.met)} {load.wrong}"
        time.sleep(0.01)


def settled(connection: Connection, load: Load) -> None:
    """Nothing waits, both sides are equal, and every acknowledged save is there."""
    deadline = time.monotonic() + 60
    while connection.database.run(waiting, "omoide") and time.monotonic() < deadline:
        connection.mirrored.drive(sweep(connection.mirror))
        time.sleep(0.05)
    assert connection.database.run(waiting, "omoide") == []
    for agent in AGENTS:
        scope = Scope(spec_of(LoadedMemory), (agent,))
        assert connection.mirrored.drive(compare(connection.mirror, scope)).equal
        names = [name for one, name in load.saved if one == agent]
        for start in range(0, len(names), 500):
            found = connection.store.execute(ask.Get(scope, tuple(names[start : start + 500])))
            assert None not in found
    assert load.wrong == []


def test_the_store_stops_is_flushed_and_restarts(postgres: PostgresServer) -> None:
    with (
        ValkeyServer(aof=True) as store,
        omoide.Connection(store.url, postgres=postgres.url_of(postgres.create()), timeout=10) as connection,
        connection.use(),
    ):
        with Load(connection) as load:
            for _ in range(ROUNDS):
                until(load, "saved", 20)
                until(load, "answered", 20)
                store.kill9()
                until(load, "saved, to be shown later", 20)
                until(load, "answered by rows", 20)
                store.start()
                until(load, "saved", 20)
                until(load, "answered", 20)
                store.flush()
                until(load, "saved", 20)
                until(load, "answered", 20)
                store.restart()
                until(load, "saved", 20)
        refused = [name for name in load.met if not name.startswith(("saved", "answered"))]
        assert refused == [], dict(load.met)
        settled(connection, load)


def test_postgres_stops(postgres: PostgresServer) -> None:
    with (
        ValkeyServer() as store,
        omoide.Connection(store.url, postgres=postgres.url_of(postgres.create()), timeout=10) as connection,
        connection.use(),
    ):
        with Load(connection) as load:
            for _ in range(ROUNDS):
                until(load, "saved", 20)
                postgres.stop()
                until(load, "write refused", 20)
                until(load, "answered", 50)
                postgres.start()
                until(load, "saved", 20)
        assert load.met["read refused"] == 0, dict(load.met)
        settled(connection, load)
