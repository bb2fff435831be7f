"""The first records of the decay order, of a whole partition or of those that match.

    key    z, or z + ln(.8 + .2 confidence) where confidence weighs; by a power law the relevance, times that
    bound  what no record from a place of the static order on can exceed: z; by a power law the highest base
           score there ever was, faded as the touch at that place

The static order is read from its start until the bound is below the key of the last one wanted. `top.lua`
does so on the server; with filters, rows, confidence, base score and time come from the cached columns, and
only the records of the result are read. All ways go by `decay_rank`, with confidence as columns hold it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omoide.core.columns import CONFIDENCE_STEPS, Attributes, stored_confidence
from omoide.core.decay import power_scale
from omoide.model.schema import Scope
from omoide.ops.load import decay_rank
from omoide.ops.request import EVERYTHING, Match, Record
from omoide.stores.redis.calls import Call, Handler, answer
from omoide.stores.redis.codec import relevance
from omoide.stores.redis.filters import instant_asked
from omoide.stores.redis.reader import Reader
from omoide.stores.redis.rows import read_rows, with_the_rest

STRETCH = 1000
MOST_AT_ONCE = 500
"""Records that `top` ranks in one call; more are ranked from the columns."""

Rank = tuple[float, ...]
"""Least first; its first part is the key, negated."""


@dataclass(frozen=True, slots=True)
class StaticOrder:
    """One partition, ranked with or without confidence."""

    reader: Reader
    head: bytes
    scope: Scope
    weigh: bool

    def first(self, limit: int, match: Match = EVERYTHING) -> Handler[list[Record] | None]:
        """The first of all that are valid as `match` says; None when rows were renumbered meanwhile.

        Records that are touched between two calls may be missing.
        """
        best: dict[int, Record] = {}
        floor, place, passed = "", b"", 0
        asked = instant_asked(self.scope.spec, match)
        valid = "" if asked is None else asked
        while True:
            args = (limit, int(self.weigh), *_power_law(self.scope), valid, floor, place, passed)
            now_ms, gen, rows, lists, place, passed = yield from answer(Call("top", self.head, args))
            records = yield from with_the_rest(self.head, self.scope, now_ms, gen, rows, lists)
            if records is None:
                return None
            if not place and not best:
                return records
            best.update((record.row, record) for record in records)
            ranked = sorted((self._rank_of(record, now_ms), record.row) for record in best.values())[:limit]
            best = {row: best[row] for _, row in ranked}
            if not place:
                return list(best.values())
            if len(ranked) == limit:
                key = -ranked[-1][0][0]
                floor = repr(key - abs(key) * 1e-12)  # the server rounds on its own

    def first_that_match(self, limit: int, match: Match) -> Handler[list[Record] | None]:
        """The first that match; None when rows were renumbered meanwhile."""
        state = yield from self.reader.rows_that_match(self.head, self.scope, match)
        if state is None:
            return []
        gen, rows = state
        chosen = yield from self._choose(gen, rows, limit + len(match.exclude))
        if chosen is None:
            return None
        records = yield from read_rows(self.head, self.scope, gen, chosen)
        if records is None:
            return None
        excluded = set(match.exclude)
        return [record for record in records if record.id not in excluded][:limit]

    def _choose(self, gen: bytes, rows: set[int], limit: int) -> Handler[list[int] | None]:
        """The first of these rows, in order; None when rows were renumbered or the cache let go of them."""
        best: dict[int, Rank] = {}
        place, passed, now_ms = b"", 0, 0
        while True:
            reply = yield from answer(Call("order", self.head, (place, passed, STRETCH)))
            if reply[0] != gen:
                return None
            _, clock, peak, flat = reply
            now_ms = now_ms or clock  # one instant for all, or equal records would differ
            pairs = [(int(flat[at]), flat[at + 1]) for at in range(0, len(flat), 2)]
            ranks = self._ranks(gen, ((row, float(z)) for row, z in pairs if row in rows), now_ms)
            if ranks is None:
                return None
            best.update(ranks)
            best = dict(sorted(best.items(), key=lambda entry: entry[1])[:limit])
            if len(pairs) < STRETCH:
                return list(best)
            last = pairs[-1][1]
            if len(best) == limit and self._bound(float(last), float(peak), now_ms) < -_last(best):
                return list(best)
            same = sum(z == last for _, z in pairs)
            place, passed = last, same + (passed if last == place else 0)

    def _ranks(self, gen: bytes, places: Iterable[tuple[int, float]], now_ms: int) -> dict[int, Rank] | None:
        with self.reader.cache.lock:
            partition = self.reader.cache.open(self.head)
            if partition.gen != gen:
                return None
            found: dict[int, Rank] = {}
            for row, z in places:
                if row >= partition.columns.next:
                    return None
                found[row] = self._rank(row, z, partition.columns.row(row), now_ms)
            return found

    def _rank(self, row: int, z: float, held: Attributes, now_ms: int) -> Rank:
        faded = relevance(self.scope.spec, z, held.importance, now_ms)
        known = Record("", row, {}, held.version, held.time, held.importance, 1.0, relevance=faded, order=z)
        return self._rank_of(known, now_ms, held.confidence)

    def _rank_of(self, record: Record, now_ms: int, steps: int | None = None) -> Rank:
        """`now_ms`: of all records of one comparison."""
        spec = self.scope.spec
        steps = stored_confidence(record.confidence) if steps is None else steps
        return decay_rank(
            Record(
                record.id,
                record.row,
                record.values,
                record.version,
                record.time_ms,
                record.importance,
                steps / CONFIDENCE_STEPS,
                relevance=relevance(spec, record.order, record.importance, now_ms),
                order=record.order,
            ),
            spec,
            weigh_confidence=self.weigh,
        )

    def _bound(self, z: float, peak: float, now_ms: int) -> float:
        decay = self.scope.spec.decay
        if decay is None or decay.exponent is None:
            return z
        return relevance(self.scope.spec, z, peak, now_ms) or 0.0


def _last(best: dict[int, Rank]) -> float:
    return list(best.values())[-1][0]


def _power_law(scope: Scope) -> tuple[float, float]:
    """(scale in seconds, exponent) of a model's power law; an exponent of 0 says that there is none."""
    decay = scope.spec.decay
    if decay is None or decay.exponent is None:
        return 1.0, 0.0
    return power_scale(decay.half_life, decay.exponent), decay.exponent


__all__ = ["MOST_AT_ONCE", "StaticOrder"]
