"""A PostgreSQL a system, and the processor time of all its processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from omoide.testing import PostgresServer

SETTLE_SECONDS = 0.2


class Postgres:
    """A throw-away PostgreSQL with one empty database."""

    def __init__(self) -> None:
        self._server = PostgresServer()

    def __enter__(self) -> Self:
        self._server.start()
        self.name = self._server.create()
        self.url = self._server.url_of(self.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Rows of one statement."""
        return self._server.execute(statement, self.name)

    def table_bytes(self) -> int:
        """Bytes of all tables on disk, their indexes included."""
        ((held,),) = self.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace NOT IN ('pg_catalog'::regnamespace,"
            " 'information_schema'::regnamespace)"
        )
        return int(str(held))

    def cpu_ns(self) -> int:
        """Processor time of the server's processes that live now, nanoseconds; their set must not change.

        Read when none of them runs: the scheduler books time when a process lets go.
        """
        files = [f"/proc/{pid}/schedstat" for pid in self._processes()]
        limit = time.monotonic() + SETTLE_SECONDS
        while self._busy() and time.monotonic() < limit:
            pass
        return sum(int(Path(file).read_bytes().split()[0]) for file in files if os.path.exists(file))

    def _processes(self) -> list[int]:
        leader = self._server.running.pid
        return [
            leader,
            *(int(one) for one in Path(f"/proc/{leader}/task/{leader}/children").read_text().split()),
        ]

    def _busy(self) -> bool:
        for pid in self._processes():
            try:
                state = Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0]
            except OSError:
                continue
            if state == b"R":
                return True
        return False
