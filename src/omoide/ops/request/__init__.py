"""What a plan asks of a store, and what it gets back: plain data, no I/O.

A plan is a generator that yields one request at a time and receives its reply. A store turns a
request into wire commands; a sync and an async driver (`omoide.ops.run`) carry them. Every request
that touches records has a `scope`, one partition of one model, so that no request can reach
another partition.

    question    what every request is          record     a record, and what is kept of it
    write       put, erase, observe, deliver   read       get, match, search, find, count, page, dump
    vector      of records                     graph      links between records
    partition   counters, servers, the store   upkeep     check and rebuild
    mirror      what authoritative rows tell
"""

from __future__ import annotations

from omoide.ops.request.graph import Link, Spread
from omoide.ops.request.mirror import (
    Adopt,
    Applied,
    Apply,
    BeginRestore,
    Changes,
    LoadRows,
    Restore,
    RowState,
    Span,
    TurnIds,
)
from omoide.ops.request.partition import (
    Increment,
    KeysLeft,
    Partitions,
    PartitionStatus,
    Pause,
    Persisted,
    Persistence,
    ReadCounters,
    RewriteLog,
    ServerStatus,
)
from omoide.ops.request.question import Request
from omoide.ops.request.read import (
    EVERYTHING,
    Absence,
    Count,
    Dump,
    Dumped,
    DumpReply,
    Find,
    Get,
    GetUnique,
    Hit,
    Match,
    Page,
    PageReply,
    ReadTurn,
    Search,
    SearchReply,
    Top,
)
from omoide.ops.request.record import Kept, Record, Statistics
from omoide.ops.request.upkeep import (
    BeginReindex,
    Check,
    CheckReply,
    CopyRecords,
    FinishReindex,
    Prune,
    ReindexState,
)
from omoide.ops.request.vector import Digests, Embed, PutVectors, Unembedded, UnembeddedReply
from omoide.ops.request.write import (
    Batch,
    Deliver,
    Drop,
    Erase,
    Evidence,
    Observe,
    ObserveReply,
    Put,
    PutReply,
    Write,
)

__all__ = [
    "EVERYTHING",
    "Absence",
    "Adopt",
    "Applied",
    "Apply",
    "Batch",
    "BeginReindex",
    "BeginRestore",
    "Changes",
    "Check",
    "CheckReply",
    "CopyRecords",
    "Count",
    "Deliver",
    "Digests",
    "Drop",
    "Dump",
    "DumpReply",
    "Dumped",
    "Embed",
    "Erase",
    "Evidence",
    "Find",
    "FinishReindex",
    "Get",
    "GetUnique",
    "Hit",
    "Increment",
    "Kept",
    "KeysLeft",
    "Link",
    "LoadRows",
    "Match",
    "Observe",
    "ObserveReply",
    "Page",
    "PageReply",
    "PartitionStatus",
    "Partitions",
    "Pause",
    "Persisted",
    "Persistence",
    "Prune",
    "Put",
    "PutReply",
    "PutVectors",
    "ReadCounters",
    "ReadTurn",
    "Record",
    "ReindexState",
    "Request",
    "Restore",
    "RewriteLog",
    "RowState",
    "Search",
    "SearchReply",
    "ServerStatus",
    "Span",
    "Spread",
    "Statistics",
    "Top",
    "TurnIds",
    "Unembedded",
    "UnembeddedReply",
    "Write",
]
