"""A real PostgreSQL for tests, from the packaged programs.

    with PostgresServer() as server:
        url = server.url_of(server.create())

It may lose what the machine had not written when the machine stops (`fsync=off`): a test never does
that. What it loses when it is killed is nothing, as in earnest.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from pathlib import Path
from types import TracebackType

from omoide.stores.postgres.server import EmbeddedPostgres, postgres_programs

__all__ = ["PostgresServer"]

_names = itertools.count(1)


class _Careless(EmbeddedPostgres):
    """Fast and small, and nothing is written before it has to be."""

    title = "the PostgreSQL of the tests"
    settings = {
        **EmbeddedPostgres.settings,
        "fsync": "off",
        "full_page_writes": "off",
        "shared_buffers": "32MB",
        "max_connections": "200",
    }


class PostgresServer:
    """One server in a temporary folder.

    Raises:
        CapabilityError: there is none for this platform.
    """

    def __init__(self) -> None:
        postgres_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="omoide-pg-"))
        self._server: _Careless | None = None

    def __repr__(self) -> str:
        return f"<PostgresServer {self.folder}>"

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def running(self) -> EmbeddedPostgres:
        """The server behind it; AssertionError when it is stopped."""
        assert self._server is not None, "it is stopped"
        return self._server

    def start(self) -> None:
        """Start it, or join it; nothing is lost between `stop` and `start`."""
        if self._server is None:
            self._server = _Careless.acquire(self.folder)
        else:
            self._server.ensure_running()

    def stop(self) -> None:
        """End it as an operator does: what is under way is cancelled, connections are closed."""
        if self._server is not None:
            self._server.release()
            self._server = None

    def kill9(self) -> None:
        """SIGKILL to the whole server; `start` starts it again."""
        os.kill(self.running.pid, signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP to all its processes: connections are accepted, nothing is answered, until `resume`."""
        for pid in self._processes():
            os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        for pid in self._processes():
            os.kill(pid, signal.SIGCONT)

    def _processes(self) -> list[int]:
        leader = self.running.pid
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        return [leader, *map(int, children)]

    def url_of(self, database: str) -> str:
        """URL of one of its databases."""
        return (self._server or _Careless(self.folder)).url_of(database)

    def create(self) -> str:
        """A new empty database; its name."""
        name = f"omoide_{os.getpid()}_{next(_names)}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        return name

    def drop(self, database: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Rows of one statement, in autocommit."""
        import psycopg

        with psycopg.connect(self.url_of(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []
