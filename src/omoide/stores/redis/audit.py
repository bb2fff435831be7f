"""Compare the indexes of a partition with its records, both ways.

    Reading ──▶ every key, in pieces ──▶ compare ──▶ kind of divergence, how many

What is damaged is counted and left out of the comparison, never raised: a key of another type, a value that
cannot be decoded. So one damaged value shows as itself, beside what it takes along.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, TypeVar

from redis.exceptions import ResponseError

from omoide.core.columns import ATTRIBUTE_BYTES, DEAD, INTERVAL_BYTES
from omoide.core.columns import unpack as unpack_attributes
from omoide.model.schema import ModelSpec
from omoide.ops.request import CheckReply
from omoide.stores.redis.calls import Call, Handler, failure
from omoide.stores.redis.codec import UNREADABLE, footprint_list, read_body, read_statistics, unpack_reply
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.versions import diverging, read_version

R = TypeVar("R")
K = TypeVar("K")

HASHES = "htsrmfqcgkni"
SORTED_SETS = "devo"
STRINGS = "awxz"
PIECE = 1_048_576
_FEWEST, _MOST = 16, 500
"""Entries of a hash in one piece: few of an unknown size at first."""


def wrong_type(reply: Any) -> bool:
    """Whether an error reply says that a key is of another type."""
    return isinstance(reply, ResponseError) and str(reply).startswith("WRONGTYPE")


def readable_counters(reply: Any) -> tuple[dict[str, int], int]:
    """(counters, how many cannot be read) of a HGETALL; a key of another type counts as one."""
    if wrong_type(reply):
        return {}, 1
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    found: dict[str, int] = {}
    broken = 0
    for name, value in pairs:
        try:
            found[name.decode()] = int(value)
        except ValueError:
            broken += 1
    return found, broken


# ---- reading


@dataclass(slots=True)
class _Piece:
    """How far a key was read."""

    letter: str
    cursor: Any = 0
    count: int = _FEWEST
    held: Any = None
    done: bool = False
    foreign: bool = False


@dataclass(slots=True)
class Parts:
    """All keys of a partition: hashes as maps, sorted sets as lists of members, strings as bytes."""

    held: dict[str, Any]
    foreign: int
    """Keys of another type."""


@dataclass(frozen=True, slots=True)
class Reading:
    """All keys of a partition, a piece of each per round trip."""

    head: bytes

    def all(self) -> Handler[Parts]:
        """Read them."""
        keys = [_Piece(letter, held={}) for letter in HASHES]
        keys += [_Piece(letter, held=[]) for letter in SORTED_SETS]
        keys += [_Piece(letter, held=b"") for letter in STRINGS]
        while left := [key for key in keys if not key.done]:
            replies = yield [Command(self._ask(key), self.head, idempotent=True) for key in left]
            for key, reply in zip(left, replies, strict=True):
                if wrong_type(reply):
                    key.done = key.foreign = True
                    continue
                error = failure(reply, Call("check", self.head))
                if error is not None:
                    raise error
                _take(key, reply)
        return Parts({key.letter: key.held for key in keys}, sum(key.foreign for key in keys))

    def _ask(self, key: _Piece) -> tuple[Any, ...]:
        name = self.head[:-1] + key.letter.encode()
        if key.letter in STRINGS:
            return b"GETRANGE", name, key.cursor, key.cursor + PIECE - 1
        if key.letter in SORTED_SETS:
            return b"ZRANGE", name, key.cursor, key.cursor + _MOST - 1
        return b"HSCAN", name, key.cursor, b"COUNT", key.count


def _take(key: _Piece, reply: Any) -> None:
    if key.letter in STRINGS:
        key.held += reply
        key.cursor, key.done = key.cursor + PIECE, len(reply) < PIECE
        return
    if key.letter in SORTED_SETS:
        key.held += reply
        key.cursor, key.done = key.cursor + _MOST, len(reply) < _MOST
        return
    key.cursor, flat = reply
    pairs = dict(zip(flat[::2], flat[1::2], strict=True))
    key.held.update(pairs)
    key.done = key.cursor in (b"0", 0, "0")
    average = sum(map(len, pairs.values())) // max(1, len(pairs)) + 1
    key.count = max(1, min(_MOST, PIECE // average))


# ---- decoding: what cannot be read is counted


@dataclass(slots=True)
class _Findings:
    wrong: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, number: int) -> None:
        if number:
            self.wrong[kind] += number

    def read(self, kind: str, one: Callable[..., R], *args: Any) -> R | None:
        """What `one` makes of a value, None and a finding where it cannot be read."""
        try:
            return one(*args)
        except UNREADABLE:
            self.note(kind, 1)
            return None

    def map(self, kind: str, entries: Mapping[K, bytes], one: Callable[[bytes], R]) -> dict[K, R]:
        """Key -> value, those left out that cannot be read."""
        found: dict[K, R] = {}
        for name, data in entries.items():
            value = self.read(kind, one, data)
            if value is not None:
                found[name] = value
        return found

    def rows(self, names: Iterable[bytes]) -> set[int]:
        return {
            row for name in names if (row := self.read("entries that name no row", int, name)) is not None
        }

    def by_row(self, entries: Mapping[bytes, bytes]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for name, data in entries.items():
            row = self.read("entries that name no row", int, name)
            if row is not None:
                found[row] = data
        return found


@dataclass(frozen=True, slots=True)
class _Footprint:
    terms: list[str]
    digests: list[str]
    names: list[str]


def _footprint(data: bytes) -> _Footprint:
    terms, digests, session, author, entities = footprint_list(data)
    for part in (terms, digests, entities):
        if type(part) is not list or not all(type(name) is str for name in part):
            raise ValueError
    names = [name for name in (session, author) if name is not None]
    if not all(type(name) is str for name in names):
        raise ValueError
    return _Footprint(terms, digests, names)


def _remains(data: bytes) -> dict[int, tuple[int, int]]:
    """Row of a record that is gone -> postings taken out, postings: the others are still in the lists."""
    return {row: (done, terms) for row, done, terms in struct.iter_unpack("<III", data)}


def _turn(data: bytes) -> bool:
    struct.unpack_from("<q", data)
    if not isinstance(unpack_reply(data[8:]), (dict, list)):
        raise ValueError
    return True


def _ordinal(data: bytes) -> int:
    _, count = struct.unpack("<II", data)
    return int(count)


def _edges(data: bytes) -> list[int]:
    return [other for other, _ in struct.iter_unpack("<If", data)]


def _named(data: bytes) -> list[int]:
    return [row for (row,) in struct.iter_unpack("<I", data)]


# ---- comparing


def compare(spec: ModelSpec, parts: Parts) -> CheckReply:
    """Every index against the footprints of the records: kind of divergence -> how many."""
    found, held = _Findings(), parts.held
    found.note("keys of another type", parts.foreign)
    bodies = found.by_row(held["r"])
    _compare_bodies(found, spec, bodies, held)
    rows = set(bodies)
    _compare_columns(found, rows, held)
    left = found.read("head values that cannot be read", _remains, held["h"].get(b"remains", b"")) or {}
    footprints = found.by_row(held["f"])
    _compare_remains(found, left, footprints)
    footprints = {row: data for row, data in footprints.items() if row not in left}
    found.note("footprints without a record", len(set(footprints) - rows))
    found.note("records without a footprint", len(rows - set(footprints)))
    readable = found.map("footprints that cannot be read", footprints, _footprint)
    expected = {(term, row) for row, foot in readable.items() for term in foot.terms}
    _compare_postings(found, expected, held["t"], held["s"], left.keys())
    unique = {(digest, row) for row, foot in readable.items() for digest in foot.digests}
    taken = found.map("entries that name no row", held["q"], int)
    pairs = {(name.decode(errors="replace"), row) for name, row in taken.items()}
    found.note("uniqueness entries without a record", len(pairs - unique))
    found.note("records without a uniqueness entry", len(unique - pairs))
    names = Counter(name for foot in readable.values() for name in foot.names)
    ordinals = found.map("ordinals that cannot be read", held["k"], _ordinal)
    counts = {name.decode(errors="replace"): count for name, count in ordinals.items()}
    found.note("wrong ordinals", int(counts != dict(names)))
    _compare_edges(found, held["g"], rows)
    _compare_versions(found, rows, {row: footprints[row] for row in readable}, held)
    found.note("counters that cannot be read", readable_counters(held["n"])[1])
    found.map("turns that cannot be read", held["i"], _turn)
    return CheckReply(len(rows), tuple(sorted(found.wrong.items())))


def _compare_remains(
    found: _Findings, left: Mapping[int, tuple[int, int]], footprints: Mapping[int, bytes]
) -> None:
    """Nobody can take out what is left of a record whose footprint does not tell its terms."""
    found.note("erased records without a footprint", len(left.keys() - footprints.keys()))
    own = {row: footprints[row] for row in left.keys() & footprints.keys()}
    counts = found.map("footprints that cannot be read", own, lambda data: len(footprint_list(data)[0]))
    wrong = [row for row, count in counts.items() if count != left[row][1] or left[row][0] > count]
    found.note("wrong numbers of terms of erased records", len(wrong))


def _compare_versions(
    found: _Findings, rows: set[int], footprints: dict[int, bytes], held: dict[str, Any]
) -> None:
    kind = "versions that cannot be read"
    versions = [version for member in held["v"] if (version := found.read(kind, read_version, member))]
    wrong = diverging(rows, footprints, versions, held["w"], found.rows(held["o"]))
    for name, number in wrong.items():
        found.note(name, number)


def _compare_bodies(
    found: _Findings, spec: ModelSpec, bodies: dict[int, bytes], held: dict[str, Any]
) -> None:
    """Bodies and statistics can be read, and every id leads to its body."""
    rows = set(bodies)
    ids = found.map("entries that name no row", held["m"], int)
    found.note("ids without a record", len(set(ids.values()) - rows))
    found.note("records without an id", len(rows - set(ids.values())))
    if spec.id_field:  # else the class of these records is not loaded, and what its id is called not known
        read = found.map("records that cannot be read", bodies, lambda body: read_body(body, spec.id_field))
        places = {name.encode(): row for row, (name, _) in read.items()}
        found.note("ids of another record", sum(ids[name] != places[name] for name in ids.keys() & places))
    else:
        found.map("records that cannot be read", bodies, _any_body)
    statistics = found.by_row(held["c"])
    found.note("statistics without a record", len(set(statistics) - rows))
    found.map("statistics that cannot be read", statistics, read_statistics)


def _any_body(body: bytes) -> dict[str, Any]:
    values = unpack_reply(body)
    if not isinstance(values, dict):
        raise TypeError
    return values


def _compare_columns(found: _Findings, rows: set[int], held: dict[str, Any]) -> None:
    """Head, attribute column, decay order, expiries."""
    column, head = held["a"], held["h"]
    following = found.read("head values that cannot be read", int, head.get(b"next", 1)) or 1
    filled = min(following, len(column) // ATTRIBUTE_BYTES)
    attributes = {row: unpack_attributes(column, row * ATTRIBUTE_BYTES) for row in range(1, filled)}
    alive = {row for row, held in attributes.items() if not held.flags & DEAD}
    found.note("attribute rows without a record", len(alive - rows))
    found.note("records without an attribute row", len(rows - alive))
    order = found.rows(held["d"])
    found.note("places in the decay order without a record", len(order - rows))
    found.note("records without a place in the decay order", len(rows - order))
    found.note("expiries without a record", len(found.rows(held["e"]) - rows))
    found.note("half a change in the change log", int(len(held["x"]) % 4 > 0))
    _compare_vectors(found, rows, held["z"], head)
    found.note("half a row of intervals", int(len(held["w"]) % INTERVAL_BYTES > 0))
    timed = found.read("head values that cannot be read", int, head.get(b"timed", 0)) or 0
    found.note("wrong number of intervals", int(timed * INTERVAL_BYTES > len(held["w"])))
    if not head:
        found.note("missing heads", int(bool(rows)))
        return
    numbers = {
        name: found.read("head values that cannot be read", float, head.get(name, b""))
        for name in (b"n", b"sdl", b"dead", b"v", b"x0")
    }
    lengths = sum(attributes[row].length for row in alive)
    found.note("wrong number of live records", int(numbers[b"n"] is not None and numbers[b"n"] != len(rows)))
    found.note("wrong sum of lengths", int(numbers[b"sdl"] is not None and numbers[b"sdl"] != lengths))
    found.note("wrong number of rows", int(following > 1 and following * ATTRIBUTE_BYTES > len(column)))


def _compare_vectors(found: _Findings, rows: set[int], column: bytes, head: Mapping[bytes, bytes]) -> None:
    """Only records have a vector. That one has none is no divergence: its provider may have failed."""
    stride = found.read("head values that cannot be read", int, head.get(b"stride", 0)) or 0
    if not stride:
        found.note("vectors of no kind", int(len(column) > 0))
        return
    found.note("half a vector", int(len(column) % stride > 0))
    nothing = bytes(stride)
    there = range(1, len(column) // stride)
    stray = [row for row in there if row not in rows and column[row * stride : (row + 1) * stride] != nothing]
    found.note("vectors without a record", len(stray))


def _compare_postings(
    found: _Findings,
    expected: set[tuple[str, int]],
    tails: dict[bytes, bytes],
    segments: dict[bytes, bytes],
    left: Set[int],
) -> None:
    from omoide.core.postings import SEAL, SEGMENT, Tail, decode_pure

    present: set[tuple[str, int]] = set()
    used: set[bytes] = set()

    def rows_of(term: bytes, data: bytes) -> tuple[int, list[int]]:
        """(live postings its tail speaks of, rows)"""
        tail = Tail.parse(data)
        names = [b"%b:%d" % (term, number) for number in range(-(-tail.sealed * SEAL // SEGMENT))]
        there = [name for name in names if name in segments]
        used.update(there)
        found.note("missing segments", len(names) - len(there))
        whole = b"".join(segments[name] for name in there) + tail.postings
        return tail.df, [row for row, _ in decode_pure(whole)]

    wrong_counts = 0
    for term, data in tails.items():
        read = found.read("posting lists that cannot be read", rows_of, term, data)
        if read is None:
            continue
        count, rows = read
        wrong_counts += count != len(rows) or rows != sorted(set(rows)) or not rows
        present.update((term.decode(errors="replace"), row) for row in rows if row not in left)
    found.note("postings without a record", len(present - expected))
    found.note("missing postings", len(expected - present))
    found.note("wrong posting counts", wrong_counts)
    found.note("segments without a term", len(set(segments) - used))


def _compare_edges(found: _Findings, graph: dict[bytes, bytes], rows: set[int]) -> None:
    own = found.by_row({name: data for name, data in graph.items() if not name.startswith(b"e:")})
    lists = found.map("edges that cannot be read", own, _edges)
    edges = {(row, other) for row, others in lists.items() for other in others}
    found.note("dangling edges", sum(a not in rows or b not in rows or (b, a) not in edges for a, b in edges))
    entities = {name: data for name, data in graph.items() if name.startswith(b"e:")}
    named = found.map("entities that cannot be read", entities, _named)
    found.note("entities that name no record", len({row for own in named.values() for row in own} - rows))
