"""Rules of a write that look at a row and at what is asked, and at nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from omoide.core.confidence import Beta, update
from omoide.model.schema import ModelSpec
from omoide.ops.request import Evidence, Kept, Observe, Put, PutReply
from omoide.stores.postgres.rows import Known, order_of
from omoide.stores.redis.codec import prior

__all__ = ["begin_evidence", "believe", "done_before", "expanded", "keep", "refusal"]


def refusal(put: Put, old: Known | None, now_ms: int) -> PutReply | None:
    """What stands in the way: a lost race, a taken id, a record that was deleted, a deadline that is over."""
    version = 0 if old is None else old.version
    if put.expect_version is not None and put.expect_version != version:
        return PutReply("deleted" if old is None else "version", version)
    if put.mode == "create" and old is not None:
        return PutReply("exists", version)
    if put.mode == "update" and old is None:
        return PutReply("deleted", 0)
    if put.kept is not None and 0 < put.kept.expires_ms <= now_ms:
        return PutReply("expired", 0)
    return None


def done_before(operations: bytes, operation: bytes) -> tuple[int, int] | None:
    """(how many writes ago this operation was done, what it evicted); None when it is new."""
    for at in range(0, len(operations), 10):
        if operations[at : at + 8] == operation:
            return at // 10, int.from_bytes(operations[at + 8 : at + 10], "little")
    return None


def keep(known: Known, kept: Kept) -> None:
    """The state that a new record comes with."""
    known.version = kept.version
    if kept.order is not None:
        known.order = kept.order
    if kept.expires_ms:
        known.expires_ms = kept.expires_ms
    if kept.statistics is not None:
        held = kept.statistics
        known.alpha, known.beta = held.alpha, held.beta
        known.up, known.down = held.corroborations, held.contradictions
        known.accesses, known.accessed_ms = held.access_count, held.accessed_ms


def expanded(request: Observe, turn_ids: Sequence[str]) -> tuple[list[Evidence], list[str]]:
    """One item per record: an item without an id stands for every record of the turn. And who gets linked."""
    items: list[Evidence] = []
    linked = list(request.linked)
    for item in request.evidence:
        if item.id:
            items.append(item)
            continue
        for place, id in enumerate(sorted(turn_ids, key=str.encode)):
            items.append(Evidence(id, item.support, item.against, item.touch, item.access))
            if request.link > 0 and place < 32:
                linked.append(id)
    return items, linked


def begin_evidence(spec: ModelSpec, known: Known) -> None:
    """Give a record the prior of its model, where it has no evidence yet."""
    if known.alpha is None or known.beta is None:
        start = prior(spec)
        known.alpha, known.beta = start["alpha"], start["beta"]


def believe(spec: ModelSpec, item: Evidence, known: Known, now_ms: int) -> bool:
    """Count an outcome; whether that changed anything of the record."""
    evidence = item.support > 0 or item.against > 0
    touched = item.touch and spec.decay is not None
    if evidence or item.access:
        begin_evidence(spec, known)
    if evidence and known.alpha is not None and known.beta is not None:
        cap = prior(spec)["cap"]
        known.alpha, known.beta = update(Beta(known.alpha, known.beta), item.support, item.against, cap)
        known.up += item.support > 0
        known.down += item.against > 0
    if item.access:
        known.accesses, known.accessed_ms = known.accesses + 1, now_ms
    if touched:
        known.order = order_of(spec, known.base, now_ms / 1000)
    return evidence or item.access or touched
