"""One Valkey process a system, and what it has cost so far.

Every system under test gets a server of its own, started alike (unix socket, nothing written to disk),
so a server's processor time is one system's and nobody else's.

Processor time is read from the operating system where it counts in nanoseconds (Linux,
`/proc/PID/task/*/schedstat`, after the server has gone back to sleep), else from the server's own
`INFO cpu`, in microseconds, less what asking costs.
"""

from __future__ import annotations

import os
import statistics
import time
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from omoide.testing.servers import ValkeyServer

SETTLE_SECONDS = 0.05
SLOW_LOG = (("slowlog-log-slower-than", "10000"), ("slowlog-max-len", "100000"))


class Server:
    """A throw-away Valkey, stopped and its folder removed on exit."""

    def __init__(self) -> None:
        self._valkey = ValkeyServer(config=SLOW_LOG)
        self._client: Any = None
        self._asking_ns = 0
        self._asked = 0

    def __enter__(self) -> Self:
        import redis

        self._valkey.__enter__()
        self._client = redis.Redis.from_url(self.url)
        if not self._scheduler_files():
            self._asking_ns = self._cost_of_asking()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()
        self._valkey.__exit__(kind, error, trace)

    @property
    def url(self) -> str:
        """URL of its unix socket."""
        return self._valkey.unix_url

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        return self._valkey.pid

    def cpu_ns(self) -> int:
        """Processor time used since the server started, nanoseconds, all its threads."""
        files = self._scheduler_files()
        if files:
            self._settle()
            return sum(int(Path(file).read_bytes().split()[0]) for file in files)
        self._asked += 1
        return self._reported_ns() - self._asked * self._asking_ns

    def used_bytes(self) -> int:
        """Memory the server has allocated, as it says itself (`used_memory`)."""
        return int(self._client.info("memory")["used_memory"])

    def empty(self) -> None:
        """Remove every key, synchronously, so the next measurement starts from nothing."""
        self._client.flushall(asynchronous=False)

    def key_count(self) -> int:
        """Keys on the server."""
        return int(self._client.dbsize())

    def slowest_ms(self) -> float:
        """Longest single command since the last `forget_slow`, milliseconds; 0.0 below 10 ms."""
        return max((entry["duration"] / 1000 for entry in self._client.slowlog_get(-1)), default=0.0)

    def log_above(self, microseconds: int) -> None:
        """Have commands logged that take longer than this, instead of 10 ms."""
        self._client.config_set("slowlog-log-slower-than", microseconds)

    def logged(self) -> list[tuple[list[str], float]]:
        """The commands in the slow log: their first words, and how long each took, milliseconds."""
        entries = self._client.slowlog_get(-1)
        return [
            (entry["command"].decode(errors="replace").split(" ", 2)[:2], entry["duration"] / 1000)
            for entry in entries
        ]

    def forget_slow(self) -> None:
        """Empty the slow log."""
        self._client.slowlog_reset()

    def key_bytes(self, group: int = 1) -> dict[str, int]:
        """Bytes of the keys by the last `group` parts of their names, every element counted.

        Cost: one pass over the key space; for a handful of keys a partition, not for a key a record.
        """
        sizes: dict[str, int] = {}
        for key in self._client.scan_iter(count=1000):
            name = ":".join(key.decode(errors="replace").split(":")[-group:])
            sizes[name] = sizes.get(name, 0) + int(self._client.memory_usage(key, samples=0) or 0)
        return sizes

    def _scheduler_files(self) -> list[str]:
        folder = f"/proc/{self.pid}/task"
        if not os.path.exists("/proc/self/schedstat"):
            return []
        return [f"{folder}/{task}/schedstat" for task in os.listdir(folder)]

    def _settle(self) -> None:
        """Wait until the main thread sleeps: the scheduler books its time when it lets go."""
        limit = time.monotonic() + SETTLE_SECONDS
        stat = Path(f"/proc/{self.pid}/stat")
        while stat.read_bytes().rsplit(b")", 1)[1].split()[0] == b"R" and time.monotonic() < limit:
            pass

    def _reported_ns(self) -> int:
        report = self._client.info("cpu")
        return int((report["used_cpu_user"] + report["used_cpu_sys"]) * 1e9)

    def _cost_of_asking(self) -> int:
        marks = [self._reported_ns() for _ in range(101)]
        return int(statistics.median(after - before for before, after in pairwise(marks)))
