"""What it takes to bring a mirrored partition back: a rebuild from rows, and catching up with an outbox.

    python -m benchmarks.longterm.mirror --sizes 1000,100000

A PostgreSQL and a Valkey of their own; processor time of each of the three processes, per record. Records
are copies of 1,000 different texts, made in the database: loading is not what is measured.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import omoide
from benchmarks.corpus import synthesize
from benchmarks.longterm.servers import Postgres
from benchmarks.report import emit, machine, markdown, progress
from benchmarks.server import Server
from omoide import PostgresMirror
from omoide.connection import Connection
from omoide.recipes import DefaultMemory
from omoide.stores.postgres.projector import sweep
from omoide.stores.postgres.script import Script, Step

TEXTS = 1_000
AGENT = "ada"
HEADER = ("size", "operation", "postgres_cpu_us", "redis_cpu_us", "client_cpu_us", "wall_per_s", "client_mb")


class BroughtBack(DefaultMemory):
    """The model that is measured."""

    max_records_per_partition = 0

    class Meta:
        mirror = PostgresMirror(table="brought_back")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the result: processor time in microseconds a record, records a second by the clock."""

    size: int
    operation: str
    postgres_cpu_us: float
    redis_cpu_us: float
    client_cpu_us: float
    wall_per_s: float
    client_mb: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run from a command line; 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.longterm.mirror", description=__doc__)
    parser.add_argument("--sizes", default="1000,100000", help="records, comma separated")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    options = parser.parse_args(argv)
    rows = [row for size in map(int, options.sizes.split(",")) for row in _measure(size)]
    document = {"machine": machine(), "rows": [asdict(row) for row in rows]}
    table = markdown(HEADER, [[getattr(row, name) for name in HEADER] for row in rows])
    emit(document, table, as_json=options.json)
    return 0


def _measure(size: int) -> list[Row]:
    with (
        Postgres() as postgres,
        Server() as server,
        omoide.Connection(server.url, postgres=postgres.url, timeout=600) as connection,
        connection.use(),
    ):
        _fill(connection, size)
        progress(f"{size:,} rows")
        rebuilt = _timed(size, "rebuild", postgres, server, lambda: omoide.rebuild(BroughtBack))
        _leave_behind(connection)
        caught_up = _timed(
            size, "catch up", postgres, server, lambda: connection.mirrored.drive(sweep(connection.mirror))
        )
        (told,) = omoide.compare(BroughtBack).values()
        if not told.equal:
            raise SystemExit("the store is not what the rows say")
        return [rebuilt, caught_up]


def _timed(size: int, operation: str, postgres: Postgres, server: Server, work: Callable[[], Any]) -> Row:
    before = postgres.cpu_ns(), server.cpu_ns(), time.process_time_ns()
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    after = postgres.cpu_ns(), server.cpu_ns(), time.process_time_ns()
    spent = [(late - early) / 1_000 / size for early, late in zip(before, after, strict=True)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    return Row(size, operation, *spent, size / seconds, memory)


def _fill(connection: Connection, size: int) -> None:
    texts = synthesize(min(size, TEXTS)).documents
    memories = [BroughtBack(agent_id=AGENT, content=text) for text in texts]
    for start in range(0, len(memories), 64):
        BroughtBack.save_many(memories[start : start + 64])
    connection.database.run(_copies, size // len(memories) - 1)


def _copies(times: int) -> Script[None]:
    """Every row so many times more, under ids and places of their own."""
    yield Step("SELECT 1", patient=True)
    rows = yield Step(
        "SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns"
        " WHERE table_name = 'brought_back' AND column_name NOT IN ('memory_id', '_row')"
        " AND is_generated = 'NEVER'"
    )
    names = rows[0][0]
    yield Step(
        f"INSERT INTO brought_back (memory_id, _row, {names}) SELECT gen_random_uuid()::text,"
        f" {TEXTS} + row_number() OVER (), {names} FROM brought_back, generate_series(1, {times})"
    )
    yield Step(
        "UPDATE omoide_partitions SET records = (SELECT count(*) FROM brought_back), next_row = 10000000"
        " WHERE model = 'BroughtBack'"
    )


def _leave_behind(connection: Connection) -> None:
    """Write every record anew as a busy day with the store away would: one commit for 16 of them."""
    connection.database.run(_touched)


def _touched() -> Script[None]:
    yield Step("SELECT 1", patient=True)
    yield Step("UPDATE brought_back SET _version = _version + 1")
    yield Step(
        "WITH numbered AS (SELECT memory_id, (row_number() OVER () - 1) / 16 AS batch FROM brought_back),"
        " batches AS (SELECT batch, array_agg(memory_id) AS ids FROM numbered GROUP BY batch)"
        " INSERT INTO omoide_outbox (model, partition, seq, op, ids)"
        " SELECT p.model, p.partition, p.seq + 1 + batch, 'put', ids FROM batches, omoide_partitions AS p"
        " WHERE p.model = 'BroughtBack'"
    )
    yield Step(
        "UPDATE omoide_partitions SET seq = (SELECT max(seq) FROM omoide_outbox WHERE model = 'BroughtBack')"
        " WHERE model = 'BroughtBack'"
    )


if __name__ == "__main__":
    sys.exit(main())
