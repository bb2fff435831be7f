"""What authoritative rows tell the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omoide.model.schema import Scope
from omoide.ops.request.question import Request


@dataclass(frozen=True, slots=True)
class Span:
    """When a record is valid, in ms: from `start` until before `end` (None: no end). `own`: where it ends by
    itself; `end` follows from that and from the other versions of its `chain` (None: it is in none).
    """

    start: int
    end: int | None = None
    own: int | None = None
    chain: str | None = None


@dataclass(frozen=True, slots=True)
class RowState:
    """A record as its row says it is; `operations`, `footprint`, `codes`, `length` and `flags` as the store
    writes them. `confidence` is the column's (0..65535); `statistics` None for the model's prior,
    `span` for a model without validity.
    """

    id: str
    body: bytes
    operations: bytes
    footprint: bytes
    codes: tuple[int, ...]
    length: int
    flags: int
    version: int
    time_ms: int
    importance: float
    confidence: int
    statistics: tuple[float, float, int, int, int, int] | None
    order: float
    expires_ms: int | None = None
    slot: bytes = b""
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Records of one partition as they are to be: whole (`rows`), in what outcomes change (`states`: id,
    statistics, confidence, order), in when they are valid (`spans`: by id), or gone (`erased`).
    `edges`: id -> all its edges. `drops`: all goes.
    """

    rows: tuple[RowState, ...] = ()
    states: tuple[RowState, ...] = ()
    spans: tuple[tuple[str, Span], ...] = ()
    erased: tuple[str, ...] = ()
    edges: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    drops: bool = False


@dataclass(frozen=True, slots=True)
class Apply(Request[int]):
    """Set what commits `first`..`last` of a partition made of it, if that is what comes next.

    The reply is the number applied now; -1: the partition is not there, and this is not its beginning
    (`begins`). With a `token` it goes to the rebuild of that name, in any case. `more`: what the commits
    after `last` made, one each; the store takes one after the other.
    """

    scope: Scope
    first: int
    last: int
    changes: Changes
    begins: bool = False
    token: str | None = None
    more: tuple[Changes, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied(Request["int | None"]):
    """The number of the last commit a partition shows; None where there is no partition."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class BeginRestore(Request[None]):
    """Begin a rebuild from authoritative rows beside the partition, under the name `token`."""

    scope: Scope
    token: str


@dataclass(frozen=True, slots=True)
class LoadRows(Request[int]):
    """Add records to a rebuild, the first of them as row `first`: 1 at first, and without a gap.

    `step` is what the load before replied, 1 at first; a load that is done again changes nothing. StoreError
    when the rebuild was given up or taken over.
    """

    scope: Scope
    token: str
    rows: tuple[RowState, ...]
    first: int = 1
    step: int = 1


@dataclass(frozen=True, slots=True)
class Adopt(Request[int]):
    """Put a rebuild in the partition's place, at commit `last`, with these counters.

    The reply is the live records; -1: the partition shows a later commit, and nothing was done unless
    `force`.
    """

    scope: Scope
    token: str
    last: int
    counters: tuple[tuple[str, int], ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class Restore(Request[int]):
    """Rebuild a mirrored partition from its rows, readers undisturbed; the records it shows then.

    `progress` is told (records done, records in all).
    """

    scope: Scope
    progress: Callable[[int, int], None] | None = None


@dataclass(frozen=True, slots=True)
class TurnIds(Request["tuple[str, ...] | None"]):
    """The ids a turn was given, whether or not their records are still there; None for no such turn."""

    scope: Scope
    turn: str
