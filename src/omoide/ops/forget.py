"""Everything of one partition, gone: its keys, its quarantine, and what the disk of the store remembers.

    Drop the partition and its quarantine ──▶ no key left ──▶ rewrite the append-only file, and wait

Erasing keys leaves their bytes in an append-only file until it is written anew. Of the embedded store that
is ours to do, and certifying waits until the old file is gone. Of any other server it is its owner's: what
may still hold a trace there is listed, not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omoide.errors import StoreError, StoreTimeoutError
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import checked_seconds, scope_of_call
from omoide.model.schema import Scope
from omoide.ops import batch as batches
from omoide.ops import port
from omoide.ops.quarantine import quarantine_of
from omoide.ops.request import Drop, KeysLeft, Pause, Persisted, Persistence, RewriteLog
from omoide.ops.run import Plan, arun, run
from omoide.types import Seconds

POLL: Seconds = 0.02
"""Between two looks at a file that is being rewritten; doubles up to a second."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was erased, and what may still hold a trace.

    Attributes:
        records, quarantined: How many the partition and its quarantine held.
        rewritten: The append-only file holds nothing of them any more; None where nobody waited for it, or
            where it is not ours.
        out_of_reach: Places that this call cannot clear, in words; () where it was not certified.
    """

    records: int
    quarantined: int = 0
    rewritten: bool | None = None
    out_of_reach: tuple[str, ...] = ()


def forget(
    model: type[Instance], /, *, certify: bool = False, patience: Seconds = 60.0, **partition: Any
) -> Forgotten:
    """Erase everything of a partition: records, indexes, links, counters, turns, and its quarantine.

    The embedded store then rewrites its append-only file in the background; where it is at that already,
    traces in the file go with the next time.

    Args:
        certify: Prove that no key is left, wait for the rewrite, and list what is out of reach.
        patience: Most seconds to wait for it.
    Raises:
        QueryError: the partition is not named, or inside a batch.
        StoreTimeoutError: everything is erased, but the rewrite goes on after `patience`.
        StoreError: a key is there again, since somebody writes, or the rewrite failed.
    Cost: two round trips, one more on the embedded store; certified a few more, and the rewrite.
    """
    return run(_plan(model, partition, certify, patience), port.current().store)


async def aforget(
    model: type[Instance], /, *, certify: bool = False, patience: Seconds = 60.0, **partition: Any
) -> Forgotten:
    """Erase everything of a partition; see `forget`."""
    return await arun(_plan(model, partition, certify, patience), port.current().astore)


def _plan(
    model: type[Instance], partition: dict[str, Any], certify: bool, patience: Seconds
) -> Plan[Forgotten]:
    batches.refuse("forget()")
    scope = scope_of_call(spec_of(model), partition, "forget")
    checked_seconds("patience", patience, zero=True)
    return forgotten(scope, ours=port.current().owns_server, certify=certify, patience=patience)


def forgotten(scope: Scope, *, ours: bool, certify: bool, patience: Seconds) -> Plan[Forgotten]:
    """The plan of `forget`; `ours`: the server is the embedded one."""
    kept = quarantine_of(scope)
    records: int = yield Drop(scope)
    quarantined: int = yield Drop(kept)
    if not certify:
        if ours:
            yield RewriteLog()
        return Forgotten(records, quarantined)
    for one in (scope, kept):
        left: int = yield KeysLeft(one)
        if left:
            raise StoreError(
                f"{scope.spec.name}: the partition is there again: somebody writes to it",
                hint="stop what writes, and forget it again",
            )
    rewritten = (yield from _rewrite(patience)) if ours else None
    facts: tuple[Persisted, ...] = yield Persistence()
    return Forgotten(records, quarantined, rewritten, _out_of_reach(facts, ours, _has_rows(scope)))


def _has_rows(scope: Scope) -> bool:
    """Whether PostgreSQL keeps rows of the model."""
    return getattr(scope.spec, "mirror", None) is not None


def _rewrite(patience: Seconds) -> Plan[bool]:
    """Rewrite the append-only file, from now on, and wait until that is done."""
    waited, pause = 0.0, POLL
    started: bool = yield RewriteLog()
    while True:
        facts: tuple[Persisted, ...] = yield Persistence()
        if not any(one.rewriting for one in facts):
            if started:
                break
            started = yield RewriteLog()  # one that was under way began before the keys were gone
        if waited >= patience:
            raise StoreTimeoutError(
                "everything is erased, but the append-only file is still being rewritten",
                hint="certify again, with more patience",
            )
        yield Pause(pause)
        waited, pause = waited + pause, min(1.0, 2 * pause)
    if not all(one.rewrite_succeeded for one in facts):
        raise StoreError("everything is erased, but the append-only file could not be rewritten")
    return True


def _out_of_reach(facts: tuple[Persisted, ...], ours: bool, rows: bool) -> tuple[str, ...]:
    """What may still hold a trace, and what its owner can do about it."""
    found = []
    if ours:
        found.append("backups of the store's folder, and freed blocks of its disk")
    else:
        if any(one.append_only for one in facts):
            found.append("the append-only file of the server, until it is rewritten (BGREWRITEAOF)")
        found.append("snapshots (RDB files) of the server that are older than this, and backups of them")
    replicas = sum(one.replicas for one in facts)
    if replicas:
        found.append(f"{replicas} replicas, until they have followed, and their files")
    if rows:
        found.append("PostgreSQL: dead rows until VACUUM, the write-ahead log and its archives, backups")
    found.append("exports that were made before")
    return tuple(found)


__all__ = ["Forgotten", "aforget", "forget", "forgotten"]
