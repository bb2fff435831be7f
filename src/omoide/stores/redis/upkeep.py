"""Maintenance and status: partitions, pruning, checking, rebuilding."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any

from omoide.errors import CorruptRecordError, StoreError
from omoide.ops.request import (
    BeginReindex,
    Check,
    CheckReply,
    CopyRecords,
    FinishReindex,
    KeysLeft,
    PartitionStatus,
    Prune,
    Put,
    ReindexState,
)
from omoide.stores.redis.audit import Reading, compare, readable_counters, wrong_type
from omoide.stores.redis.cache import Cache
from omoide.stores.redis.calls import PIPELINE, Call, Handler, answer, failure, send
from omoide.stores.redis.codec import FORMAT, encode_put, kind, pack_plan, rate
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.staging import stages
from omoide.stores.redis.sweeping import swept
from omoide.stores.redis.writes import check_no_mirror

LEASE_MS = 600_000
_LOG = logging.getLogger("omoide")


class Upkeep:
    """Turns maintenance requests into calls."""

    def __init__(self, keys: Keys, cache: Cache) -> None:
        self.keys = keys
        self.cache = cache

    def prune(self, request: Prune) -> Handler[int]:
        """Cost: one round trip, O(terms of the records that go); one more where they leave over 512.

        A damaged partition is told of and left as it is: it must not keep the others from being pruned.
        """
        check_no_mirror(request.scope)
        call = Call("prune", self.keys.head(request.scope), (max(1, min(request.limit, 64)),))
        (reply,) = yield from send([call])
        error = failure(reply, call)
        if isinstance(error, CorruptRecordError) or wrong_type(reply):
            _LOG.warning(
                "%s: a damaged partition was not pruned; see `omoide doctor`", request.scope.spec.name
            )
            return 0
        if error is not None:
            raise error
        gone, left = reply
        failed = yield from swept({call.head: left})
        if failed:
            raise failed[call.head]
        return int(gone)

    def keys_left(self, request: KeysLeft) -> Handler[int]:
        """Cost: one round trip."""
        head = self.keys.head(request.scope)
        (left,) = yield from answer(Call("left", head))
        return int(left)

    def describe(self, heads: Sequence[bytes]) -> Handler[tuple[PartitionStatus, ...]]:
        """Status of partitions whose head keys were found. Cost: two round trips per 256.

        A partition with a damaged key is told of as damaged, with what can be read of it.
        """
        found: list[PartitionStatus] = []
        for start in range(0, len(heads), PIPELINE):
            part = heads[start : start + PIPELINE]
            calls = [Call("count", head) for head in part]
            replies = yield from send(calls)
            names = yield [Command((b"HGETALL", head[:-1] + b"n"), head, idempotent=True) for head in part]
            for head, call, reply, counters in zip(part, calls, replies, names, strict=True):
                error = failure(reply, call) or (None if wrong_type(counters) else failure(counters, call))
                if error is not None:
                    raise error
                found.append(self._status(head, reply, counters))
        return tuple(sorted(found, key=lambda status: (status.model, status.values)))

    def _status(self, head: bytes, reply: list[Any], counters: Any) -> PartitionStatus:
        model, values = self.keys.parse(head) or ("", ())
        live, dead, rows, _, v, fingerprint, whole = reply or (0, 0, 0, b"", 0, b"", 1)
        numbers, broken = readable_counters(counters)
        shape = fingerprint.decode(errors="replace")
        return PartitionStatus(model, values, live, dead, rows, v, shape, numbers, not whole or broken > 0)

    # ---- rebuild

    def begin(self, request: BeginReindex) -> Handler[ReindexState]:
        """Cost: one round trip."""
        check_no_mirror(request.scope)
        spec = request.scope.spec
        plan = {
            "format": FORMAT,
            "fingerprint": spec.fingerprint,
            "rate": rate(spec),
            "lease": LEASE_MS,
            "token": secrets.token_hex(8),
            "vectors": kind(spec),
        }
        head = self.keys.head(request.scope)
        reply = yield from answer(Call("begin", head, (pack_plan(plan),)))
        if not reply:
            return ReindexState("", "", 0)
        (gen,) = yield [Command((b"HGET", head, b"gen"), head, idempotent=True)]
        if gen is None:  # its records were all about to expire
            return ReindexState("", "", 0)
        return ReindexState(reply[0].decode(), f"{gen.decode()}:{reply[1]}", int(reply[2]))

    def copy(self, request: CopyRecords) -> Handler[int]:
        """Cost: one round trip per 256 commands, which is one a record of up to 384 terms."""
        head = self.keys.head(request.scope)
        calls = [
            call
            for row, put in zip(request.rows, request.puts, strict=True)
            for call in self._copy_calls(head, request.token, row, put)
        ]
        copied = 0
        for start in range(0, len(calls), PIPELINE):
            part = calls[start : start + PIPELINE]
            replies = yield from send(part)
            for call, reply in zip(part, replies, strict=True):
                if call.ahead:
                    continue
                error = failure(reply, call)
                if error is not None:
                    raise error
                if reply == -1:
                    raise StoreError("this rebuild was given up or taken over", hint="start it again")
                copied += int(reply)
        return copied

    def _copy_calls(self, head: bytes, token: str, row: int, put: Put) -> list[Call]:
        plan, footprint, body, terms = encode_put(put)
        plan.update(token=token, lease=LEASE_MS, row=row, ttl=None)
        staging = stages(head, plan["fingerprint"], plan, terms, token)
        return [*staging, Call("copy", head, (pack_plan(plan), footprint, body, put.slot), safe=True)]

    def finish(self, request: FinishReindex) -> Handler[int | None]:
        """Cost: one round trip, O(1)."""
        head = self.keys.head(request.scope)
        live = yield from answer(Call("swap", head, (request.token,)))
        if live == -1:
            raise StoreError("this rebuild was given up or taken over", hint="start it again")
        if live == -2:
            return None
        with self.cache.lock:
            self.cache.forget(head)
        return int(live)

    # ---- check

    def check(self, request: Check) -> Handler[CheckReply]:
        """Read the whole partition and compare. Not atomic, for quiet partitions.

        Cost: all its bytes, in pieces of about 1 MiB; a round trip per piece of the largest key.
        """
        parts = yield from Reading(self.keys.head(request.scope)).all()
        return compare(request.scope.spec, parts)
