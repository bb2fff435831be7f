"""Versions by rows: which record is valid when, worked out in the transaction that changes it.

    _chain        what the versions of one key have in common, as `lua/lib/chains.lua` names it; NULL for none
    _valid_from   start (ms)
    _own_end      where the record itself ends, NULL for nowhere
    _valid_to     where it ends: at its own end or where the next one starts, whichever comes first
    _place        | u64 start + 2^52, big endian | id |: versions are in the order of these bytes

The end of a version depends on the one that follows it and on nothing else. So a write changes places first,
and then mends the chain around each place that was taken or left: the last version before it, and the one at
it. What goes by itself (expiry, eviction) was true: the version before it is sealed, its end becomes its own.

The store is told every end that changed, and works out none.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from omoide.ops.request import PutReply, Span
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.rows import Known
from omoide.stores.postgres.script import Script, Step
from omoide.stores.postgres.tables import Table

__all__ = ["Versions", "place_of", "unkeyed"]

_BIAS = 1 << 52
_COLUMNS = "{id}, _place, _valid_from, _valid_to, _own_end"
_OF_CHAIN = "FROM {table} WHERE _partition = %s AND _chain = %s AND _place"
_BEFORE = f"SELECT {_COLUMNS} {_OF_CHAIN} < %s ORDER BY _place DESC LIMIT 1"
_NEAR = f"({_BEFORE}) UNION ALL (SELECT {_COLUMNS} {_OF_CHAIN} >= %s ORDER BY _place LIMIT 2)"
_END = "UPDATE {table} SET _valid_to = %s, _own_end = %s WHERE _partition = %s AND {id} = %s"
_FOUND = """
UPDATE {table} SET _valid_from = %s, _chain = %s, _place = %s WHERE _partition = %s AND {id} = %s
"""


def place_of(start: int, id: str) -> bytes:
    """Where a version stands in its chain."""
    return struct.pack(">Q", start + _BIAS) + id.encode()


def unkeyed(chain: str | None) -> str | None:
    """A chain when it is not that of a key."""
    return chain if chain is not None and chain.startswith("s") else None


class Versions:
    """The chains of one partition in a transaction; each method that asks is a script.

    `changed`: id -> span of every version that has another end, own end or chain than before.
    """

    def __init__(self, table: Table, partition: str) -> None:
        self.table, self.partition = table, partition
        self.changed: dict[str, Span] = {}
        self._taken: list[tuple[str, bytes]] = []

    def supersede(self, id: str, chain: str | None, keyed: bool, old: Known | None) -> Script[str | PutReply]:
        """The chain in which a version is followed by another one, or what stands in the way.

        A version without a chain becomes the first of one.

        Args:
            id: Of the version, and `old` what is known of it.
            chain: Which the write is of so far, and whether that is the chain of its key.
        """
        if old is None:
            return PutReply("missing")
        if old.valid_to is not None:
            return PutReply("closed", old.version)
        if old.chain is not None and (chain == old.chain or (chain is None and unkeyed(old.chain))):
            return old.chain
        if old.chain is not None or keyed:
            return PutReply("other_key", old.version)
        chain = chain or "s" + secrets.token_hex(12)
        start = old.time_ms if old.valid_from is None else old.valid_from
        yield Step(
            self.table.statement(_FOUND),
            (start, chain, place_of(start, id), self.partition, escaped(id)),
        )
        self.changed[id] = Span(start, None, None, chain)
        self._taken.append((chain, place_of(start, id)))
        return chain

    def closed_by(self, id: str, known: Known) -> Script[str | None]:
        """The version that ends where this one starts."""
        if known.chain is None or known.valid_from is None:
            return None
        before = yield from self._before(known.chain, place_of(known.valid_from, id))
        ends = [one.id for one in before if one.own is None or one.own > known.valid_from]
        return ends[0] if ends else None

    def end_of(self, id: str, known: Known) -> Script[int | None]:
        """Where a version that is about to be written ends."""
        if known.chain is None or known.valid_from is None:
            return known.own_end
        place = place_of(known.valid_from, id)
        after = [one for one in (yield from self._near(known.chain, place)) if one.place > place]
        return _earlier(known.own_end, after[0].start if after else None)

    def enter(self, id: str, known: Known, old: Known | None) -> Script[str | None]:
        """Mend around a version whose row was just written with `known`; the version that it closed."""
        self.changed.pop(id, None)
        closed = None
        if known.chain is not None and known.valid_from is not None:
            start = known.valid_from
            for one in (yield from self._mend(known.chain, place_of(start, id))):
                if one.id != id and one.end == start and (one.own is None or one.own > start):
                    closed = one.id
        if old is not None and old.chain is not None and old.valid_from is not None:
            self._taken.append((old.chain, place_of(old.valid_from, id)))
        while self._taken:
            yield from self._mend(*self._taken.pop())
        return closed

    def leave(self, gone: Iterable[tuple[str, bytes]], *, seal: bool) -> Script[None]:
        """Mend, or seal, around the places (chain, place) of rows that were just deleted."""
        for chain, place in gone:
            if not seal:
                yield from self._mend(chain, place)
                continue
            for one in (yield from self._before(chain, place)):
                if one.own != one.end:
                    yield from self._set(chain, one._replace(own=one.end))

    def _mend(self, chain: str, place: bytes) -> Script[list[_Version]]:
        """Give the version at a place and the one before it their ends; those that got another one."""
        near = yield from self._near(chain, place)
        changed = []
        for one, after in zip_longest(near, near[1:]):
            end = _earlier(one.own, None if after is None else after.start)
            if one.place <= place and one.end != end:
                changed.append(one._replace(end=end))
                yield from self._set(chain, changed[-1])
        return changed

    def _set(self, chain: str, one: _Version) -> Script[None]:
        self.changed[one.id] = Span(one.start, one.end, one.own, chain)
        yield Step(self.table.statement(_END), (one.end, one.own, self.partition, escaped(one.id)))

    def _near(self, chain: str, place: bytes) -> Script[list[_Version]]:
        """In order: the last version before a place, and the first two from it on."""
        at = (self.partition, chain, place)
        rows = yield Step(self.table.statement(_NEAR), (*at, *at))
        return sorted((_version(row) for row in rows), key=lambda one: one.place)

    def _before(self, chain: str, place: bytes) -> Script[list[_Version]]:
        """The last version before a place, if any."""
        rows = yield Step(self.table.statement(_BEFORE), (self.partition, chain, place))
        return [_version(row) for row in rows]


class _Version(NamedTuple):
    id: str
    place: bytes
    start: int
    end: int | None
    own: int | None


def _version(row: Sequence[Any]) -> _Version:
    return _Version(unescaped(row[0]), bytes(row[1]), *row[2:])


def _earlier(first: int | None, second: int | None) -> int | None:
    """The earlier of two ends; None is no end."""
    return min((end for end in (first, second) if end is not None), default=None)
