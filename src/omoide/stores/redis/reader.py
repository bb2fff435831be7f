"""The two readers: rank in the client from a validated cache, or on the server in one call.

Client reader, until nothing is new:

    predict    rank from the cache, when every list it needs is current
    fetch      one call: what is new since then, and the records predicted
    apply      add what is new; when the cache is then at the state of the reply, rank again

A reply that brought nothing new proves the prediction. A reply that did is the new state itself: the ranking
over it is final when the records came with it, else one more call gets them. So the result is always the
ranking of one state of the partition, with the records of that state. A partition that is written faster than
that is ranked on the server, in the same one step as its records are read.

Server reader: `rank` scores in Lua. It needs no cache and no numpy, and refuses beyond a budget of postings.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from omoide.core.bm25 import weight_table
from omoide.core.columns import DEAD, Ranges
from omoide.core.postings import decode, exact_term
from omoide.core.listing import Selected, select
from omoide.core.ranking import Ranked, rank
from omoide.errors import StoreUnavailableError
from omoide.model.schema import Scope
from omoide.ops.request import Count, Find, Hit, Match, Record, Search, SearchReply
from omoide.stores.redis.cache import Cache, Partition
from omoide.stores.redis.calls import Call, Handler, answer, failure, send
from omoide.stores.redis.codec import decode_records, pack_plan

if TYPE_CHECKING:
    from omoide.core.columns import Rows

BUDGET = 40_000
LOOKS = 8_000
PIECE = 32_768
_ATTEMPTS = 16
_PATIENCE = 4
_LOG = logging.getLogger("omoide")
_warned: set[bytes] = set()


@dataclass(slots=True)
class Fetched:
    """One reply of `fetch`, as Python values."""

    gen: bytes
    v: int
    now_ms: int
    records: dict[int, Record] = field(default_factory=dict)
    changed: bool = False
    complete: bool = True


class Reader:
    """Searches, listings and counts over one cache.

    Args:
        mode: `client`, `server`, or `auto`: the server for the first recall of a partition in this process.
    """

    def __init__(self, cache: Cache, mode: str = "auto") -> None:
        self.cache = cache
        self.mode = mode

    # ---- search

    def search(self, head: bytes, request: Search) -> Handler[SearchReply]:
        """Rank by text. Cost: see `Search`."""
        trips = 0
        first = self.cache.peek(head) is None
        if not request.explain and (self.mode == "server" or (self.mode == "auto" and first)):
            reply = yield from self._rank_on_server(head, request)
            trips = 1
            with self.cache.lock:
                self.cache.open(head)
            if reply is not None:
                return reply
        return (yield from self._rank_in_client(head, request, trips))

    def _rank_on_server(self, head: bytes, request: Search) -> Handler[SearchReply | None]:
        text = request.scope.spec.text
        match = request.match
        plan = {
            "terms": list(request.terms),
            "weights": list(request.terms.values()),
            "k1": 1.2 if text is None else text.k1,
            "b": 0.9 if text is None else text.b,
            "pivot": 0 if text is None or text.pivot is None else text.pivot,
            "limit": request.limit,
            "must": _must(match),
            "exclude": list(match.exclude),
            **_server_ranges(match),
            "budget": BUDGET,
            "looks": LOOKS,
        }
        reply = yield from answer(Call("rank", head, (pack_plan(plan),)))
        if not reply:
            return SearchReply((), "server", 1, 0)
        if reply[0] == b"too_many":
            return None
        now_ms, live, _, scores, flat, fingerprint = reply
        warn_about_shape(head, request.scope, fingerprint)
        records = decode_records(request.scope.spec, flat, now_ms)
        hits = tuple(
            Hit(record, float(scores[2 * place]), float(scores[2 * place + 1]))
            for place, record in enumerate(records)
        )
        return SearchReply(hits, "server", 1, live)

    def _rank_in_client(self, head: bytes, request: Search, trips: int) -> Handler[SearchReply]:
        names = [*request.terms, *_must(request.match)]
        predicted, predicted_at = Ranked(), -1  # the ranking of the partition at a write
        for attempt in range(_ATTEMPTS):
            if attempt == _PATIENCE and not request.explain:
                reply = yield from self._rank_on_server(head, request)
                trips += 1
                if reply is not None:
                    return replace(reply, round_trips=trips)
            with self.cache.lock:
                partition = self.cache.open(head)
                if predicted_at != partition.v and partition.current(names):
                    predicted, predicted_at = self._rank(partition, request, _now(partition)), partition.v
                plan = _fetch_plan(partition, names, predicted.rows if predicted_at == partition.v else ())
            fetched = yield from self._fetch(head, request.scope, names, plan)
            trips += 1
            if fetched is None:
                return SearchReply((), "client", trips, 0)
            with self.cache.lock:
                partition = self.cache.open(head)
                if not fetched.complete or partition.v != fetched.v or not partition.current(names):
                    predicted_at = -1
                    continue
                if fetched.changed or predicted_at != partition.v or partition.columns.has_intervals:
                    predicted, predicted_at = self._rank(partition, request, fetched.now_ms), partition.v
                hits = self._hits(partition, request, predicted, fetched.records)
                live = partition.n
                if hits is not None:
                    self.cache.settle(head, partition)
            if hits is not None:
                return SearchReply(hits, "client", trips, live)
        raise StoreUnavailableError(
            "the partition changes faster than it can be read", hint="use connect(reader='server')"
        )

    def _rank(self, partition: Partition, request: Search, now_ms: int) -> Ranked:
        text = request.scope.spec.text
        if text is None:
            return Ranked()
        average = partition.sdl / partition.n if text.pivot is None and partition.n else 1.0
        return rank(
            _term_lists(partition, request.terms),
            weight_table(text.k1, text.b, text.pivot, average or 1.0),
            partition.columns,
            live=partition.n,
            limit=request.limit + len(request.match.exclude),
            now_ms=now_ms,
            allowed=_allowed(partition, request.match),
            ranges=_ranges(request.match),
        )

    def _hits(
        self,
        partition: Partition,
        request: Search,
        ranked: Ranked,
        records: Mapping[int, Record],
    ) -> tuple[Hit, ...] | None:
        """The answer, ties broken by id; None when a record is still to be read."""
        if any(row not in records for row in ranked.rows):
            return None
        order = sorted(
            zip(ranked.scores, ranked.times, ranked.rows, ranked.texts, strict=True),
            key=lambda entry: (-entry[0], -entry[1], records[entry[2]].id),
        )
        excluded = set(request.match.exclude)
        kept = [entry for entry in order if records[entry[2]].id not in excluded][: request.limit]
        return tuple(
            Hit(records[row], score, text, self._parts(partition, request, row))
            for score, _, row, text in kept
        )

    def _parts(self, partition: Partition, request: Search, row: int) -> dict[str, float]:
        text = request.scope.spec.text
        if not request.explain or text is None:
            return {}
        average = partition.sdl / partition.n if text.pivot is None and partition.n else 1.0
        table = weight_table(text.k1, text.b, text.pivot, average or 1.0)
        return explain(row, _term_lists(partition, request.terms), table, partition.columns, partition.n)

    # ---- listing

    def find(self, head: bytes, request: Find) -> Handler[tuple[Record, ...]]:
        """Matching records in order. Cost: one round trip, and one per 256,000 records."""
        excluded = set(request.match.exclude)
        for _ in range(_ATTEMPTS):
            selected = yield from self._select(head, request.scope, request.match, request)
            if selected is None:
                return ()
            gen, chosen = selected
            records = yield from read_rows(head, request.scope, gen, chosen.rows)
            if records is not None:
                skip = request.offset if excluded else chosen.skip
                end = None if request.limit is None else skip + request.limit
                return tuple(_in_order([r for r in records if r.id not in excluded], request)[skip:end])
        raise StoreUnavailableError("the partition changes faster than it can be read")

    def count(self, head: bytes, request: Count) -> Handler[int]:
        """How many match. Cost: one round trip, a second one with exclusions."""
        selected = yield from self._select(head, request.scope, request.match)
        if selected is None:
            return 0
        rows = set(selected[1].rows)
        if not request.match.exclude:
            return len(rows)
        reply = yield from answer(Call("get", head, ("id", *request.match.exclude)))
        return len(rows) - sum(1 for row in reply[2] if row in rows)

    def rows_that_match(
        self, head: bytes, scope: Scope, match: Match
    ) -> Handler[tuple[bytes, set[int]] | None]:
        """(gen, matching rows), exclusions left to the caller; None for no partition."""
        selected = yield from self._select(head, scope, match)
        return None if selected is None else (selected[0], set(selected[1].rows))

    def _select(
        self, head: bytes, scope: Scope, match: Match, find: Find | None = None
    ) -> Handler[tuple[bytes, Selected] | None]:
        """(gen, rows that match), in the order and within the limits of `find` when there is one.

        Exclusions are ids, which the columns do not hold: as many more rows are chosen instead.
        """
        state = yield from self._validate(head, scope, match)
        if state is None:
            return None
        extra = len(match.exclude)
        limit = None if find is None or find.limit is None else find.limit + extra
        with self.cache.lock:
            partition = self.cache.open(head)
            chosen = select(
                partition.columns,
                order="time" if find is None else find.order,
                descending=find is None or find.descending,
                limit=limit if find is None or limit is None or not extra else limit + find.offset,
                offset=0 if find is None or extra else find.offset,
                now_ms=state[1],
                allowed=_allowed(partition, match),
                ranges=_ranges(match),
            )
            self.cache.settle(head, partition)
        return state[0], chosen

    def _validate(self, head: bytes, scope: Scope, match: Match) -> Handler[tuple[bytes, int] | None]:
        """Bring columns and filter lists up to date: (gen, server time), None for no partition."""
        names = _must(match)
        for _ in range(_ATTEMPTS):
            with self.cache.lock:
                plan = _fetch_plan(self.cache.open(head), names, ())
            fetched = yield from self._fetch(head, scope, names, plan)
            if fetched is None:
                return None
            with self.cache.lock:
                partition = self.cache.open(head)
                if fetched.complete and partition.v == fetched.v and partition.current(names):
                    return fetched.gen, fetched.now_ms
        raise StoreUnavailableError("the partition changes faster than it can be read")

    # ---- fetch and apply

    def _fetch(
        self, head: bytes, scope: Scope, names: Sequence[str], plan: dict[str, Any]
    ) -> Handler[Fetched | None]:
        reply = yield from answer(Call("fetch", head, (pack_plan(plan),)))
        if not reply:
            with self.cache.lock:
                self.cache.forget(head)
            return None
        if len(reply) <= 4:
            with self.cache.lock:
                return _unchanged(self.cache.open(head), head, scope, plan, reply)
        warn_about_shape(head, scope, reply[16])
        with self.cache.lock:
            partition = self.cache.open(head)
            fetched = _apply(partition, scope, names, plan, reply)
        missing = _missing_pieces(partition, reply)
        if missing:
            yield from self._read_pieces(head, scope, missing)
            fetched.complete = False
        return fetched

    def _read_pieces(self, head: bytes, scope: Scope, pieces: list[tuple[int, int]]) -> Handler[None]:
        """The rest of a long attribute column, 1 MiB a command, all in one round trip."""
        calls = [Call("column", head, (first, last)) for first, last in pieces]
        replies = yield from send(calls)
        with self.cache.lock:
            partition = self.cache.open(head)
            for (first, _), reply in zip(pieces, replies, strict=True):
                if (
                    not isinstance(reply, list)
                    or reply[0] != partition.gen
                    or partition.columns.next != first
                ):
                    return
                partition.columns.extend(reply[1], reply[2])


def read_rows(head: bytes, scope: Scope, gen: bytes, rows: Sequence[int]) -> Handler[list[Record] | None]:
    """Records by row, in that order, those that are gone left out; None when rows were renumbered."""
    calls = [Call("records", head, (gen, *rows[start : start + 1000])) for start in range(0, len(rows), 1000)]
    replies = yield from send(calls)
    records: list[Record] = []
    for call, reply in zip(calls, replies, strict=True):
        error = failure(reply, call)
        if error is not None:
            raise error
        if not reply:
            return None
        records.extend(decode_records(scope.spec, reply[1], reply[0]))
    return records


def warn_about_shape(head: bytes, scope: Scope, fingerprint: bytes) -> None:
    """Once per partition and process: the index was built for another shape of the model."""
    if fingerprint and fingerprint.decode() != scope.spec.fingerprint and head not in _warned:
        _warned.add(head)
        _LOG.warning(
            "%s: a partition was indexed for another shape of the model; it is read as it is, and refuses "
            "writes until `omoide reindex` has run",
            scope.spec.name,
        )


def _must(match: Match) -> list[str]:
    return [exact_term(name, value).decode() for name, value in match.exact]


def _ranges(match: Match) -> Ranges | None:
    if match.time is None and match.importance is None and match.confidence is None:
        return None
    return Ranges(match.time, match.importance, match.confidence)


def _server_ranges(match: Match) -> dict[str, list[float | None] | None]:
    return {
        "time": None if match.time is None else list(match.time),
        "importance": None if match.importance is None else list(match.importance),
        "confidence": None if match.confidence is None else list(match.confidence),
    }


def _now(partition: Partition) -> int:
    """The server's clock, as far as this process knows it."""
    return int(time.time() * 1000) + partition.clock_offset


def _term_lists(partition: Partition, terms: Mapping[str, float]) -> list[Any]:
    lists = []
    for name, weight in terms.items():
        held = partition.held(name)
        if held is not None:
            lists.append(held.as_terms(weight, name))
    return lists


def _allowed(partition: Partition, match: Match) -> Rows | None:
    """Rows that hold every equality term, sorted; None without such a filter."""
    if not match.exact:
        return None
    import numpy as np

    allowed: Rows | None = None
    for name in _must(match):
        held = partition.held(name)
        rows = np.zeros(0, np.int64) if held is None else held.as_terms(1.0, name).rows
        allowed = rows if allowed is None else np.intersect1d(allowed, rows, assume_unique=True)
    return allowed


def _fetch_plan(partition: Partition, names: Sequence[str], rows: Sequence[int]) -> dict[str, Any]:
    since = []
    for name in names:
        held = partition.held(name)
        since.append(0 if held is None else held.since)
    return {
        "gen": partition.gen.decode(),
        "v": partition.v if partition.current(names) else 0,
        "have": partition.columns.next,
        "log": partition.log,
        "terms": list(names),
        "since": since,
        "rows": list(rows),
        "whole": partition.known_since == 0 and not partition.terms,
        "timed": partition.columns.has_intervals,
    }


def _unchanged(
    partition: Partition, head: bytes, scope: Scope, plan: dict[str, Any], reply: list[Any]
) -> Fetched:
    """The short answer: the state the plan was made from still is the partition's."""
    warn_about_shape(head, scope, reply[0])
    now_ms = _now(partition)
    fetched = Fetched(plan["gen"].encode(), plan["v"], now_ms)
    if len(reply) > 1 and fetched.gen == partition.gen:
        lists = (plan["rows"], reply[1], (), reply[2], reply[3], ())
        held = decode_records(scope.spec, lists, now_ms, partition.columns)
        fetched.records = {record.row: record for record in held}
    return fetched


def _apply(
    partition: Partition, scope: Scope, names: Sequence[str], plan: dict[str, Any], reply: list[Any]
) -> Fetched:
    """Take a reply into the cache; a reply older than the cache adds only its lists."""
    gen, v, n, sdl, following, log, now_ms, first = reply[:8]
    fetched = Fetched(gen, v, now_ms)
    if gen != partition.gen:
        if plan["gen"] == gen.decode():
            fetched.complete = False  # the cache was reset meanwhile by another reader
            return fetched
        partition.reset(gen, intervals=bool(reply[9]) or scope.spec.ttl is not None)
    if v < partition.v:
        fetched.complete = False
    else:
        fetched.changed = v != partition.v or plan["v"] == 0
        _apply_columns(partition, first, reply)
        if v != partition.v:
            partition.floor = v
        partition.v, partition.n, partition.sdl, partition.log = v, n, int(sdl), log
        partition.clock_offset = now_ms - int(time.time() * 1000)
    _apply_lists(partition, names, reply[13], following, v)
    if reply[15] and partition.known_since == 0:
        _apply_vocabulary(partition, reply[15], following, v)
    if fetched.complete:
        held = decode_records(scope.spec, reply[14], now_ms, partition.columns)
        fetched.records = {record.row: record for record in held}
    return fetched


def _apply_columns(partition: Partition, first: int, reply: list[Any]) -> None:
    columns = partition.columns
    attributes, intervals, changed = reply[8], reply[9], reply[10]
    if first == 1 and columns.next > 1 and attributes:
        fresh = Partition()
        fresh.reset(partition.gen, intervals=columns.has_intervals or bool(intervals))
        columns = partition.columns = fresh.columns
    held = columns.next - first  # rows of this process that came in between: they may have changed since
    if attributes and held >= 0:
        if held:
            again = range(first, first + min(held, len(attributes) // 32))
            columns.assign(again, attributes[: held * 32], intervals[: held * 24])
        columns.extend(attributes[held * 32 :], intervals[held * 24 :])
    if changed:
        import numpy as np

        rows = np.frombuffer(changed, "<u4").astype(np.int64)
        columns.assign(rows, reply[11], reply[12])
        partition.bury(int((columns.flags[rows] & DEAD).astype(bool).sum()))


def _apply_lists(
    partition: Partition, names: Sequence[str], lists: list[Any], following: int, v: int
) -> None:
    for place, name in enumerate(names):
        if 2 * place < len(lists):
            partition.take_list(name, lists[2 * place], lists[2 * place + 1], upto=following - 1, as_of=v)


def _apply_vocabulary(partition: Partition, flat: list[bytes], following: int, v: int) -> None:
    """Every short list of a small partition; long ones are marked unknown (since = 0)."""
    from omoide.core.postings import Tail
    from omoide.stores.redis.cache import Postings

    for place in range(0, len(flat), 2):
        name = flat[place].decode()
        if name in partition.terms:
            continue
        tail = Tail.parse(flat[place + 1])
        if tail.sealed:
            partition.terms[name] = Postings()
            continue
        rows, codes = decode(flat[place + 1])
        held = partition.terms[name] = Postings(rows, codes, len(rows), following - 1, v)
        partition.postings_held += held.count
    partition.known_since, partition.known_as_of = following - 1, v


def _missing_pieces(partition: Partition, reply: list[Any]) -> list[tuple[int, int]]:
    following, have = reply[4], partition.columns.next
    return [(first, min(first + PIECE, following) - 1) for first in range(have, following, PIECE)]


def _in_order(records: list[Record], request: Find) -> list[Record]:
    sign = -1 if request.descending else 1
    if request.order == "importance":
        return sorted(records, key=lambda r: (sign * r.importance, -r.time_ms, r.id))
    if request.order == "confidence":
        return sorted(records, key=lambda r: (sign * round(r.confidence * 65535), -r.time_ms, r.id))
    return sorted(records, key=lambda r: (sign * r.time_ms, r.id))
