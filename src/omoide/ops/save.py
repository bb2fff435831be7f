"""Writing records.

    instance ──prepare──▶ Put ──▶ outcome
                  └──refused──▶ counters, falsy outcome

A save is one round trip. A refused one is one round trip too: its counters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from omoide.errors import ConflictError, NotFoundError, PolicyError, QueryError, StoreError
from omoide.model.instance import Instance, id_of, loaded_state, scope_of, spec_of
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.changes import adopt, changed
from omoide.ops.embedding import with_vectors
from omoide.ops.prepare import Prepared, check_call, prepare
from omoide.ops.request import Batch, Get, Observe, Put, PutReply, Record, Write
from omoide.ops.run import Plan

MOST_RACES = 16
"""How often an update is applied anew after another writer came first."""

DELETED = "deleted"

NOT_SUPERSEDED = {
    "missing": "the version to supersede is not there",
    "closed": "the version to supersede has an end already",
    "other_key": "the version to supersede is one of another key",
}
"""Why a version was not superseded, and the save that asked for it stored nothing."""

_log = logging.getLogger("omoide")
_warned: set[tuple[str, tuple[str, ...]]] = set()


@dataclass(frozen=True, slots=True)
class SaveOutcome:
    """What became of a save; truthy when the record is stored.

    Attributes:
        stored: The record is in the store, as given.
        reason: "" when stored, else `duplicate`, `exists`, `deleted`, `version`, `error`, `batched`
            (inside a batch), `below_threshold`, or a reason of the firewall; `missing`, `closed` or
            `other_key` of the version that was to be superseded.
        id: The record's id.
        version: The record's version after the save.
        created: It was new.
        evicted: Records erased to keep the partition under its cap.
        duplicate_of: Id of the record that holds the unique values.
        left_out: Distinct text terms beyond the indexed ones; the text itself is stored whole.
        mirrored: The store shows it. False for a mirrored model whose store is away or behind: the record is
            safe in its rows, and a projector shows it later.
        repeated: The operation id had been applied before; nothing was done again. The store knows the last
            5 operations of a record, for as long as the record is there.
        error: What stopped this write, when a group of writes was sent.
        closed: Id of the version that ends where this one starts, and did not before.
        embedded: Of a model with an EmbeddingField: whether the record has the vector of its text. False: the
            provider failed, or the partition has those of another one; `omoide embed` makes up for it. None
            where there is no text, or it is not known.
    """

    stored: bool
    reason: str = ""
    id: str = ""
    version: int = 0
    created: bool = False
    evicted: int = 0
    duplicate_of: str | None = None
    left_out: int = 0
    repeated: bool = False
    error: StoreError | None = None
    mirrored: bool = True
    closed: str | None = None
    embedded: bool | None = None

    def __bool__(self) -> bool:
        return self.stored


def save(
    instance: Instance,
    *,
    mode: str | None = None,
    operation_id: str | None = None,
    expect_version: int | None = None,
    supersedes: str | None = None,
    known: dict[str, bytes] | None = None,
) -> Plan[SaveOutcome]:
    """Write one record: one round trip. `known`: vectors of texts, see `with_vectors`.

    Raises:
        ConflictError: `expect_version` is not the version stored, or there is nothing to supersede; nothing
            changed.
    """
    ready = prepare(
        instance,
        mode=mode,
        operation_id=operation_id,
        expect_version=expect_version,
        supersedes=supersedes,
    )
    prepared: Prepared
    (prepared,) = yield from with_vectors([ready], known)
    if prepared.put is None:
        yield from count_refusals([prepared])
        return refused(prepared)
    reply: PutReply | StoreError = yield from _put(prepared, prepared.put)
    if isinstance(reply, StoreError):
        raise reply
    if reply.status == "version":
        raise version_conflict(prepared.scope.spec)
    if reply.status in NOT_SUPERSEDED:
        raise ConflictError(
            f"{prepared.scope.spec.name}: nothing was stored: {NOT_SUPERSEDED[reply.status]}",
            reason=reply.status,
        )
    return settle(prepared, reply)


def _put(prepared: Prepared, put: Put) -> Plan[PutReply | StoreError]:
    """Send one write, and what a gate counts about it, in one round trip."""
    counters = gate_counters([prepared])
    if not counters:
        alone: PutReply = yield put
        return alone
    replies: tuple[Any, ...] = yield Batch((put, *counters))
    warn_of_lost_counters(replies[1:])
    reply: PutReply | StoreError = replies[0]
    return reply


def save_many(instances: Iterable[Instance]) -> Plan[list[SaveOutcome]]:
    """Write records; all are checked and screened before the first byte is sent.

    Raises:
        QueryError: no list of records.
        StoreError: nothing at all could be written.
    """
    outcomes: list[SaveOutcome] = yield from send([prepare(instance) for instance in records_of(instances)])
    return outcomes


def records_of(instances: object) -> Iterable[Instance]:
    """The records of `save_many`.

    Raises:
        QueryError: nothing that holds several.
    """
    if isinstance(instances, Iterable) and not isinstance(instances, str | bytes):
        return instances
    raise QueryError(f"save_many takes a list of records, not {type(instances).__name__}")


def send(prepared: Sequence[Prepared]) -> Plan[list[SaveOutcome]]:
    """Send prepared records as one batch, with their vectors, and what gates count."""
    prepared = yield from with_vectors(prepared)
    writes: list[Write] = [one.put for one in prepared if one.put is not None]
    counters = gate_counters(prepared)
    if not writes:
        yield from count_refusals(prepared)
        return [refused(one) for one in prepared]
    replies: tuple[Any, ...] = yield Batch((*writes, *counters))
    raise_if_nothing_went(replies[: len(writes)])
    warn_of_lost_counters(replies[len(writes) :])
    waiting = iter(replies)
    return [refused(one) if one.put is None else settle(one, next(waiting)) for one in prepared]


def create(instance: Instance, *, operation_id: str | None = None) -> Plan[None]:
    """Write a record only where its id is free.

    Raises:
        ConflictError: the id or a unique value is taken.
        PolicyError: a gate refused the record.
    """
    outcome: SaveOutcome = yield from save(instance, mode="create", operation_id=operation_id)
    if outcome:
        return
    name = spec_of(type(instance)).name
    if outcome.reason in ("duplicate", "exists", "deleted"):
        raise ConflictError(
            f"{name}: nothing was stored: {outcome.reason}",
            reason=outcome.reason,
            duplicate_of=outcome.duplicate_of,
        )
    raise PolicyError(f"{name}: nothing was stored: {outcome.reason}", reason=outcome.reason)


def update(
    instance: Instance, changes: Mapping[str, Any], *, operation_id: str | None = None
) -> Plan[SaveOutcome]:
    """Change some fields of a stored record and no others, whatever other writers did meanwhile.

    One round trip; two more for each writer that came first, one more for an instance that was
    neither loaded nor saved. When nothing is stored the instance is as it was.

    Raises:
        FieldError: an unknown field or a bad value.
        ConflictError: 16 other writers came first.
    """
    check_call(operation_id, None)
    operation_id = operation_id or uuid4().hex
    draft = changed(instance, changes)
    scope, record_id = scope_of(instance), id_of(instance)
    known, vectors = instance._omoide.stored, dict[str, bytes]()
    for _ in range(MOST_RACES):
        if not known:
            record: Record | None = yield from _fetch(scope, record_id, settled=True)
            if record is None:
                return SaveOutcome(False, DELETED, record_id)
            draft = changed(instance, changes, loaded_state(scope.spec, record))
        version = draft._omoide.version
        try:
            outcome: SaveOutcome = yield from save(
                draft, mode="update", operation_id=operation_id, expect_version=version, known=vectors
            )
        except ConflictError:
            _log.debug("%s: another writer came first; the update is applied anew", scope.spec.name)
            known = False
            continue
        if outcome:
            adopt(instance, draft, changes)
        return outcome
    raise version_conflict(scope.spec)


def _fetch(scope: Scope, record_id: str, *, settled: bool = False) -> Plan[Record | None]:
    records: tuple[Record | None, ...] = yield Get(scope, (record_id,), settled)
    return records[0]


def refresh(instance: Instance) -> Plan[None]:
    """Load the record anew; values set on the instance and not saved are forgotten.

    Raises:
        NotFoundError: it is gone.
    """
    scope, record_id = scope_of(instance), id_of(instance)
    record: Record | None = yield from _fetch(scope, record_id)
    if record is None:
        raise NotFoundError(f"{scope.spec.name}: no such record in the partition")
    instance.absorb(record)


def settle(prepared: Prepared, reply: PutReply | StoreError) -> SaveOutcome:
    """The outcome of a reply; the instance learns its version, and what is stored of it now."""
    if isinstance(reply, StoreError):
        return SaveOutcome(False, "error", prepared.id, error=reply)
    if reply.status != "stored":
        return SaveOutcome(False, reply.status, prepared.id, reply.version, duplicate_of=reply.duplicate_of)
    state = prepared.instance._omoide
    state.stored, state.version = True, reply.version
    if prepared.put is not None and not (reply.repeated and state.raw):
        state.raw = prepared.put.values
    if reply.interval is not None:
        state.interval = reply.interval
    if reply.evicted:
        _tell_eviction(prepared, reply.evicted)
    return SaveOutcome(
        True,
        "",
        prepared.id,
        reply.version,
        reply.created,
        reply.evicted,
        left_out=prepared.left_out,
        repeated=reply.repeated,
        mirrored=reply.mirrored,
        closed=reply.closed,
        embedded=_embedded(prepared, reply),
    )


def _embedded(prepared: Prepared, reply: PutReply) -> bool | None:
    unknown = prepared.put is None or not prepared.put.passage or reply.repeated
    return None if unknown else reply.embedded


def version_conflict(spec: ModelSpec) -> ConflictError:
    return ConflictError(
        f"{spec.name}: another writer came first; nothing was changed",
        reason="version",
        hint="refresh() and apply the change again",
    )


def raise_if_nothing_went(replies: Sequence[Any]) -> None:
    """Raise the first error when every write of a group failed."""
    errors = [reply for reply in replies if isinstance(reply, StoreError)]
    if errors and len(errors) == len(replies):
        raise errors[0]


def warn_of_lost_counters(replies: Sequence[Any]) -> None:
    """Say that a gate could not count; what it decided stands."""
    for reply in replies:
        if isinstance(reply, StoreError):
            _log.warning("what a gate decided could not be counted: %s", type(reply).__name__)


def refused(prepared: Prepared) -> SaveOutcome:
    reason = prepared.refusal.reason if prepared.refusal is not None else "error"
    return SaveOutcome(False, reason, prepared.id)


def gate_counters(prepared: Sequence[Prepared]) -> list[Observe]:
    """One request a partition that adds up what gates count about its records."""
    totals: dict[tuple[int, tuple[str, ...]], tuple[Scope, dict[str, int]]] = {}
    for one in prepared:
        _, counters = totals.setdefault((id(one.scope.spec), one.scope.values), (one.scope, {}))
        for name, delta in one.counters:
            counters[name] = counters.get(name, 0) + delta
    return [
        Observe(scope, (), counters=tuple(counters.items()))
        for scope, counters in totals.values()
        if counters
    ]


def count_refusals(refused: Sequence[Prepared]) -> Plan[None]:
    """Count refusals in one round trip. An unreachable counter does not undo a refusal."""
    requests = gate_counters(refused)
    if not requests:
        return
    try:
        if len(requests) == 1:
            yield requests[0]
        else:
            warn_of_lost_counters((yield Batch(tuple(requests))))
    except StoreError as error:
        warn_of_lost_counters((error,))


def _tell_eviction(prepared: Prepared, evicted: int) -> None:
    """Eviction is loss: loud the first time in a partition, quiet afterwards."""
    spec = prepared.scope.spec
    key = (spec.name, prepared.scope.values)
    level = logging.DEBUG if key in _warned else logging.WARNING
    _warned.add(key)
    cap = prepared.put.cap if prepared.put is not None else spec.cap
    _log.log(
        level,
        "%s: %d record(s) erased to keep a partition within max_records_per_partition=%d: permanent loss",
        spec.name,
        evicted,
        cap,
    )


__all__ = [
    "MOST_RACES",
    "Prepared",
    "SaveOutcome",
    "count_refusals",
    "create",
    "gate_counters",
    "prepare",
    "raise_if_nothing_went",
    "refresh",
    "refused",
    "save",
    "save_many",
    "send",
    "settle",
    "update",
    "version_conflict",
    "warn_of_lost_counters",
]
