"""Reads that need no ranking: by id, by page, by decay order, by graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omoide.core.decay import power_scale
from omoide.errors import CorruptRecordError, QueryError
from omoide.model.schema import Scope
from omoide.ops.request import (
    EVERYTHING,
    Count,
    Get,
    GetUnique,
    Match,
    Page,
    PageReply,
    ReadCounters,
    ReadTurn,
    Record,
    Spread,
    Top,
)
from omoide.stores.redis.calls import Call, Handler, answer, failure, send
from omoide.stores.redis.codec import decode_records, pack_plan, unique_name
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.reader import Reader, read_rows, warn_about_shape

GET_AT_ONCE = 500
STRETCH = 1000


class Lookup:
    """Turns read requests into calls, and their replies into records."""

    def __init__(self, keys: Keys, reader: Reader) -> None:
        self.keys = keys
        self.reader = reader

    def get(self, request: Get) -> Handler[tuple[Record | None, ...]]:
        """Cost: one round trip; the server's work is O(ids)."""
        return (yield from self._look_up(request.scope, "id", request.ids))

    def get_unique(self, request: GetUnique) -> Handler[Record | None]:
        (found,) = yield from self._look_up(request.scope, "unique", (unique_name(request.digest),))
        return found

    def _look_up(
        self, scope: Scope, kind: str, names: Sequence[str | bytes]
    ) -> Handler[tuple[Record | None, ...]]:
        head = self.keys.head(scope)
        calls = [
            Call("get", head, (kind, *names[start : start + GET_AT_ONCE]))
            for start in range(0, len(names), GET_AT_ONCE)
        ]
        found: list[Record | None] = []
        replies = yield from send(calls)
        for call, reply in zip(calls, replies, strict=True):
            error = failure(reply, call)
            if error is not None:
                raise error
            now_ms, fingerprint, rows, lists = reply
            warn_about_shape(head, scope, fingerprint)
            held = {record.row: record for record in decode_records(scope.spec, lists, now_ms)}
            found += [held.get(row) for row in rows]
        return tuple(found)

    def page(self, request: Page) -> Handler[PageReply]:
        """Cost: one round trip."""
        gen, after = _cursor(request.cursor)
        head = self.keys.head(request.scope)
        restarted = False
        size = max(1, min(request.size, 1000))
        reply = yield from answer(Call("page", head, (after, size)))
        if reply and gen and reply[0] != gen:
            restarted = True
            reply = yield from answer(Call("page", head, (0, size)))
        if not reply:
            return PageReply((), "")
        records = tuple(decode_records(request.scope.spec, reply[3], reply[1]))
        cursor = f"{reply[0].decode()}:{reply[2]}" if reply[2] else ""
        return PageReply(records, cursor, restarted)

    def turn(self, request: ReadTurn) -> Handler[tuple[Record, ...] | None]:
        reply = yield from answer(Call("turn", self.keys.head(request.scope), (request.turn,)))
        return tuple(decode_records(request.scope.spec, reply[1], reply[0])) if reply else None

    def spread(self, request: Spread) -> Handler[tuple[tuple[str, float], ...]]:
        plan = {
            "seeds": [[name, float(score)] for name, score in request.seeds.items()],
            "hops": request.hops,
            "fan_out": request.fan_out,
            "decay": request.decay,
            "limit": request.limit,
        }
        reply = yield from answer(Call("spread", self.keys.head(request.scope), (pack_plan(plan),)))
        return tuple((reply[at].decode(), float(reply[at + 1])) for at in range(0, len(reply), 2))

    def count(self, request: Count) -> Handler[int]:
        """Cost: one round trip."""
        head = self.keys.head(request.scope)
        if request.match != EVERYTHING:
            return (yield from self.reader.count(head, request))
        reply = yield from answer(Call("count", head))
        if reply and not reply[6]:
            raise CorruptRecordError("a key of the partition is missing or damaged", hint="omoide doctor")
        return int(reply[0]) if reply else 0

    def counters(self, request: ReadCounters) -> Handler[dict[str, int]]:
        key = self.keys.key(request.scope, "n")
        (reply,) = yield [Command((b"HGETALL", key), key, idempotent=True)]
        error = failure(reply, Call("counters", key))
        if error is not None:
            raise error
        return named_numbers(reply)

    def top(self, request: Top) -> Handler[tuple[Record, ...]]:
        """Cost: one round trip without filters; with them, one to validate, then one per 1,000 places."""
        head = self.keys.head(request.scope)
        if request.match == EVERYTHING and request.limit <= STRETCH:
            reply = yield from answer(
                Call("top", head, (request.limit, int(request.weigh_confidence), *_power_law(request.scope)))
            )
            return tuple(decode_records(request.scope.spec, reply[1], reply[0]))
        found = yield from self._top_that_match(head, request.scope, request.match, request.limit)
        if request.weigh_confidence:
            found.sort(key=lambda record: -(record.relevance or 0.0) * (0.8 + 0.2 * record.confidence))
        return tuple(found)

    def _top_that_match(self, head: bytes, scope: Scope, match: Match, limit: int) -> Handler[list[Record]]:
        state = yield from self.reader.rows_that_match(head, scope, match)
        if state is None:
            return []
        gen, rows = state
        excluded, found, start = set(match.exclude), list[Record](), 0
        while len(found) < limit:
            reply = yield from answer(Call("order", head, (start, start + STRETCH - 1)))
            if reply[0] != gen:
                return (yield from self._top_that_match(head, scope, match, limit))
            passing = [int(row) for row in reply[1] if int(row) in rows]
            records = yield from read_rows(head, scope, gen, passing[: limit - len(found) + len(excluded)])
            found += [record for record in records or () if record.id not in excluded]
            start += STRETCH
            if len(reply[1]) < STRETCH:
                break
        return found[:limit]


def _power_law(scope: Scope) -> tuple[float, float]:
    """(scale in seconds, exponent) of a model's power law; an exponent of 0 says that there is none."""
    decay = scope.spec.decay
    if decay is None or decay.exponent is None:
        return 1.0, 0.0
    return power_scale(decay.half_life, decay.exponent), decay.exponent


def named_numbers(reply: Any) -> dict[str, int]:
    """A HGETALL of counters; RESP2 and RESP3 both."""
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    return {name.decode(): int(value) for name, value in pairs}


def _cursor(text: str) -> tuple[bytes, int]:
    if not text:
        return b"", 0
    gen, _, after = text.rpartition(":")
    if not gen or not after.isdigit():
        raise QueryError("that is no cursor of a page")
    return gen.encode(), int(after)
