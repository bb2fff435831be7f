"""Idle connections kept for the next call: of threads, and of each event loop.

No thread or task of its own works here. A connection is opened by the call that needs it, so an outage
is known at once; a fork leaves the parent's connections alone; what an ended loop left is closed by the
next call of another.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from psycopg.pq import TransactionStatus

from omoide.errors import StoreUnavailableError
from omoide.stores.postgres.bounded import AsyncBoundedConnection, BoundedConnection

__all__ = ["LoopPools", "ThreadPool"]

C = TypeVar("C", bound="BoundedConnection | AsyncBoundedConnection")
IDLE_SECONDS = 60.0


class _Idle(Generic[C]):
    """Connections in order of their last use, latest last."""

    def __init__(self) -> None:
        self._held: list[tuple[float, C]] = []
        self._guard = threading.Lock()

    def pop(self) -> C | None:
        """The one used last, unless all are closed or have rested too long."""
        with self._guard:
            while self._held:
                since, connection = self._held.pop()
                if time.monotonic() - since < IDLE_SECONDS and not connection.closed:
                    return connection
                connection.pgconn.finish()
        return None

    def push(self, connection: C) -> None:
        """Keep it if it is sound and between transactions, close it otherwise."""
        if connection.closed or connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.pgconn.finish()
            return
        with self._guard:
            self._held.append((time.monotonic(), connection))

    def clear(self) -> None:
        """Close all of them."""
        with self._guard:
            held, self._held = self._held, []
        for _, connection in held:
            connection.pgconn.finish()


class ThreadPool:
    """Connections of this process's threads, at most `size` of them in use."""

    def __init__(self, connect: Callable[[float], BoundedConnection], size: int) -> None:
        self._connect, self._size = connect, size
        self._left_to_parent: list[_Idle[BoundedConnection]] = []
        self._start()

    def _start(self) -> None:
        self._owner = os.getpid()
        self._idle: _Idle[BoundedConnection] = _Idle()
        self._slots = threading.BoundedSemaphore(self._size)

    def take(self, timeout: float) -> BoundedConnection:
        """A connection: a free one, and where it has to be opened that, within `timeout` seconds each."""
        if self._owner != os.getpid():
            self._left_to_parent.append(self._idle)
            self._start()
        if not self._slots.acquire(timeout=timeout):
            raise StoreUnavailableError("every connection to PostgreSQL is in use")
        try:
            return self._idle.pop() or self._connect(timeout)
        except BaseException:
            self._slots.release()
            raise

    def give(self, connection: BoundedConnection) -> None:
        """Take a connection back."""
        self._idle.push(connection)
        self._slots.release()

    def clear(self) -> None:
        """Close what is idle."""
        if self._owner == os.getpid():
            self._idle.clear()


class _LoopPool:
    def __init__(self, loop: asyncio.AbstractEventLoop, size: int) -> None:
        self.loop = loop
        self.idle: _Idle[AsyncBoundedConnection] = _Idle()
        self.slots = asyncio.Semaphore(size)


class LoopPools:
    """Connections of each event loop, at most `size` of one loop in use."""

    def __init__(self, connect: Callable[[float], Awaitable[AsyncBoundedConnection]], size: int) -> None:
        self._connect, self._size = connect, size
        self._pools: list[_LoopPool] = []
        self._guard = threading.Lock()
        self._owner = os.getpid()
        self._left_to_parent: list[_LoopPool] = []

    def _pool(self) -> _LoopPool:
        loop = asyncio.get_running_loop()
        with self._guard:
            if self._owner != os.getpid():
                self._owner = os.getpid()
                self._left_to_parent, self._pools = self._pools, []
            for ended in [pool for pool in self._pools if pool.loop.is_closed()]:
                ended.idle.clear()
                self._pools.remove(ended)
            for pool in self._pools:
                if pool.loop is loop:
                    return pool
            self._pools.append(_LoopPool(loop, self._size))
            return self._pools[-1]

    async def take(self, timeout: float) -> AsyncBoundedConnection:
        """A connection of the running loop; times as in `ThreadPool.take`."""
        pool = self._pool()
        try:
            async with asyncio.timeout(timeout):
                await pool.slots.acquire()
        except TimeoutError:
            raise StoreUnavailableError("every connection to PostgreSQL is in use") from None
        try:
            return pool.idle.pop() or await self._connect(timeout)
        except BaseException:
            pool.slots.release()
            raise

    def give(self, connection: AsyncBoundedConnection) -> None:
        """Take a connection back."""
        pool = self._pool()
        pool.idle.push(connection)
        pool.slots.release()

    def clear(self) -> None:
        """Close what is idle, of the running loop and of those that ended; without a loop, of all."""
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        with self._guard:
            for pool in self._pools if self._owner == os.getpid() else ():
                if running in (None, pool.loop) or pool.loop.is_closed():
                    pool.idle.clear()
