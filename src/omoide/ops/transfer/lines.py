"""The lines of an export: JSON, one object a line, in UTF-8 (docs/reference/export-format.md).

    {"omoide":"export","format":1,"model":...}     what the records are
    {"partition":["ada"],"counters":{...}}         a partition; its records follow
    {"id":...,"values":{...},...}                  a record, in the order of storage
    {"end":{"records":...,"sha256":...}}           how many there were, and a checksum of all lines before

Every value has one spelling (names of a record sorted, shortest floats, no spaces), so that equal
contents are equal bytes. What is left out has its default.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from omoide.errors import TransferError
from omoide.ops.request import Dumped, Kept, Statistics

if TYPE_CHECKING:
    from omoide.model.schema import ModelSpec

FORMAT = 1
MOST_BYTES = 268_435_456
"""Longest line that is read."""


class Decay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which base score halves, and how fast (seconds); with an exponent by a power law."""

    base: str | None
    base_default: float
    half_life: float
    exponent: float | None = None


class Confidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prior of a model: its mean, its weight and the most evidence that counts, in observations."""

    initial: float
    prior_weight: float
    cap: float


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The first line. `fields`: name -> kind of field, which says what the JSON of its values means."""

    omoide: str = "export"
    format: int = FORMAT
    model: str
    id: str
    partition_by: tuple[str, ...]
    fields: dict[str, str]
    decay: Decay | None
    confidence: Confidence | None


class PartitionLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A partition: its values, in the order of `partition_by`, and its counters by name."""

    partition: tuple[str, ...]
    counters: dict[str, int] = {}


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What outcomes and deliveries left of a record; `accessed` in milliseconds since the epoch."""

    alpha: float
    beta: float
    corroborations: int = 0
    contradictions: int = 0
    accesses: int = 0
    accessed: int = 0


class RecordLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A record: stored forms of its values but the id (those that are bytes as `bytes`), and its state.

    `time` and `expires` in milliseconds since the epoch; `order` is the score of the decay order;
    `edges` lead to records before this one. `validity`: start and own end, in milliseconds; `chain` names the
    versions of a record without a key.
    """

    id: str
    values: dict[str, Any]
    time: int
    order: float
    raw: dict[str, bytes] = msgspec.field(default_factory=dict, name="bytes")
    version: int = 1
    expires: int = 0
    statistics: Evidence | None = None
    entities: tuple[str, ...] = ()
    edges: tuple[tuple[str, float], ...] = ()
    validity: tuple[int, int | None] | None = None
    chain: str | None = None


class Totals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came before the last line; `sha256` is over every byte of it."""

    partitions: int
    records: int
    edges: int
    sha256: str


class EndLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line."""

    end: Totals


Line: TypeAlias = Header | PartitionLine | RecordLine | EndLine
L = TypeVar("L", bound=msgspec.Struct)

_encode = msgspec.json.Encoder().encode
_KINDS: tuple[tuple[bytes, type[Any]], ...] = (
    (b'{"id":', RecordLine),
    (b'{"partition":', PartitionLine),
    (b'{"end":', EndLine),
    (b'{"omoide":', Header),
)
_DECODERS = {kind: msgspec.json.Decoder(kind) for _, kind in _KINDS}
_PLACE = re.compile(r"`(\$[\w.\[\]]*)`")


def header_of(spec: ModelSpec) -> Header:
    """The first line of an export of a model."""
    decay, certainty = spec.decay, spec.certainty
    return Header(
        model=spec.name,
        id=spec.id_field,
        partition_by=spec.partition_by,
        fields={name: type(field).__name__ for name, field in spec.fields.items()},
        decay=None
        if decay is None
        else Decay(decay.base_score_field, decay.base_default, decay.half_life, decay.exponent),
        confidence=None
        if certainty is None
        else Confidence(certainty.initial, certainty.prior_weight, certainty.cap),
    )


def record_line(record: Dumped, id_field: str) -> RecordLine:
    """The line of a record."""
    kept = record.kept
    values: dict[str, Any] = {}
    raw: dict[str, bytes] = {}
    for name in sorted(record.values):
        value = record.values[name]
        if name != id_field:
            (raw if isinstance(value, bytes) else values)[name] = value
    held = kept.statistics
    return RecordLine(
        id=record.id,
        values=values,
        raw=raw,
        time=kept.time_ms or 0,
        order=0.0 if kept.order is None else kept.order,
        version=kept.version,
        expires=kept.expires_ms,
        statistics=None
        if held is None
        else Evidence(
            held.alpha,
            held.beta,
            held.corroborations,
            held.contradictions,
            held.access_count,
            held.accessed_ms,
        ),
        entities=kept.entities or (),
        edges=kept.edges,
        validity=kept.validity,
        chain=kept.chain,
    )


def kept_of(line: RecordLine) -> Kept:
    """The state that a line tells."""
    held = line.statistics
    return Kept(
        version=line.version,
        time_ms=line.time,
        statistics=None
        if held is None
        else Statistics(
            held.alpha,
            held.beta,
            held.corroborations,
            held.contradictions,
            held.accesses,
            held.accessed,
        ),
        order=line.order,
        expires_ms=line.expires,
        edges=line.edges,
        entities=line.entities,
        validity=line.validity,
        chain=line.chain,
    )


def write_line(line: Line) -> bytes:
    """A line with its line break."""
    return _encode(line) + b"\n"


def read_line(data: bytes, place: str) -> Line:
    """What a line says; `place` tells where it is, for errors.

    Raises:
        TransferError: it is no line of an export.
    """
    for start, kind in _KINDS:
        if data.startswith(start):
            try:
                line: Line = _DECODERS[kind].decode(data)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                at = _PLACE.search(str(error))
                where = f", at {at[1]}" if at else ""
                raise TransferError(f"a line that is not as an export has it{where}", place=place) from None
            return line
    raise TransferError("a line that no export has", place=place)


__all__ = [
    "FORMAT",
    "MOST_BYTES",
    "Confidence",
    "Decay",
    "EndLine",
    "Evidence",
    "Header",
    "Line",
    "PartitionLine",
    "RecordLine",
    "Totals",
    "header_of",
    "kept_of",
    "read_line",
    "record_line",
    "write_line",
]
