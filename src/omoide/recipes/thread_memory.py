"""The exact messages of one session, in PostgreSQL.

A thread is a record of what was said; long-term memory is what was made of it. They share no row:
deleting a thread, or all threads of a resource, deletes no long-term memory, and nothing of a thread is
shortened or expired. What the firewall blocks is refused, like everywhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omoide.errors import FieldError, PolicyError, QueryError
from omoide.fields.documents import broken_rule
from omoide.mixins.never_record import judge
from omoide.model.partition import ID_BYTES, PARTITION_BYTES, ids_of, key_rule
from omoide.ops import port
from omoide.recipes.longterm.resource import checked_bound, checked_resource
from omoide.stores.postgres import threads
from omoide.stores.postgres.migrate import aensure, ensure
from omoide.stores.postgres.threads import Thread

if TYPE_CHECKING:
    from omoide.stores.postgres.session import Database

MESSAGE_BYTES = 1_048_576
MOST_AT_ONCE = 1_000


class ThreadMemory:
    """The messages of one session of one resource.

    Args:
        session_id: Names the session; at most 512 bytes.
        resource_id: Whose it is; every statement is bound to it.
        screened: Refuse messages that the never-record firewall blocks.
    Raises:
        QueryError: an empty or too long id.
        PolicyError: the firewall blocks an id.
    """

    def __init__(self, session_id: str, *, resource_id: str, screened: bool = True) -> None:
        self.session_id = _name("session_id", session_id)
        self.resource_id = _resource(resource_id)
        self.screened = screened
        if screened:
            _screen({"session_id": self.session_id, "resource_id": self.resource_id})

    def append(
        self, messages: Sequence[Mapping[str, Any]], *, operation_id: str | None = None
    ) -> tuple[int, ...]:
        """Add messages at the end, all or none.

        Args:
            messages: JSON objects, such as `{"role": "user", "content": "hi"}`; at most 1,000, and
                1 MiB each. They come back equal.
            operation_id: Names this call: repeating it adds nothing and returns the same places.
        Returns:
            Their places in the session, from 1.
        Raises:
            FieldError: a message is not a JSON object or too large; nothing was written.
            ConflictError: the operation id names a call with other messages; nothing was written.
            PolicyError: the firewall blocks a message; it names the place, and nothing was written.
            StoreUnavailableError, StoreTimeoutError: PostgreSQL does not answer.
        Cost: one transaction; appends to one session take turns.
        """
        texts, operation = _texts(messages, self.screened), _operation(operation_id)
        if self.screened and operation:
            _screen({"operation_id": operation})
        if not texts:
            return ()
        return _database().run(threads.append, self.resource_id, self.session_id, texts, operation)

    async def aappend(
        self, messages: Sequence[Mapping[str, Any]], *, operation_id: str | None = None
    ) -> tuple[int, ...]:
        """Async twin of `append`."""
        texts, operation = _texts(messages, self.screened), _operation(operation_id)
        if self.screened and operation:
            _screen({"operation_id": operation})
        if not texts:
            return ()
        database = await _adatabase()
        return await database.arun(threads.append, self.resource_id, self.session_id, texts, operation)

    def messages(self, limit: int | None = None, *, before: int | None = None) -> list[dict[str, Any]]:
        """The last `limit` messages before a place, oldest first; all by default.

        Cost: one query, O(messages returned).
        """
        limit, before = _bound("limit", limit), _bound("before", before)
        rows = _database().run(threads.messages, self.resource_id, self.session_id, limit, before)
        return [json.loads(text) for _, text in rows]

    async def amessages(self, limit: int | None = None, *, before: int | None = None) -> list[dict[str, Any]]:
        """Async twin of `messages`."""
        limit, before = _bound("limit", limit), _bound("before", before)
        database = await _adatabase()
        rows = await database.arun(threads.messages, self.resource_id, self.session_id, limit, before)
        return [json.loads(text) for _, text in rows]

    def count(self) -> int:
        """How many messages the session holds. Cost: one query, O(1)."""
        return _database().run(threads.count, self.resource_id, self.session_id)

    async def acount(self) -> int:
        """Async twin of `count`."""
        return await (await _adatabase()).arun(threads.count, self.resource_id, self.session_id)

    def delete(self) -> bool:
        """Erase the session with its messages; False when there was none. Long-term memories stay."""
        return self.delete_sessions(self.resource_id, [self.session_id]) == 1

    async def adelete(self) -> bool:
        """Async twin of `delete`."""
        return await self.adelete_sessions(self.resource_id, [self.session_id]) == 1

    @classmethod
    def sessions(cls, resource_id: str, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """The sessions of a resource, the one written to last first. Cost: one query."""
        asked = (
            _resource(resource_id),
            _bound("limit", limit),
            _bound("offset", offset),
        )
        return _database().run(threads.threads, *asked)

    @classmethod
    async def asessions(cls, resource_id: str, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """Async twin of `sessions`."""
        asked = (
            _resource(resource_id),
            _bound("limit", limit),
            _bound("offset", offset),
        )
        return await (await _adatabase()).arun(threads.threads, *asked)

    @classmethod
    def delete_sessions(cls, resource_id: str, session_ids: Sequence[str] | None = None) -> int:
        """Erase these sessions of a resource, all of them by default; how many there were.

        Long-term memories stay, those that came from these sessions included.
        """
        names = None if session_ids is None else [_name("session_id", one) for one in ids_of(session_ids)]
        return _database().run(threads.delete, _resource(resource_id), names)

    @classmethod
    async def adelete_sessions(cls, resource_id: str, session_ids: Sequence[str] | None = None) -> int:
        """Async twin of `delete_sessions`."""
        names = None if session_ids is None else [_name("session_id", one) for one in ids_of(session_ids)]
        database = await _adatabase()
        return await database.arun(threads.delete, _resource(resource_id), names)


def _current() -> Database:
    connection: Any = port.current()
    found: Database = connection.database
    return found


def _database() -> Database:
    return ensure(_current(), threads.LINE)


async def _adatabase() -> Database:
    return await aensure(_current(), threads.LINE)


def _screen(named: Mapping[str, str]) -> None:
    """Refuse names that the firewall blocks: they are stored as well."""
    for field, value in named.items():
        reason = judge("ThreadMemory", {field: value})
        if reason:
            raise PolicyError(f"ThreadMemory: {field} is not kept: {reason}", reason=reason)


def _name(field: str, value: object) -> str:
    rule = key_rule(value, PARTITION_BYTES)
    if rule is None and "\x00" in str(value):
        rule = "must not hold a NUL character"
    if rule is not None:
        raise QueryError(f"ThreadMemory: {field} {rule}")
    return str(value)


def _resource(value: object) -> str:
    return _name("resource_id", checked_resource(value, "ThreadMemory"))


def _operation(value: object) -> str | None:
    rule = None if value is None else key_rule(value, ID_BYTES)
    if rule is None and value is not None and "\x00" in str(value):
        rule = "must not hold a NUL character"
    if rule is not None:
        raise QueryError(f"ThreadMemory: operation_id {rule}")
    return None if value is None else str(value)


def _bound(name: str, value: object) -> Any:
    return None if value is None else checked_bound(value, name, "ThreadMemory")


def _texts(messages: Sequence[Mapping[str, Any]], screened: bool) -> list[str]:
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise FieldError("ThreadMemory", "messages", "must be a list of messages")
    if len(messages) > MOST_AT_ONCE:
        raise FieldError("ThreadMemory", "messages", f"must be at most {MOST_AT_ONCE:,} at once")
    texts = [_text(message, place) for place, message in enumerate(messages)]
    for place, message in enumerate(messages) if screened else ():
        reason = judge("ThreadMemory", message)
        if reason:
            raise PolicyError(
                f"ThreadMemory: messages[{place}] is not kept: {reason}; nothing was written",
                reason=reason,
                hint="append what may stand in its place",
            )
    return texts


def _text(message: object, place: int) -> str:
    field = f"messages[{place}]"
    if type(message) is not dict:
        raise FieldError("ThreadMemory", field, "must be a dict")
    rule = broken_rule(message, MESSAGE_BYTES)
    if rule is not None:
        raise FieldError("ThreadMemory", field, rule)
    return json.dumps(message, allow_nan=False, separators=(",", ":"))


__all__ = ["Thread", "ThreadMemory"]
