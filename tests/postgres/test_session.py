"""Scripts of statements: one transaction each, values as parameters only, outages told as outages."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from omoide.errors import CapabilityError, StoreError, StoreTimeoutError, StoreUnavailableError
from omoide.ops import port
from omoide.stores.postgres import session
from omoide.stores.postgres.session import Database, Script, Step
from omoide.stores.postgres.translate import Clash, translating
from omoide.testing import PostgresServer


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    found = Database(postgres_url, timeout=5)
    found.run(_tables)
    yield found
    found.close()


def _tables() -> Script[None]:
    yield Step("DROP TABLE IF EXISTS notes")
    yield Step("CREATE TABLE notes (id integer PRIMARY KEY, body text)")


def write(number: int, body: str) -> Script[None]:
    yield Step("INSERT INTO notes VALUES (%s, %s)", (number, body))


def write_many(*numbers: int) -> Script[None]:
    yield Step("INSERT INTO notes VALUES (%s, 'x')", many=[(number,) for number in numbers])


def write_then_fail(number: int) -> Script[None]:
    yield Step("INSERT INTO notes VALUES (%s, 'x')", (number,))
    raise ValueError("no")


def count() -> Script[int]:
    rows = yield Step("SELECT count(*) FROM notes")
    return int(rows[0][0])


def test_a_script_is_one_transaction(database: Database) -> None:
    with pytest.raises(ValueError, match="no"):
        database.run(write_then_fail, 1)
    assert database.run(count) == 0
    database.run(write_many, 1, 2, 3)
    with pytest.raises(Clash):
        database.run(write_many, 4, 1)
    assert database.run(count) == 3


async def test_the_async_face_runs_the_same_scripts(database: Database) -> None:
    await asyncio.gather(*(database.arun(write, number, "x") for number in range(30)))
    assert await database.arun(count) == 30 == database.run(count)
    with pytest.raises(Clash):
        await database.arun(write, 1, "x")


def test_it_works_in_successive_loops(database: Database) -> None:
    for number in range(3):
        asyncio.run(database.arun(write, number, "x"))
    assert database.run(count) == 3


async def test_a_cancelled_script_leaves_nothing_and_its_connection_is_not_reused_dirty(
    database: Database,
) -> None:
    def slow() -> Script[None]:
        yield Step("INSERT INTO notes VALUES (1, 'x')")
        yield Step("SELECT pg_sleep(30)")

    task = asyncio.create_task(database.arun(slow))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await database.arun(count) == 0


def test_many_threads_share_few_connections(postgres_url: str, database: Database) -> None:
    few = Database(postgres_url, timeout=10, size=2)
    threads = [threading.Thread(target=few.run, args=(write, number, "x")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    few.close()
    assert database.run(count) == 20


def test_a_statement_ends_with_its_time(database: Database) -> None:
    def slow() -> Script[None]:
        yield Step("SELECT pg_sleep(30)")

    with port.deadline(0.2), pytest.raises(StoreTimeoutError):
        database.run(slow)
    assert database.run(count) == 0


def test_no_error_quotes_a_value(database: Database) -> None:
    database.run(write, 1, "x")

    def secret() -> Script[None]:
        yield Step("INSERT INTO notes VALUES (%s::integer, %s)", ("the secret", "the secret"))

    for script, args in ((secret, ()), (write, (1, "the secret"))):
        with pytest.raises(StoreError) as caught:
            database.run(script, *args)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_the_server_sees_parameters_apart_from_statements(database: Database) -> None:
    def told() -> Script[str]:
        yield Step("SELECT %s::text", ("the secret",))
        rows = yield Step("SELECT string_agg(query, ' ') FROM pg_stat_activity")
        return str(rows[0][0])

    assert "secret" not in database.run(told)


def test_no_server_is_an_outage_and_told_at_once() -> None:
    nowhere = Database("postgresql://omoide@/omoide?host=/nowhere", timeout=5)
    with pytest.raises(StoreUnavailableError):
        nowhere.run(count)
    with pytest.raises(StoreUnavailableError):
        asyncio.run(nowhere.arun(count))


def test_a_restarted_server_is_found_again_without_an_error() -> None:
    with PostgresServer() as server:
        database = Database(server.url_of(server.create()), timeout=5)
        database.run(_tables)
        server.kill9()
        with pytest.raises(StoreUnavailableError):
            _until_down(database)
        server.start()
        assert database.run(count) == 0
        server.stop()
        server.start()
        assert database.run(count) == 0
        assert asyncio.run(database.arun(count)) == 0
        database.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="its processes are listed in /proc")
def test_a_server_that_says_nothing_is_waited_for_no_longer_than_was_agreed() -> None:
    with PostgresServer() as server:
        database = Database(server.url_of(server.create()), timeout=1)
        database.run(_tables)
        server.pause()
        try:
            began = time.monotonic()
            with pytest.raises(StoreTimeoutError):
                database.run(write, 1, "x")
            with pytest.raises((StoreTimeoutError, StoreUnavailableError)):
                asyncio.run(database.arun(write, 1, "x"))
            assert time.monotonic() - began < 20
        finally:
            server.resume()
        assert database.run(count) == 0
        assert asyncio.run(database.arun(count)) == 0
        database.close()


class _Silent:
    """A server that takes every connection and says nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.taken: list[socket.socket] = []
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()
        self.url = f"postgresql://ada@127.0.0.1:{self._socket.getsockname()[1]}/x?sslmode=disable"

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self._socket.accept()[0])

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for one in self.taken:
            one.close()


def test_a_server_that_says_nothing_is_asked_once_a_call() -> None:
    server = _Silent()
    database = Database(server.url, timeout=1)
    with pytest.raises(StoreTimeoutError):
        database.run(count)
    assert len(server.taken) == 1
    with pytest.raises(StoreTimeoutError):
        asyncio.run(database.arun(count))
    assert len(server.taken) == 2
    server.close()


@pytest.mark.parametrize(("spent", "tries"), [(0.0, 2), (4.0, 2), (5.0, 1), (9.0, 1)])
def test_a_lost_connection_is_opened_anew_in_what_is_left(
    monkeypatch: pytest.MonkeyPatch, spent: float, tries: int
) -> None:
    now, given = [100.0], []
    database = Database("postgresql://nowhere.invalid/x", timeout=5)

    def lose(seconds: float) -> None:
        given.append(seconds)
        now[0] += spent
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(database._threads, "take", lose)
    monkeypatch.setattr(session.time, "monotonic", lambda: now[0])
    with pytest.raises(StoreUnavailableError):
        database.run(count)
    assert given == [5.0, 5.0 - spent][:tries]


def _until_down(database: Database) -> None:
    """Ask until it is down; one that is lost at the commit says so."""
    for _ in range(1000):
        with contextlib.suppress(StoreTimeoutError):
            database.run(count)


def test_an_unknown_database_or_a_closed_one_is_an_error_without_a_password(postgres_url: str) -> None:
    wrong = Database(postgres_url.replace("omoide@/", "omoide:pass@/nothing_"), timeout=5)
    with pytest.raises(StoreUnavailableError) as caught:
        wrong.run(count)
    assert "pass" not in f"{caught.value}{wrong!r}"
    wrong.close()
    with pytest.raises(StoreError, match="closed"):
        wrong.run(count)


def test_a_process_that_forks_leaves_its_connections_alone(database: Database) -> None:
    database.run(write, 1, "x")
    child = os.fork()
    if child == 0:
        try:
            database.run(write, 2, "x")
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert database.run(count) == 2


async def test_a_server_that_is_too_old_is_left_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Database(f"{postgres_url}{'&' if '?' in postgres_url else '?'}application_name=too_old")
    monkeypatch.setattr(session, "OLDEST_VERSION", 99)
    with pytest.raises(CapabilityError) as first:
        found.listening()
    with pytest.raises(CapabilityError) as second:
        await found.alistening()
    with psycopg.connect(postgres_url, autocommit=True) as other:
        left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'too_old'"
        for _ in range(200):  # a server takes note of an end in its own time
            rows = other.execute(left).fetchall()
            if rows == [(0,)]:
                break
            await asyncio.sleep(0.02)
    assert rows == [(0,)]
    assert first.traceback  # which would hold what is left open, so that nothing else can have closed it
    assert second.traceback


def test_an_error_that_is_not_the_clients_is_left_as_it_is() -> None:
    with pytest.raises(ValueError, match="of somebody else"), translating():
        raise ValueError("of somebody else")
    with pytest.raises(StoreError, match=r"refused a statement \(ProgrammingError\)"), translating():
        raise psycopg.ProgrammingError("with a value")


def test_psycopg_is_new_enough() -> None:
    assert tuple(int(part) for part in psycopg.__version__.split(".")[:2]) >= (3, 2)


async def test_calls_that_are_cancelled_at_any_instant_leave_no_slot_taken(postgres_url: str) -> None:
    narrow = Database(postgres_url, timeout=5, size=1)
    narrow.run(_tables)
    for number in range(60):
        task = asyncio.create_task(narrow.arun(count))
        for _ in range(number % 20):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert await asyncio.wait_for(narrow.arun(count), 10) == 0
    narrow.close()
