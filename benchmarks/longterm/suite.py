"""Retain and recall, and what a memory takes on disk and in memory.

Resources of at most 5,000 memories, as many as the size needs, with the same texts; one is measured.
Every system has a PostgreSQL, a Valkey and a process of its own, and they are measured call by call in
turns of one run, so that a busy machine slows all of them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import IO, Any

from benchmarks.corpus import synthesize
from benchmarks.longterm.servers import Postgres
from benchmarks.longterm.systems import SYSTEMS, System
from benchmarks.report import emit, machine, markdown, progress
from benchmarks.rivals import MissingSystemError
from benchmarks.server import Server

PER_RESOURCE = 5_000
OPERATIONS = ("recall", "recall_rows", "retain")
HEADER = (
    "size", "system", "operation", "postgres_cpu_us", "redis_cpu_us", "client_cpu_us", "wall_p50_us",
    "postgres_bytes", "redis_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the result; times are medians of a call, bytes are per memory."""

    size: int
    system: str
    operation: str
    postgres_cpu_us: float
    redis_cpu_us: float
    client_cpu_us: float
    wall_p50_us: float
    postgres_bytes: float
    redis_bytes: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite from a command line; 0, or 2 when a system is not usable."""
    options = _options(argv)
    if options.serve:
        return _serve(options.serve, options.sizes[0], options.calls, sys.stdin, sys.stdout)
    rows: list[Row] = []
    try:
        for size in options.sizes:
            rows += _compare(size, options.systems, options.calls)
    except MissingSystemError as error:
        progress(f"error: {error}")
        return 2
    document = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    table = markdown(HEADER, [[getattr(row, name) for name in HEADER] for row in rows])
    emit(document, table, as_json=options.json)
    return 0


def _compare(size: int, systems: Sequence[str], calls: int) -> list[Row]:
    """Every system in a process of its own, loaded one after the other, measured in turns."""
    workers = [_Worker(name, size, calls) for name in systems]
    try:
        for worker in workers:
            worker.ask("load")
        found: dict[tuple[str, str], list[list[float]]] = {}
        for operation in OPERATIONS:
            for call in range(calls):
                for worker in workers:
                    if operation not in SYSTEMS[worker.name].operations:
                        continue
                    sample = worker.ask(f"{operation} {call}")
                    found.setdefault((worker.name, operation), []).append(sample)
            progress(f"{size:,}: {operation} done")
        sizes = {worker.name: worker.ask("bytes") for worker in workers}
    finally:
        for worker in workers:
            worker.close()
    return [
        Row(
            size,
            name,
            operation,
            *(round(statistics.median(column), 1) for column in zip(*samples, strict=True)),
            *(round(one, 1) for one in sizes[name]),
        )
        for (name, operation), samples in found.items()
    ]


class _Worker:
    """A process that does what it is told, one line at a time."""

    def __init__(self, name: str, size: int, calls: int) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.longterm", "--serve", name),
                *("--sizes", str(size), "--calls", str(calls)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise MissingSystemError(f"{self.name} ended with {self._process.wait()}")
        numbers: list[float] = json.loads(answer)
        return numbers

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(60)


def _serve(name: str, size: int, calls: int, told: IO[str], answers: IO[str]) -> int:
    """Be the process of one system."""
    corpus = synthesize(min(size, PER_RESOURCE), queries=calls, arrivals=calls)
    copies = max(1, size // PER_RESOURCE)
    system = SYSTEMS[name]()
    with Postgres() as postgres, Server() as redis:
        began = redis.used_bytes()
        try:
            system.open(redis.url, postgres.url)
            for line in told:
                verb, _, number = line.strip().partition(" ")
                if verb == "load":
                    answer = _load(system, name, corpus.documents, copies, corpus.queries[0], postgres)
                elif verb == "bytes":
                    grown = (postgres.table_bytes(), redis.used_bytes() - began)
                    answer = [one / (size + calls) for one in grown]
                else:
                    text = (corpus.arrivals if verb == "retain" else corpus.queries)[int(number)]
                    answer = _sample(partial(getattr(system, verb), "resource-0", text), postgres, redis)
                answers.write(json.dumps(answer) + "\n")
                answers.flush()
        finally:
            system.close()
    return 0


def _load(
    system: System, name: str, texts: Sequence[str], copies: int, query: str, postgres: Postgres
) -> list[float]:
    began = time.monotonic()
    system.load("resource-0", texts)
    for number in range(1, copies):
        system.copy("resource-0", f"resource-{number}")
    took = time.monotonic() - began
    postgres.execute("VACUUM ANALYZE")
    for operation in set(system.operations) - {"retain"}:
        for _ in range(6):  # plans of a statement are kept from the sixth on
            getattr(system, operation)("resource-0", query)
    progress(f"{name}: {copies} x {len(texts):,} loaded in {took:.0f} s")
    return [took]


def _sample(call: Callable[[], Any], postgres: Postgres, redis: Server) -> list[float]:
    """[server, server, client processor time, time to the answer] of one call, microseconds."""
    before = (postgres.cpu_ns(), redis.cpu_ns())
    client, wall = time.process_time_ns(), time.perf_counter_ns()
    call()
    wall, client = time.perf_counter_ns() - wall, time.process_time_ns() - client
    after = (postgres.cpu_ns(), redis.cpu_ns())
    return [(after[0] - before[0]) / 1e3, (after[1] - before[1]) / 1e3, client / 1e3, wall / 1e3]


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="omoide bench longterm", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--sizes", type=_numbers, default=[1_000], help="memories in all, such as 1000,100000"
    )
    parser.add_argument("--systems", type=_names, default=["omoide", "sql"], help=", ".join(SYSTEMS))
    parser.add_argument("--calls", type=int, default=100, help="calls of each operation")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    parser.add_argument("--serve", choices=sorted(SYSTEMS), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    names = [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in SYSTEMS:
            raise argparse.ArgumentTypeError(f"no system named {name!r}; there are {', '.join(SYSTEMS)}")
    return names


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part.strip()]
