"""What a server says of its files and its replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from omoide.ops.request import Persisted
from omoide.stores.redis.translate import reply_error


def persistence(infos: Sequence[Any]) -> tuple[Persisted, ...]:
    """Facts out of the INFO of every primary.

    Raises:
        StoreError: one of them refused.
    """
    return tuple(_persisted(info) for info in infos)


def _persisted(info: Any) -> Persisted:
    if isinstance(info, RedisError):
        raise reply_error(info)
    if isinstance(info, Exception):
        raise info
    lines = (line.partition(":") for line in info.decode(errors="replace").splitlines() if ":" in line)
    facts = {name: value for name, _, value in lines}
    return Persisted(
        append_only=facts.get("aof_enabled") == "1",
        rewriting="1" in (facts.get("aof_rewrite_in_progress"), facts.get("aof_rewrite_scheduled")),
        rewrite_succeeded=facts.get("aof_last_bgrewrite_status") == "ok",
        replicas=int(facts.get("connected_slaves", 0)),
    )


def rewriting(replies: Sequence[Any]) -> bool:
    """Whether every primary began to rewrite its append-only file, or will.

    Raises:
        StoreError: one of them refused for another reason than that it is at it.
    """
    begun = True
    for reply in replies:
        if isinstance(reply, RedisError):
            if "already in progress" not in str(reply):
                raise reply_error(reply)
            begun = False
        elif isinstance(reply, Exception):
            raise reply
    return begun


__all__ = ["persistence", "rewriting"]
