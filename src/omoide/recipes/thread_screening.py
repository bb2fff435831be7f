"""The firewall over threads that are stored already: what it blocks is reported, and stays where it is.

    rows by resource, session and place, a page at a time ──▶ scan ──blocked──▶ resource, session, place, rule

A thread is a record of what was said, numbered without gaps, so nothing is taken out of one: who finds a
secret erases the session. Nothing here holds, logs or raises content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from omoide.ops import port
from omoide.ops.screening import Found, Screened, check_firewall
from omoide.recipes.longterm.resource import checked_resource
from omoide.stores.postgres import threads
from omoide.stores.postgres.migrate import aensure, ensure

if TYPE_CHECKING:
    from omoide.stores.postgres.session import Database

NAME = "ThreadMemory"
PAGE = 32
"""Messages between two looks at the rows; each has at most 1 MiB."""

Progress = Callable[[int, int], None]
"""Told (messages scanned, messages there were) after every page."""


def scan_threads(resource_id: str | None = None, *, progress: Progress | None = None) -> Screened:
    """Run the firewall over the messages of a resource, or of all.

    Args:
        resource_id: Whose threads; None: everybody's.
        progress: Told how far it is.
    Returns:
        Findings without content: `partition` is (resource, session), `id` the place of the message.
    Raises:
        QueryError: no resource id.
        PolicyError: the firewall failed its self-test; nothing was scanned.
        StoreUnavailableError, StoreTimeoutError: PostgreSQL does not answer.
    Cost: one query per 32 messages.
    """
    check_firewall()
    run = _Run(resource_id, progress)
    database = ensure(_database(), threads.LINE)
    run.total = database.run(threads.said, run.resource)
    while run.take(database.run(threads.page, run.resource, run.after, PAGE)):
        pass
    return run.done()


async def ascan_threads(resource_id: str | None = None, *, progress: Progress | None = None) -> Screened:
    """Async twin of `scan_threads`."""
    check_firewall()
    run = _Run(resource_id, progress)
    database = await aensure(_database(), threads.LINE)
    run.total = await database.arun(threads.said, run.resource)
    while run.take(await database.arun(threads.page, run.resource, run.after, PAGE)):
        pass
    return run.done()


def _database() -> Database:
    connection: Any = port.current()
    found: Database = connection.database
    return found


class _Run:
    """A run in progress."""

    def __init__(self, resource_id: str | None, progress: Progress | None) -> None:
        self.resource = None if resource_id is None else checked_resource(resource_id, "scan_threads")
        self.after: threads.Place = ("", "", 0)
        self.total = self.scanned = self.suspect = 0
        self.found: list[Found] = []
        self._progress = progress

    def take(self, rows: list[tuple[threads.Place, str]]) -> bool:
        """Scan a page; False at the end."""
        self.found += self._blocked(rows)
        self.scanned += len(rows)
        if rows:
            self.after = rows[-1][0]
        if rows and self._progress is not None:
            self._progress(self.scanned, max(self.scanned, self.total))
        return bool(rows)

    def _blocked(self, rows: Iterable[tuple[threads.Place, str]]) -> Iterator[Found]:
        from omoide.privacy import scan_values

        for (resource, session, place), text in rows:
            names = scan_values({"resource_id": resource, "session_id": session})
            verdict = names if names.blocked else scan_values(json.loads(text))
            self.suspect += verdict.suspect and not verdict.blocked
            if verdict.blocked:
                shown = () if names.blocked else (resource, session)
                yield Found(NAME, shown, str(place), verdict.reason, verdict.rule)

    def done(self) -> Screened:
        return Screened("report", self.scanned, tuple(self.found), self.suspect)


__all__ = ["Progress", "ascan_threads", "scan_threads"]
