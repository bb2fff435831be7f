"""Records by row, in answers of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omoide.model.schema import Scope
from omoide.ops.request import Record
from omoide.stores.redis.calls import Call, Handler, failure, send
from omoide.stores.redis.codec import decode_records

AT_ONCE = 250
MOST_BYTES = 1_048_576
"""Bodies in one answer; a single record may have more."""


def answers(calls: Sequence[Call]) -> Handler[list[Any]]:
    """The replies of calls that are sent together.

    Raises:
        StoreError: of the first call that failed.
    """
    replies = yield from send(calls)
    for call, reply in zip(calls, replies, strict=True):
        error = failure(reply, call)
        if error is not None:
            raise error
    return replies


def read_rows(head: bytes, scope: Scope, gen: bytes, rows: Sequence[int]) -> Handler[list[Record] | None]:
    """Records by row, in that order, those that are gone left out; None when rows were renumbered.

    Cost: one round trip, and further ones where 250 records have more than 1 MiB of bodies.
    """
    held: dict[int, Record] = {}
    left = list(rows)
    while left:
        parts = [left[start : start + AT_ONCE] for start in range(0, len(left), AT_ONCE)]
        replies = yield from answers([Call("records", head, (gen, MOST_BYTES, *part)) for part in parts])
        left = []
        for part, reply in zip(parts, replies, strict=True):
            if not reply:
                return None
            now_ms, lists, looked = reply
            held.update((record.row, record) for record in decode_records(scope.spec, lists, now_ms))
            left += part[looked:]
    return [held[row] for row in rows if row in held]


def with_the_rest(
    head: bytes, scope: Scope, now_ms: int, gen: bytes, rows: Sequence[Any], lists: Sequence[Any]
) -> Handler[list[Record] | None]:
    """The records of an answer that names rows and holds the first of their records."""
    records = list(decode_records(scope.spec, lists, now_ms))
    rest = [int(row) for row in rows[len(lists[0]) if lists else 0 :]]
    if rest:
        more = yield from read_rows(head, scope, gen, rest)
        if more is None:
            return None
        records += more
    return records
