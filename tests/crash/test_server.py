"""The server killed under load (append-only file, fsync every second): what survives is whole.

A handful of kills by default, 200 with OMOIDE_FULL=1.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from redis.exceptions import ResponseError
from victims import Victim, victim

import omoide
from omoide.connection import Connection
from omoide.errors import StoreError
from omoide.ops.reindex import reindex
from omoide.ops.upkeep import doctor
from omoide.testing import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"
KILLS = 200 if FULL else 6
FSYNC_SECONDS = 2.0
"""A write is on disk after at most this long: fsync every second, and one that is under way."""


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer(aof=True) as server:
        yield server


@dataclass
class Client:
    """A thread that writes under ids of its own, and what each may hold after a crash.

    `states`: id -> (token or None for deleted, when it was acknowledged or None), oldest first.
    """

    url: str
    name: str
    source: random.Random
    states: dict[str, list[tuple[str | None, float | None]]] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)
    number: int = 0

    def work(self, stop: threading.Event) -> None:
        try:
            with Connection(self.url) as connection, connection.use():
                while not stop.is_set():
                    self.step()
        except StoreError:
            if not stop.is_set():
                stop.wait(5)
        except AssertionError as error:
            self.failures.append(error)

    def step(self) -> None:
        self.number += 1
        token = f"{self.name}x{self.number}"
        names = [f"{self.name}-{self.source.randrange(60)}" for _ in range(self.source.choice([1, 1, 1, 10]))]
        names = list(dict.fromkeys(names))
        if self.source.random() < 0.2:
            self.tell(names, None, None)
            Victim.delete_many(names, agent_id="a")
            self.tell(names, None, time.monotonic())
        elif self.source.random() < 0.03:
            reindex(Victim, agent_id="a")
        else:
            self.tell(names, token, None)
            assert all(Victim.save_many(victim("a", token, self.source, victim_id=name) for name in names))
            self.tell(names, token, time.monotonic())

    def tell(self, names: list[str], token: str | None, at: float | None) -> None:
        for name in names:
            self.states.setdefault(name, [(None, 0.0)]).append((token, at))

    def possible(self, name: str, killed: float) -> set[str | None]:
        """What an id may hold: the newest state that was safe by then, or any that was sent later."""
        states = self.states[name]
        safe = max(n for n, (_, at) in enumerate(states) if at is not None and at < killed - FSYNC_SECONDS)
        return {token for token, _ in states[safe:]}

    def settle(self, held: dict[str, str]) -> None:
        """Begin anew from what is stored."""
        self.states = {name: [(held.get(name), 0.0)] for name in self.states}


def test_killed_under_load(server: ValkeyServer) -> None:
    source = random.Random(11)
    clients = [Client(server.url, name, random.Random(name)) for name in ("p", "q", "r")]
    for number in range(KILLS):
        stop = threading.Event()
        threads = [threading.Thread(target=client.work, args=(stop,)) for client in clients]
        for thread in threads:
            thread.start()
        time.sleep(0.05 + source.random() * 0.4 + (2.5 if number == 1 else 0))
        server.kill9()
        killed = time.monotonic()
        stop.set()
        for thread in threads:
            thread.join()
        server.start()
        with omoide.connect(server.url):
            for health in doctor():
                assert health.findings == (), health
            found = Victim.query.filter(agent_id="a").all()
            assert all(record.whole for record in found)
            held = {record.victim_id: record.token for record in found}
            for client in clients:
                assert not client.failures
                for name in client.states:
                    assert held.get(name) in client.possible(name, killed)
                client.settle(held)
            if number % 3 == 2:
                assert reindex(Victim, agent_id="a") == len(held)
    assert sum(client.number for client in clients) > 5 * KILLS


def test_killed_while_the_log_is_rewritten(server: ValkeyServer) -> None:
    with omoide.connect(server.url):
        source = random.Random(3)
        for number in range(2 if not FULL else 20):
            many = [victim("a", f"t{number}x{n}", source, victim_id=f"v{n}") for n in range(200)]
            assert [one for one in Victim.save_many(many) if not one] == []
            server.command("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
            with contextlib.suppress(ResponseError):  # the server may have begun by itself
                server.command("BGREWRITEAOF")
            time.sleep(source.random() * 0.02)
            server.kill9()
            server.start()
            for health in doctor():
                assert health.findings == ()
            found = Victim.query.filter(agent_id="a").all()
            assert len(found) == 200
            assert all(record.whole for record in found)
