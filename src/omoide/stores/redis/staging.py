"""Postings of a long record go in by commands before the one that stores it (`lua/lib/staged.lua`)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from omoide.stores.redis.calls import Call
from omoide.stores.redis.codec import pack_plan

__all__ = ["is_long", "stages"]

AT_ONCE = 384
"""Terms of a record that one command puts in, unless another write comes between."""


def is_long(codes: Sequence[int]) -> bool:
    """Whether a record with so many postings goes in by several commands."""
    return len(codes) > AT_ONCE


def stages(
    head: bytes, fingerprint: str, plan: dict[str, Any], terms: Sequence[str], rebuild: str | None = None
) -> list[Call]:
    """What goes before the command of a plan, in the same round trip; none for a record of few terms.

    Args:
        fingerprint: Shape of the index that the postings are for.
        plan: Has the codes, and is told under which name they are staged.
        rebuild: Token of the rebuild into whose copy the record goes.
    """
    if not is_long(plan["codes"]):
        return []
    name = plan["staged"] = secrets.token_hex(4)
    common = {"fingerprint": fingerprint, "name": name, "token": rebuild or False}
    return [
        _stage(head, common | {"first": first}, terms[first : first + AT_ONCE], plan["codes"])
        for first in range(0, len(terms) - AT_ONCE, AT_ONCE)
    ]


def _stage(head: bytes, plan: dict[str, Any], terms: Sequence[str], codes: Sequence[int]) -> Call:
    first: int = plan["first"]
    plan |= {"terms": terms, "codes": codes[first : first + len(terms)]}
    return Call("stage", head, (pack_plan(plan),), safe=True, ahead=True)
