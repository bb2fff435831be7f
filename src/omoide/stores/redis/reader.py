"""Bring a cache up to date with a partition in one call, and list and count from it.

    plan ──▶ fetch ──▶ what is new: rows, lists, changed attributes, the records wanted ──▶ cache

Searches (`recall`) are made of the same calls.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from omoide.core.columns import DEAD
from omoide.core.listing import Selected, select
from omoide.core.postings import decode
from omoide.errors import CapabilityError, StoreUnavailableError
from omoide.model.schema import Scope
from omoide.ops.request import Count, Find, Match, Record, Search, SearchReply
from omoide.stores.redis.cache import Cache, Partition
from omoide.stores.redis.calls import Call, Handler, answer, answers, send
from omoide.stores.redis.codec import decode_records
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.fetching import PIECE, PIECES_AHEAD, fetch_calls
from omoide.stores.redis.filters import allowed_rows, instant_of, must, ranges_of, span_of
from omoide.stores.redis.meaning import Wanted, ask_for, missing_slots, take, take_slots
from omoide.stores.redis.recall import Recall
from omoide.stores.redis.rows import read_rows
from omoide.stores.redis.translate import reply_error

MOST_WHOLE = 4_096
MOST_PLAIN = 1_000
MOST_EXPECTED = 64
"""Records of a listing that are asked for along with what is new."""
STEADY = 4
"""Fetches in a row that brought nothing new, after which the next is expected to bring nothing either."""
IDS_AT_ONCE = 4_096
_ATTEMPTS = 16
_LOG = logging.getLogger("omoide")
_warned: set[bytes] = set()


@dataclass(slots=True)
class Fetched:
    """One reply of `fetch`, as Python values. `stands`: nothing is new, nor visible then that was not."""

    gen: bytes
    v: int
    now_ms: int
    records: dict[int, Record] = field(default_factory=dict)
    changed: bool = False
    complete: bool = True
    stands: bool = False
    trips: int = 1


class Reader:
    """Searches, listings and counts over one cache.

    Args:
        mode: `client`, `server`, or `auto`: the server for the first recall of a partition in this process.
    """

    def __init__(self, cache: Cache, mode: str = "auto") -> None:
        self.cache = cache
        self.mode = mode
        self._plain = True  # until a user turns out not to have transactions

    def search(self, head: bytes, request: Search) -> Handler[SearchReply]:
        """Rank. Cost: see `Search`."""
        return Recall(self).search(head, request)

    # ---- listing

    def find(self, head: bytes, request: Find) -> Handler[tuple[Record, ...]]:
        """Matching records in order.

        Cost: one round trip for at most 64 records of a cached partition in which nothing is new; else one
        for what is new and one per 256,000 records.
        """
        excluded = set(request.match.exclude)
        for _ in range(_ATTEMPTS):
            state = yield from self._validate(head, request.scope, request.match, request)
            if state is None:
                return ()
            gen, now_ms, held = state
            with self.cache.lock:
                partition = self.cache.open(head)
                chosen = _chosen(partition, request.scope, request.match, now_ms, request)
                self.cache.settle(head, partition)
            records: list[Record] | None = [held[row] for row in chosen.rows if row in held]
            if len(records or ()) < len(chosen.rows):
                records = yield from read_rows(head, request.scope, gen, chosen.rows)
            if records is not None:
                skip = request.offset if excluded else chosen.skip
                end = None if request.limit is None else skip + request.limit
                return tuple(
                    _in_order([r for r in records if r.id and r.id not in excluded], request)[skip:end]
                )
        raise StoreUnavailableError("the partition changes faster than it can be read")

    def count(self, head: bytes, request: Count) -> Handler[int]:
        """How many match. Cost: one round trip, a second one with exclusions."""
        selected = yield from self.rows_that_match(head, request.scope, request.match)
        if selected is None:
            return 0
        rows = selected[1]
        if not request.match.exclude:
            return len(rows)
        reply = yield from answer(Call("get", head, ("id", *request.match.exclude)))
        return len(rows) - sum(1 for row in reply[2] if row in rows)

    def rows_that_match(
        self, head: bytes, scope: Scope, match: Match
    ) -> Handler[tuple[bytes, set[int]] | None]:
        """(gen, matching rows), exclusions left to the caller; None for no partition."""
        state = yield from self._validate(head, scope, match)
        if state is None:
            return None
        with self.cache.lock:
            partition = self.cache.open(head)
            chosen = _chosen(partition, scope, match, state[1])
            self.cache.settle(head, partition)
        return state[0], set(chosen.rows)

    def _validate(
        self, head: bytes, scope: Scope, match: Match, find: Find | None = None
    ) -> Handler[tuple[bytes, int, dict[int, Record]] | None]:
        """Bring columns and filter lists up to date: (gen, server time, records), None for no partition.

        The records are those that `find` would have chosen before, by row: most often what it chooses now.
        """
        names = must(match)
        for _ in range(_ATTEMPTS):
            with self.cache.lock:
                partition = self.cache.open(head)
                now_ms = self.now(partition)
                rows = self._expected(partition, scope, match, find, names, now_ms)
                plan = self.plan(partition, names, rows, span=span_of(partition, scope, match, now_ms))
            fetched = yield from self.fetch(head, scope, names, plan)
            if fetched is None:
                return None
            with self.cache.lock:
                partition = self.cache.open(head)
                if fetched.complete and partition.v == fetched.v and partition.current(names):
                    return fetched.gen, fetched.now_ms, fetched.records
        raise StoreUnavailableError("the partition changes faster than it can be read")

    def _expected(
        self,
        partition: Partition,
        scope: Scope,
        match: Match,
        find: Find | None,
        names: Sequence[str],
        now_ms: int,
    ) -> list[int]:
        """The rows that `find` chooses as far as this process knows; none where they are many or unknown."""
        few = find is not None and find.limit is not None and find.limit + len(match.exclude) <= MOST_EXPECTED
        if not few or not partition.current(names):
            return []
        rows = _chosen(partition, scope, match, now_ms, find).rows
        return rows if len(rows) <= 2 * MOST_EXPECTED else []

    # ---- fetch and apply

    def plan(
        self,
        partition: Partition,
        names: Sequence[str],
        rows: Sequence[int],
        want: Wanted | None = None,
        span: tuple[int, int] | None = None,
    ) -> dict[str, Any]:
        """What to ask `fetch` for: what the cache lacks of lists and vectors, and the records of `rows`.

        span: Instants at which `rows` are the right ones; None where that is not known.
        """
        return _fetch_plan(partition, names, rows, want, span)

    def now(self, partition: Partition) -> int:
        """The server's clock, as far as this process knows it."""
        return _now(partition)

    def expects_nothing(self, partition: Partition) -> bool:
        """Whether nobody else wrote for a while."""
        return partition.steady >= STEADY

    def warn(self, head: bytes, scope: Scope, fingerprint: bytes) -> None:
        """Once per partition and process: the index was built for another shape of the model."""
        warn_about_shape(head, scope, fingerprint)

    def fetch(
        self,
        head: bytes,
        scope: Scope,
        names: Sequence[str],
        plan: dict[str, Any],
        ids_of: Sequence[int] = (),
        edges_of: Sequence[int] = (),
    ) -> Handler[Fetched | None]:
        """Carry out a plan, and learn ids and edges of rows in the same round trip; None for no partition."""
        trips = 1
        if not ids_of and not edges_of and self._may_be_steady(head, plan):
            steady = yield from self._fetch_steady(head, scope, plan)
            if steady is not None:
                return steady
            trips = 2
        calls = fetch_calls(head, plan)
        about_rows = len(calls)
        for start in range(0, len(ids_of), IDS_AT_ONCE):
            calls.append(Call("ids", head, (plan["gen"], *ids_of[start : start + IDS_AT_ONCE])))
        if edges_of:
            calls.append(Call("edges", head, (plan["gen"], *edges_of)))
        replies = yield from answers(calls)
        with self.cache.lock:
            end = len(replies) - (1 if edges_of else 0)
            self._learn(head, plan["gen"].encode(), ids_of, replies[about_rows:end])
            if edges_of and self.cache.open(head).gen == plan["gen"].encode():
                self.cache.open(head).edges.learn(replies[-1])
        return (yield from self.take(head, scope, names, plan, replies[:about_rows], trips))

    def take(
        self,
        head: bytes,
        scope: Scope,
        names: Sequence[str],
        plan: dict[str, Any],
        replies: Sequence[Any],
        trips: int = 1,
    ) -> Handler[Fetched | None]:
        """Take replies of `fetch_calls` into the cache, and read what they lack; None for no partition."""
        reply = replies[0]
        if not reply:
            with self.cache.lock:
                self.cache.forget(head)
            return None
        if len(reply) <= 5:
            with self.cache.lock:
                return replace(_unchanged(self.cache.open(head), head, scope, plan, reply), trips=trips)
        warn_about_shape(head, scope, reply[16])
        with self.cache.lock:
            partition = self.cache.open(head)
            fetched = _apply(partition, scope, names, plan, reply)
            fetched.trips = trips
            _extend(partition, PIECES_AHEAD, replies[1:], reply[4])
            missing = _missing_pieces(partition, head, reply)
        if missing:
            yield from self._read_pieces(head, missing)
            fetched.complete, fetched.trips = False, trips + 1
        return fetched

    def _may_be_steady(self, head: bytes, plan: dict[str, Any]) -> bool:
        """Whether nobody else wrote for a while, and all that is asked for are records that do not expire."""
        rows = len(plan["rows"])
        if not self._plain or not plan["v"] or plan["timed"] or not 0 < rows <= MOST_PLAIN:
            return False
        with self.cache.lock:
            return self.expects_nothing(self.cache.open(head))

    def _fetch_steady(self, head: bytes, scope: Scope, plan: dict[str, Any]) -> Handler[Fetched | None]:
        """The records and the proof that nothing is new, by plain commands in one transaction.

        That is half the server's work of the script, which alone can say what is new: None then.
        """
        base, rows = head[:-1], plan["rows"]
        replies = yield [
            Command(args, head, idempotent=True)
            for args in (
                (b"MULTI",),
                (b"HMGET", head, b"gen", b"v", b"fingerprint"),
                (b"HMGET", base + b"r", *rows),
                (b"HMGET", base + b"c", *rows),
                (b"ZMSCORE", base + b"d", *rows),
                (b"EXEC",),
            )
        ]
        found = replies[-1]
        if any(_forbidden(reply) for reply in replies):
            self._plain = False
        with self.cache.lock:
            partition = self.cache.open(head)
            if isinstance(found, list) and all(isinstance(part, list) for part in found):
                (gen, v, fingerprint), bodies, statistics, orders = found
                if (gen, v) == (plan["gen"].encode(), b"%d" % plan["v"]) and None not in bodies:
                    reply = [fingerprint, bodies, statistics, orders]
                    return _unchanged(partition, head, scope, plan, reply)
            partition.steady = 0
        return None

    def _learn(self, head: bytes, gen: bytes, rows: Sequence[int], replies: Sequence[list[bytes]]) -> None:
        """Take in the ids of rows, when rows still have the numbers they were asked by."""
        partition = self.cache.open(head)
        if not rows or partition.gen != gen or partition.sessions is None:
            return
        found = [name for reply in replies for name in reply]
        if len(found) == len(rows):
            partition.sessions.learn(dict(zip(rows, found, strict=True)))

    def _read_pieces(self, head: bytes, calls: list[Call]) -> Handler[None]:
        """The rest of long attribute columns and of vectors, 1 MiB a command, all in one round trip."""
        replies = yield from send(calls)
        with self.cache.lock:
            partition = self.cache.open(head)
            for call, reply in zip(calls, replies, strict=True):
                if not isinstance(reply, list) or not _take_piece(partition, call, reply):
                    return


def _forbidden(reply: Any) -> bool:
    """Whether an error says that this will never be answered, such as by an ACL."""
    return isinstance(reply, Exception) and isinstance(reply_error(reply), CapabilityError)


def _chosen(
    partition: Partition, scope: Scope, match: Match, now_ms: int, find: Find | None = None
) -> Selected:
    """Rows that match, in the order and within the limits of `find` when there is one.

    Exclusions are ids, which the columns do not hold: as many more rows are chosen instead.
    """
    extra = len(match.exclude)
    limit = None if find is None or find.limit is None else find.limit + extra
    return select(
        partition.columns,
        order="time" if find is None else find.order,
        descending=find is None or find.descending,
        limit=limit if find is None or limit is None or not extra else limit + find.offset,
        offset=0 if find is None or extra else find.offset,
        now_ms=now_ms,
        valid_ms=instant_of(scope.spec, match, now_ms),
        allowed=allowed_rows(partition, match),
        ranges=ranges_of(match),
    )


def _take_piece(partition: Partition, call: Call, reply: list[Any]) -> bool:
    """Add one piece; False when it does not go on where the cache ends."""
    if call.verb == "slots":
        return take_slots(partition, call, reply)
    if reply[0] != partition.gen or partition.columns.next != call.args[0]:
        return False
    partition.columns.extend(reply[1], reply[2])
    return True


def warn_about_shape(head: bytes, scope: Scope, fingerprint: bytes) -> None:
    """Once per partition and process: the index was built for another shape of the model."""
    if fingerprint and fingerprint.decode() != scope.spec.fingerprint and head not in _warned:
        _warned.add(head)
        _LOG.warning(
            "%s: a partition was indexed for another shape of the model; it is read as it is, and refuses "
            "writes until `omoide reindex` has run",
            scope.spec.name,
        )


def _now(partition: Partition) -> int:
    """The server's clock, as far as this process knows it."""
    return int(time.time() * 1000) + partition.clock_offset


def _fetch_plan(
    partition: Partition,
    names: Sequence[str],
    rows: Sequence[int],
    want: Wanted | None,
    span: tuple[int, int] | None,
) -> dict[str, Any]:
    known = partition.current(names) and (want is None or partition.knows_meaning(*want))
    return {
        "gen": partition.gen.decode(),
        "v": partition.v if known else 0,
        "have": partition.columns.next,
        "log": partition.log,
        "terms": list(names),
        "since": [partition.since(name) for name in names],
        "rows": list(rows),
        "whole": partition.known_since == 0 and len(partition.terms) <= MOST_WHOLE,
        "timed": partition.columns.has_intervals and (True if span is None else list(span)),
        **ask_for(partition, want),
    }


def _unchanged(
    partition: Partition, head: bytes, scope: Scope, plan: dict[str, Any], reply: list[Any]
) -> Fetched:
    """The short answer: the state the plan was made from still is the partition's."""
    warn_about_shape(head, scope, reply[0])
    partition.steady += 1
    now_ms = reply[4] if len(reply) > 4 else _now(partition)
    fetched = Fetched(plan["gen"].encode(), plan["v"], now_ms, stands=True)
    if len(reply) > 1 and fetched.gen == partition.gen:
        lists = (plan["rows"], reply[1], (), reply[2], reply[3], (), ())
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
        spec = scope.spec
        partition.reset(gen, intervals=bool(reply[9]) or spec.ttl is not None or spec.validity is not None)
    if v < partition.v:
        fetched.complete = False
    else:
        fetched.changed = v != partition.v or plan["v"] == 0
        if reply[17] or v != partition.v:
            take(partition, plan, reply[17])
        _apply_columns(partition, first, reply)
        if v != partition.v:
            partition.floor, partition.steady = v, 0
        partition.v, partition.n, partition.sdl, partition.log = v, n, int(sdl), log
        partition.clock_offset = now_ms - int(time.time() * 1000)
    asked = plan["since"] if plan["gen"] == gen.decode() else [0] * len(names)
    _apply_lists(partition, names, asked, reply[13], following, v)
    if reply[15] and fetched.complete and partition.known_since == 0:
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
    partition: Partition,
    names: Sequence[str],
    asked: Sequence[int],
    lists: list[Any],
    following: int,
    v: int,
) -> None:
    for place, (name, since) in enumerate(zip(names, asked, strict=True)):
        if 2 * place < len(lists):
            df, data = lists[2 * place : 2 * place + 2]
            partition.take_list(name, df, data, since=since, upto=following - 1, as_of=v)


def _apply_vocabulary(partition: Partition, flat: list[bytes], following: int, v: int) -> None:
    """Every short list of a small partition; long ones are marked unknown (since = 0), others are gone."""
    from omoide.core.postings import Tail
    from omoide.stores.redis.cache import Postings

    there = set()
    for place in range(0, len(flat), 2):
        name = flat[place].decode()
        there.add(name)
        held = partition.terms.get(name)
        if held is not None and held.as_of >= v:
            continue
        tail = Tail.parse(flat[place + 1])
        if not tail.sealed:
            rows, codes = decode(flat[place + 1])
            partition.replace_list(name, Postings(rows, codes, len(rows), following - 1, v))
        elif held is None:
            partition.terms[name] = Postings()
        else:
            held.df = tail.df
    for name in [name for name, held in partition.terms.items() if name not in there and held.as_of < v]:
        partition.replace_list(name, None)
    partition.known_since, partition.known_as_of = following - 1, v


def _extend(
    partition: Partition, pieces: Sequence[tuple[int, int]], replies: Sequence[Any], following: int
) -> None:
    """Append pieces of the column to the rows held, as far as the row before `following`.

    A piece may be newer than the state it is added to: what changed since is in the change log, which is
    read from that state on.
    """
    for (first, _), reply in zip(pieces, replies, strict=False):
        rows = following - first
        if not isinstance(reply, list) or reply[0] != partition.gen or partition.columns.next != first:
            return
        partition.columns.extend(reply[1][: 32 * rows], reply[2][: 24 * rows])


def _missing_pieces(partition: Partition, head: bytes, reply: list[Any]) -> list[Call]:
    following, have = reply[4], partition.columns.next
    columns = [
        Call("column", head, (first, min(first + PIECE, following) - 1))
        for first in range(have, following, PIECE)
    ]
    return columns + missing_slots(partition, head, following)


def _in_order(records: list[Record], request: Find) -> list[Record]:
    sign = -1 if request.descending else 1
    if request.order == "importance":
        return sorted(records, key=lambda r: (sign * r.importance, -r.time_ms, r.id))
    if request.order == "valid_from":
        return sorted(records, key=lambda r: (sign * (r.valid_from_ms or 0), -r.time_ms, r.id))
    if request.order == "confidence":
        return sorted(records, key=lambda r: (sign * round(r.confidence * 65535), -r.time_ms, r.id))
    return sorted(records, key=lambda r: (sign * r.time_ms, r.id))
