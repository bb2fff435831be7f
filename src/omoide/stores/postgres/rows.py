"""Between a write, its row, and what the store is told of it.

    Put ──entries_of──▶ what indexes need (`_entries`) ─┐
    row ──────────────▶ values, evidence, order ────────┴─▶ RowState, the same bytes whoever makes it

A row whose `_fingerprint` is another than the model's has entries of an older class: they are made anew from
its values, through the class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from omoide.core.columns import stored_confidence
from omoide.core.decay import order_score
from omoide.errors import ModelError
from omoide.model import registry
from omoide.model.instance import Instance
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.reindex import remade
from omoide.ops.request import Put, Record, RowState, Span
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.tables import SYSTEM, Table, values_of
from omoide.stores.redis.codec import STATISTICS, chained, encode_put, identifier, kind, statistics

__all__ = ["Entries", "Known", "entries_of", "order_of", "row_columns", "row_state"]

OF_TEXT = ("_fingerprint", "_entries", "_extra", "_flags", "_length")
"""What a write makes of the values: entries, and of these the flags and the length for recall from rows."""

OF_VECTOR = ("_vectors", "_slot")
"""The vector of the text, and of what kind it is (provider and source)."""

OF_CHAIN = ("_place",)
"""Where a version stands among those of its chain; follows from the rest."""

_APART = ("_fingerprint", "_entries", "_extra", *OF_VECTOR)

_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode
KNOWN = tuple(name for name, _ in SYSTEM if name not in (*OF_TEXT, *OF_VECTOR, *OF_CHAIN))


@dataclass(slots=True)
class Known:
    """The system columns of a row, as a transaction sees and changes them."""

    row: int
    version: int
    operations: bytes
    time_ms: int
    base: float
    order: float
    prior: int
    alpha: float | None
    beta: float | None
    up: int = 0
    down: int = 0
    accesses: int = 0
    accessed_ms: int = 0
    expires_ms: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    own_end: int | None = None
    chain: str | None = None

    @classmethod
    def of(cls, columns: Sequence[Any]) -> Known:
        """From the columns `KNOWN`."""
        known = cls(*columns)
        known.operations = bytes(known.operations)
        return known

    @property
    def columns(self) -> tuple[Any, ...]:
        """For the columns `KNOWN`."""
        return tuple(getattr(self, name) for name in self.__slots__)

    @property
    def statistics(self) -> tuple[float, float, int, int, int, int] | None:
        if self.alpha is None or self.beta is None:
            return None
        return self.alpha, self.beta, self.up, self.down, self.accesses, self.accessed_ms

    @property
    def confidence(self) -> int:
        """As the attribute column holds it."""
        if self.alpha is None or self.beta is None:
            return self.prior
        return stored_confidence(self.alpha / (self.alpha + self.beta))

    def expired(self, now_ms: int) -> bool:
        return self.expires_ms is not None and self.expires_ms <= now_ms

    def span(self, spec: ModelSpec) -> Span | None:
        """When the record is valid; one of an older class, without validity, since its time."""
        if spec.validity is None:
            return None
        start = self.time_ms if self.valid_from is None else self.valid_from
        return Span(start, self.valid_to, self.own_end, self.chain)


@dataclass(frozen=True, slots=True)
class Entries:
    """What the indexes of a record need beside its values."""

    codes: tuple[int, ...]
    length: int
    flags: int
    listed: bytes

    def packed(self) -> bytes:
        return _pack([list(self.codes), self.length, self.flags, self.listed])

    @classmethod
    def unpacked(cls, data: bytes) -> Entries:
        codes, length, flags, listed = _unpack(data)
        return cls(tuple(codes), length, flags, listed)

    @property
    def entities(self) -> tuple[str, ...]:
        return tuple(_unpack(self.listed)[4])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A write made ready: entries, body, base score, first confidence and evidence, start, own end, chain."""

    entries: Entries
    body: bytes
    base: float
    prior: int
    alpha: float | None
    beta: float | None
    valid_from: int | None = None
    own_end: int | None = None
    chain: str | None = None


def entries_of(put: Put) -> Prepared:
    """What a write gives its row."""
    plan, footprint, body, _ = encode_put(put)
    listed = footprint[len(identifier(put.id)) :]
    entries = Entries(tuple(plan["codes"]), plan["length"], plan["flags"], listed)
    given = statistics(put)
    alpha, beta = STATISTICS.unpack(given)[:2] if given else (None, None)
    told = [plan.get(name) for name in ("valid_from", "valid_to", "chain")]
    return Prepared(entries, body, plan["importance"], plan["confidence"], alpha, beta, *told)


def order_of(spec: ModelSpec, base: float, touched: float) -> float:
    """Place in the decay order of a record touched at `touched` (seconds)."""
    decay = spec.decay
    if decay is None or decay.exponent is not None:
        return touched
    return order_score(base, touched, decay.half_life)


def state_of(
    spec: ModelSpec, id: str, known: Known, entries: Entries, body: bytes, slot: bytes = b""
) -> RowState:
    """What the store is told of a record; `slot`: its vector, or the digest of its text."""
    return RowState(
        id=id,
        body=body,
        operations=known.operations,
        footprint=identifier(id) + chained(known.chain) + entries.listed,
        codes=entries.codes,
        length=entries.length,
        flags=entries.flags,
        version=known.version,
        time_ms=known.time_ms,
        importance=known.base,
        confidence=known.confidence,
        statistics=known.statistics,
        order=known.order,
        expires_ms=known.expires_ms,
        slot=slot,
        span=known.span(spec),
    )


def row_columns(table: Table) -> list[str]:
    """The columns that `row_state` reads, in its order."""
    names = [column.name for column in table.columns]
    return [table.spec.id_field, *KNOWN, *_APART, *names]


def row_state(table: Table, scope: Scope, columns: Sequence[Any]) -> RowState:
    """A record from its row."""
    id, known, values, entries = read_row(table, scope, columns)
    vectors, slot = columns[1 + len(KNOWN) + 3 :][:2]
    same = slot is not None and vectors == kind(table.spec)
    return state_of(table.spec, id, known, entries, _pack(values), bytes(slot) if same else b"")


def read_row(
    table: Table, scope: Scope, columns: Sequence[Any]
) -> tuple[str, Known, dict[str, Any], Entries]:
    """(id, system columns, values, entries) of a row."""
    id, known, values = read_values(table, columns)
    fingerprint, packed = columns[1 + len(KNOWN) :][:2]
    if fingerprint == table.spec.fingerprint:
        return id, known, values, Entries.unpacked(bytes(packed))
    return id, known, values, made_anew(scope, id, known, values).entries


def read_values(table: Table, columns: Sequence[Any]) -> tuple[str, Known, dict[str, Any]]:
    """(id, system columns, values) of a row."""
    after = 1 + len(KNOWN)
    extra = columns[after + 2]
    values = values_of(table, columns[after + len(_APART) :], extra)
    return unescaped(columns[0]), Known.of(columns[1:after]), values


def made_anew(scope: Scope, id: str, known: Known, values: Mapping[str, Any]) -> Prepared:
    """What the class as it is now makes of the values of a row."""
    cls = registry.find(scope.spec.name)
    if cls is None or not issubclass(cls, Instance) or cls.__omoide_spec__ is None:
        raise ModelError(
            f"{scope.spec.name}: rows of an older class, and the class is not loaded",
            hint="name it as module:Class",
        )
    record = Record(
        id=id, row=0, values=dict(values), version=known.version, time_ms=known.time_ms,
        importance=known.base, confidence=0.5,
    )  # fmt: skip
    return entries_of(remade(cls, scope, record))


def entity_digest(name: str) -> bytes:
    """16 bytes that stand for an entity."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def key(id: str) -> str:
    """An id as its column holds it."""
    return escaped(id)
