"""Writes: each one script call, many of them in one round trip."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from omoide.errors import OmoideError, QueryError, StoreUnavailableError
from omoide.model.schema import Scope
from omoide.ops.request import (
    Batch,
    Deliver,
    Drop,
    Erase,
    Increment,
    Link,
    Observe,
    ObserveReply,
    Put,
    PutReply,
)
from omoide.stores.redis.cache import Cache, Gone, Written
from omoide.stores.redis.calls import PIPELINE, Call, Handler, answer, failure, send
from omoide.stores.redis.codec import digest, encode_put, pack_plan, prior, rate, read_interval, statistics
from omoide.stores.redis.keys import Keys, model_of
from omoide.stores.redis.staging import stages
from omoide.stores.redis.sweeping import swept

ERASE_AT_ONCE = 4
_LOG = logging.getLogger("omoide")


class Writer:
    """Turns write requests into calls, and their replies into outcomes and cache entries."""

    def __init__(self, keys: Keys, cache: Cache) -> None:
        self.keys = keys
        self.cache = cache

    def batch(self, request: Batch) -> Handler[tuple[Any, ...]]:
        """Writes in order; a reply or the error that stopped it, for each.

        Cost: one round trip per 256 calls; one more where records of over 256 terms went.
        """
        prepared = [self._prepare(write) for write in request.writes]
        calls = [call for calls, _ in prepared for call in calls]
        replies: list[Any] = []
        for start in range(0, len(calls), PIPELINE):
            replies += yield from send(calls[start : start + PIPELINE])
        failed = yield from swept(_left(calls, replies))
        outcomes: list[Any] = []
        place = 0
        for write, (own, context) in zip(request.writes, prepared, strict=True):
            part = replies[place : place + len(own)]
            place += len(own)
            try:
                outcome = self._conclude(write, own, context, part)
                unswept = failed.get(own[0].head) if own else None
                outcomes.append(outcome if unswept is None else _unswept(write, own[0], outcome, unswept))
            except OmoideError as error:
                outcomes.append(error)
        return tuple(outcomes)

    def one(self, write: Any) -> Handler[Any]:
        """A single write; raises what stopped it."""
        (outcome,) = yield from self.batch(Batch((write,)))
        if isinstance(outcome, OmoideError):
            raise outcome
        return outcome

    def drop(self, request: Drop) -> Handler[int]:
        check_no_mirror(request.scope)
        head = self.keys.head(request.scope)
        live = yield from answer(Call("forget", head))
        with self.cache.lock:
            self.cache.forget(head)
        return int(live)

    def increment(self, request: Increment) -> Handler[int]:
        check_no_mirror(request.scope)
        head = self.keys.head(request.scope)
        return int((yield from answer(Call("counter", head, (request.name, request.delta)))))

    def link(self, request: Link) -> Handler[float]:
        check_no_mirror(request.scope)
        call = Call(
            "link", self.keys.head(request.scope), (request.first, request.second, repr(request.delta))
        )
        weight = yield from answer(call)
        return 0.0 if weight is None else float(weight)

    # ---- one write: its calls, and what their replies mean

    def _prepare(self, write: Any) -> tuple[list[Call], Any]:
        if not isinstance(write, Deliver) or write.counters:
            check_no_mirror(write.scope)
        head = self.keys.head(write.scope)
        if isinstance(write, Put):
            plan, footprint, body, terms = encode_put(write)
            staging = stages(head, plan["fingerprint"], plan, terms)
            args = (
                pack_plan(plan),
                footprint,
                body,
                digest(write.operation_id),
                statistics(write),
                write.slot,
            )
            return [*staging, Call("save", head, args, safe=True)], (terms, plan["codes"], write)
        if isinstance(write, Erase):
            chunks = [write.ids[at : at + ERASE_AT_ONCE] for at in range(0, len(write.ids), ERASE_AT_ONCE)]
            return [Call("erase", head, (pack_plan(list(chunk)),)) for chunk in chunks], None
        if isinstance(write, Observe):
            safe = write.turn is not None and not write.counters
            return [Call("observe", head, (pack_plan(_observation(write)),), safe=safe)], None
        if isinstance(write, Deliver):
            return [Call("deliver", head, (pack_plan(_delivery(write)),))], None
        raise QueryError(f"a batch holds no {type(write).__name__}")

    def _conclude(self, write: Any, calls: Sequence[Call], context: Any, replies: Sequence[Any]) -> Any:
        for call, reply in zip(calls, replies, strict=True):
            error = failure(reply, call)
            if error is not None and not call.ahead:
                raise error
        if isinstance(write, Put):
            return self._stored(calls[-1].head, replies[-1], *context)
        if isinstance(write, Erase):
            found = [
                flag for call, reply in zip(calls, replies, strict=True) for flag in self._erased(call, reply)
            ]
            return tuple(found[: len(write.ids)])
        if isinstance(write, Observe):
            ids, states = ([name.decode() for name in part] for part in replies[0])
            return ObserveReply(tuple(ids), tuple(states))
        return None

    def _stored(
        self, head: bytes, reply: list[Any], terms: Sequence[str], codes: Sequence[int], write: Put
    ) -> PutReply:
        status = reply[0].decode()
        version = int(reply[1])
        if status == "duplicate":
            return PutReply(status, version, duplicate_of=reply[4].decode())
        if status == "repeated":
            closed = reply[5].decode() or None
            return PutReply("stored", version, bool(reply[2]), int(reply[3]), repeated=True, closed=closed)
        if status != "stored":
            return PutReply(status, version)
        _, _, created, evicted, _, gen, v, row, _, n, sdl, log, _, attributes, interval, erased = reply[:16]
        closed, mended = reply[16].decode() or None, tuple((one, data) for one, data in reply[17])
        slot = write.slot if reply[18] == b"1" else reply[18]
        with self.cache.changing(head) as partition:
            if partition is not None:
                gone = _gone(erased)
                partition.written(
                    Written(
                        gen, v, row, n, int(sdl), log, attributes, interval, gone, terms, codes, mended, slot
                    )
                )
        told = read_interval(interval) if write.scope.spec.validity is not None else None
        return PutReply(
            "stored",
            version,
            bool(created),
            int(evicted),
            closed=closed,
            interval=told,
            embedded=slot != b"",
        )

    def _erased(self, call: Call, reply: list[Any]) -> list[bool]:
        if not reply:
            return [False] * ERASE_AT_ONCE
        gen, v, _, n, sdl, log, there, erased, mended, _ = reply
        with self.cache.changing(call.head) as partition:
            if partition is not None and erased:
                partition.erased(
                    gen, v, n, int(sdl), log, _gone(erased), [(one, data) for one, data in mended]
                )
        return [flag == 1 for flag in there]


def check_no_mirror(scope: Scope) -> None:
    """Raise StoreUnavailableError for a write that belongs into authoritative rows first."""
    if scope.spec.mirror is not None:
        raise StoreUnavailableError(
            f"{scope.spec.name} is mirrored, and no PostgreSQL is configured",
            hint="connect(postgres='postgresql://...' or 'embedded'), or OMOIDE_POSTGRES",
        )


def _left(calls: Sequence[Call], replies: Sequence[Any]) -> dict[bytes, int]:
    """Head key -> postings that are to be taken out, staged ones that no write took up among them."""
    left: dict[bytes, int] = {}
    for call, reply in zip(calls, replies, strict=True):
        if call.ahead and isinstance(reply, int):
            left[call.head] = left.get(call.head, 0) + reply
        elif call.verb == "save" and isinstance(reply, list) and reply[0] == b"stored":
            unused = left.get(call.head, 0) if reply[20] == 0 else 0
            left[call.head] = int(reply[19]) or min(1, unused)
        elif call.verb == "erase" and reply and isinstance(reply, list):
            left[call.head] = int(reply[9])
    return left


def _unswept(write: Any, call: Call, outcome: Any, error: OmoideError) -> Any:
    """What a write that happened comes to when its remains could not be taken out: an erasure has failed."""
    if isinstance(write, Erase):
        return error
    _LOG.warning("%s: postings of an erased record stay until a later write: %s", model_of(call.head), error)
    return outcome


def _gone(erased: list[Any]) -> tuple[Gone, ...]:
    """The erased records of a reply: row and terms of each."""
    return tuple((row, tuple(term.decode() for term in terms)) for row, terms in erased)


def _observation(write: Observe) -> dict[str, Any]:
    spec = write.scope.spec
    return {
        **prior(spec),
        "decays": spec.decay is not None,
        "rate": rate(spec),
        "turn": write.turn,
        "evidence": [
            [item.id, item.support, item.against, item.touch, item.access] for item in write.evidence
        ],
        "linked": list(write.linked),
        "link": write.link,
        "mark": 2 if write.echo else 1,
        "counters": [list(counter) for counter in write.counters],
    }


def _delivery(write: Deliver) -> dict[str, Any]:
    spec = write.scope.spec
    return {
        **prior(spec),
        "turn": write.turn,
        "ttl": write.ttl_ms,
        "ids": list(write.ids),
        "track": spec.tracks_access and spec.mirror is None,
        "counters": [list(counter) for counter in write.counters],
    }
