"""A record made ready to be written: checked, screened by the gates of its class, indexed. No I/O.

instance ──values──▶ Draft ──gates──▶ refused, with what it counts
                              └─────▶ each field's entries ──▶ Put
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from omoide.model.draft import Draft, Refusal
from omoide.model.instance import Instance, add_entries, id_of, scope_of, spec_of, stored_values
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
    entities: Sequence[str] = (),
) -> Prepared:
    """Check and screen a record, and make the request that writes it. No I/O.

    mode: None writes a new instance whatever is there, and one that was stored only where it still is.

    Raises:
        FieldError: a value breaks a rule of its field.
    """
    spec = spec_of(type(instance))
    scope, record_id = scope_of(instance), id_of(instance)
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
    )
    return Prepared(instance, scope, record_id, put, draft.left_out, counters=tuple(draft.counters))


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
        time_cue=draft.time_cue,
        asks=draft.asks,
        suspect=draft.suspect,
        ttl_ms=None if ttl is None else round(ttl * 1_000),
    )


def effective_cap(spec: ModelSpec) -> int:
    """Most records a partition may hold now, 0 for no bound; the environment moves only the default."""
    if not spec.cap_is_default:
        return spec.cap
    from omoide.settings import max_records_per_partition

    override = max_records_per_partition()
    return spec.cap if override is None else override
