"""Between requests and bytes: what scripts are given, and what records look like when they come back.

body       MessagePack map, field name -> stored value, sorted by name
footprint  id, chain of versions where it is in one, then a MessagePack list: index terms, unique digests,
           session, author, entities (drawn in lib/footprint.lua)
record     row, body, attribute row (32 bytes), statistics (36 bytes or none), decay order, expiry, interval
statistics f64 alpha, f64 beta, u32 corroborations, u32 contradictions, u32 accesses, i64 last access

A record that cannot be read does not keep the others from being read: it comes as a `Record` without an id
whose values are all `DAMAGED`, which no field takes for a stored form. Lists leave it out (`sound`); a
look-up of its id and every reading of its fields raise CorruptRecordError.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import secrets
import struct
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from omoide.core.columns import (
    ASKING,
    ASKS,
    CONFIDENCE_STEPS,
    INTERVAL,
    OPEN,
    SUSPECT,
    stored_confidence,
    unpack,
)
from omoide.core.decay import power_relevance, relevance_at
from omoide.core.postings import code, exact_term
from omoide.errors import CorruptRecordError
from omoide.model.schema import ModelSpec
from omoide.ops.request import Kept, Put, Record

if TYPE_CHECKING:
    from omoide.core.columns import Columns

FORMAT = "1"
STATISTICS = struct.Struct("<ddIIIq")
NO_ATTRIBUTES = unpack(bytes(32))
_F32 = struct.Struct("<f")
_EDGE = struct.Struct("<If")
_INTERVAL = struct.Struct(INTERVAL)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_decode_body = msgspec.msgpack.Decoder(dict[str, Any]).decode
pack_plan = _encode
unpack_reply = _decode


class _Damaged:
    __slots__ = ()

    def __repr__(self) -> str:
        return "DAMAGED"


DAMAGED = _Damaged()
"""Stands for each value of a record that cannot be read."""

UNREADABLE = (
    msgspec.MsgspecError,
    struct.error,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    CorruptRecordError,
)
"""What decoding bytes that are not what was written may raise."""

_LOG = logging.getLogger("omoide")
_told: set[str] = set()


def shape(spec: ModelSpec) -> dict[str, str]:
    """What the head of a partition has to say for a model to write to it."""
    return {"format": FORMAT, "fingerprint": spec.fingerprint}


def kind(spec: ModelSpec) -> str:
    """What the vectors of a model are of; "" for a model without."""
    return "" if spec.embedding is None else spec.embedding.kind


def rate(spec: ModelSpec) -> float | None:
    """Decay per second, None for a model without decay."""
    return None if spec.decay is None else spec.decay.rate


def prior(spec: ModelSpec) -> dict[str, float]:
    """Beta prior and evidence cap of a model; a model without confidence is certain."""
    certainty = spec.certainty
    if certainty is None:
        return {"alpha": 1.0, "beta": 0.0, "cap": 1.0}
    alpha = certainty.initial * certainty.prior_weight
    return {"alpha": alpha, "beta": certainty.prior_weight - alpha, "cap": certainty.cap}


def digest(operation_id: str | None) -> bytes:
    """8 bytes that stand for an operation id; fresh ones when there is none."""
    if operation_id is None:
        return secrets.token_bytes(8)
    return hashlib.blake2b(operation_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def statistics(put: Put) -> bytes:
    """Statistics of a new record whose state or first confidence was given; empty for the model's prior."""
    certainty = put.scope.spec.certainty
    if put.kept is not None:
        held = put.kept.statistics
        return b"" if held is None else STATISTICS.pack(*astuple(held))
    if put.confidence is None or certainty is None:
        return b""
    alpha = put.confidence * certainty.prior_weight
    return STATISTICS.pack(alpha, certainty.prior_weight - alpha, 0, 0, 0, 0)


def _confidence(put: Put) -> int:
    certainty = put.scope.spec.certainty
    if certainty is None:
        return CONFIDENCE_STEPS
    held = None if put.kept is None else put.kept.statistics
    if held is not None:
        return stored_confidence(held.alpha / (held.alpha + held.beta))
    return stored_confidence(certainty.initial if put.confidence is None else put.confidence)


def index_terms(put: Put) -> tuple[list[str], list[int]]:
    """Terms and posting codes: the text's, then the equality terms with code 0."""
    terms, length = list(put.terms), put.length
    codes = [code(frequency, length) for frequency in put.terms.values()]
    exact = dict.fromkeys(exact_term(name, value).decode() for name, value in put.exact)
    return [*terms, *exact], [*codes, *([0] * len(exact))]


def unique_name(digest: bytes) -> str:
    """A uniqueness digest as text: scripts cannot read MessagePack's binary type."""
    return b64encode(digest).decode()


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def identifier(name: str) -> bytes:
    """An id as a footprint holds it: a UUID as a zero and 16 bytes, any other with its length before it."""
    if len(name) == 36 and _UUID.fullmatch(name):
        return b"\0" + bytes.fromhex(name.replace("-", ""))
    text = name.encode()
    return bytes((len(text),)) + text


def chained(chain: str | None) -> bytes:
    """A chain as a footprint holds it after the id; nothing for none."""
    return b"" if chain is None else bytes((len(chain),)) + chain.encode()


def footprint_list(data: bytes) -> list[Any]:
    """The MessagePack list of a stored footprint."""
    found: list[Any] = _decode(data[_after_chain(data) :])
    return found


def footprint_chain(data: bytes) -> tuple[bytes, str | None]:
    """(id, chain of versions or None) of a stored footprint."""
    start, end = 12 + data[10] * 10, _after_id(data)
    name = data[start:end] if data[start - 1] else str(UUID(bytes=data[start:end])).encode()
    stop = _after_chain(data)
    return name, data[end + 1 : stop].decode() if stop > end else None


def _after_id(data: bytes) -> int:
    start = 11 + data[10] * 10
    return start + 1 + (data[start] or 16)


def _after_chain(data: bytes) -> int:
    end = _after_id(data)
    return end + 1 + data[end] if data[end] < 0x80 else end


def encode_put(put: Put) -> tuple[dict[str, Any], bytes, bytes, list[str]]:
    """(plan, footprint, body, terms) of a write; the plan is still to be packed."""
    terms, codes = index_terms(put)
    spec = put.scope.spec
    plan = {
        **shape(spec),
        "id": put.id,
        "mode": put.mode,
        "expect": put.expect_version,
        "codes": codes,
        "length": put.length,
        "time": put.time_ms,
        "importance": _F32.unpack(_F32.pack(put.importance if put.base is None else put.base))[0],
        "confidence": _confidence(put),
        "rate": rate(spec),
        "flags": _flags(put),
        "ttl": put.ttl_ms,
        "interval": spec.ttl is not None or spec.validity is not None,
        "cap": put.cap,
        "vectors": kind(spec),
    }
    if put.kept is not None:
        plan.update(_state(put.kept))
    if spec.validity is not None:
        plan.update(_validity(put))
    entities = list(dict.fromkeys(put.entities))
    unique = [unique_name(name) for name in put.unique]
    listed = _encode([terms, unique, put.session, put.author, entities])
    footprint = identifier(put.id) + listed
    body = _encode({name: put.values[name] for name in sorted(put.values)})
    return plan, footprint, body, terms


def _validity(put: Put) -> dict[str, Any]:
    """What a plan says of validity; the state of a new record goes before what its values say."""
    chain, (start, end) = put.chain, (put.valid_from_ms, put.valid_to_ms)
    if put.kept is not None:
        start, end = put.kept.validity or (start, end)
        chain = chain or put.kept.chain
    told = {"valid_from": start, "valid_to": end, "chain": chain, "supersedes": put.supersedes}
    return {"validity": True, **told}


def _state(kept: Kept) -> dict[str, Any]:
    """What a plan says of the state of a new record; statistics travel beside it."""
    return {
        "version": kept.version,
        "order": kept.order,
        "expires": kept.expires_ms or None,
        "edges": [list(edge) for edge in kept.edges],
    }


def _flags(put: Put) -> int:
    return put.cues | ASKS * put.asks | ASKING * put.asking | SUSPECT * put.suspect


def relevance(spec: ModelSpec, order: float, base: float, now_ms: int) -> float | None:
    """Decayed base score now, from the decay order; None for a model without decay."""
    decay = spec.decay
    if decay is None:
        return None
    now = now_ms / 1000
    if decay.exponent is not None:
        return power_relevance(base, now - order, decay.half_life, decay.exponent)
    return relevance_at(order, now, decay.half_life)


def decode_records(
    spec: ModelSpec, lists: Sequence[Any], now_ms: int, columns: Columns | None = None
) -> Iterator[Record]:
    """Records from the seven lists of a reply, in their order; those that are gone are left out.

    With `columns`, attributes are taken from there. A record that cannot be read has no id (see above).
    """
    if not lists:
        return
    rows, bodies, attributes, statistics, orders, expiries, intervals = lists
    for place, row in enumerate(rows):
        if bodies[place] is None:
            continue
        data = b"" if columns is not None else attributes[place]
        expiry = expiries[place] if expiries else None
        interval = intervals[place] if intervals else b""
        found = (int(row), bodies[place], data, statistics[place], orders[place], expiry, interval)
        try:
            yield _record(spec, *found, now_ms, columns)
        except UNREADABLE:
            yield _marker(spec, found[0], data, orders[place], columns)


def sound(records: Iterable[Record]) -> tuple[Record, ...]:
    """Those that could be read."""
    return tuple(record for record in records if record.id)


def damage(spec: ModelSpec) -> CorruptRecordError:
    """What reading one damaged record raises."""
    return CorruptRecordError(f"a record of {spec.name} is not what was written", hint="omoide doctor")


def tell_of_damage(spec: ModelSpec) -> None:
    """Once per model and process: some records are left out of what is read."""
    if spec.name in _told:
        return
    _told.add(spec.name)
    _LOG.warning(
        "%s: records that are not what was written are left out; `omoide doctor` counts them", spec.name
    )


def edges_in(data: bytes) -> Iterator[tuple[int, float]]:
    """(row, weight) of the edges of a record, strongest first; bytes short of an edge are dropped."""
    return _EDGE.iter_unpack(data[: len(data) - len(data) % _EDGE.size])


def read_body(body: bytes, id_field: str) -> tuple[str, dict[str, Any]]:
    """(id, values) of a record.

    Raises:
        CorruptRecordError, and what `UNREADABLE` lists: not a map of names with an id among them.
    """
    values = _decode_body(body)
    identity = values[id_field]
    if type(identity) is not str or not identity:
        raise CorruptRecordError("a record is not a map of names with an id among them")
    return identity, values


def read_statistics(data: bytes) -> tuple[float, int, int, int, int]:
    """(confidence, corroborations, contradictions, accesses, last access).

    Raises:
        CorruptRecordError, and what `UNREADABLE` lists: not 36 bytes, or no confidence in [0, 1].
    """
    alpha, beta, up, down, accesses, accessed = STATISTICS.unpack(data)
    confidence = alpha / (alpha + beta)
    if not 0.0 <= confidence <= 1.0:
        raise CorruptRecordError("a confidence is not between 0 and 1")
    return confidence, up, down, accesses, accessed


def read_interval(data: bytes) -> tuple[int, int | None]:
    """(valid from, valid to or None for no end) of an interval row, milliseconds."""
    _, start, end = _INTERVAL.unpack(data)
    return ends(start, end)


def ends(start: int, end: int) -> tuple[int, int | None]:
    """An interval as it is told: None for no end."""
    return start, None if end >= OPEN else end


def _record(
    spec: ModelSpec,
    row: int,
    body: bytes,
    attributes: bytes,
    statistics: bytes | None,
    order: bytes | None,
    expiry: bytes | None,
    interval: bytes,
    now_ms: int,
    columns: Columns | None,
) -> Record:
    held = unpack(attributes) if columns is None else columns.row(row)
    _, _, _, importance, _, _, version, time_ms = held
    if not math.isfinite(importance):
        raise CorruptRecordError("an importance is no number")
    if statistics:
        confidence, up, down, accesses, accessed = read_statistics(statistics)
    else:
        confidence = 1.0 if spec.certainty is None else spec.certainty.initial
        up = down = accesses = accessed = 0
    identity, values = read_body(body, spec.id_field)
    valid_from, valid_to = None, None
    if spec.validity is not None:
        valid_from, valid_to = read_interval(interval) if columns is None else ends(*columns.interval(row))
    place = 0.0 if order is None else float(order)
    return Record(
        identity,
        row,
        values,
        version,
        time_ms,
        importance,
        confidence,
        up,
        down,
        accesses,
        accessed,
        None if order is None else relevance(spec, place, importance, now_ms),
        int(float(expiry)) if expiry else 0,
        place,
        valid_from,
        valid_to,
        now_ms,
    )


def _marker(
    spec: ModelSpec,
    row: int,
    attributes: bytes,
    order: bytes | None,
    columns: Columns | None,
) -> Record:
    """What stands for a record that cannot be read, at the place where it ranked."""
    tell_of_damage(spec)
    try:
        held = unpack(attributes) if columns is None else columns.row(row)
    except UNREADABLE:
        held = NO_ATTRIBUTES
    return Record(
        id="",
        row=row,
        values=dict.fromkeys(spec.fields, DAMAGED),
        version=held.version,
        time_ms=held.time,
        importance=held.importance,
        confidence=0.0,
        order=0.0 if order is None else float(order),
    )
