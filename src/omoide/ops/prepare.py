"""A record made ready to be written: checked, screened by the gates of its class, indexed. No I/O.

instance ──values──▶ Draft ──gates──▶ refused, with what it counts
                              └─────▶ each field's entries ──▶ Put
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from uuid import UUID, uuid4

from omoide.errors import QueryError
from omoide.model.draft import Draft, Refusal
from omoide.model.instance import Instance, add_entries, id_of, scope_of, spec_of, stored_values
from omoide.model.partition import check_ids
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.request import Put
from omoide.ops.unique import unique_digests


@dataclass(frozen=True, slots=True)
class Prepared:
    """A record ready to be sent, or refused by a gate (`put` is None)."""

    instance: Instance
    scope: Scope
    id: str
    put: Put | None
    left_out: int = 0
    refusal: Refusal | None = None
    counters: tuple[tuple[str, int], ...] = ()


def prepare(
    instance: Instance,
    *,
    mode: str | None = None,
    operation_id: str | None = None,
    expect_version: int | None = None,
    supersedes: str | None = None,
    entities: Sequence[str] = (),
) -> Prepared:
    """Check and screen a record, and make the request that writes it. No I/O.

    mode: None writes a new instance whatever is there, and one that was stored only where it still is.
    operation_id: names a generated id as well, see `name_by_operation`.

    Raises:
        FieldError: a value breaks a rule of its field.
        QueryError: an operation id or a version that cannot be one, or no version that could be superseded.
    """
    check_call(operation_id, expect_version)
    spec = spec_of(type(instance))
    name_by_operation(instance, operation_id)
    scope, record_id = scope_of(instance), id_of(instance)
    superseded = checked_superseded(spec, record_id, supersedes)
    draft = Draft(stored_values(instance), entities=list(entities))
    for gate in type(instance).__omoide_gates__:
        refusal = gate(instance, draft)
        if refusal is not None:
            return Prepared(instance, scope, record_id, None, refusal=refusal, counters=refusal.counters)
    add_entries(instance, draft)
    put = replace(
        put_of(instance, scope, record_id, draft),
        mode=mode or ("update" if instance._omoide.stored else "upsert"),
        expect_version=expect_version,
        operation_id=operation_id or uuid4().hex,
        cap=effective_cap(spec),
        supersedes=superseded,
    )
    return Prepared(instance, scope, record_id, put, draft.left_out, counters=tuple(draft.counters))


def check_call(operation_id: str | None, expect_version: int | None) -> None:
    """Raise QueryError unless an operation id is text and a version a whole number, where given."""
    if operation_id is not None and (not isinstance(operation_id, str) or not operation_id):
        raise QueryError("operation_id is a non-empty string")
    if expect_version is None:
        return
    if isinstance(expect_version, bool) or not isinstance(expect_version, int) or expect_version < 0:
        raise QueryError("expect_version is a whole number, not negative")


def checked_superseded(spec: ModelSpec, record_id: str, supersedes: str | None) -> str | None:
    """The id to supersede as text; QueryError unless a record of the model can supersede it."""
    if supersedes is None:
        return None
    if spec.validity is None:
        raise QueryError(f"{spec.name} has no versions", hint="add a ValidityField")
    (text,) = check_ids(spec, (supersedes,), what="supersedes")
    if text == record_id:
        raise QueryError(f"{spec.name}: a record cannot supersede itself", hint="update() changes it")
    return text


def name_by_operation(instance: Instance, operation_id: str | None) -> None:
    """Settle a generated id when a request first names it; with an operation id, derive it from that.

    Another process that repeats the operation with an instance of its own then writes the same record:
    the id is a UUID made of model, partition and operation id.
    """
    state = instance._omoide
    if not state.fresh_id:
        return
    if operation_id is not None:
        scope = scope_of(instance)
        hashed = blake2b(digest_size=16, person=b"omoide operation")
        for text in (scope.spec.name, *scope.values, operation_id):
            data = text.encode("utf-8", "surrogatepass")
            hashed.update(b"%d:" % len(data) + data)
        instance.__dict__[scope.spec.id_field] = _uuid(hashed.digest())
    state.fresh_id = False


def _uuid(digest: bytes) -> str:
    """16 bytes as a UUID of version 8, which leaves the rest to its maker (RFC 9562)."""
    number = int.from_bytes(digest, "big") & ~(0xF000 << 64) & ~(0xC000 << 48)
    return str(UUID(int=number | 0x8000 << 64 | 0x8000 << 48))


def put_of(instance: Instance, scope: Scope, record_id: str, draft: Draft) -> Put:
    """The write of a draft with all its entries, unconditional and without a cap."""
    ttl = scope.spec.ttl
    return Put(
        scope,
        record_id,
        draft.values,
        terms=draft.terms,
        length=draft.length,
        exact=tuple(draft.exact),
        unique=unique_digests(instance),
        entities=tuple(draft.entities),
        importance=draft.importance,
        base=draft.base,
        confidence=draft.confidence,
        time_ms=draft.time_ms,
        session=draft.session,
        author=draft.author,
        cues=draft.cues,
        asks=draft.asks,
        asking=draft.asking,
        suspect=draft.suspect,
        ttl_ms=None if ttl is None else round(ttl * 1_000),
        passage=draft.passage,
        valid_from_ms=draft.valid_from_ms,
        valid_to_ms=draft.valid_to_ms,
        chain=draft.chain,
    )


def effective_cap(spec: ModelSpec) -> int:
    """Most records a partition may hold now, 0 for no bound; the environment moves only the default."""
    if not spec.cap_is_default:
        return spec.cap
    from omoide.settings import max_records_per_partition

    override = max_records_per_partition()
    return spec.cap if override is None else override
