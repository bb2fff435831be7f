"""The server reader: the plan that `rank` goes by, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from omoide.core.bm25 import K1, B
from omoide.core.columns import CONFIDENCE_STEPS, stored_confidence
from omoide.core.text.cues import CUES
from omoide.core.text.vocabulary import Vocabulary, may_be_stood_in_for
from omoide.model.instance import single
from omoide.ops.request import Hit, Match, Search, SearchReply
from omoide.stores.redis.asked import called_of, stand_ins, weights_of
from omoide.stores.redis.cache import Cache, Known
from omoide.stores.redis.calls import Call, Handler, answer, answers
from omoide.stores.redis.codec import decode_records, pack_plan
from omoide.stores.redis.fetching import fetch_calls
from omoide.stores.redis.filters import instant_asked, must

if TYPE_CHECKING:
    from omoide.stores.redis.reader import Reader

MOST_WORDS = 50_000
_WORDS_AT_ONCE = 10_000
_ATTEMPTS = 16

BUDGET = 25_000
LOOKS = 8_000
BORROW = 2_000


@dataclass(frozen=True, slots=True)
class Refused:
    """The server would have to do too much. `ahead`: replies to the calls that went along, if any."""

    trips: int
    ahead: Sequence[Any] = ()


class Server:
    """Ranks in Lua, over the cache of a reader for the words of a partition."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._cache = reader.cache

    def rank(
        self, head: bytes, request: Search, *, strict: bool, ahead: dict[str, Any] | None = None
    ) -> Handler[SearchReply | Refused]:
        """Rank, a second time when similar words have to stand in.

        strict: Refuse rather than go without an arm.
        ahead: Plan of a fetch that travels along and is answered only where this is refused.
        """
        plan, standing, trips = server_plan(request, strict), dict[str, tuple[str, ...]](), 0
        for _ in range(_ATTEMPTS):
            packed = pack_plan(plan)
            calls = [] if ahead is None or trips else fetch_calls(head, ahead, unless=packed)
            reply, *replies = yield from answers([Call("rank", head, (packed,)), *calls])
            trips += 1
            if not reply:
                return SearchReply((), "server", trips, 0)
            if reply[0] == b"too_many":
                return Refused(trips, replies)
            lacking = {plan["terms"][place] for place in reply[7]}
            found, told_of, read = yield from self._standing(head, request, lacking, reply[8], reply[9])
            trips += read
            if list(found) == plan["terms"]:
                self._reader.warn(head, request.scope, reply[5])
                skipped = tuple(name.decode() for name in reply[6])
                hits = server_hits(request, reply)
                return SearchReply(hits, "server", trips, reply[1], skipped, standing)
            plan |= {"terms": list(found), "weights": [weight for weight, _ in found.values()]}
            standing = told_of
        return Refused(trips)

    def _standing(
        self, head: bytes, request: Search, lacking: set[str], gen: bytes, rows: int
    ) -> Handler[tuple[dict[str, tuple[float, str]], dict[str, tuple[str, ...]], int]]:
        """The terms to rank by, given those that nobody has; who stands in for whom; round trips."""
        missing = [name for name in request.terms if name in lacking and may_be_stood_in_for(name)]
        if not missing or not weights_of(request).back_off:
            return {name: (weight, "") for name, weight in request.terms.items()}, {}, 0
        words, read = yield from self._words(head, gen, rows)
        for word in lacking.difference(request.terms):
            words.discard(word)
        return *stand_ins(request.terms, missing, words, None), read

    def _words(self, head: bytes, gen: bytes, rows: int) -> Handler[tuple[Vocabulary, int]]:
        """The words of a partition of so many rows, and the round trips that reading them took."""
        with self._cache.lock:
            known = self._cache.open(head).vocabulary
        if known is not None and known.serves(gen, rows):
            return known.words, 0
        return (yield from read_words(self._cache, head))


def read_words(cache: Cache, head: bytes) -> Handler[tuple[Vocabulary, int]]:
    """The words of a partition, up to MOST_WORDS, into the cache; how many round trips that took."""
    words, cursor, trips, seen = Vocabulary(()), b"0", 0, 0
    gen, rows = b"", 0
    while True:
        reply = yield from answer(Call("vocabulary", head, (cursor, _WORDS_AT_ONCE)))
        trips += 1
        if not reply:
            return words, trips
        gen, rows = reply[0], reply[1]
        for word in reply[3][: MOST_WORDS - seen]:
            words.add(word.decode())
        seen, cursor = seen + len(reply[3]), reply[2]
        if cursor == b"0" or seen >= MOST_WORDS:
            break
    with cache.lock:
        partition = cache.open(head)
        partition.vocabulary = Known(gen, rows, words)
        cache.settle(head, partition)
    return words, trips


def server_plan(request: Search, strict: bool) -> dict[str, Any]:
    """The plan of `rank`. `strict`: refuse rather than skip an arm."""
    spec, match = request.scope.spec, request.match
    text = spec.text
    return {
        "terms": list(request.terms),
        "weights": list(request.terms.values()),
        "k1": K1 if text is None else text.k1,
        "b": B if text is None else text.b,
        "pivot": 0 if text is None or text.pivot is None else text.pivot,
        "limit": request.limit,
        "must": must(match),
        "exclude": list(match.exclude),
        "valid": instant_asked(spec, match),
        **_server_ranges(match),
        "budget": BUDGET,
        "looks": LOOKS,
        "borrow": BORROW,
        "strict": strict,
        "session": spec.session,
        "names": called_of(request),
        "dates": [[part or 0 for part in named] for named in request.dates],
        "cues": [bit for bit in CUES if request.cues & bit],
        "ranking": asdict(weights_of(request)),
    }


def _server_ranges(match: Match) -> dict[str, list[float | None] | None]:
    """Ranges with their ends rounded as what they are compared with is stored."""

    def ends(bounds: tuple[Any, Any] | None, rounded: Any) -> list[float | None] | None:
        return None if bounds is None else [None if end is None else rounded(end) for end in bounds]

    return {
        "time": ends(match.time, lambda end: end),
        "importance": ends(match.importance, _single),
        "confidence": ends(match.confidence, lambda end: stored_confidence(end) / CONFIDENCE_STEPS),
    }


def _single(end: float) -> float:
    """Rounded to float32; beyond its range, as it is."""
    return single(end) if abs(end) < 3.4e38 else end


def server_hits(request: Search, reply: list[Any]) -> tuple[Hit, ...]:
    """The hits of a reply of `rank`."""
    now_ms, scores, flat = reply[0], reply[3], reply[4]
    records = decode_records(request.scope.spec, flat, now_ms)
    return tuple(
        Hit(record, float(scores[2 * place]), float(scores[2 * place + 1]))
        for place, record in enumerate(records)
    )
