"""What a plan asks of a store, and what it gets back: plain data, no I/O.

A plan is a generator that yields one request at a time and receives its reply. A store turns a
request into wire commands; a sync and an async driver (`omoide.ops.run`) carry them. Every request
that touches records has a `scope`, one partition of one model, so that no request can reach
another partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from omoide.core.arms.weights import RankWeights
from omoide.core.explanation import Part
from omoide.core.text.cues import PartialDate
from omoide.model.schema import EmbeddingIndex, Scope

R = TypeVar("R", covariant=True)


class Request(Generic[R]):
    """A question whose reply has type R."""

    __slots__ = ()


# ---- records -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Record:
    """A stored record as it is now. Not to be changed; it is not frozen because that doubles what one costs.

    `values` are stored forms by field name (unknown names included). `confidence` is in (0, 1).
    `relevance` is the decayed base score at the time of the reply (None without a decay field), `order`
    the score of the decay order: the greater the earlier, at any time (by a power law: the last touch).
    Instants are milliseconds since the epoch, UTC; 0 is never. `read_ms`: the time of the reply. It is valid
    from `valid_from_ms` until before `valid_to_ms` (None: no end); both are None without validity.
    """

    id: str
    row: int
    values: dict[str, Any]
    version: int
    time_ms: int
    importance: float
    confidence: float
    corroborations: int = 0
    contradictions: int = 0
    access_count: int = 0
    accessed_ms: int = 0
    relevance: float | None = None
    expires_ms: int = 0
    order: float = 0.0
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None
    read_ms: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """What outcomes and deliveries left of a record: Beta evidence with its counts, and its accesses."""

    alpha: float
    beta: float
    corroborations: int = 0
    contradictions: int = 0
    access_count: int = 0
    accessed_ms: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store keeps of a record beside its values; an export tells it, a write may set it.

    `statistics` None: the prior of the model stands. `order`: score of the decay order, None for a touch
    now. `expires_ms` 0: never. `edges`: (id, weight) of links to records that were stored before this one,
    strongest first, at most 64; the others have the same links. `entities`: names that it is filed under,
    None for those that its text names.
    `validity`: start and own end (ms; None: no end) of a record that has any. `chain`: of the versions of
    one that was superseded without a key.
    """

    version: int = 1
    time_ms: int | None = None
    statistics: Statistics | None = None
    order: float | None = None
    expires_ms: int = 0
    edges: tuple[tuple[str, float], ...] = ()
    entities: tuple[str, ...] | None = None
    validity: tuple[int, int | None] | None = None
    chain: str | None = None


@dataclass(frozen=True, slots=True)
class Put(Request["PutReply"]):
    """Write one record with all its index entries, in one atomic step.

    mode: `upsert` (write whatever is there), `create` (only when the id is free), `update` (only
    when the id is there: a stale instance of a deleted record is not resurrected).
    `values`: stored form of every field, the id among them. `terms`: text term -> frequency, at
    most 2,048. `length`: all text terms, counted with repeats. `exact`: (field, value) pairs.
    `unique`: one (fields, values) digest, 16 bytes, per uniqueness rule. `base`: base score of the
    decay order, or None. `time_ms` None: the time of the first save, by the server's clock.
    `cap`: most records the partition may hold, 0 for no bound. `kept`: state of a new record that takes the
    place of what the store would begin with (`time_ms`, `ttl_ms` and `entities` of the write still hold);
    its names then make no edges.
    With validity: `valid_from_ms` None is the time of the record, at the latest that of its first save;
    `valid_to_ms` None is no end of its own; records of one `chain` are versions of each other.
    `supersedes`: id of the version that has no end yet and gets one by this write, in the same step.
    `passage`: the text to embed. `slot`: its vector as stored, or 8 bytes that stand for the text: then the
    vector that is stored of it is kept.
    """

    scope: Scope
    id: str
    values: Mapping[str, Any]
    mode: str = "upsert"
    expect_version: int | None = None
    operation_id: str | None = None
    terms: Mapping[str, int] = field(default_factory=dict)
    length: int = 0
    exact: tuple[tuple[str, str], ...] = ()
    unique: tuple[bytes, ...] = ()
    entities: tuple[str, ...] = ()
    importance: float = 1.0
    base: float | None = None
    confidence: float | None = None
    time_ms: int | None = None
    session: str | None = None
    author: str | None = None
    cues: int = 0
    asks: bool = False
    asking: bool = False
    suspect: bool = False
    ttl_ms: int | None = None
    cap: int = 0
    kept: Kept | None = None
    passage: str = ""
    slot: bytes = b""
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None
    chain: str | None = None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True)
class PutReply:
    """status: `stored`, `duplicate` (of `duplicate_of`), `exists`, `deleted`, `version`, `expired`; of the
    version to supersede `missing`, `closed` (it has an end), `other_key`.

    With validity: the record's own `interval` (None: no end) as it now is, and the version that was `closed`:
    the one that ends where this one starts, and did not before. `embedded`: the record has the vector of
    its text.
    """

    status: str
    version: int = 0
    created: bool = False
    evicted: int = 0
    repeated: bool = False
    duplicate_of: str | None = None
    mirrored: bool = True
    closed: str | None = None
    interval: tuple[int, int | None] | None = None
    embedded: bool = False


@dataclass(frozen=True, slots=True)
class Erase(Request["tuple[bool, ...]"]):
    """Erase records with all their traces, each atomically; True where one was there."""

    scope: Scope
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an outcome says of one record: Beta evidence for and against, and whether it was used.

    An empty id stands for every record of the turn.
    """

    id: str
    support: float = 0.0
    against: float = 0.0
    touch: bool = False
    access: bool = False


@dataclass(frozen=True, slots=True)
class Observe(Request["ObserveReply"]):
    """Apply outcomes to many records, in one atomic step.

    With `turn`, each record of that turn takes one outcome, once, and one `echo`, once. `link` > 0
    strengthens the edge between every two records of `linked` that took this outcome, by that weight;
    with an evidence for the whole turn, between the first 32 of its records.
    """

    scope: Scope
    evidence: tuple[Evidence, ...]
    turn: str | None = None
    linked: tuple[str, ...] = ()
    link: float = 0.0
    echo: bool = False
    counters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ObserveReply:
    """Per record: `applied`, `missing` (no such record) or `repeated` (already told)."""

    ids: tuple[str, ...]
    states: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deliver(Request[None]):
    """Note under a turn id, for `ttl_ms`, which records a prompt was given; counts one access for each."""

    scope: Scope
    turn: str
    ids: tuple[str, ...]
    counters: tuple[tuple[str, int], ...] = ()
    ttl_ms: int = 86_400_000


Write = Put | Erase | Observe | Deliver


@dataclass(frozen=True, slots=True)
class Batch(Request["tuple[Any, ...]"]):
    """Writes sent together: one round trip per 256 (and per node). Each is atomic, the batch is not.

    The reply holds, in order, each write's reply or the StoreError that stopped it.
    """

    writes: tuple[Write, ...]


@dataclass(frozen=True, slots=True)
class Drop(Request[int]):
    """Erase a whole partition, its counters, turns and graph included; the number of records it held."""

    scope: Scope


# ---- reads ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Get(Request["tuple[Record | None, ...]"]):
    """Records by id, in the order asked.

    `settled`: of a mirrored model as its rows say, whatever the store shows of them yet.
    """

    scope: Scope
    ids: tuple[str, ...]
    settled: bool = False


@dataclass(frozen=True, slots=True)
class GetUnique(Request["Record | None"]):
    """The record that holds a uniqueness digest."""

    scope: Scope
    digest: bytes


@dataclass(frozen=True, slots=True)
class Match:
    """Filters that indexes answer. All must hold; an empty Match holds for every live record.

    `exact`: (field, value). `exclude`: ids. Ranges are half-open `[low, high)`, None for open;
    `time` in milliseconds. Where records have validity, only those count that are valid `as_of` (ms; None:
    now, by the server's clock), or with `history` every version.
    """

    exact: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    time: tuple[int | None, int | None] | None = None
    importance: tuple[float | None, float | None] | None = None
    confidence: tuple[float | None, float | None] | None = None
    as_of: int | None = None
    history: bool = False

    @property
    def selects(self) -> bool:
        """Whether there is a filter beside validity."""
        return replace(self, as_of=None, history=False) != EVERYTHING


EVERYTHING = Match()


@dataclass(frozen=True, slots=True)
class Search(Request["SearchReply"]):
    """Rank a partition by text and by what else the query tells.

    `terms`: query term -> weight, at most 64. `explain` asks for the parts of each score. `names`: words
    of the query that may name an author. `dates`: (year, month, day), None for what was not said. `cues`
    it asks for, as in `core.text.cues`. `ranking`: weights of the arms, None for the model's. `about`: an
    id of which to tell why it does not come. `vector`: float32[dimensions] of length 1 of what the query
    means, or None.

    Cost: one round trip, two where nothing is cached; one more for a word that no memory has when the words
    of the partition are not known (a page of 10,000 a round trip), and one more with `about`. Vectors
    beyond the first MiB that are not cached take two more.
    """

    scope: Scope
    terms: Mapping[str, float]
    limit: int = 10
    match: Match = EVERYTHING
    explain: bool = False
    names: tuple[str, ...] = ()
    dates: tuple[PartialDate, ...] = ()
    cues: int = 0
    ranking: RankWeights | None = None
    about: str | None = None
    vector: Any = None


@dataclass(slots=True)
class Hit:
    """One ranked record, not to be changed. `score` is final, `text` the sum over terms before other arms.

    Only when explained: `tree` holds the parts that make the score, `parts` the value of each by name
    (terms are `term:<term>`), `place` among all that match, and `place_by_text` by the words of its own
    alone (1 is best, 0 for none).
    """

    record: Record
    score: float
    text: float
    parts: Mapping[str, float] = field(default_factory=dict)
    tree: Part | None = None
    place: int = 0
    place_by_text: int = 0


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a record is not among the hits.

    `reason`: `found` (it is among them), `missing` (never stored, or erased), `expired` (or not valid
    then), `filtered`, `unmatched` (nothing of the query applies to it), `outranked` (`score` is below
    `least`, that of the last hit, or ties with it and comes later). `tree` explains a score.
    """

    reason: str
    score: float = 0.0
    least: float = 0.0
    tree: Part | None = None


@dataclass(frozen=True, slots=True)
class SearchReply:
    """Best first. `reader` is `client` or `server`; `round_trips` what it took; `live` all records.

    `skipped` names arms that would have cost too much. `stand_ins`: word that no memory has -> the similar
    ones searched instead. `about`: of the record asked about. `without_meaning`: why a search with a vector
    was answered by words alone, "" when it was not. `unembedded`: live records without a vector.
    """

    hits: tuple[Hit, ...]
    reader: str
    round_trips: int
    live: int
    skipped: tuple[str, ...] = ()
    stand_ins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    about: Absence | None = None
    without_meaning: str = ""
    unembedded: int = 0


@dataclass(frozen=True, slots=True)
class Top(Request["tuple[Record, ...]"]):
    """The first `limit` records of the decay order (oldest-last without a decay field).

    `weigh_confidence` ranks by relevance x (.8 + .2 confidence) instead, exactly.
    """

    scope: Scope
    limit: int
    match: Match = EVERYTHING
    weigh_confidence: bool = False


@dataclass(frozen=True, slots=True)
class Find(Request["tuple[Record, ...]"]):
    """Records that match, ordered by `time`, `importance`, `confidence` or `valid_from`.

    Ties by time, then id.
    """

    scope: Scope
    match: Match = EVERYTHING
    order: str = "time"
    descending: bool = True
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Count(Request[int]):
    """How many live records match."""

    scope: Scope
    match: Match = EVERYTHING


@dataclass(frozen=True, slots=True)
class Page(Request["PageReply"]):
    """The next `size` live records in storage order after `cursor` (empty: from the start)."""

    scope: Scope
    cursor: str = ""
    size: int = 500


@dataclass(frozen=True, slots=True)
class PageReply:
    """`cursor` is empty at the end; `restarted` says that storage was reorganised: dedupe by id."""

    records: tuple[Record, ...]
    cursor: str
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class Dump(Request["DumpReply"]):
    """The next `size` (1..128) live records in storage order after `cursor`, and all that is kept of them."""

    scope: Scope
    cursor: str = ""
    size: int = 128


@dataclass(frozen=True, slots=True)
class Dumped:
    """One record: stored forms by field name, and its state."""

    id: str
    row: int
    values: dict[str, Any]
    kept: Kept


@dataclass(frozen=True, slots=True)
class DumpReply:
    """`cursor` is empty at the end. `next`: the first row that is not given yet; rows from it on hold what is
    written after this reply. `version` counts the writes of the partition, `live` its records, whatever the
    pages find."""

    records: tuple[Dumped, ...]
    cursor: str
    next: int = 1
    version: int = 0
    live: int = 0


@dataclass(frozen=True, slots=True)
class ReadTurn(Request["tuple[Record, ...] | None"]):
    """The records a turn was given that are still there; None for an unknown or expired turn."""

    scope: Scope
    turn: str


# ---- vectors -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Embed(Request[Any]):
    """float32[texts, dimensions], each of length 1: what the provider of a model makes of some texts.

    The store's driver answers it by calling the provider; an async one is awaited, any other one called
    in a thread. `query`: it is the text of a recall, and bounded by the timeout of the index; a deadline in
    force leaves any call half of what remains.

    Raises EmbeddingError in the plan.
    """

    index: EmbeddingIndex
    texts: tuple[str, ...]
    query: bool = False


@dataclass(frozen=True, slots=True)
class Digests(Request["tuple[bytes, ...]"]):
    """Of which text the vector of each record is: 8 bytes, empty where there is none of the model's kind."""

    scope: Scope
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unembedded(Request["UnembeddedReply"]):
    """The next `size` live records in storage order that have no vector of the model's kind.

    A cursor of rows that were renumbered begins anew.
    """

    scope: Scope
    cursor: str = ""
    size: int = 64


@dataclass(frozen=True, slots=True)
class UnembeddedReply:
    """`gen` names the row numbers, empty for no partition; `looked`: live records passed."""

    records: tuple[Record, ...]
    cursor: str
    gen: str
    looked: int


@dataclass(frozen=True, slots=True)
class PutVectors(Request["tuple[bool, ...] | None"]):
    """Store vectors of rows of a numbering; True where it was taken, None when the rows were renumbered.

    Vectors of another `kind` in the partition are dropped first.
    """

    scope: Scope
    kind: str
    gen: str
    rows: tuple[int, ...]
    slots: tuple[bytes, ...]


# ---- graph ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link(Request[float]):
    """Add `delta` (may be negative) to the edge between two records; the new weight (0: no edge)."""

    scope: Scope
    first: str
    second: str
    delta: float


@dataclass(frozen=True, slots=True)
class Spread(Request["tuple[tuple[str, float], ...]"]):
    """Best-path propagation from `seeds` (id -> score): at most `hops` hops, `fan_out` edges a node.

    A path's score is the seed's times decay x weight / (1 + weight) per hop. Neighbours are hops=1.
    Strongest first, ties by id; seeds themselves are left out.
    """

    scope: Scope
    seeds: Mapping[str, float]
    hops: int = 1
    fan_out: int = 16
    decay: float = 0.5
    limit: int = 64


# ---- counters and the whole store -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Increment(Request[int]):
    """Add to a named counter of the partition; its new value."""

    scope: Scope
    name: str
    delta: int = 1


@dataclass(frozen=True, slots=True)
class ReadCounters(Request["dict[str, int]"]):
    """All counters of the partition."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Partitions(Request["tuple[PartitionStatus, ...]"]):
    """Every partition of a model (of all models when None), found by scanning the primaries."""

    model: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    model: str
    values: tuple[str, ...]
    live: int
    dead: int
    rows: int
    version: int
    fingerprint: str
    counters: Mapping[str, int]
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class ServerStatus(Request["dict[str, Any]"]):
    """Server kind, version, memory, policy, number of primaries, round trips of this process."""


@dataclass(frozen=True, slots=True)
class KeysLeft(Request[int]):
    """How many keys of the partition there are, whatever they hold."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Persistence(Request["tuple[Persisted, ...]"]):
    """What every primary keeps beside its memory."""


@dataclass(frozen=True, slots=True)
class Persisted:
    """One primary: whether it keeps an append-only file, whether that is being rewritten (or about to be) and
    the last rewrite succeeded, and how many replicas follow it."""

    append_only: bool
    rewriting: bool
    rewrite_succeeded: bool
    replicas: int


@dataclass(frozen=True, slots=True)
class RewriteLog(Request[bool]):
    """Begin to rewrite the append-only file of every primary; False where one is under way already."""


@dataclass(frozen=True, slots=True)
class Pause(Request[None]):
    """Wait so many seconds."""

    seconds: float


# ---- maintenance ----------------------------------------------------------------------------------


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
class FinishReindex(Request["int"]):
    """Swap the shadow in; the number of live records."""

    scope: Scope
    token: str


@dataclass(frozen=True, slots=True)
class ReindexState:
    """`token` names this rebuild, `cursor` the Page cursor to go on from."""

    token: str
    cursor: str
    total: int


# ---- mirror: what authoritative rows tell the store ------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowState:
    """A record as its row says it is; `operations`, `footprint`, `codes`, `length` and `flags` as the store
    writes them. `confidence` is the column's (0..65535); `statistics` None for the model's prior.
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


@dataclass(frozen=True, slots=True)
class Changes:
    """Records of one partition as they are to be: whole (`rows`), in what outcomes change (`states`: id,
    statistics, confidence, order), or gone (`erased`). `edges`: id -> all its edges. `drops`: all goes.
    """

    rows: tuple[RowState, ...] = ()
    states: tuple[RowState, ...] = ()
    erased: tuple[str, ...] = ()
    edges: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    drops: bool = False


@dataclass(frozen=True, slots=True)
class Apply(Request[int]):
    """Set what commits `first`..`last` of a partition made of it, if that is what comes next.

    The reply is the number applied now; -1: the partition is not there, and this is not its beginning
    (`begins`). With a `token` it goes to the rebuild of that name, in any case.
    """

    scope: Scope
    first: int
    last: int
    changes: Changes
    begins: bool = False
    token: str | None = None


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
class LoadRows(Request[None]):
    """Add records that are not there yet to a rebuild. StoreError when it was given up or taken over."""

    scope: Scope
    token: str
    rows: tuple[RowState, ...]


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
