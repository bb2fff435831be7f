"""Rebuild a partition's indexes from its records, while it is read and written.

    BeginReindex ──cursor──▶ Page ──records──▶ made anew through the model ──▶ CopyRecords ─┐
                               ▲────────────────────── next page ──────────────────────────┘
                                                                        Prune ──▶ FinishReindex

Every record goes through its class again, so that a changed analyzer, a new index or a default for a
new field takes hold; what the store itself knows of it (version, statistics, confidence, last touch,
expiry, edges, the vector of a text that is the same) stays. Gates are not asked again: what is stored stays
stored; but a text that the firewall blocks today is not given to a provider of vectors.

The copy is a shadow beside the partition. Readers see the old indexes until the last step swaps them;
a rebuild that was cut short is taken up where it stopped. Expired records are not copied, so they
are erased before the swap: both sides then hold the same number. A write goes into both, but for a long text,
which waits to be copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omoide.mixins.never_record import policy_of
from omoide.model.draft import Draft
from omoide.model.instance import Instance, add_entries, spec_of, stored_values
from omoide.model.partition import scope_of_call
from omoide.model.schema import Scope
from omoide.ops import port
from omoide.ops.embedding import blocked, embedded, held_already
from omoide.ops.prepare import put_of
from omoide.ops.request import (
    BeginReindex,
    CopyRecords,
    FinishReindex,
    Page,
    PageReply,
    Prune,
    Put,
    Record,
    ReindexState,
    Restore,
)
from omoide.ops.run import Plan, arun, run

Progress = Callable[[int, int], None]
"""Told (records copied in this run, records to copy) after every page."""

PAGE = 256
PRUNED_AT_ONCE = 64


def reindex(model: type[Instance], *, progress: Progress | None = None, **partition: Any) -> int:
    """Rebuild the indexes of one partition; how many records it holds.

    Raises:
        QueryError: the partition is not named.
        FieldError: a stored value breaks a rule of its field as the class is now; nothing changed.
        StoreError: another process took this rebuild over, or gave it up.
    Cost: two round trips per 256 records, and their bodies through this process; with an EmbeddingField
        three, and a call of the provider for the texts that have no vector of its kind.
    """
    scope = scope_of_call(spec_of(model), partition, "reindex")
    return run(rebuild(model, scope, progress), port.current().store)


async def areindex(model: type[Instance], *, progress: Progress | None = None, **partition: Any) -> int:
    """Rebuild the indexes of one partition; see `reindex`."""
    scope = scope_of_call(spec_of(model), partition, "reindex")
    return await arun(rebuild(model, scope, progress), port.current().astore)


def rebuild(model: type[Instance], scope: Scope, progress: Progress | None = None) -> Plan[int]:
    """The plan of `reindex`; a mirrored model is rebuilt from its rows."""
    if scope.spec.mirror is not None:
        restored: int = yield Restore(scope, progress)
        return restored
    copied = 0
    while True:
        state: ReindexState = yield BeginReindex(scope)
        if not state.token:
            return 0
        copied = yield from _copy(model, scope, state, copied, progress)
        while (yield Prune(scope, PRUNED_AT_ONCE)):
            pass
        live: int | None = yield FinishReindex(scope, state.token)
        if live is not None:
            return live


def _copy(
    model: type[Instance], scope: Scope, state: ReindexState, copied: int, progress: Progress | None
) -> Plan[int]:
    """Copy what follows the cursor of a rebuild, page by page; how many in all."""
    cursor = state.cursor
    while True:
        page: PageReply = yield Page(scope, cursor, PAGE)
        if page.records:
            puts = [remade(model, scope, record) for record in page.records]
            if scope.spec.embedding is not None:
                puts = yield from embedded(puts, (yield from held_already(puts)))
            rows = tuple(record.row for record in page.records)
            yield CopyRecords(scope, state.token, rows, tuple(puts))
            copied += len(puts)
        if progress is not None:
            progress(copied, max(copied, state.total))
        cursor = page.cursor
        if not cursor:
            return copied


def remade(model: type[Instance], scope: Scope, record: Record) -> Put:
    """The write that would store a loaded record, as its class is now. No I/O."""
    instance = model.from_record(record)
    draft = Draft(stored_values(instance), suspect=_suspect(model, record))
    add_entries(instance, draft)
    if draft.passage and blocked(model, draft.passage):
        draft.passage = ""
    return put_of(instance, scope, record.id, draft)


def _suspect(model: type[Instance], record: Record) -> bool:
    """Whether the firewall doubts the record, as it would at a save."""
    if not spec_of(model).never_record:
        return False
    from omoide.privacy import scan_values

    policy = policy_of(model)
    return scan_values({name: value for name, value in record.values.items() if value}, policy=policy).suspect


__all__ = ["Progress", "areindex", "rebuild", "reindex", "remade"]
