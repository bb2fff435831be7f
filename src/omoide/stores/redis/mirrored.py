"""Setting what authoritative rows say: calls that decide nothing (`lua/lib/mirrored.lua`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omoide.errors import CorruptRecordError, StoreError
from omoide.model.schema import ModelSpec
from omoide.ops.request import (
    Adopt,
    Applied,
    Apply,
    BeginRestore,
    Changes,
    LoadRows,
    RowState,
    Span,
    TurnIds,
)
from omoide.stores.redis.bulk import Packing
from omoide.stores.redis.cache import Cache
from omoide.stores.redis.calls import Call, Handler, answer, answers, failure
from omoide.stores.redis.codec import UNREADABLE, footprint_list, kind, pack_plan, rate, shape, unpack_reply
from omoide.stores.redis.exchange import Argument, Command
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.staging import is_long, stages
from omoide.stores.redis.sweeping import swept
from omoide.stores.redis.versions import closed

_STATISTICS = ("alpha", "beta", "up", "down", "accesses", "accessed")


class Mirrored:
    """Turns the requests of a mirror into calls."""

    def __init__(self, keys: Keys, cache: Cache) -> None:
        self.keys = keys
        self.cache = cache

    def apply(self, request: Apply) -> Handler[int]:
        """Cost: one round trip, O(distinct terms of the records), a command for each of `more`.

        One more where records of over 256 terms went.
        """
        calls = self._apply(request, request.first, request.last, request.changes)
        for seq, changes in enumerate(request.more, request.last + 1):
            calls += self._apply(replace(request, begins=False), seq, seq, changes)
        seq, left = (yield from answers(calls))[-1]
        failed = yield from swept({calls[-1].head: left})
        if failed:
            raise failed[calls[-1].head]
        return int(seq)

    def _apply(self, request: Apply, first: int, last: int, changes: Changes) -> list[Call]:
        """The call, and what goes ahead of it: only one record can be staged at a time."""
        spec, head = request.scope.spec, self.keys.head(request.scope)
        rows = [_row(row) for row in changes.rows]
        staging: list[Call] = []
        if len(rows) == 1 and request.token is None and is_long(rows[0]["codes"]):
            staging = stages(head, spec.fingerprint, rows[0], _terms(changes.rows[0]))
        plan = {
            **shape(spec),
            "rate": rate(spec),
            "interval": _has_intervals(spec),
            "validity": spec.validity is not None,
            "vectors": kind(spec),
            "first": first,
            "last": last,
            "begins": request.begins,
            "drops": changes.drops,
            "token": request.token or False,
            "rows": rows,
            "states": [_state(row) for row in changes.states],
            "spans": [{"id": id, **_span(span)} for id, span in changes.spans],
            "erased": changes.erased,
            "edges": [[id, *(part for edge in edges for part in edge)] for id, edges in changes.edges],
            "counters": [[name, str(value)] for name, value in changes.counters],
        }
        arguments = [part for row in changes.rows for part in _parts(row)]
        return [*staging, Call("apply", head, (pack_plan(plan), *arguments), safe=True)]

    def applied(self, request: Applied) -> Handler[int | None]:
        """Cost: one round trip, O(1)."""
        head = self.keys.head(request.scope)
        (found,) = yield [Command((b"HGET", head, b"seq"), head, idempotent=True)]
        error = failure(found, Call("apply", head))
        if error is not None:
            raise error
        return None if found is None else int(found)

    def turn_ids(self, request: TurnIds) -> Handler[tuple[str, ...] | None]:
        """Cost: one round trip, O(1)."""
        head = self.keys.head(request.scope)
        replies = yield [
            Command((b"HGET", head[:-1] + b"i", request.turn), head, idempotent=True),
            Command((b"TIME",), head, idempotent=True),
        ]
        for reply in replies:
            error = failure(reply, Call("turn", head))
            if error is not None:
                raise error
        data, (seconds, _) = replies
        if data is None:
            return None
        try:
            till = int.from_bytes(data[:8], "little", signed=True)
            return None if till <= int(seconds) * 1000 else tuple(unpack_reply(data[8:]))
        except UNREADABLE:
            raise CorruptRecordError("a turn is not what was written") from None

    def begin(self, request: BeginRestore) -> Handler[None]:
        """Cost: one round trip."""
        spec = request.scope.spec
        plan = {**shape(spec), "rate": rate(spec), "token": request.token}
        yield from answer(Call("restore", self.keys.head(request.scope), (pack_plan(plan),), safe=True))

    def load(self, request: LoadRows) -> Handler[int]:
        """Cost: one round trip, O(records + distinct terms), in commands of bounded work."""
        spec, head = request.scope.spec, self.keys.head(request.scope)
        packing = Packing(head, request.token, request.step, kind(spec), _has_intervals(spec))
        calls = list(packing.calls(request.first, request.rows))
        for reply in (yield from answers(calls)):
            if reply == -1:
                raise StoreError("this rebuild was given up or taken over", hint="start it again")
        return packing.step

    def adopt(self, request: Adopt) -> Handler[int]:
        """Cost: one round trip, O(1)."""
        head = self.keys.head(request.scope)
        counters = [[name, str(value)] for name, value in request.counters]
        plan = {"token": request.token, "last": request.last, "counters": counters, "force": request.force}
        live = yield from answer(Call("adopt", head, (pack_plan(plan),)))
        if live == -1:
            raise StoreError("this rebuild was given up or taken over", hint="start it again")
        if live == -2:
            return -1
        with self.cache.lock:
            self.cache.forget(head)
        return int(live)


def _has_intervals(spec: ModelSpec) -> bool:
    """Whether rows of a model have an interval beside their attributes."""
    return spec.ttl is not None or spec.validity is not None


def _parts(row: RowState) -> tuple[Argument, ...]:
    """The arguments of a row beside the plan."""
    return row.operations, row.footprint, row.body, row.slot


def _terms(row: RowState) -> list[str]:
    terms: list[str] = footprint_list(bytes(11) + row.footprint)[0]
    return terms


def _row(row: RowState) -> dict[str, Any]:
    return {
        **_state(row),
        "codes": row.codes,
        "length": row.length,
        "flags": row.flags,
        "version": row.version,
        "time": row.time_ms,
        "importance": row.importance,
        **({} if row.expires_ms is None else {"expires": row.expires_ms}),
        **({} if row.span is None else _span(row.span)),
    }


def _span(span: Span) -> dict[str, Any]:
    """`valid_to` is the own end."""
    told = {"valid_from": span.start, "valid_to": closed(span.own), "till": closed(span.end)}
    return {**told, "chain": span.chain}


def _state(row: RowState) -> dict[str, Any]:
    statistics = dict(zip(_STATISTICS, row.statistics, strict=True)) if row.statistics else {}
    return {"id": row.id, "confidence": row.confidence, "order": row.order, **statistics}
