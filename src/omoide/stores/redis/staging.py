"""Postings of a long record go in by commands before the one that stores it (`lua/lib/staged.lua`)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from omoide.stores.redis.calls import Call
from omoide.stores.redis.codec import pack_plan

__all__ = ["stages"]

AT_ONCE = 384
"""Terms of a record that one command puts in, unless another write comes between."""


def stages(head: bytes, plan: dict[str, Any], terms: Sequence[str], rebuild: str | None = None) -> list[Call]:
    """What goes before the command of a plan, in the same round trip; none for a record of few terms.

    Args:
        plan: Is told under which name its postings are staged.
        rebuild: Token of the rebuild into whose copy the record goes.
    """
    if len(terms) <= AT_ONCE:
        return []
    name = plan["staged"] = secrets.token_hex(4)
    common = {"fingerprint": plan["fingerprint"], "name": name, "token": rebuild or False}
    return [
        _stage(head, common | {"first": first}, terms[first : first + AT_ONCE], plan["codes"])
        for first in range(0, len(terms) - AT_ONCE, AT_ONCE)
    ]


def _stage(head: bytes, plan: dict[str, Any], terms: Sequence[str], codes: Sequence[int]) -> Call:
    first: int = plan["first"]
    plan |= {"terms": terms, "codes": codes[first : first + len(terms)]}
    return Call("stage", head, (pack_plan(plan),), safe=True, ahead=True)
