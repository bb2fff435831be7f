"""One call measured, and many calls summed up.

The clocks are read outermost to innermost and back: server before, wall and client around the call,
server after. Client time is the whole process's processor time, so no thread hides work. Round trips
are counted where redis-py, and omoide's wire, hand bytes to a socket: one hand-over is one trip, whatever it
carries.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from benchmarks.server import Server

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sample:
    """What one call cost. `server_ns` is 0 for a system without a server."""

    server_ns: int
    client_ns: int
    wall_ns: int
    round_trips: int


@dataclass(frozen=True, slots=True)
class Run:
    """One row of the result; the names are the JSON contract.

    Attributes:
        size: Documents in the partition.
        server_cpu_us, client_cpu_us: Median processor time of one call, microseconds.
        wall_p50_us, wall_p99_us: Time to the answer, nearest rank.
        round_trips: Mean over the calls.
        bytes_per_document: Growth of the store (or of the index in this process) per document after
            loading `size` documents.
    """

    size: int
    operation: str
    system: str
    server_cpu_us: float
    client_cpu_us: float
    wall_p50_us: float
    wall_p99_us: float
    round_trips: float
    bytes_per_document: float


class Trips:
    """Counts what this process sends to any server."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count for the length of the block; both are left as they were."""
        from redis.connection import AbstractConnection

        from omoide.stores.redis.topology import Traffic

        with self._counted(AbstractConnection, "send_packed_command"), self._counted(Traffic, "add"):
            yield

    @contextmanager
    def _counted(self, owner: Any, name: str) -> Iterator[None]:
        original = getattr(owner, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            return original(*arguments, **options)

        setattr(owner, name, counted)
        try:
            yield
        finally:
            setattr(owner, name, original)


def measure(call: Callable[[], T], server: Server | None, trips: Trips) -> tuple[T, Sample]:
    """Make one call and say what it cost.

    Args:
        server: Whose processor time counts; None for a system that lives in this process.
    Returns:
        tuple of what the call returned and its Sample.
    """
    sent = trips.count
    server_before = server.cpu_ns() if server else 0
    sent_before = trips.count
    client_before, wall_before = time.process_time_ns(), time.perf_counter_ns()
    answer = call()
    wall_after, client_after = time.perf_counter_ns(), time.process_time_ns()
    sent_after = trips.count
    server_after = server.cpu_ns() if server else 0
    trips.count = sent + sent_after - sent_before
    return answer, Sample(
        server_ns=server_after - server_before,
        client_ns=client_after - client_before,
        wall_ns=wall_after - wall_before,
        round_trips=sent_after - sent_before,
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def summarize(
    size: int, operation: str, system: str, samples: Sequence[Sample], bytes_per_document: float
) -> Run:
    """Sum up the calls of one operation; at least one sample."""
    return Run(
        size=size,
        operation=operation,
        system=system,
        server_cpu_us=_median_us(sample.server_ns for sample in samples),
        client_cpu_us=_median_us(sample.client_ns for sample in samples),
        wall_p50_us=round(percentile([sample.wall_ns for sample in samples], 0.5) / 1000, 1),
        wall_p99_us=round(percentile([sample.wall_ns for sample in samples], 0.99) / 1000, 1),
        round_trips=round(statistics.fmean(sample.round_trips for sample in samples), 3),
        bytes_per_document=round(bytes_per_document, 1),
    )


def _median_us(nanoseconds: Iterator[int]) -> float:
    return round(statistics.median(nanoseconds) / 1000, 1)
