"""Threads of messages in PostgreSQL, as scripts: what `omoide.recipes.ThreadMemory` runs.

Every statement names the resource, and but for the lists of threads the session.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from omoide.errors import ConflictError
from omoide.stores.postgres.script import Script, Step

__all__ = ["LINE", "Place", "Thread", "append", "count", "delete", "messages", "page", "said", "threads"]

LINE = "threads"
"""The migrations of its tables."""


class Thread(NamedTuple):
    """A session and how many messages it holds."""

    session_id: str
    messages: int
    created_at: datetime
    updated_at: datetime


Place: TypeAlias = tuple[str, str, int]
"""Resource, session, and the place of a message in it."""

_NUMBER = """
INSERT INTO popagent_threads AS t (resource_id, session_id, messages) VALUES (%s, %s, %s)
ON CONFLICT (resource_id, session_id)
DO UPDATE SET messages = t.messages + EXCLUDED.messages, updated_at = clock_timestamp()
RETURNING messages
"""


def append(
    resource: str, session: str, texts: Sequence[str], operation: str | None
) -> Script[tuple[int, ...]]:
    """Add messages at the end, in order; their places, from 1. An operation that was done is not repeated.

    Raises:
        ConflictError: it was done with other messages.
    """
    rows = yield Step(_NUMBER, (resource, session, 0))
    if operation is not None:
        done = yield Step(
            "SELECT place, message FROM popagent_messages"
            " WHERE resource_id = %s AND session_id = %s AND operation_id = %s ORDER BY place",
            (resource, session, operation),
        )
        if done:
            if [json.loads(text) for _, text in done] != [json.loads(text) for text in texts]:
                raise ConflictError(
                    "the operation id names a call with other messages: nothing was written",
                    reason="operation",
                    hint="an operation id names one call; take another",
                )
            return tuple(place for place, _ in done)
    first = rows[0][0] + 1
    yield Step(_NUMBER, (resource, session, len(texts)))
    yield Step(
        "INSERT INTO popagent_messages (resource_id, session_id, place, operation_id, message)"
        " VALUES (%s, %s, %s, %s, %s)",
        many=[(resource, session, first + number, operation, text) for number, text in enumerate(texts)],
    )
    return tuple(range(first, first + len(texts)))


def messages(
    resource: str, session: str, limit: int | None, before: int | None
) -> Script[list[tuple[int, str]]]:
    """The last `limit` messages before a place, oldest first, each with its place."""
    rows = yield Step(
        "SELECT place, message FROM popagent_messages WHERE resource_id = %s AND session_id = %s"
        " AND (%s::bigint IS NULL OR place < %s) ORDER BY place DESC LIMIT %s",
        (resource, session, before, before, limit),
    )
    return [(place, text) for place, text in reversed(rows)]


def count(resource: str, session: str) -> Script[int]:
    """How many messages the session holds."""
    rows = yield Step(
        "SELECT messages FROM popagent_threads WHERE resource_id = %s AND session_id = %s",
        (resource, session),
    )
    return int(rows[0][0]) if rows else 0


def said(resource: str | None) -> Script[int]:
    """How many messages there are, of a resource or of all."""
    rows = yield Step(
        "SELECT count(*) FROM popagent_messages WHERE %s::text IS NULL OR resource_id = %s",
        (resource, resource),
    )
    return int(rows[0][0])


def page(resource: str | None, after: Place, size: int) -> Script[list[tuple[Place, str]]]:
    """The next messages after a place, of a resource or of all: for upkeep, which looks at every row."""
    rows = yield Step(
        "SELECT resource_id, session_id, place, message FROM popagent_messages"
        " WHERE (resource_id, session_id, place) > (%s, %s, %s) AND (%s::text IS NULL OR resource_id = %s)"
        " ORDER BY resource_id, session_id, place LIMIT %s",
        (*after, resource, resource, size),
    )
    return [((owner, session, place), text) for owner, session, place, text in rows]


def delete(resource: str, sessions: Sequence[str] | None) -> Script[int]:
    """Erase sessions, None for all of the resource; how many there were."""
    rows = yield Step(
        "DELETE FROM popagent_threads WHERE resource_id = %s"
        " AND (%s::text[] IS NULL OR session_id = ANY (%s::text[])) RETURNING 1",
        (resource, sessions, sessions),
    )
    return len(rows)


def threads(resource: str, limit: int, offset: int) -> Script[list[Thread]]:
    """The sessions of a resource, the one written to last first."""
    rows = yield Step(
        "SELECT session_id, messages, created_at, updated_at FROM popagent_threads WHERE resource_id = %s"
        " ORDER BY updated_at DESC, session_id LIMIT %s OFFSET %s",
        (resource, limit, offset),
    )
    return [Thread(*row) for row in rows]
