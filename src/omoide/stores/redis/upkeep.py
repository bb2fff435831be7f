"""Maintenance and status: partitions, pruning, checking, rebuilding."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from omoide.core.columns import DEAD
from omoide.core.columns import unpack as unpack_attributes
from omoide.errors import StoreError
from omoide.ops.request import (
    BeginReindex,
    Check,
    CheckReply,
    CopyRecords,
    FinishReindex,
    PartitionStatus,
    Prune,
    Put,
    ReindexState,
)
from omoide.stores.redis.cache import Cache
from omoide.stores.redis.calls import Call, Handler, answer, failure, send
from omoide.stores.redis.codec import FORMAT, encode_put, footprint_list, pack_plan, rate
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.reads import named_numbers

LEASE_MS = 600_000
_SAMPLE = 256


class Upkeep:
    """Turns maintenance requests into calls."""

    def __init__(self, keys: Keys, cache: Cache) -> None:
        self.keys = keys
        self.cache = cache

    def prune(self, request: Prune) -> Handler[int]:
        """Cost: one round trip, O(terms of the records that go)."""
        limit = max(1, min(request.limit, 64))
        return int((yield from answer(Call("prune", self.keys.head(request.scope), (limit,)))))

    def describe(self, heads: Sequence[bytes]) -> Handler[tuple[PartitionStatus, ...]]:
        """Status of partitions whose head keys were found. Cost: one round trip per 256."""
        found: list[PartitionStatus] = []
        for start in range(0, len(heads), _SAMPLE):
            part = heads[start : start + _SAMPLE]
            calls = [Call("count", head) for head in part]
            replies = yield from send(calls)
            names = yield [Command((b"HGETALL", head[:-1] + b"n"), head, idempotent=True) for head in part]
            for head, call, reply, counters in zip(part, calls, replies, names, strict=True):
                error = failure(reply, call) or failure(counters, call)
                if error is not None:
                    raise error
                found.append(self._status(head, reply, named_numbers(counters)))
        return tuple(sorted(found, key=lambda status: (status.model, status.values)))

    def _status(self, head: bytes, reply: list[Any], counters: dict[str, int]) -> PartitionStatus:
        model, values = self.keys.parse(head) or ("", ())
        live, dead, rows, _, v, fingerprint, whole = reply or (0, 0, 0, b"", 0, b"", 1)
        return PartitionStatus(model, values, live, dead, rows, v, fingerprint.decode(), counters, not whole)

    # ---- rebuild

    def begin(self, request: BeginReindex) -> Handler[ReindexState]:
        """Cost: one round trip."""
        spec = request.scope.spec
        plan = {
            "format": FORMAT,
            "fingerprint": spec.fingerprint,
            "rate": rate(spec),
            "lease": LEASE_MS,
            "token": secrets.token_hex(8),
        }
        head = self.keys.head(request.scope)
        reply = yield from answer(Call("begin", head, (pack_plan(plan),)))
        if not reply:
            return ReindexState("", "", 0)
        (gen,) = yield [Command((b"HGET", head, b"gen"), head, idempotent=True)]
        if gen is None:  # its records were all about to expire
            return ReindexState("", "", 0)
        return ReindexState(reply[0].decode(), f"{gen.decode()}:{reply[1]}", int(reply[2]))

    def copy(self, request: CopyRecords) -> Handler[int]:
        """Cost: one round trip per 256 records."""
        head = self.keys.head(request.scope)
        calls = [
            self._copy_call(head, request.token, row, put)
            for row, put in zip(request.rows, request.puts, strict=True)
        ]
        copied = 0
        for start in range(0, len(calls), _SAMPLE):
            part = calls[start : start + _SAMPLE]
            replies = yield from send(part)
            for call, reply in zip(part, replies, strict=True):
                error = failure(reply, call)
                if error is not None:
                    raise error
                if reply == -1:
                    raise StoreError("this rebuild was given up or taken over", hint="start it again")
                copied += int(reply)
        return copied

    def _copy_call(self, head: bytes, token: str, row: int, put: Put) -> Call:
        plan, footprint, body, _ = encode_put(put)
        plan.update(token=token, lease=LEASE_MS, row=row, ttl=None)
        return Call("copy", head, (pack_plan(plan), footprint, body), safe=True)

    def finish(self, request: FinishReindex) -> Handler[int]:
        """Cost: one round trip, O(1)."""
        head = self.keys.head(request.scope)
        live = yield from answer(Call("swap", head, (request.token,)))
        if live == -1:
            raise StoreError("this rebuild was given up or taken over", hint="start it again")
        with self.cache.lock:
            self.cache.forget(head)
        return int(live)

    # ---- check

    def check(self, request: Check) -> Handler[CheckReply]:
        """Read the whole partition and compare. Cost: all its bytes; not atomic, for quiet partitions."""
        head = self.keys.head(request.scope)
        base = head[:-1]
        commands = [
            (b"HGETALL", b"h"),
            (b"HGETALL", b"t"),
            (b"HGETALL", b"s"),
            (b"GET", b"a"),
            (b"HGETALL", b"m"),
            (b"HKEYS", b"r"),
            (b"HGETALL", b"f"),
            (b"ZRANGE", b"d", b"0", b"-1"),
            (b"HGETALL", b"q"),
            (b"HKEYS", b"c"),
            (b"HGETALL", b"g"),
            (b"HGETALL", b"k"),
        ]
        replies = yield [
            Command((verb, base + letter, *rest), head, idempotent=True) for verb, letter, *rest in commands
        ]
        for reply in replies:
            error = failure(reply, Call("check", head))
            if error is not None:
                raise error
        names = [letter.decode() for _, letter, *_ in commands]
        return _compare(dict(zip(names, replies, strict=True)))


def _mapping(flat: Any) -> dict[bytes, bytes]:
    if isinstance(flat, dict):
        return flat
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _compare(parts: dict[str, Any]) -> CheckReply:
    """Every index against the footprints of the records, both ways: kind of divergence -> how many."""
    head, ids, footprints = _mapping(parts["h"]), _mapping(parts["m"]), _mapping(parts["f"])
    bodies, column = set(parts["r"]), parts["a"] or b""
    rows = {int(row) for row in bodies}
    wrong: dict[str, int] = {}

    def note(kind: str, number: int) -> None:
        if number:
            wrong[kind] = wrong.get(kind, 0) + number

    alive = {
        row
        for row in range(1, int(head.get(b"next", 1)))
        if not unpack_attributes(column, row * 32).flags & DEAD
    }
    note("attribute rows without a record", len(alive - rows))
    note("records without an attribute row", len(rows - alive))
    note("ids without a record", len({int(row) for row in ids.values()} - rows))
    note("records without an id", len(rows - {int(row) for row in ids.values()}))
    note("footprints without a record", len(set(footprints) - bodies))
    note("records without a footprint", len(bodies - set(footprints)))
    order = {int(row) for row in parts["d"]}
    note("places in the decay order without a record", len(order - rows))
    note("records without a place in the decay order", len(rows - order))
    note("statistics without a record", len({int(row) for row in parts["c"]} - rows))
    if head:
        lengths = sum(unpack_attributes(column, row * 32).length for row in alive)
        note("wrong number of live records", int(int(head[b"n"]) != len(rows)))
        note("wrong sum of lengths", int(int(float(head[b"sdl"])) != lengths))
        note("wrong number of rows", int(int(head[b"next"]) * 32 > len(column) and int(head[b"next"]) > 1))
    expected, unique, names = _expected(footprints)
    _compare_postings(note, expected, _mapping(parts["t"]), _mapping(parts["s"]))
    held = {(name.decode(), int(row)) for name, row in _mapping(parts["q"]).items()}
    note("uniqueness entries without a record", len(held - unique))
    note("records without a uniqueness entry", len(unique - held))
    counts = {
        name.decode(): int.from_bytes(data[4:8], "little") for name, data in _mapping(parts["k"]).items()
    }
    note("wrong ordinals", int(counts != names))
    _compare_edges(note, _mapping(parts["g"]), rows)
    return CheckReply(len(rows), tuple(sorted(wrong.items())))


def _expected(
    footprints: dict[bytes, bytes],
) -> tuple[set[tuple[str, int]], set[tuple[str, int]], dict[str, int]]:
    """What the footprints say must be there: (term, row), (digest, row), name -> records."""
    terms: set[tuple[str, int]] = set()
    unique: set[tuple[str, int]] = set()
    names: dict[str, int] = {}
    for row, data in footprints.items():
        own, digests, session, author, _ = footprint_list(data)
        terms.update((term, int(row)) for term in own)
        unique.update((digest, int(row)) for digest in digests)
        for name in (session, author):
            if name is not None:
                names[name] = names.get(name, 0) + 1
    return terms, unique, names


def _compare_postings(
    note: Any, expected: set[tuple[str, int]], tails: dict[bytes, bytes], segments: dict[bytes, bytes]
) -> None:
    from omoide.core.postings import SEAL, SEGMENT, Tail, decode_pure

    found: set[tuple[str, int]] = set()
    used, wrong_counts, lost = set(), 0, 0
    for term, data in tails.items():
        tail = Tail.parse(data)
        whole = b""
        for number in range(-(-tail.sealed * SEAL // SEGMENT)):
            name = b"%b:%d" % (term, number)
            used.add(name)
            lost += name not in segments
            whole += segments.get(name, b"")
        whole += tail.postings
        rows = [row for row, _ in decode_pure(whole)]
        wrong_counts += tail.df != len(rows) or rows != sorted(set(rows)) or not rows
        found.update((term.decode(), row) for row in rows)
    note("postings without a record", len(found - expected))
    note("missing postings", len(expected - found))
    note("wrong posting counts", wrong_counts)
    note("missing segments", lost)
    note("segments without a term", len(set(segments) - used))


def _compare_edges(note: Any, graph: dict[bytes, bytes], rows: set[int]) -> None:
    import struct

    edges = {
        (int(row), other)
        for row, data in graph.items()
        if not row.startswith(b"e:")
        for other, _ in struct.iter_unpack("<If", data)
    }
    named = {
        row
        for name, data in graph.items()
        if name.startswith(b"e:")
        for (row,) in struct.iter_unpack("<I", data)
    }
    note("dangling edges", sum(1 for a, b in edges if a not in rows or b not in rows or (b, a) not in edges))
    note("entities that name no record", len(named - rows))
