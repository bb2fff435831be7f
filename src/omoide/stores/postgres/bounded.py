"""Connections that do not wait for ever: a server that is stopped, or cut off, answers nothing at all.

PostgreSQL ends a statement that takes too long; that needs a PostgreSQL that works. Here the client looks at
the clock as well, between two looks at the socket, and gives the connection up: what is under way on it is
not known any more.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

__all__ = ["AsyncBoundedConnection", "BoundedConnection", "Late"]

R = TypeVar("R")
GRACE_SECONDS = 1.0
"""What the client waits longer than the server may take: a server that works tells more."""


class Late(psycopg.OperationalError):
    """No answer within the limit; the connection is closed."""


class BoundedConnection(psycopg.Connection[Any]):
    """`limit`: seconds one exchange may take; None: any time."""

    limit: float | None = None
    _pool = None  # says to psycopg that it may go unclosed, with the pool that holds it

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().wait(_within(gen, self.limit), *args, **kwargs)
        except Late:
            self.pgconn.finish()
            raise


class AsyncBoundedConnection(psycopg.AsyncConnection[Any]):
    """The async one; it goes with its event loop."""

    limit: float | None = None
    _pool = None

    async def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super().wait(_within(gen, self.limit), *args, **kwargs)
        except Late:
            self.pgconn.finish()
            raise


def _within(gen: Generator[Any, Any, R], limit: float | None) -> Generator[Any, Any, R]:
    """The same generator, until the time is over; it is resumed at least ten times a second."""
    if limit is None:
        return (yield from gen)
    end = time.monotonic() + limit + GRACE_SECONDS
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and time.monotonic() > end:
                gen.close()
                raise Late("no answer in time")
            state = gen.send(ready)
    except StopIteration as stop:
        result: R = stop.value
        return result
