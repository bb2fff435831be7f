"""Requests that check a partition and rebuild its indexes."""

from __future__ import annotations

from dataclasses import dataclass

from omoide.model.schema import Scope
from omoide.ops.request.question import Request
from omoide.ops.request.write import Put


@dataclass(frozen=True, slots=True)
class Prune(Request[int]):
    """Erase up to `limit` expired records; how many went."""

    scope: Scope
    limit: int = 64


@dataclass(frozen=True, slots=True)
class Check(Request["CheckReply"]):
    """Compare a partition's indexes with its records (read only)."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class CheckReply:
    records: int
    findings: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class BeginReindex(Request["ReindexState"]):
    """Start, or resume, a rebuild of the partition into shadow keys."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class CopyRecords(Request["int"]):
    """Re-index a page of records into the shadow; rows that changed meanwhile are skipped."""

    scope: Scope
    token: str
    rows: tuple[int, ...]
    puts: tuple[Put, ...]


@dataclass(frozen=True, slots=True)
class FinishReindex(Request["int | None"]):
    """Swap the shadow in; the number of live records, None where some are still to be copied."""

    scope: Scope
    token: str


@dataclass(frozen=True, slots=True)
class ReindexState:
    """`token` names this rebuild, `cursor` the Page cursor to go on from."""

    token: str
    cursor: str
    total: int
