"""Episodes that have had their time, as scripts: which are due and why, and the ledger of what went.

    age           created more than so many days ago
    per_resource  beyond the newest so many of the resource
    in_all        beyond the newest so many of all resources together, of those that are left

The reasons are tried in this order. Only rows of the kind `episode` are ever looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from omoide.stores.postgres.script import Script, Step

__all__ = ["LINE", "REASONS", "Due", "Entry", "Rules", "count_due", "due", "enter", "ledger", "settle"]

LINE = "retention"
REASONS = ("age", "per_resource", "in_all")


class Due(NamedTuple):
    """An episode that is to go."""

    partition: str
    memory_id: str
    reason: str
    created_at: datetime


class Entry(NamedTuple):
    """A line of the ledger; `erased_at` None: decided, and not done or not known to be."""

    run_id: str
    memory_id: str
    reason: str
    created_at: datetime
    decided_at: datetime
    erased_at: datetime | None


_DUE = """
WITH episode AS (
    SELECT _partition, memory_id, created_at, created_at < %(before)s AS old,
        row_number() OVER (PARTITION BY _partition ORDER BY created_at DESC, memory_id DESC) AS place
    FROM {table} WHERE kind = 'episode' AND CASE WHEN %(prefix)s = '' THEN strpos(_partition, ':') = 0
        ELSE starts_with(_partition, %(prefix)s) END
),
judged AS (
    SELECT *, old OR place > %(per_resource)s AS gone FROM episode
),
placed AS (
    SELECT *, row_number() OVER (
        PARTITION BY gone ORDER BY created_at DESC, _partition, memory_id DESC) AS overall
    FROM judged
),
reasoned AS (
    SELECT _partition, memory_id, created_at, CASE
        WHEN old THEN 'age' WHEN gone THEN 'per_resource'
        WHEN overall > %(in_all)s THEN 'in_all' END AS reason
    FROM placed
)
"""


class Rules(NamedTuple):
    """Which episodes are due. `prefix`: what partitions of the namespace begin with, "" by default."""

    table: str
    prefix: str
    before: datetime
    per_resource: int
    in_all: int | None


def count_due(rules: Rules) -> Script[dict[str, int]]:
    """How many episodes are due, by reason. Cost: one pass over all episodes."""
    rows = yield Step(
        _DUE.format(table=rules.table)
        + "SELECT reason, count(*) FROM reasoned WHERE reason IS NOT NULL GROUP BY reason",
        rules._asdict(),
    )
    return {str(reason): int(number) for reason, number in rows}


def due(rules: Rules, limit: int) -> Script[list[Due]]:
    """At most `limit` episodes that are due, those of a resource together, oldest first."""
    rows = yield Step(
        _DUE.format(table=rules.table)
        + "SELECT _partition, memory_id, reason, created_at FROM reasoned WHERE reason IS NOT NULL"
        " ORDER BY _partition, created_at, memory_id LIMIT %(limit)s",
        {**rules._asdict(), "limit": limit},
    )
    return [Due(*row) for row in rows]


def enter(run_id: str, gone: Sequence[Due]) -> Script[None]:
    """Write into the ledger what is about to go."""
    yield Step(
        "INSERT INTO popagent_ledger (run_id, partition, memory_id, reason, created_at)"
        " VALUES (%s, %s, %s, %s, %s)",
        many=[(run_id, one.partition, one.memory_id, one.reason, one.created_at) for one in gone],
    )


def settle(table: str) -> Script[int]:
    """Mark what the ledger decided and what is no longer there as done; how many entries that were."""
    rows = yield Step(
        "UPDATE popagent_ledger AS l SET erased_at = clock_timestamp() WHERE erased_at IS NULL AND NOT EXISTS"
        f" (SELECT FROM {table} AS m WHERE m._partition = l.partition AND m.memory_id = l.memory_id)"
        " RETURNING 1"
    )
    return len(rows)


def ledger(partition: str, limit: int, before: int | None = None) -> Script[list[tuple[int, Entry]]]:
    """The latest entries of a resource, newest first, each with its number."""
    rows = yield Step(
        "SELECT entry, run_id, memory_id, reason, created_at, decided_at, erased_at FROM popagent_ledger"
        " WHERE partition = %s AND (%s::bigint IS NULL OR entry < %s) ORDER BY entry DESC LIMIT %s",
        (partition, before, before, limit),
    )
    return [(number, Entry(*rest)) for number, *rest in rows]
