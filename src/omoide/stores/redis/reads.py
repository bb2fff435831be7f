"""Reads that need no ranking: by id, by page, by decay order, by graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omoide.errors import CorruptRecordError, QueryError, StoreUnavailableError
from omoide.model.schema import Scope
from omoide.ops.request import (
    Count,
    Get,
    GetUnique,
    Page,
    PageReply,
    ReadCounters,
    ReadTurn,
    Record,
    Spread,
    Top,
)
from omoide.stores.redis.calls import Call, Handler, answer, failure
from omoide.stores.redis.codec import damage, decode_records, pack_plan, sound, tell_of_damage, unique_name
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.filters import instant_asked
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.reader import Reader, warn_about_shape
from omoide.stores.redis.rows import answers, with_the_rest
from omoide.stores.redis.static import MOST_AT_ONCE, StaticOrder

GET_AT_ONCE = 500
ATTEMPTS = 16
_LATER, _NO_ROW = -1, -2
"""In place of a row: beyond the bytes of one answer; what is stored there names no row."""


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
        """Records by name. A damaged one raises when it alone was asked for, and is None among others."""
        head = self.keys.head(scope)
        found: list[Record | None] = [None] * len(names)
        left, damaged = list(range(len(names))), 0
        while left:
            parts = [left[start : start + GET_AT_ONCE] for start in range(0, len(left), GET_AT_ONCE)]
            replies = yield from answers(
                [Call("get", head, (kind, *(names[place] for place in part))) for part in parts]
            )
            left = []
            for part, (now_ms, fingerprint, rows, lists) in zip(parts, replies, strict=True):
                warn_about_shape(head, scope, fingerprint)
                held = {record.row: record for record in decode_records(scope.spec, lists, now_ms)}
                for place, row in zip(part, rows, strict=True):
                    record = held.get(row)
                    if row == _LATER:
                        left.append(place)
                    elif row == _NO_ROW or (record is not None and not record.id):
                        damaged += 1
                    else:
                        found[place] = record
        if damaged and len(names) == 1:
            raise damage(scope.spec)
        if damaged:
            tell_of_damage(scope.spec)
        return tuple(found)

    def page(self, request: Page) -> Handler[PageReply]:
        """Cost: one round trip; at most 500 records and, beyond the first, 1 MiB of bodies."""
        gen, after = read_cursor(request.cursor)
        head = self.keys.head(request.scope)
        restarted = False
        size = max(1, min(request.size, 500))
        reply = yield from answer(Call("page", head, (after, size)))
        if reply and gen and reply[0] != gen:
            restarted = True
            reply = yield from answer(Call("page", head, (0, size)))
        if not reply:
            return PageReply((), "")
        records = sound(decode_records(request.scope.spec, reply[3], reply[1]))
        cursor = f"{reply[0].decode()}:{reply[2]}" if reply[2] else ""
        return PageReply(records, cursor, restarted)

    def turn(self, request: ReadTurn) -> Handler[tuple[Record, ...] | None]:
        """Cost: one round trip, and one per further MiB of bodies."""
        head = self.keys.head(request.scope)
        for _ in range(ATTEMPTS):
            reply = yield from answer(Call("turn", head, (request.turn,)))
            if not reply:
                return None
            records = yield from with_the_rest(head, request.scope, *reply)
            if records is not None:
                return sound(records)
        raise _too_fast()

    def spread(self, request: Spread) -> Handler[tuple[tuple[str, float], ...]]:
        plan = {
            "seeds": [[name, float(score)] for name, score in request.seeds.items()],
            "hops": request.hops,
            "fan_out": request.fan_out,
            "decay": request.decay,
            "limit": request.limit,
            "valid": instant_asked(request.scope.spec),
        }
        reply = yield from answer(Call("spread", self.keys.head(request.scope), (pack_plan(plan),)))
        return tuple((reply[at].decode(), float(reply[at + 1])) for at in range(0, len(reply), 2))

    def count(self, request: Count) -> Handler[int]:
        """Cost: one round trip."""
        head = self.keys.head(request.scope)
        validity = instant_asked(request.scope.spec, request.match)
        if request.match.selects or validity is not None:
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
        """The first of the decay order; damaged records are left out.

        Cost: one round trip, and one per 2,048 further rows that have to be looked at (1,024 where each is
        weighed), one more beyond 250 records. With filters, or beyond 500 records: one to validate, one
        per 1,000 places and one for the records.
        """
        head, wanted = self.keys.head(request.scope), request.limit
        order = StaticOrder(self.reader, head, request.scope, request.weigh_confidence)
        for _ in range(ATTEMPTS):
            if not request.match.selects and wanted <= MOST_AT_ONCE:
                found = yield from order.first(wanted, request.match)
            else:
                found = yield from order.first_that_match(wanted, request.match)
            if found is None:
                continue
            whole = sound(found)
            if len(whole) >= request.limit or len(found) < wanted:
                return whole[: request.limit]
            wanted += len(found) - len(whole)
        raise _too_fast()


def named_numbers(reply: Any) -> dict[str, int]:
    """A HGETALL of counters; RESP2 and RESP3 both.

    Raises:
        CorruptRecordError: a value that is no number, or a name that is no text.
    """
    pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
    try:
        return {name.decode(): int(value) for name, value in pairs}
    except ValueError:
        raise CorruptRecordError("a counter is not what was written", hint="omoide doctor") from None


def _too_fast() -> StoreUnavailableError:
    return StoreUnavailableError("the partition changes faster than it can be read")


def read_cursor(text: str) -> tuple[bytes, int]:
    """Generation and row of a cursor; none of both for the start."""
    if not text:
        return b"", 0
    gen, _, after = text.rpartition(":")
    if not gen or not after.isdigit():
        raise QueryError("that is no cursor of a page")
    return gen.encode(), int(after)
