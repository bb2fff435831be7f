"""Records with all that is kept of them, page by page: what an export reads.

An edge belongs to the later of its two records, so that each comes once and names a record that was
given before. Nothing is left out: a record that cannot be read ends the dump with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omoide.core.columns import unpack
from omoide.errors import StoreUnavailableError
from omoide.model.schema import ModelSpec
from omoide.ops.request import Dump, Dumped, DumpReply, Kept, Statistics
from omoide.stores.redis.calls import Call, Handler, answer
from omoide.stores.redis.codec import (
    STATISTICS,
    UNREADABLE,
    damage,
    edges_in,
    ends,
    footprint_list,
    read_body,
    read_interval,
)
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.reads import read_cursor
from omoide.stores.redis.versions import read_version

MOST = 128


class Dumps:
    """Turns dump requests into calls, and their replies into records."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys

    def dump(self, request: Dump) -> Handler[DumpReply]:
        """Cost: one round trip; at most 128 records and, beyond the first, 1 MiB of bodies.

        Raises:
            CorruptRecordError: a record is not what was written.
            StoreUnavailableError: rows were renumbered since the cursor was given.
        """
        gen, after = read_cursor(request.cursor)
        call = Call("dump", self.keys.head(request.scope), (after, max(1, min(request.size, MOST))))
        reply = yield from answer(call)
        if not reply:
            return DumpReply((), "")
        if gen and reply[0] != gen:
            raise StoreUnavailableError(
                f"{request.scope.spec.name}: the partition was rebuilt while it was read", hint="start again"
            )
        _, _, following, onward, lists, footprints, edges, names, versions, v, live = reply
        cursor = f"{reply[0].decode()}:{onward}" if onward else ""
        if not lists:
            return DumpReply((), cursor, following, v, live)
        known = {names[at]: names[at + 1] for at in range(0, len(names), 2)}
        spec = request.scope.spec
        try:
            records = tuple(_dumped(spec, lists, footprints, edges, known, versions))
        except UNREADABLE:
            raise damage(spec) from None
        return DumpReply(records, cursor, following, v, live)


def _dumped(
    spec: ModelSpec, lists: Any, footprints: Any, edges: Any, known: dict[int, bytes], versions: Any
) -> list[Dumped]:
    rows, bodies, attributes, statistics, orders, expiries, intervals = lists
    found = []
    for place, row in enumerate(rows):
        name, values = read_body(bodies[place], spec.id_field)
        held = unpack(attributes[place])
        kept = Kept(
            version=held.version,
            time_ms=held.time,
            statistics=Statistics(*STATISTICS.unpack(statistics[place])) if statistics[place] else None,
            order=float(orders[place]),
            expires_ms=int(float(expiries[place] or 0)) if expiries else 0,
            edges=_edges(row, edges[place], known),
            entities=tuple(footprint_list(footprints[place])[4]),
        )
        interval = None
        if spec.validity is not None:
            interval = read_interval(intervals[place])
            member = versions[place] if versions else b""
            kept = replace(kept, **_validity(interval, member))
        found.append(Dumped(name, row, values, kept, interval))
        known[row] = name.encode()
    return found


def _validity(interval: tuple[int, int | None], member: bytes) -> dict[str, Any]:
    """Start and own end of a record, and its chain where that is not the one of its key."""
    if not member:
        return {"validity": interval}
    version = read_version(member)
    chain = version.chain.decode() if version.chain.startswith(b"s") else None
    return {"validity": ends(interval[0], version.own), "chain": chain}


def _edges(row: int, data: bytes | None, known: Mapping[int, bytes]) -> tuple[tuple[str, float], ...]:
    """Edges of a row to those before it; of these some may have expired."""
    return tuple(
        (known[other].decode(), weight)
        for other, weight in edges_in(data or b"")
        if other < row and other in known
    )


__all__ = ["Dumps"]
