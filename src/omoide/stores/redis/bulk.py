"""Records packed for a copy of a partition that only a rebuild writes (`lua/lib/bulk.lua`).

    rows ──numbered──▶ records, some of them a command (load) ──┐
      └──▶ postings of a term together, some terms a command ───┴─▶ one round trip
                                                     (index)
What can be made here is made here. The server looks a term up once for all rows of a page, and writes pairs
500 at a time, so that none of its commands takes long.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omoide.core.columns import ATTRIBUTE, INTERVAL
from omoide.core.postings import CODES
from omoide.ops.request import RowState
from omoide.stores.redis.calls import Call
from omoide.stores.redis.codec import STATISTICS, footprint_list, pack_plan
from omoide.stores.redis.versions import closed, version_member

__all__ = ["BYTES", "POSTINGS", "RECORDS", "TERMS", "Packing"]

RECORDS = 128
BYTES = 262_144
"""Most records in one command, and bytes of them; one record at least."""

TERMS = 256
POSTINGS = 16_384
"""Most terms in one command, and bytes of their postings; one term at least."""

OPERATION = 10
"""Bytes of an operation in a footprint: its digest, and how many records it evicted."""

DIGEST = 8
"""A slot of so many bytes names a text and has no vector."""

_ATTRIBUTE, _INTERVAL = struct.Struct(ATTRIBUTE), struct.Struct(INTERVAL)
_POSTING, _U32 = struct.Struct(">I").pack, struct.Struct("<I").pack


@dataclass(slots=True)
class Packing:
    """The commands that add rows to a copy.

    Args:
        head: Head key of the partition.
        token: Of the rebuild.
        step: Commands that wrote to the copy before; goes on with each command.
        kind: Of the vectors of the model.
        interval: Whether the model has an interval column.
    """

    head: bytes
    token: str
    step: int
    kind: str
    interval: bool
    _terms: dict[str, bytes] = field(default_factory=dict)
    _entities: dict[str, bytes] = field(default_factory=dict)

    def calls(self, first: int, rows: Sequence[RowState]) -> Iterator[Call]:
        """Those that add `rows`, the first of them as row `first`, in their order."""
        for part in _in_parts(rows, [_size(row) for row in rows], RECORDS, BYTES):
            yield self._load(first, part)
            first += len(part)
        for name, held in (("terms", self._terms), ("entities", self._entities)):
            sizes = [len(data) for data in held.values()]
            for pairs in _in_parts(list(held.items()), sizes, TERMS, POSTINGS):
                lists: dict[str, Any] = {"terms": (), "entities": (), name: _sizes(dict(pairs))}
                yield self._call("index", lists, b"".join([data for _, data in pairs]))

    def _load(self, first: int, rows: Sequence[RowState]) -> Call:
        places: dict[str, int] = {}
        counts: Counter[str] = Counter()
        attributes, intervals = bytearray(), bytearray()
        ids: list[Any] = []
        unique: list[Any] = []
        orders: list[Any] = []
        expiries: list[Any] = []
        ends: list[Any] = []
        versions: list[bytes] = []
        bodies: dict[int, bytes] = {}
        footprints: dict[int, bytes] = {}
        statistics: dict[int, bytes] = {}
        slots: dict[int, bytes] = {}
        for row, state in enumerate(rows, first):
            span, footprint = state.span, _footprint(state)
            terms, digests, session, author, named = footprint_list(footprint)
            for name in (session, author):
                if name is not None:
                    places.setdefault(name, len(places) + 1)
                    counts[name] += 1
            attributes += _ATTRIBUTE.pack(
                *(state.flags, state.confidence, state.length, state.importance),
                *(places.get(session, 0), places.get(author, 0), state.version, state.time_ms),
            )
            if self.interval:
                start, end = (0, 0) if span is None else (span.start, closed(span.end))
                intervals += _INTERVAL.pack(state.expires_ms or 0, start, end)
            ids += state.id, row
            orders += state.order, row
            if state.expires_ms is not None:
                expiries += state.expires_ms, row
            for digest in digests:
                unique += digest, row
            bodies[row], footprints[row] = state.body, footprint
            if state.statistics is not None:
                statistics[row] = STATISTICS.pack(*state.statistics)
            if len(state.slot) > DIGEST:
                slots[row] = state.slot
            if span is not None and span.end is not None:
                ends += span.end, row
            if span is not None and span.chain is not None:
                versions.append(version_member(state.id, span))
            self._index(row, terms, state.codes, named)
        values = {"bodies": bodies, "footprints": footprints, "statistics": statistics, "slots": slots}
        plan = {
            "first": first,
            "rows": len(rows),
            "length": sum(state.length for state in rows),
            "peak": max(state.importance for state in rows),
            "vectors": self.kind,
            "names": [[name, counts[name]] for name in places],
            "ids": ids,
            "unique": unique,
            "orders": orders,
            "expiries": expiries,
            "ends": ends,
            "versions": [part for member in versions for part in (0, len(member))],
            **{name: _sizes(held) for name, held in values.items()},
        }
        data = b"".join([*(value for held in values.values() for value in held.values()), *versions])
        return self._call("load", plan, bytes(attributes), bytes(intervals), data)

    def _index(self, row: int, terms: Sequence[str], codes: Sequence[int], named: Sequence[str]) -> None:
        held, entities = self._terms, self._entities
        postings = map(_POSTING, map((row * CODES).__add__, codes))
        for term, posting in zip(terms, postings, strict=True):
            held[term] = held.get(term, b"") + posting
        for name in named:
            entities[f"e:{name}"] = entities.get(f"e:{name}", b"") + _U32(row)

    def _call(self, verb: str, plan: dict[str, Any], *data: bytes) -> Call:
        told = {"token": self.token, "step": self.step, **plan}
        self.step += 1
        return Call(verb, self.head, (pack_plan(told), *data), safe=True)


def _in_parts(things: Sequence[Any], sizes: Sequence[int], most: int, limit: int) -> Iterator[Sequence[Any]]:
    """Things in their order, in parts of at most `most` and of `limit` bytes; one at least."""
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and (place - start == most or total + size > limit):
            yield things[start:place]
            start, total = place, 0
        total += size
    if things:
        yield things[start:]


def _size(row: RowState) -> int:
    return len(row.body) + len(row.footprint) + len(row.slot)


def _sizes(values: Mapping[Any, bytes]) -> list[Any]:
    """Name and bytes of each value, one after the other."""
    return [part for name, value in values.items() for part in (name, len(value))]


def _footprint(state: RowState) -> bytes:
    """As `f` holds it."""
    earlier = state.operations[OPERATION:]
    count = bytes((len(earlier) // OPERATION,))
    return b"".join((state.operations[:OPERATION], count, earlier, state.footprint))
