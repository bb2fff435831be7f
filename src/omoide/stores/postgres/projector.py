"""Catching up: whoever runs a projector shows the store what was left behind.

    sweep    every partition with outbox entries: replay them, or rebuild what the store has lost
    flush    deliveries that are due

A projector is a thread of this process (the mirror starts one when a write is left behind or a delivery
waits), an async task (`arun`), or `omoide mirror run`. Any number of them may work at once: the sequence
number decides which call takes effect. LISTEN wakes them; polling is the safety net.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from omoide.errors import ModelError, OmoideError, StoreError
from omoide.ops.request import Applied
from omoide.stores.postgres.mirror import CHANNEL, Mirror, MirrorPlan, Transaction
from omoide.stores.postgres.outbox import LOST, drain, scope_named, waiting, with_records
from omoide.stores.postgres.rebuild import rebuild
from omoide.stores.postgres.session import Database

if TYPE_CHECKING:
    from omoide.stores.mirrored import AsyncMirroredStore, MirroredStore

__all__ = ["Projector", "Swept", "arun", "sweep"]

POLL_SECONDS = 1.0
BUSY_SECONDS = 0.05
"""Rest between two sweeps when something was left behind during the first."""
STOP_SECONDS = 0.1
"""How soon a waiting projector notices that it is to stop; psycopg looks up as often anyway."""

_log = logging.getLogger("omoide")
_told: set[str] = set()


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did: partitions caught up, rebuilt, and left (the store is away, or their class is)."""

    caught_up: int = 0
    rebuilt: int = 0
    left: int = 0
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.caught_up or self.rebuilt or self.left)


def sweep(mirror: Mirror, *, whole: bool = False) -> MirrorPlan[Swept]:
    """Bring the store up to date in every partition that is behind, or that a read found missing.

    Args:
        whole: Look for missing ones, too: a round trip for each partition that has records.
    Raises:
        StoreError: PostgreSQL is away. A store that is away leaves its partitions `left`.
    """
    mirror.left.clear()
    caught_up = rebuilt = left = 0
    unknown: set[str] = set()
    behind: list[tuple[str, str]] = yield Transaction(waiting, (mirror.namespace,))
    names = dict.fromkeys([*behind, *sorted(mirror.lost)])
    if whole:
        held: list[tuple[str, str]] = yield Transaction(with_records, (mirror.namespace,))
        names |= dict.fromkeys(one for one in held if scope_named(*one) is not None)
    for model, partition in names:
        scope = scope_named(model, partition)
        if scope is None:
            unknown.add(model)
            continue
        sought = (model, partition) not in behind
        try:
            if sought and (yield Applied(scope)) is not None:
                mirror.lost.discard((model, partition))
            elif (yield from drain(mirror, scope)) == LOST:
                yield from rebuild(mirror, scope)
                mirror.lost.discard((model, partition))
                rebuilt += 1
            else:
                mirror.lost.discard((model, partition))
                caught_up += 1
        except ModelError as error:
            left += 1
            if model not in _told:
                _told.add(model)
                _log.warning("%s: the store is not kept up to date: %s (%s)", model, error, error.hint)
        except StoreError as error:
            left += 1
            _log.debug("%s: a partition is left for later (%s)", model, type(error).__name__)
    if left:
        mirror.left.set()
    return Swept(caught_up, rebuilt, left, tuple(sorted(unknown)))


class Projector:
    """Sweeps and flushes in a thread of its own until it is stopped.

    Args:
        idle: Ends by itself when nothing has been left to do for so many seconds; None: never, and the first
            sweep looks for what the store has lost.
    """

    def __init__(
        self, store: MirroredStore, database: Database, mirror: Mirror, *, idle: float | None = None
    ) -> None:
        self._store, self._database, self._mirror, self._idle = store, database, mirror, idle
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._whole = idle is None
        self._guard = threading.Lock()

    def start(self) -> None:
        """Start the thread unless it runs; safe to call at any time."""
        with self._guard:
            self._wake.set()
            if self._stop.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            self._thread = threading.Thread(target=self.run, name="omoide projector", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Let it finish what it does, and end."""
        self._stop.set()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def run(self, after: Callable[[Swept], None] | None = None) -> None:
        """Work until stopped, in the calling thread; `after` is told of each sweep."""
        ear = _Ear(self._database)
        try:
            while not self._stop.is_set():
                self._wake.clear()
                swept = self.once()
                if after is not None:
                    after(swept)
                if self._ends(swept):
                    return
                ear.wait(self._stop, BUSY_SECONDS if self._wake.is_set() else POLL_SECONDS)
        finally:
            ear.close()

    def once(self) -> Swept:
        """One sweep, and what deliveries are due; an outage is left to the next one."""
        try:
            if self._mirror.accesses.due:
                self._store.drive(self._mirror.flush())
            swept = self._store.drive(sweep(self._mirror, whole=self._whole))
            self._whole = False
            return swept
        except OmoideError as error:
            _log.debug("a projector waits (%s)", type(error).__name__)
            return Swept(left=1)

    def _ends(self, swept: Swept) -> bool:
        """Whether the thread ends now; whoever asks for it from here on starts another."""
        with self._guard:
            if not self._done(swept) or self._wake.is_set():
                return False
            self._thread = None
            return True

    def _done(self, swept: Swept) -> bool:
        return (
            self._idle is not None
            and not swept
            and not self._mirror.accesses.waiting
            and (not self._mirror.left.is_set())
        )


class _Ear:
    """Waits for a notification, or for a time where there is nobody to listen to."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: psycopg.Connection[Any] | None = None

    def wait(self, stop: threading.Event, seconds: float) -> None:
        try:
            if self._connection is None:
                self._connection = self._database.listening()
                self._connection.execute(f"LISTEN {CHANNEL}")
            deadline = time.monotonic() + seconds
            while not stop.is_set() and (left := deadline - time.monotonic()) > 0:
                for _ in self._connection.notifies(timeout=min(left, STOP_SECONDS), stop_after=1):
                    return
        except (OmoideError, psycopg.Error):
            self.close()
            stop.wait(seconds)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


async def arun(store: AsyncMirroredStore, database: Database, mirror: Mirror) -> None:
    """A projector as a task: works until it is cancelled."""
    connection: psycopg.AsyncConnection[Any] | None = None
    whole = True
    try:
        while True:
            try:
                if mirror.accesses.due:
                    await store.drive(mirror.flush())
                await store.drive(sweep(mirror, whole=whole))
                whole = False
                if connection is None:
                    connection = await database.alistening()
                    await connection.execute(f"LISTEN {CHANNEL}")
                async for _ in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                    pass
            except (OmoideError, psycopg.Error) as error:
                _log.debug("a projector waits (%s)", type(error).__name__)
                if connection is not None:
                    await connection.close()
                    connection = None
                await asyncio.sleep(POLL_SECONDS)
    finally:
        if connection is not None:
            await connection.close()
