"""Where records go that should not have been stored, until somebody looks: out of every recall.

    screening ──copy──▶ QuarantinedMemory ──restore──▶ back as it was
                                          └─erase────▶ gone

A partition of quarantine for each partition that records came from, of a model with neither text
index nor firewall. It is a place to look before erasing, not a safe one: the secret is still in the
store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import quote

from omoide.errors import FieldError, StoreError
from omoide.fields import AutoKeyField, BytesField, DatetimeField, FloatField, IntField, KeyField, StringField
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import PARTITION_BYTES, check_ids, ids_of, scope_of_call
from omoide.model.schema import Scope
from omoide.ops import delete as deletes
from omoide.ops import load, port
from omoide.ops.model import Model
from omoide.ops.reindex import remade
from omoide.ops.request import Batch, Put, PutReply, Record
from omoide.ops.run import Plan, arun, run
from omoide.ops.save import prepare, raise_if_nothing_went

MOST_BYTES = 1_048_576
"""Stored values of the largest record that quarantine takes."""


class QuarantinedMemory(Model):
    """A record that was taken out of its partition: its stored values, as they were, and why.

    One partition for each partition screened. It has no text index, so no recall finds it.
    """

    class Meta:
        name = "QuarantinedMemory"
        partition_by = ("source", "place")

    record_id = AutoKeyField()
    source = KeyField()
    place = KeyField()
    reason = StringField(default="")
    rule = StringField(default="")
    body = BytesField(max_bytes=MOST_BYTES)
    time_ms = IntField(default=0)
    confidence_then = FloatField(default=0.5)
    quarantined_at = DatetimeField(null=True)


def copy_of(scope: Scope, record: Record, reason: str, rule: str) -> Put | None:
    """The write that puts a record of a partition into quarantine; None when it is over 1 MiB."""
    from msgspec import msgpack

    kept = quarantine_of(scope)
    held = QuarantinedMemory(
        record_id=record.id,
        source=kept.values[0],
        place=kept.values[1],
        reason=reason,
        rule=rule,
        body=msgpack.encode(record.values),
        time_ms=record.time_ms,
        confidence_then=record.confidence,
        quarantined_at=datetime.now(UTC),
    )
    try:
        return prepare(held).put
    except FieldError:
        return None


def quarantine_of(scope: Scope) -> Scope:
    """The partition that holds what was taken out of another one, under the same values.

    Values that together are too long for a name are replaced by a digest.
    """
    place = "/".join(quote(value, safe=" ") for value in scope.values) or "-"
    if len(place) > PARTITION_BYTES:
        place = f"~{blake2b(place.encode(), digest_size=16).hexdigest()}"
    return Scope(spec_of(QuarantinedMemory), (scope.spec.name, place))


def quarantined(model: type[Instance], **partition: Any) -> list[QuarantinedMemory]:
    """What is in quarantine of one partition, newest first; `record_id`, `reason` and `rule` say what.

    Cost: one round trip, and the records.
    """
    scope = quarantine_of(scope_of_call(spec_of(model), partition, "quarantined"))
    return run(load.select(QuarantinedMemory, load.unconditional(scope)), port.current().store)


async def aquarantined(model: type[Instance], **partition: Any) -> list[QuarantinedMemory]:
    """What is in quarantine of one partition; see `quarantined`."""
    scope = quarantine_of(scope_of_call(spec_of(model), partition, "quarantined"))
    return await arun(load.select(QuarantinedMemory, load.unconditional(scope)), port.current().astore)


def restore(model: type[Instance], ids: Sequence[str], **partition: Any) -> dict[str, str]:
    """Put records back as they were, past the firewall, and take them out of quarantine.

    Values, time and confidence come back; statistics and edges do not. A record whose id or unique
    values are taken meanwhile stays in quarantine.

    Returns:
        What became of each id: `restored`, `missing`, or why not: `exists`, `duplicate`.
    Raises:
        FieldError: a stored value breaks a rule of its field as the class is now.
    Cost: three round trips.
    """
    return run(restored(model, ids, partition), port.current().store)


async def arestore(model: type[Instance], ids: Sequence[str], **partition: Any) -> dict[str, str]:
    """Put records back as they were, past the firewall; see `restore`."""
    return await arun(restored(model, ids, partition), port.current().astore)


def restored(model: type[Instance], ids: Sequence[str], partition: dict[str, Any]) -> Plan[dict[str, str]]:
    """The plan of `restore`."""
    scope = scope_of_call(spec_of(model), partition, "restore")
    wanted = list(dict.fromkeys(check_ids(scope.spec, ids_of(ids), "restore")))
    if not wanted:
        return {}
    kept = quarantine_of(scope)
    found: list[QuarantinedMemory | None] = yield from load.many(QuarantinedMemory, kept, wanted)
    held = {one.record_id: one for one in found if one is not None}
    became = dict.fromkeys(wanted, "missing")
    if not held:
        return became
    puts = tuple(_put_back(model, scope, one) for one in held.values())
    replies: tuple[PutReply | StoreError, ...] = yield Batch(puts)
    raise_if_nothing_went(replies)
    for name, reply in zip(held, replies, strict=True):
        status = "error" if isinstance(reply, StoreError) else reply.status
        became[name] = "restored" if status == "stored" else status
    back = [name for name in held if became[name] == "restored"]
    yield from deletes.delete_many(kept, back)
    return became


def _put_back(model: type[Instance], scope: Scope, held: QuarantinedMemory) -> Put:
    from msgspec import msgpack

    record = Record(
        id=held.record_id,
        row=0,
        values=msgpack.decode(held.body),
        version=0,
        time_ms=held.time_ms,
        importance=1.0,
        confidence=held.confidence_then,
    )
    put = remade(model, scope, record)
    confidence = held.confidence_then if put.confidence is None else put.confidence
    time_ms = held.time_ms if put.time_ms is None else put.time_ms
    return replace(put, mode="create", confidence=confidence, time_ms=time_ms)


def erase_quarantined(model: type[Instance], ids: Sequence[str] | None = None, **partition: Any) -> int:
    """Erase what is in quarantine of one partition for good, or some ids of it; how many records.

    Cost: one round trip, one per 250 ids.
    """
    return run(_erased(model, ids, partition), port.current().store)


async def aerase_quarantined(
    model: type[Instance], ids: Sequence[str] | None = None, **partition: Any
) -> int:
    """Erase what is in quarantine of one partition for good; see `erase_quarantined`."""
    return await arun(_erased(model, ids, partition), port.current().astore)


def _erased(model: type[Instance], ids: Sequence[str] | None, partition: dict[str, Any]) -> Plan[int]:
    kept = quarantine_of(scope_of_call(spec_of(model), partition, "erase_quarantined"))
    if ids is None:
        return (yield from deletes.drop(kept))
    return (yield from deletes.delete_many(kept, check_ids(kept.spec, ids_of(ids), "erase_quarantined")))


__all__ = [
    "QuarantinedMemory",
    "aerase_quarantined",
    "aquarantined",
    "arestore",
    "copy_of",
    "erase_quarantined",
    "quarantine_of",
    "quarantined",
    "restore",
    "restored",
]
