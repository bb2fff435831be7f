"""What records that are gone leave behind is taken out in bounded commands (`lua/lib/remains.lua`)."""

from __future__ import annotations

from collections.abc import Mapping

from omoide.errors import OmoideError
from omoide.stores.redis.calls import PIPELINE, Call, Handler, failure, send

__all__ = ["swept"]

AT_ONCE = 512
"""Postings that one command takes out at most."""


def swept(left: Mapping[bytes, int]) -> Handler[dict[bytes, OmoideError]]:
    """Take out what is left in partitions: head key -> postings, as their last writes told.

    Returns:
        head key -> what stopped it. What stays then goes with the next write of the partition that erases.
    Cost: nothing where nothing is left; else a command per 512 postings, together in one round trip.
    """
    waiting = {head: count for head, count in left.items() if count > 0}
    failed: dict[bytes, OmoideError] = {}
    while waiting:
        needed = [head for head, count in waiting.items() for _ in range(-(-count // AT_ONCE))]
        calls = [Call("sweep", head, safe=True) for head in needed[:PIPELINE]]
        replies = yield from send(calls)
        for call, reply in zip(calls, replies, strict=True):
            error = failure(reply, call)
            if error is not None:
                failed[call.head] = error
            waiting[call.head] = 0 if error is not None else int(reply)
        waiting = {head: count for head, count in waiting.items() if count > 0 and head not in failed}
    return failed
