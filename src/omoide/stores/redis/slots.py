"""Vectors beside the records: of which texts they are, who lacks one, and putting in what is made later."""

from __future__ import annotations

from collections.abc import Iterator

from omoide.ops.request import Digests, PutVectors, Unembedded, UnembeddedReply
from omoide.stores.redis.cache import Cache
from omoide.stores.redis.calls import Call, Handler, answer, failure, send
from omoide.stores.redis.codec import decode_records, kind, sound
from omoide.stores.redis.keys import Keys

_AT_ONCE = 500
_PUT_AT_ONCE = 250


class Slots:
    """Turns requests about vectors into calls."""

    def __init__(self, keys: Keys, cache: Cache) -> None:
        self.keys = keys
        self.cache = cache

    def digests(self, request: Digests) -> Handler[tuple[bytes, ...]]:
        """Cost: one round trip, O(ids)."""
        head, ids = self.keys.head(request.scope), request.ids
        parts = [ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE)]
        calls = [Call("digests", head, (kind(request.scope.spec), *part)) for part in parts]
        replies = yield from send(calls)
        found: list[bytes] = []
        for call, part, reply in zip(calls, parts, replies, strict=True):
            error = failure(reply, call)
            if error is not None:
                raise error
            found += reply or [b""] * len(part)
        return tuple(found)

    def unembedded(self, request: Unembedded) -> Handler[UnembeddedReply]:
        """Cost: one round trip; at most 4,096 rows looked at, 500 records and, beyond the first, 1 MiB."""
        gen, after = request.cursor.rpartition(":")[::2]
        head, spec = self.keys.head(request.scope), request.scope.spec
        size = max(1, min(request.size, _AT_ONCE))
        reply = yield from answer(Call("missing", head, (kind(spec), after or 0, size)))
        if reply and gen and reply[0] != gen.encode():
            reply = yield from answer(Call("missing", head, (kind(spec), 0, size)))
        if not reply:
            return UnembeddedReply((), "", "", 0)
        gen = reply[0].decode()
        records = sound(decode_records(spec, reply[4], reply[1]))
        return UnembeddedReply(records, f"{gen}:{reply[2]}" if reply[2] else "", gen, reply[3], reply[5])

    def put(self, request: PutVectors) -> Handler[tuple[bool, ...] | None]:
        """Cost: one round trip per 250 rows, O(rows)."""
        head, taken, gen = self.keys.head(request.scope), list[bool](), request.gen.encode()
        for rows, slots in _pieces(request):
            pairs = [part for pair in zip(rows, slots, strict=True) for part in pair]
            reply = yield from answer(Call("embed", head, (request.kind, gen, *pairs)))
            if not reply:
                return None
            with self.cache.changing(head) as partition:
                if partition is not None and partition.gen == reply[0]:
                    kept = [place for place, flag in enumerate(reply[5]) if flag]
                    numbers = (reply[1], reply[2], int(reply[3]), int(reply[4]))
                    partition.embedded(
                        *numbers, [rows[at] for at in kept], [slots[at] for at in kept], request.kind
                    )
            gen = reply[0]
            taken += [flag == 1 for flag in reply[5]]
        return tuple(taken)


def _pieces(request: PutVectors) -> Iterator[tuple[tuple[int, ...], tuple[bytes, ...]]]:
    """Rows and slots for one call each; one call without any where there is none."""
    for at in range(0, max(1, len(request.rows)), _PUT_AT_ONCE):
        yield request.rows[at : at + _PUT_AT_ONCE], request.slots[at : at + _PUT_AT_ONCE]


__all__ = ["Slots"]
