"""Find keys on every primary, while slots may move.

    primaries ──▶ SCAN each ──▶ the layout as before, and no slot open? ──▶ keys
        ▲                                     │ no
        └────────── the other way round ◀─────┘

A key moves from one node to another: a pass that comes to the target before and to the source after
that sees it on neither. The pass in the opposite order sees it on one of the two, and so on until a pass
in which no slot changed its node. `CLUSTER NODES` of each primary tells its slots, the open ones too.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from omoide.errors import StoreUnavailableError
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.url import Address

Look: TypeAlias = "tuple[Address, Command] | None"
"""A command for a node, whose reply is wanted; None: the primaries of this moment."""

_PASSES = 16
_NODES = Command((b"CLUSTER", b"NODES"), b"", idempotent=True)
_FIELDS_BEFORE_SLOTS = 8


def list_keys(patterns: Sequence[bytes], *, cluster: bool) -> Generator[Look, Any, list[bytes]]:
    """Every key that matches a pattern, once.

    Raises:
        StoreUnavailableError: slots move faster than the keys can be listed.
    Cost: a scan of every primary; a second one while a slot is being moved.
    """
    found: dict[bytes, None] = {}
    nodes: list[Address] = yield None
    layout = (yield from _layout(nodes)) if cluster else {}
    for done in range(1, _PASSES + 1):
        for node in nodes if done % 2 else nodes[::-1]:
            for pattern in patterns:
                yield from _scan(node, pattern, found)
        if not cluster:
            return list(found)
        nodes = yield None
        before, layout = layout, (yield from _layout(nodes))
        if layout == before and (done > 1 or not any("[" in slots for slots in layout.values())):
            return list(found)
    raise StoreUnavailableError("slots move faster than the keys can be listed", hint="try again later")


def _layout(nodes: Sequence[Address]) -> Generator[Look, Any, dict[Address, str]]:
    """The slots of each node in its own words; `[slot->-node]` is one on its way."""
    layout = {}
    for node in nodes:
        lines = (yield node, _NODES).decode().splitlines()
        (own,) = (line.split(" ") for line in lines if "myself" in line.split(" ")[2])
        layout[node] = " ".join(own[_FIELDS_BEFORE_SLOTS:])
    return layout


def _scan(node: Address, pattern: bytes, found: dict[bytes, None]) -> Generator[Look, Any, None]:
    cursor: Any = b"0"
    while True:
        args = (b"SCAN", cursor, b"MATCH", pattern, b"COUNT", b"1000")
        cursor, keys = yield node, Command(args, pattern, idempotent=True)
        found.update(dict.fromkeys(keys))
        if cursor in (b"0", 0):
            return


__all__ = ["Look", "list_keys"]
