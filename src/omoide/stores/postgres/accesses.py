"""Deliveries on their way to the rows: added up in this process, written every few seconds.

They are the one thing a killed process may lose: at most what came in `SECONDS`, or `MOST` records.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from omoide.model.schema import Scope

__all__ = ["MOST", "SECONDS", "Accesses"]

MOST = 500
SECONDS = 5.0
_HARD_MOST = 50_000
"""Records counted while the rows cannot be reached; what comes beyond is not counted."""

Counts = dict[str, tuple[int, int]]


class Accesses:
    """Counts by partition and record. Safe for threads."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, tuple[str, ...]], tuple[Scope, Counts]] = {}
        self._size = 0
        self._since: float | None = None
        self._guard = threading.Lock()

    def add(self, scope: Scope, ids: Iterable[str]) -> None:
        """Count one delivery of each."""
        now_ms = time.time_ns() // 1_000_000
        self._add(scope, ((id, 1, now_ms) for id in dict.fromkeys(ids)))

    def _add(self, scope: Scope, counts: Iterable[tuple[str, int, int]]) -> None:
        with self._guard:
            _, held = self._held.setdefault((scope.spec.name, scope.values), (scope, {}))
            for id, number, last_ms in counts:
                if id in held:
                    before, earlier = held[id]
                    held[id] = (before + number, max(earlier, last_ms))
                elif self._size < _HARD_MOST:
                    held[id] = (number, last_ms)
                    self._size += 1
            if self._since is None and self._size:
                self._since = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write them."""
        since = self._since
        return self._size >= MOST or (since is not None and time.monotonic() - since >= SECONDS)

    @property
    def waiting(self) -> bool:
        """Whether there are any."""
        return self._size > 0

    def take(self) -> list[tuple[Scope, tuple[tuple[str, int, int], ...]]]:
        """All of them, in order of their partitions; none are held then."""
        with self._guard:
            held, self._held = self._held, {}
            self._size, self._since = 0, None
        return [
            (scope, tuple((id, number, last) for id, (number, last) in counts.items()))
            for _, (scope, counts) in sorted(held.items())
            if counts
        ]

    def put_back(self, scope: Scope, counts: Iterable[tuple[str, int, int]]) -> None:
        """Hold again what could not be written."""
        self._add(scope, counts)

    def forget(self, scope: Scope) -> None:
        """Drop those of a partition."""
        with self._guard:
            _, counts = self._held.pop((scope.spec.name, scope.values), (scope, {}))
            self._size -= len(counts)
