"""The calls that bring a client reader what it lacks."""

from __future__ import annotations

from typing import Any

from omoide.stores.redis.calls import Call
from omoide.stores.redis.codec import pack_plan
from omoide.stores.redis.exchange import Argument

PIECE = 32_768
"""Attribute rows in 1 MiB, the most that one call moves."""

PIECES_AHEAD = [(first, first + PIECE - 1) for first in range(PIECE + 1, 4 * PIECE, PIECE)]
"""Asked for together with the first piece, whose reply alone says how many there are: cold in two round
trips up to 131,072 rows. An empty piece costs the server some 5 us."""


def fetch_calls(head: bytes, plan: dict[str, Any], *, unless: Argument | None = None) -> list[Call]:
    """The calls that carry out a plan: `fetch` and, where nothing is held, the pieces of the column ahead.

    unless: The packed plan of a `rank` in the same round trip; they answer only where that is refused.
    """
    condition = () if unless is None else (unless,)
    calls = [Call("fetch", head, (pack_plan(plan), *condition))]
    if plan["have"] <= 1:
        calls += [Call("column", head, (*piece, *condition)) for piece in PIECES_AHEAD]
    return calls
