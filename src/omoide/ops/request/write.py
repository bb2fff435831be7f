"""Requests that change records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omoide.model.schema import Scope
from omoide.ops.request.question import Request
from omoide.ops.request.record import Kept


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
