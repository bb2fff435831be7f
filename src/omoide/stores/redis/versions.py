"""The chains of versions as they are stored, and whether they agree with footprints and intervals.

`lib/chains.lua` draws the members of `v` and says what follows from them; this reads them for `doctor`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from omoide.core.columns import INTERVAL, INTERVAL_BYTES, OPEN
from omoide.errors import CorruptRecordError
from omoide.ops.request import Span
from omoide.stores.redis.codec import footprint_chain

_BIAS = 1 << 52
_INSTANT = struct.Struct(">Q")
_CHAINS = {b"k": 17, b"s": 25}
"""First byte -> length of the name of a chain."""


class Version(NamedTuple):
    """One member: chain, valid from (ms), id, and where the record itself ends (OPEN: nowhere)."""

    chain: bytes
    start: int
    id: bytes
    own: int


def read_version(member: bytes) -> Version:
    """A member of `v`.

    Raises:
        CorruptRecordError: it is not what was written.
    """
    at = _CHAINS.get(member[:1], 0)
    if not at or len(member) < at + 8 + 1 + 9 or member[-9:-8] != b"\0":
        raise CorruptRecordError("a version is not what was written", hint="omoide doctor")
    start, own = (_INSTANT.unpack_from(member, place)[0] - _BIAS for place in (at, len(member) - 8))
    return Version(member[:at], start, member[at + 8 : -9], own)


def version_member(id: str, span: Span) -> bytes:
    """The member of a version that has a chain."""
    start, own = (_INSTANT.pack(instant + _BIAS) for instant in (span.start, closed(span.own)))
    return b"".join(((span.chain or "").encode(), start, id.encode(), b"\0", own))


def closed(end: int | None) -> int:
    """An end as it is stored: OPEN for none."""
    return OPEN if end is None else end


def ends_of(versions: Iterable[Version]) -> dict[tuple[bytes, bytes], tuple[int, int]]:
    """(chain, id) -> (valid from, valid to), as follows from all versions, given in the order of `v`."""
    found: dict[tuple[bytes, bytes], tuple[int, int]] = {}
    following: Version | None = None
    for version in reversed(list(versions)):
        same = following is not None and following.chain == version.chain
        end = min(version.own, following.start) if same and following is not None else version.own
        found[version.chain, version.id] = (version.start, end)
        following = version
    return found


def diverging(
    rows: set[int], footprints: Mapping[int, bytes], versions: list[Version], column: bytes, over: set[int]
) -> dict[str, int]:
    """Kind of divergence -> how many.

    Args:
        rows: Of all records.
        column: The interval column.
        over: Rows that `o` has.
    """
    known = {row: footprint_chain(data) for row, data in footprints.items() if row in rows}
    chained = {(chain.encode(), name): row for row, (name, chain) in known.items() if chain is not None}
    told = ends_of(versions)
    intervals = _intervals(column, rows)
    ending = {row for row, (start, end) in intervals.items() if (start or end) and end < OPEN}
    return {
        "versions without a record": len(told.keys() - chained.keys()),
        "records without a place among versions": len(chained.keys() - told.keys()),
        "wrong intervals of versions": sum(
            intervals.get(chained[key]) != told[key] for key in told.keys() & chained.keys()
        ),
        "ends without a record that ends": len(over - ending),
        "records without their end": len(ending - over),
    }


def _intervals(column: bytes, rows: set[int]) -> dict[int, tuple[int, int]]:
    """Row -> (valid from, valid to) of the rows that the column has."""
    found = {}
    for row in rows:
        if (row + 1) * INTERVAL_BYTES <= len(column):
            _, start, end = struct.unpack_from(INTERVAL, column, row * INTERVAL_BYTES)
            found[row] = (start, end)
    return found


__all__ = ["Version", "closed", "diverging", "ends_of", "read_version", "version_member"]
