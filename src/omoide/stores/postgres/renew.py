"""Rows of an older class, brought up to date where other rows depend on them: who is valid when.

What an index needs of a row is made anew whenever an older one is read. The end of a version depends on the
others of its chain, so a rebuild of a model with validity writes these rows first, as their class is now. As
at a reindex of records without a mirror, starts and sealed ends stay what they were, where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omoide.model.schema import Scope
from omoide.stores.postgres.columns import escaped
from omoide.stores.postgres.ledger import Ledger
from omoide.stores.postgres.rows import made_anew, read_values, row_columns
from omoide.stores.postgres.script import Script, Step
from omoide.stores.postgres.tables import Table
from omoide.stores.postgres.versions import place_of, unkeyed

__all__ = ["renew"]

PAGE = 256
_ENDS = """
WITH told AS MATERIALIZED (
    SELECT {id} AS id, least(_own_end, lead(_valid_from) OVER (PARTITION BY _chain ORDER BY _place)) AS till
    FROM {table} WHERE _partition = %s AND _chain = ANY(%s)
)
UPDATE {table} AS held SET _valid_to = told.till FROM told
WHERE held._partition = %s AND held.{id} = told.id AND held._valid_to IS DISTINCT FROM told.till
"""
_RENEW = """
UPDATE {table} SET _valid_from = %s, _valid_to = %s, _own_end = %s, _chain = %s, _place = %s,
    _fingerprint = %s, _entries = %s, _flags = %s, _length = %s
WHERE _partition = %s AND {id} = %s
"""


def renew(table: Table, scope: Scope, partition: str) -> Script[bool]:
    """Bring the next rows of an older class up to date, with every chain they are in or were.

    False when that was the last of them. Holds the partition: 256 rows.
    """
    ledger = Ledger(table, scope, partition)
    yield from ledger.begin()
    rows = yield Step(
        table.statement(
            "SELECT {columns} FROM {table} WHERE _partition = %s AND _fingerprint <> %s"
            " ORDER BY _row LIMIT %s",
            columns=table.list_of(row_columns(table)),
        ),
        (partition, scope.spec.fingerprint, PAGE),
    )
    if not rows:
        return False
    found = [_renewal(table, scope, row, ledger.now_ms) for row in rows]
    yield Step(table.statement(_RENEW), many=[(*values, partition, id) for id, values, _ in found])
    chains = [chain for _, _, both in found for chain in both if chain is not None]
    if chains:
        yield Step(table.statement(_ENDS), (partition, sorted(set(chains)), partition))
    return len(rows) == PAGE


def _renewal(
    table: Table, scope: Scope, row: Sequence[Any], now_ms: int
) -> tuple[str, tuple[Any, ...], tuple[str | None, ...]]:
    """(id, values to set, chains before and now) of a row."""
    id, known, values = read_values(table, row)
    made = made_anew(scope, id, known, values)
    chain = made.chain or unkeyed(known.chain)
    start = made.valid_from
    if start is None:
        start = min(known.time_ms, now_ms if known.valid_from is None else known.valid_from)
    kept = known.valid_from is not None and chain is not None and chain == known.chain
    own = known.own_end if kept else made.own_end
    entries = made.entries
    renewed = (
        *(start, own, own, chain, place_of(start, id) if chain else None),
        *(scope.spec.fingerprint, entries.packed(), entries.flags, entries.length),
    )
    return escaped(id), renewed, (known.chain, chain)
