"""Keeping the vectors of a partition in step with the store, by the calls that keep its lists in step.

    have not, or have up to a row ──plan──▶ fetch ──▶ slots from that row on, later vectors of rows before
                                                 └──▶ the rest, 1 MiB a piece, in pipelines

A vector never changes while its row has the same number; it only comes, with its row or later (the log of
changes says which), and goes with its row.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from omoide.core.arms.meaning import Meaning
from omoide.core.vectors import HEADER_BYTES, MOST_BYTES, Vectors
from omoide.ops.request import Search
from omoide.stores.redis.cache import Partition
from omoide.stores.redis.calls import Call

NOTHING = "nothing_embedded"
OTHER = "other_provider"
TOO_LARGE = "too_large"
SERVER = "server_reader"

PIECE_BYTES = 1_048_576
PIECES_AT_ONCE = 64
_LOG = logging.getLogger("omoide")
_warned: set[bytes] = set()


class Wanted(NamedTuple):
    """Vectors of a kind, and the bytes of one in the store."""

    kind: str
    stride: int


def wanted(request: Search) -> Wanted | None:
    """The vectors that a search compares its own with."""
    index = request.scope.spec.embedding
    if request.vector is None or index is None:
        return None
    return Wanted(index.kind, len(request.vector) + HEADER_BYTES)


def ask_for(partition: Partition, want: Wanted | None) -> dict[str, Any]:
    """The part of a plan of `fetch` that is about vectors: what is wanted, or else what is held already."""
    held = partition.vectors
    if want is None and held is not None:
        want = Wanted(partition.kind, held.stride)
    if want is None:
        return {"vectors": ""}
    same = held is not None and held.stride == want.stride and partition.kind == want.kind
    slots = held.next if held is not None and same else 1
    return {"vectors": want.kind, "stride": want.stride, "slots": slots, "most": MOST_BYTES}


def take(partition: Partition, plan: Mapping[str, Any], told: list[Any]) -> None:
    """Take in what a reply of `fetch` says of vectors."""
    if not told:
        partition.forget_meaning()  # they may be behind the log from here on
        return
    kind, stride = told[0].decode(), int(told[1])
    held = partition.vectors if partition.kind == kind else None
    if len(told) < 5:
        mine = (plan["vectors"], plan["stride"])
        partition.vectors, partition.kind = None, plan["vectors"]
        partition.without_meaning = (
            NOTHING if not (kind and stride) else TOO_LARGE if (kind, stride) == mine else OTHER
        )
        return
    if told[2] == 1 or held is None or held.stride != stride:
        held = Vectors(stride)
    partition.vectors, partition.kind, partition.without_meaning = held, kind, ""
    held.extend(told[2], told[3], told[4])
    late = told[5]
    held.put([int.from_bytes(late[at : at + 4], "little") for at in range(0, len(late), 4)], told[6])


def missing_slots(partition: Partition, head: bytes, following: int) -> list[Call]:
    """Calls for the vectors that a reply left out, up to the row after the last."""
    held = partition.vectors
    if held is None or held.next >= following:
        return []
    size = max(1, PIECE_BYTES // held.stride)
    firsts = range(held.next, following, size)[:PIECES_AT_ONCE]
    return [Call("slots", head, (held.stride, first, min(first + size, following) - 1)) for first in firsts]


def take_slots(partition: Partition, call: Call, reply: list[Any]) -> bool:
    """Take in one piece; False when it is of another numbering, or not the next."""
    stride, first, last = (int(part) for part in call.args)
    held = partition.vectors
    if reply[0] != partition.gen or held is None or held.stride != stride or held.next != first:
        return False
    held.extend(first, last + 1, reply[1])
    return True


def compared(partition: Partition, request: Search) -> Meaning | None:
    """The cosines of a partition with the vector of a search; None where there is nothing to compare."""
    want, held = wanted(request), partition.vectors
    index = request.scope.spec.embedding
    if want is None or index is None or held is None or not held.size:
        return None
    if not partition.knows_meaning(*want):
        return None
    if held.size > 2 * partition.n + 64:
        held.bury(partition.columns.flags)
    cosines, there = held.cosines(request.vector, partition.columns.next)
    there &= partition.columns.live_mask(slice(0, len(there)))
    return Meaning(cosines, there, index.least) if there.any() else None


def warn_of_another_provider(head: bytes, request: Search, partition: Partition) -> None:
    """Once per partition and process: its vectors are of another provider or source."""
    if partition.without_meaning == OTHER and head not in _warned:
        _warned.add(head)
        _LOG.warning(
            "%s: the vectors of a partition are of another provider or source; it is recalled by words alone "
            "until `omoide embed` has run",
            request.scope.spec.name,
        )


__all__ = [
    "NOTHING",
    "SERVER",
    "Wanted",
    "ask_for",
    "compared",
    "missing_slots",
    "take",
    "take_slots",
    "wanted",
    "warn_of_another_provider",
]
