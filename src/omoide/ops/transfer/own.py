"""Reading an export back: every line checked, and the file as a whole by its counts and its checksum."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, BinaryIO

from omoide.errors import TransferError
from omoide.model.instance import Instance, single, spec_of
from omoide.model.naming import shown_name
from omoide.model.partition import ID_BYTES, PARTITION_BYTES, key_rule
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.request import Kept, Record, Statistics
from omoide.ops.transfer.incoming import Incoming, Item, Opening, order_for, touch_of
from omoide.ops.transfer.lines import (
    FORMAT,
    MOST_BYTES,
    Confidence,
    Decay,
    EndLine,
    Header,
    PartitionLine,
    RecordLine,
    Totals,
    header_of,
    kept_of,
    read_line,
)

MOST_EDGES = 64
FIRST = "line 1"
_U32, _WHOLE, _INSTANTS = 2**32, 2**53, 2**52
_CHAIN = re.compile("s[0-9a-f]{24}")
_FLOAT32_MAX = 3.4e38

Source = Callable[[], AbstractContextManager[BinaryIO]]
"""Opens the file anew, at its start."""


@dataclass(slots=True)
class _State:
    """Where in the file a reader is; `same_order`: the model decays as the one that was exported."""

    header: Header
    same_order: bool
    scope: Scope | None = None
    partitions: int = 0
    records: int = 0
    edges: int = 0


def read_export(
    model: type[Instance], source: Source, *, saved_as: str | None = None, wanted: Scope | None = None
) -> Iterator[Item]:
    """Partitions and records of an export, in its order.

    Args:
        saved_as: The name of the model that was exported, where it is not this one.
        wanted: The only partition to give; the others are checked all the same.
    Raises:
        TransferError: no export, one of another model, of a newer format, or one that was cut short or
            changed; it names the line.
    """
    spec = spec_of(model)
    hashed = hashlib.sha256()
    end: Totals | None = None
    state: _State | None = None
    seen: set[tuple[str, ...]] = set()
    with source() as file:
        for place, data in _lines(file):
            if end is not None:
                raise TransferError("something comes after the end line", place=place)
            line = _first(data, spec, saved_as) if state is None else read_line(data, place)
            if isinstance(line, EndLine):
                end = line.end
                continue
            hashed.update(data)
            if state is None:
                assert isinstance(line, Header)
                state = _State(line, line.decay == header_of(spec).decay)
            elif isinstance(line, PartitionLine):
                opening = _opened(spec, line, place)
                if line.partition in seen:
                    raise TransferError("a partition comes twice", place=place)
                seen.add(line.partition)
                state.scope, state.partitions = opening.scope, state.partitions + 1
                if wanted is None or opening.scope.values == wanted.values:
                    yield opening
            elif isinstance(line, RecordLine) and state.scope is not None:
                state.records, state.edges = state.records + 1, state.edges + len(line.edges)
                item = _incoming(model, state, line, place)
                if wanted is None or state.scope.values == wanted.values:
                    yield item
            else:
                raise TransferError("a line that cannot stand here", place=place)
    _check_end(state, end, hashed.hexdigest())
    if wanted is not None and wanted.values not in seen:
        raise TransferError("the export does not have this partition")


def _lines(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Every line, with its place."""
    number = 0
    while data := file.readline(MOST_BYTES):
        number += 1
        place = f"line {number}"
        if not data.endswith(b"\n"):
            raise TransferError("the file is cut short, or no export", place=place)
        yield place, data


def _first(data: bytes, spec: ModelSpec, saved_as: str | None) -> Header:
    """The header, checked against the model."""
    no_export = TransferError("this is no export of omoide", place=FIRST, hint="name its format: mem0, jsonl")
    if not data.startswith(b'{"omoide":'):
        raise no_export
    if b'"format":1,' not in data[:64]:
        raise TransferError(
            f"an export of another format than {FORMAT}", place=FIRST, hint="use a newer omoide"
        )
    header = read_line(data, FIRST)
    if not isinstance(header, Header) or header.omoide != "export" or header.format != FORMAT:
        raise no_export
    expected = saved_as or spec.name
    if header.model != expected:
        raise TransferError(
            f"an export of {shown_name(header.model)!r}, not of {expected!r}",
            place=FIRST,
            hint="to take it all the same, say which model it was saved as",
        )
    if header.partition_by != spec.partition_by or header.id != spec.id_field:
        raise TransferError(f"records are named by other fields than those of {spec.name}", place=FIRST)
    return header


def _check_end(state: _State | None, end: Totals | None, digest: str) -> None:
    if state is None:
        raise TransferError("the file is empty")
    if end is None:
        raise TransferError("the file is cut short: its end line is missing")
    if (end.partitions, end.records, end.edges) != (state.partitions, state.records, state.edges):
        raise TransferError("the file does not hold as many records as its end line says")
    if end.sha256 != digest:
        raise TransferError("the file was changed: its checksum is another")


def _opened(spec: ModelSpec, line: PartitionLine, place: str) -> Opening:
    sound = len(line.partition) == len(spec.partition_by) and all(
        key_rule(value, PARTITION_BYTES) is None for value in line.partition
    )
    counters = all(
        key_rule(name, PARTITION_BYTES) is None and abs(count) < _WHOLE
        for name, count in line.counters.items()
    )
    if not sound or not counters:
        raise TransferError("no partition can have this name, or such counters", place=place)
    return Opening(place, Scope(spec, line.partition), line.counters)


def _incoming(model: type[Instance], state: _State, line: RecordLine, place: str) -> Incoming:
    """The record of a line: an instance as if it were loaded, and its state as this model keeps it."""
    spec = spec_of(model)
    _check_state(line, place)
    scope = state.scope
    assert scope is not None
    held = {**line.values, **line.raw}
    named = zip(spec.partition_by, scope.values, strict=True)
    if spec.id_field in held or any(held.get(name) != value for name, value in named):
        raise TransferError("a record that names another partition, or its id twice", place=place)
    values = {spec.id_field: line.id, **held}
    record = Record(line.id, 0, dict(sorted(values.items())), line.version, line.time, 1.0, 0.5)
    instance = model.from_record(record)
    return Incoming(place, instance, _kept(spec, state, line, values, place), counted=True)


def _check_state(line: RecordLine, place: str) -> None:
    """Raise unless a store could have kept this of a record."""
    numbers = (line.order, *(weight for _, weight in line.edges))
    names = (line.id, *(name for name, _ in line.edges))
    edges = {name for name, _ in line.edges} - {line.id}
    sound = (
        all(isfinite(one) for one in numbers)
        and all(0.0 < weight <= _FLOAT32_MAX and single(weight) == weight for _, weight in line.edges)
        and all(key_rule(name, ID_BYTES) is None for name in names)
        and len(edges) == len(line.edges) <= MOST_EDGES
        and 1 <= line.version < _U32
        and abs(line.time) < _WHOLE
        and 0 <= line.expires < _WHOLE
        and _sound_validity(line)
    )
    held = line.statistics
    if held is not None:
        counts = (held.corroborations, held.contradictions, held.accesses)
        evidence = held.alpha + held.beta
        sound = (
            sound
            and min(held.alpha, held.beta) >= 0.0
            and 0.0 < evidence < float("inf")
            and all(0 <= count < _U32 for count in counts)
            and 0 <= held.accessed < _WHOLE
        )
    if not sound:
        raise TransferError("a record with a state that no store keeps", place=place)


def _sound_validity(line: RecordLine) -> bool:
    """Whether a store could have kept this interval, and this name of a chain."""
    if line.validity is None:
        return line.chain is None
    start, end = line.validity
    in_order = abs(start) < _INSTANTS and (end is None or start <= end < _INSTANTS)
    return in_order and (line.chain is None or _CHAIN.fullmatch(line.chain) is not None)


def _kept(spec: ModelSpec, state: _State, line: RecordLine, values: dict[str, Any], place: str) -> Kept:
    """The state of a line, carried over where this model decays otherwise or keeps another evidence."""
    kept = kept_of(line)
    return replace(
        kept,
        order=line.order if state.same_order else _order(spec, state.header.decay, line.order, values, place),
        statistics=_statistics(spec, state.header.confidence, kept.statistics),
    )


def _order(spec: ModelSpec, theirs: Decay | None, order: float, values: dict[str, Any], place: str) -> float:
    """The score that the last touch has in the decay order of this model."""
    halved = theirs is not None and theirs.exponent is None
    touched = touch_of(
        theirs.half_life if theirs is not None and halved else None,
        1.0 if theirs is None else _base(theirs.base, theirs.base_default, values),
        order,
    )
    decay = spec.decay
    base = 1.0 if decay is None else _base(decay.base_score_field, decay.base_default, values)
    return order_for(decay, base, touched, place)


def _base(name: str | None, default: float, values: dict[str, Any]) -> float:
    value = values.get(name) if name is not None else None
    return float(value) if isinstance(value, int | float) else default


def _statistics(spec: ModelSpec, theirs: Confidence | None, held: Statistics | None) -> Statistics | None:
    certainty = spec.certainty
    if held is None or (certainty is None) == (theirs is None):
        return held
    if certainty is None:
        return replace(held, alpha=1.0, beta=0.0)
    alpha = certainty.initial * certainty.prior_weight
    return replace(held, alpha=alpha, beta=certainty.prior_weight - alpha)


__all__ = ["Source", "read_export"]
