"""One PostgreSQL database: scripts of statements, each script one transaction, sync and async.

A *script* is a generator that yields steps (a statement with its parameters) and receives their rows;
it does no I/O of its own:

    def episodes(resource: str) -> Script[int]:
        rows = yield Step("SELECT count(*) FROM popagent_memories WHERE resource_id = %s", (resource,))
        return rows[0][0]

    database.run(episodes, "ada")          await database.arun(episodes, "ada")

Values travel as parameters only, so that neither statistics nor logs of the server hold any. A script
waits for nothing but its own steps: it holds a connection and a transaction. It may run twice, when it
lost a race or its connection was gone before anything was committed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from omoide import settings
from omoide.errors import CapabilityError, StoreError, StoreTimeoutError
from omoide.ops import port
from omoide.stores.postgres.bounded import AsyncBoundedConnection, BoundedConnection, Late
from omoide.stores.postgres.pool import LoopPools, ThreadPool
from omoide.stores.postgres.script import Rows, Script, Step
from omoide.stores.postgres.translate import translated, translating

__all__ = ["Database", "Rows", "Script", "Step"]

R = TypeVar("R")
A = ParamSpec("A")
OLDEST_VERSION = 15
CONNECTIONS = 10
_LOST_RACE = frozenset({"40001", "40P01"})  # serialisation, deadlock
_MOST_TRIES = 5
_PATIENT = "SET LOCAL statement_timeout = 0"
_SETUP = "SELECT set_config('statement_timeout', %s, false), set_config('timezone', 'UTC', false)"


class Database:
    """One PostgreSQL database, for any number of threads and event loops.

    Args:
        url: `postgresql://...`, as libpq reads it.
        timeout: Seconds a statement may take, and the wait for a connection. None: `OMOIDE_TIMEOUT`, else 5.
        size: Most connections in use by the threads of a process, and by each event loop.

    Attributes: `url` (without credentials), `timeout`, `ready` (lines of migrations known to be applied).
    """

    def __init__(self, url: str, *, timeout: float | None = None, size: int = CONNECTIONS) -> None:
        self.timeout = settings.call_timeout() if timeout is None else timeout
        with translating():
            told = conninfo_to_dict(url)
        self.url = f"postgresql://{told.get('host') or ''}/{told.get('dbname') or told.get('user') or ''}"
        self._url, self._closed = url, False
        self.ready: set[str] = set()
        self._threads = ThreadPool(self._connect, size)
        self._loops = LoopPools(self._aconnect, size)

    def __repr__(self) -> str:
        return f"<Database {self.url}>"

    # ---- one transaction

    def run(self, script: Callable[A, Script[R]], *args: A.args, **kwargs: A.kwargs) -> R:
        """Run a script in one transaction.

        Raises:
            StoreUnavailableError, StoreError: nothing was written.
            StoreTimeoutError: no answer; where it came at the commit, it may or may not have been written.
        """
        spent = 0.0
        for attempt in range(1, _MOST_TRIES + 1):
            progress = _Progress()
            try:
                with self._session(spent) as connection:
                    result = _drive(connection, script(*args, **kwargs))
                    progress.committing = True
                    connection.commit()
                    return result
            except psycopg.Error as error:
                spent = self._failed(error, progress, attempt)
        raise AssertionError("unreachable")

    async def arun(self, script: Callable[A, Script[R]], *args: A.args, **kwargs: A.kwargs) -> R:
        """`run`, async."""
        spent = 0.0
        for attempt in range(1, _MOST_TRIES + 1):
            progress = _Progress()
            try:
                async with self._asession(spent) as connection:
                    result = await _adrive(connection, script(*args, **kwargs))
                    progress.committing = True
                    await connection.commit()
                    return result
            except psycopg.Error as error:
                spent = self._failed(error, progress, attempt)
        raise AssertionError("unreachable")

    def _failed(self, error: psycopg.Error, progress: _Progress, attempt: int) -> float:
        """Seconds that another try has to do without, else raise what became of the transaction.

        A lost race is run again with the whole time; a lost connection is opened once more, in what it left.
        """
        lost = _is_lost(error)
        if lost:
            self._threads.clear()
            self._loops.clear()
        if isinstance(error, Late) and not progress.committing:
            raise StoreTimeoutError("PostgreSQL gave no answer in time; nothing was written") from None
        if lost and progress.committing:
            raise StoreTimeoutError(
                "PostgreSQL was lost at the commit: it may or may not have been written",
                hint="repeat it with the same operation_id",
            ) from None
        spent = time.monotonic() - progress.began if lost else 0.0
        silent = isinstance(error, psycopg.errors.ConnectionTimeout) or spent >= self.timeout
        again = error.sqlstate in _LOST_RACE or (lost and attempt == 1 and not silent)
        if not again or attempt == _MOST_TRIES:
            raise translated(error) from None
        return spent

    # ---- connections

    def listening(self) -> psycopg.Connection[Any]:
        """A connection of the caller's own, in autocommit and without a time limit; the caller closes it."""
        with translating():
            connection = psycopg.connect(self._url, autocommit=True, **self._options())
        try:
            _check_version(connection.info.server_version)
        except BaseException:
            connection.close()
            raise
        return connection

    async def alistening(self) -> psycopg.AsyncConnection[Any]:
        """`listening`, async."""
        with translating():
            connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, **self._options())
        try:
            _check_version(connection.info.server_version)
        except BaseException:
            await connection.close()
            raise
        return connection

    @contextlib.contextmanager
    def _session(self, spent: float) -> Iterator[BoundedConnection]:
        budget = self._budget(spent)
        connection = self._threads.take(budget)
        try:
            connection.limit = budget
            if budget < self.timeout:
                connection.execute(*_limit(budget))
            yield connection
        finally:
            try:
                with contextlib.suppress(psycopg.Error):
                    connection.rollback()
            finally:
                self._threads.give(connection)

    @contextlib.asynccontextmanager
    async def _asession(self, spent: float) -> AsyncIterator[AsyncBoundedConnection]:
        budget = self._budget(spent)
        connection = await self._loops.take(budget)
        try:
            connection.limit = budget
            if budget < self.timeout:
                await connection.execute(*_limit(budget))
            yield connection
        finally:
            try:
                with contextlib.suppress(psycopg.Error):
                    await connection.rollback()
            finally:  # also when cancelled meanwhile: what is not idle is closed
                self._loops.give(connection)

    def _connect(self, seconds: float) -> BoundedConnection:
        connection = BoundedConnection.connect(self._url, **self._options(seconds))
        connection.limit = seconds
        try:
            _check_version(connection.info.server_version)
            connection.execute(_SETUP, (self._milliseconds,))
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    async def _aconnect(self, seconds: float) -> AsyncBoundedConnection:
        connection = await AsyncBoundedConnection.connect(self._url, **self._options(seconds))
        connection.limit = seconds
        try:
            _check_version(connection.info.server_version)
            await connection.execute(_SETUP, (self._milliseconds,))
            await connection.commit()
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def _milliseconds(self) -> str:
        return str(max(1, round(self.timeout * 1000)))

    def _options(self, seconds: float | None = None) -> dict[str, Any]:
        if self._closed:
            raise StoreError("the connection to PostgreSQL is closed", hint="call omoide.connect(url) again")
        return {
            "connect_timeout": max(2, int(self.timeout if seconds is None else seconds)),
            "tcp_user_timeout": int(self._milliseconds),
            "client_encoding": "utf8",
        }

    def _budget(self, spent: float) -> float:
        left, own = port.remaining(), self.timeout - spent
        budget = own if left is None else min(own, left)
        if budget <= 0:
            raise StoreTimeoutError("no time is left for PostgreSQL")
        return budget

    def close(self) -> None:
        """Close what is idle; what is in use closes when it is given back."""
        self._closed = True
        self._threads.clear()
        self._loops.clear()


class _Progress:
    """When a transaction began (monotonic), and whether it got as far as its commit."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.committing = False


def _limit(seconds: float) -> tuple[str, tuple[str]]:
    """A shorter time limit, for the transaction that it begins."""
    return "SELECT set_config('statement_timeout', %s, true)", (str(max(1, round(seconds * 1000))),)


def _is_lost(error: psycopg.Error) -> bool:
    """Whether the connection, not the statement, failed."""
    if isinstance(error, psycopg.InterfaceError):
        return True
    state = error.sqlstate or ""
    return (
        isinstance(error, psycopg.OperationalError)
        and (not state or state[:2] in ("08", "57"))
        and state != "57014"
    )


def _check_version(version: int) -> None:
    if version < OLDEST_VERSION * 10_000:
        raise CapabilityError(
            f"PostgreSQL {version // 10_000} is too old", hint=f"omoide needs {OLDEST_VERSION} or newer"
        )


def _drive(connection: BoundedConnection, script: Script[R]) -> R:
    with connection.cursor() as cursor, contextlib.closing(script):
        try:
            step = next(script)
            while True:
                query: Any = step.query
                if step.patient:
                    connection.limit = None
                    cursor.execute(_PATIENT)
                if step.many is not None:
                    cursor.executemany(query, step.many)
                else:
                    cursor.execute(query, step.parameters or None)
                step = script.send(cursor.fetchall() if cursor.description and step.many is None else [])
        except StopIteration as stop:
            result: R = stop.value
            return result


async def _adrive(connection: AsyncBoundedConnection, script: Script[R]) -> R:
    async with connection.cursor() as cursor:
        with contextlib.closing(script):
            try:
                step = next(script)
                while True:
                    query: Any = step.query
                    if step.patient:
                        connection.limit = None
                        await cursor.execute(_PATIENT)
                    if step.many is not None:
                        await cursor.executemany(query, step.many)
                    else:
                        await cursor.execute(query, step.parameters or None)
                    has_rows = cursor.description and step.many is None
                    step = script.send(await cursor.fetchall() if has_rows else [])
            except StopIteration as stop:
                result: R = stop.value
                return result
