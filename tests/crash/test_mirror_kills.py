"""Writers, a projector and the store killed at random instants: nothing is lost, both sides agree.

20 kills by default, 1,000 with OMOIDE_FULL=1.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mirror_victims import SCOPE, Sworn, sworn

import omoide
from omoide.connection import Connection
from omoide.ops import request as ask
from omoide.stores.postgres.compare import compare
from omoide.stores.postgres.outbox import waiting
from omoide.stores.postgres.projector import sweep
from omoide.testing import ValkeyServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

KILLS = 1_000 if os.environ.get("OMOIDE_FULL") == "1" else 20


class Nursery:
    """Begins victims and kills them."""

    def __init__(self, url: str, postgres: str, log: Path) -> None:
        program = Path(__file__).with_name("mirror_victims.py")
        self.process = subprocess.Popen(
            [sys.executable, str(program), url, postgres, str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, line: str) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def begin(self, kind: str) -> int:
        return self._ask(kind)

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        assert self._ask(f"wait {pid}") == -signal.SIGKILL, "a victim ended by itself"

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(20)


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    with ValkeyServer(aof=True) as server:
        yield server


@pytest.fixture
def connection(store: ValkeyServer, postgres_url: str) -> Iterator[Connection]:
    with omoide.connect(store.url, postgres=postgres_url) as connection:
        yield connection


def test_kills_at_random_instants(
    connection: Connection, store: ValkeyServer, postgres_url: str, tmp_path: Path
) -> None:
    source, log = random.Random(7), tmp_path / "log"
    connection.mirrored.drive(connection.mirror.table(SCOPE.spec))
    with contextlib.closing(Nursery(store.url, postgres_url, log)) as nursery:
        seeds = iter(range(1, 10_000))
        writers = [nursery.begin(f"writer {next(seeds)}") for _ in range(2)]
        projector = nursery.begin("projector")
        for number in range(KILLS):
            await_work(log)
            time.sleep(source.uniform(0.0, 0.2))
            if number % 3 == 0:
                victim = source.randrange(2)
                nursery.kill(writers[victim])
                writers[victim] = nursery.begin(f"writer {next(seeds)}")
            elif number % 3 == 1:
                nursery.kill(projector)
                projector = nursery.begin("projector")
            else:
                store.kill9()
                time.sleep(source.uniform(0.0, 0.1))
                store.start()
            if number % 100 == 50:
                assert_caught_up_at_last(connection, quiet=False)
        for pid in (*writers, projector):
            nursery.kill(pid)
    assert_caught_up_at_last(connection)
    assert_nothing_lost(connection, log)
    assert Sworn.delete_partition(agent_id="a") >= 0


def await_work(log: Path) -> None:
    """Until a writer was answered once more, however busy the machine is."""
    before, deadline = size_of(log), time.monotonic() + 20
    while size_of(log) < before + 200 and time.monotonic() < deadline:
        time.sleep(0.01)


def size_of(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def assert_caught_up_at_last(connection: Connection, *, quiet: bool = True) -> None:
    """The outbox is empty and both sides are equal, after a projector's work; a busy one only answers."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        swept = connection.mirrored.drive(sweep(connection.mirror))
        if not quiet and not swept.left:
            return
        if not connection.database.run(waiting, "omoide"):
            break
        time.sleep(0.1)
    assert connection.database.run(waiting, "omoide") == []
    found = connection.mirrored.drive(compare(connection.mirror, SCOPE))
    assert found.equal, found
    assert connection._store.execute(ask.Check(SCOPE)).findings == ()


def assert_nothing_lost(connection: Connection, log: Path) -> None:
    """Every record is as its last acknowledged call left it, or as the one under way would have."""
    known = sworn(log)
    assert len(known) > 3
    names = sorted(known)
    for start in range(0, len(names), 500):
        part = names[start : start + 500]
        records = connection.store.execute(ask.Get(SCOPE, tuple(part)))
        for name, record in zip(part, records, strict=True):
            token = None if record is None else record.values["token"]
            assert token in known[name].tokens, name
            if record is not None:
                assert record.corroborations in known[name].outcomes, name
    total = connection.store.execute(ask.Count(SCOPE, ask.Match(history=True)))
    assert total == sum(
        record is not None for record in connection.store.execute(ask.Get(SCOPE, tuple(names)))
    )
