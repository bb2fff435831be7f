"""Plans that write long-term memories: one memory for one thing said, whoever says it and how often at once.

    retain   fact with a key     looked up by its key, then written over or saved; the last one counts
             fact without one    saved; the same content is a duplicate
             episode             the same; nothing ever changes one
    edit     a fact, by id       read, then updated; a content that another fact has is a duplicate
    forget   by id               erased

The store's uniqueness of `identity` decides, not what was read before.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from omoide.model.schema import Scope
from omoide.ops import load
from omoide.ops import save as saves
from omoide.ops.changes import changed
from omoide.ops.request import Get, Record
from omoide.ops.run import Plan
from omoide.ops.save import DELETED, MOST_RACES, SaveOutcome
from omoide.ops.unique import unique_digest
from omoide.recipes.longterm.record import FACT, LongTermRecord, digest_of, identity_of

DUPLICATE = "duplicate"
NOT_A_FACT = "not_a_fact"


def record_with(
    model: type[LongTermRecord],
    scope: Scope,
    kind: str,
    content: str,
    key: str | None,
    values: Mapping[str, Any],
) -> LongTermRecord:
    """A new record, its digest and identity filled in."""
    digest = digest_of(content)
    return model(
        resource_id=scope.values[0],
        kind=kind,
        semantic_key=key,
        content=content,
        content_sha256=digest,
        identity=identity_of(kind, key, digest),
        **values,
    )


def retain(record: LongTermRecord, scope: Scope, operation_id: str | None) -> Plan[SaveOutcome]:
    """Store a memory, or make it the current value of its key.

    Raises:
        ConflictError: the fact was erased and written anew 16 times meanwhile.
    Cost: one round trip; with a key two, and two more where another one wrote its first value.
    """
    if record.semantic_key is None:
        return (yield from saves.save(record, operation_id=operation_id))
    for _ in range(MOST_RACES):
        held = yield from _by_identity(type(record), scope, record.identity)
        if held is None:
            outcome: SaveOutcome = yield from saves.save(record, operation_id=operation_id)
            if outcome.reason != DUPLICATE:
                return outcome
            held = yield from _settled(type(record), scope, outcome.duplicate_of or "")
        if held is not None:
            told = changed(held, _said(record))
            outcome = yield from saves.save(told, mode="update", operation_id=operation_id)
            if outcome.reason != DELETED:
                return outcome
    raise saves.version_conflict(scope.spec)


def _said(record: LongTermRecord) -> dict[str, Any]:
    """What a fact that is told again changes in the one there is."""
    told = {
        "content": record.content,
        "content_sha256": record.content_sha256,
        "importance": record.importance,
        "updated_at": datetime.now(UTC),
    }
    for name in ("session_id", "author", "occurred_at"):
        value = getattr(record, name)
        if value is not None:
            told[name] = value
    return told


def _settled(model: type[LongTermRecord], scope: Scope, memory_id: str) -> Plan[LongTermRecord | None]:
    """A memory as its row says, which the index may not show yet."""
    records: tuple[Record | None, ...] = yield Get(scope, (memory_id,), settled=True)
    return None if records[0] is None else model.from_record(records[0])


def _by_identity(model: type[LongTermRecord], scope: Scope, identity: str) -> Plan[LongTermRecord | None]:
    digest = unique_digest(scope.spec, ("identity",), {"identity": identity})
    return (yield from load.by_unique(model, scope, digest or b""))


def edit(
    model: type[LongTermRecord], scope: Scope, memory_id: str, changes: Mapping[str, Any]
) -> Plan[SaveOutcome]:
    """Change content or importance of a fact; episodes are immutable.

    Returns:
        A falsy outcome with reason `deleted`, `not_a_fact` or `duplicate` when nothing was stored.
    Cost: two round trips.
    """
    held = yield from _settled(model, scope, memory_id)
    if held is None:
        return SaveOutcome(False, DELETED, memory_id)
    if held.kind != FACT:
        return SaveOutcome(False, NOT_A_FACT, memory_id)
    told: dict[str, Any] = {**changes, "updated_at": datetime.now(UTC)}
    if "content" in changes:
        digest = digest_of(changes["content"])
        told |= {"content_sha256": digest, "identity": identity_of(FACT, held.semantic_key, digest)}
    return (yield from saves.update(held, told))


__all__ = ["NOT_A_FACT", "edit", "record_with", "retain"]
