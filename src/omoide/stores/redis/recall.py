"""Searches: rank in the client from a validated cache, or on the server in one call.

Client reader, until nothing is new:

    predict    rank from the cache; where others wrote meanwhile that is a guess, ranked again afterwards
    fetch      one call: what is new since then, and the records predicted
    apply      add what is new; when the cache is then at the state of the reply, rank again

A reply that brought nothing new proves the prediction. A reply that did is the new state itself: the ranking
over it is final when the records came with it, else one more call gets them. So the result is always the
ranking of one state of the partition, with the records of that state. A partition that is written faster than
that is ranked on the server, in the same one step as its records are read.

Two things may take a call more, which counts as cold: words of the query that no memory has, when the
words that could stand in for them have to be read first; and ids of memories that tie in time within a
session. Those are read beside a fetch, in the same round trip; the prediction takes such ties in the order
of saving, and only where ids say otherwise is there something new to rank. The edges of the best memories are
read in the same way; a call more brings the records that come in by them (`linked`).

Server reader: `rank` scores in Lua. It needs no cache and no numpy, and refuses beyond a budget of postings.
With the client to fall back on (`auto`) it also refuses what it could do only without an arm; alone, it
skips that arm and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from omoide.core.arms.authors import named_author
from omoide.core.bm25 import weight_table
from omoide.core.columns import Filter
from omoide.core.explanation import Explainer
from omoide.core.linking import SEEDS, Lent, linked, seeds_of
from omoide.core.ranking import TEXT_ONLY, Arms, Ranked, rank
from omoide.errors import StoreUnavailableError
from omoide.ops.request import Absence, Hit, Record, Search, SearchReply
from omoide.stores.redis.asked import Asked, ask, told, weights_of
from omoide.stores.redis.cache import Partition
from omoide.stores.redis.calls import Call, Handler, answer
from omoide.stores.redis.filters import allowed_rows, instant_of, ranges_of, span_of
from omoide.stores.redis.linked import seeds_to_ask, tree_of, with_links
from omoide.stores.redis.meaning import NOTHING, SERVER, compared, wanted, warn_of_another_provider
from omoide.stores.redis.served import Refused, Server, read_words

if TYPE_CHECKING:
    from omoide.core.accumulator import TermList
    from omoide.stores.redis.reader import Reader

_ATTEMPTS = 16
_PATIENCE = 4


@dataclass(slots=True)
class View:
    """A ranking with what made it; not to be changed.

    `wanted`: rows whose ids it depends on. `unlinked`: rows whose edges have yet to be read; `ranked` is then
    without links. `alone`: before links, `lent` what those add.
    `unembedded`: without a vector. `at`: the instant (ms) it is of.
    """

    ranked: Ranked
    terms: Sequence[TermList] = ()
    table: Sequence[float] = ()
    arms: Arms = TEXT_ONLY
    wanted: frozenset[int] = frozenset()
    alone: Ranked = field(default_factory=Ranked)
    lent: Mapping[int, Lent] = field(default_factory=dict)
    unlinked: tuple[int, ...] = ()
    unembedded: int = 0
    at: int = 0


class Recall:
    """Both readers' searches, over the cache of a reader."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._cache = reader.cache
        self._server = Server(reader)

    def search(self, head: bytes, request: Search) -> Handler[SearchReply]:
        """Rank. Cost: see `Search`."""
        mode, trips = self._reader.mode, 0
        first = self._cache.peek(head) is None
        client_only = (
            request.explain or request.about is not None or (request.vector is not None and mode != "server")
        )
        if not client_only and mode == "server":
            reply = yield from self._server.rank(head, request, strict=False)
            if isinstance(reply, SearchReply):
                return reply if request.vector is None else replace(reply, without_meaning=SERVER)
            trips = reply.trips
        elif not client_only and mode == "auto" and first:
            reply = yield from self._rank_first(head, request)
            if isinstance(reply, SearchReply):
                return reply
            trips = reply.trips
        return (yield from self._rank_in_client(head, request, trips))

    def _rank_first(self, head: bytes, request: Search) -> Handler[SearchReply | Refused]:
        """The first recall of a partition in a process: on the server or, where that refuses, not yet.

        What the client reader lacks travels along and is answered only then.
        """
        asked = ask(Partition(), request)
        plan = self._reader.plan(Partition(), asked.names, [], wanted(request))
        reply = yield from self._server.rank(head, request, strict=True, ahead=plan)
        if isinstance(reply, SearchReply):
            if reply.live:
                with self._cache.lock:
                    self._cache.settle(head, self._cache.open(head))
            return reply
        if not reply.ahead or not reply.ahead[0]:
            return reply
        fetched = yield from self._reader.take(head, request.scope, asked.names, plan, reply.ahead)
        return replace(reply, trips=reply.trips + (0 if fetched is None else fetched.trips - 1))

    def _rank_in_client(self, head: bytes, request: Search, trips: int) -> Handler[SearchReply]:
        view, viewed_at = View(Ranked()), -1  # the ranking of the partition at a write
        placed: tuple[bytes, int] | None = None
        tries, just_read, want = 0, False, wanted(request)
        for _ in range(_ATTEMPTS):
            if tries == _PATIENCE and not (request.explain or request.about):
                reply = yield from self._server.rank(head, request, strict=True)
                if isinstance(reply, SearchReply):
                    lacking = "" if want is None else SERVER
                    return replace(reply, round_trips=trips + reply.round_trips, without_meaning=lacking)
                trips += reply.trips
            if request.about is not None and placed is None:
                placed = yield from self._place(head, request.about)
                trips += 1
            with self._cache.lock:
                partition = self._cache.open(head)
                asked = ask(partition, request)
                ready = asked.ready and (want is None or partition.knows_meaning(*want))
                if viewed_at != partition.v and ready:
                    view, viewed_at = self._view(partition, request, asked, None), partition.v
                current = viewed_at == partition.v
                expected = view if current else self._guess(partition, request, asked)
                span = span_of(partition, request.scope, request.match, view.at) if current else None
                plan = self._reader.plan(partition, asked.names, expected.ranked.rows, want, span)
                edges = self._edges_of(partition, request, expected)
            if asked.unread and not just_read:
                _, read = yield from read_words(self._cache, head)
                trips, just_read = trips + read, True
                continue
            just_read = False  # words of another numbering serve only once the lists are fetched anew
            unsure = sorted(view.wanted) if current else []
            fetched = yield from self._reader.fetch(head, request.scope, asked.names, plan, unsure, edges)
            trips, tries = trips + (1 if fetched is None else fetched.trips), tries + 1
            if fetched is None:
                about = None if request.about is None else Absence("missing")
                return SearchReply((), "client", trips, 0, about=about)
            with self._cache.lock:
                partition = self._cache.open(head)
                proven = current and not fetched.changed and partition.v == fetched.v
                if not proven:
                    asked = ask(partition, request)
                ready = asked.ready and (want is None or partition.knows_meaning(*want))
                if not fetched.complete or partition.v != fetched.v or not (proven or ready):
                    viewed_at = -1
                    continue
                if not proven or (partition.columns.has_intervals and not fetched.stands) or unsure:
                    view, viewed_at = self._view(partition, request, asked, fetched.now_ms), partition.v
                elif view.unlinked:
                    view = self._linked(partition, request, view, fetched.now_ms)
                if placed is not None and placed[0] != partition.gen:
                    placed = None
                    continue
                open_ends = view.wanted or view.unlinked
                hits = None if open_ends else self._hits(partition, request, view, fetched.records)
                live = partition.n
                if hits is not None:
                    about = self._about(partition, request, view, hits, placed, fetched.now_ms)
                    lacking = ""
                    if want is not None and view.arms.meaning is None:
                        lacking = partition.without_meaning or NOTHING
                        warn_of_another_provider(head, request, partition)
                    self._cache.settle(head, partition)
            if hits is not None:
                return SearchReply(
                    hits, "client", trips, live, (), told(asked), about, lacking, view.unembedded
                )
        raise StoreUnavailableError(
            "the partition changes faster than it can be read", hint="use connect(reader='server')"
        )

    def _guess(self, partition: Partition, request: Search, asked: Asked) -> View:
        """What to ask for where others wrote: the ranking by the lists as they were."""
        if asked.unread or not all(0 < partition.since(n) < partition.columns.next for n in asked.names):
            return View(Ranked())
        return self._view(partition, request, asked, None)

    def _edges_of(self, partition: Partition, request: Search, view: View) -> Sequence[int]:
        """Rows whose edges to read with the next fetch: those not held; all where writes are expected."""
        if view.unlinked or not _follows(request) or self._reader.expects_nothing(partition):
            return view.unlinked
        return sorted(seeds_of(view.alone))

    def _place(self, head: bytes, record_id: str) -> Handler[tuple[bytes, int]]:
        """(gen, row) of an id, row 0 when there is none."""
        reply = yield from answer(Call("place", head, (record_id,)))
        return (reply[0], int(reply[1])) if reply else (b"", 0)

    def _view(self, partition: Partition, request: Search, asked: Asked, now_ms: int | None) -> View:
        spec = request.scope.spec
        if spec.text is None:
            return View(Ranked())
        now = self._reader.now(partition) if now_ms is None else now_ms
        valid, weights = instant_of(spec, request.match, now), weights_of(request)
        links, unsure = None, frozenset[int]()
        meaning = compared(partition, request) if weights.meaning else None
        if spec.session is not None and (weights.borrows or meaning is not None):
            links, unsure = partition.links(now, valid)
        author = self._author(partition, asked)
        arms = Arms(weights, links, author, request.dates, request.cues, meaning)
        terms = _term_lists(partition, asked)
        average = partition.sdl / partition.n if spec.text.pivot is None and partition.n else 1.0
        table = weight_table(spec.text.k1, spec.text.b, spec.text.pivot, average or 1.0)
        least = SEEDS if _follows(request) else 1
        ranked = rank(
            terms,
            table,
            partition.columns,
            live=partition.n,
            limit=max(request.limit + len(request.match.exclude), least),
            now_ms=now,
            valid_ms=valid,
            allowed=allowed_rows(partition, request.match),
            ranges=ranges_of(request.match),
            arms=arms,
        )
        unembedded = 0 if meaning is None else partition.n - int(meaning.held.sum())
        view = View(ranked, terms, table, arms, unsure, ranked, unembedded=unembedded, at=now)
        return self._linked(partition, request, view, now) if _follows(request) else view

    def _linked(self, partition: Partition, request: Search, view: View, now_ms: int) -> View:
        """The view with what the seeds lend, as far as their edges are held."""
        limit = request.limit + len(request.match.exclude)
        unlinked = seeds_to_ask(view.alone, partition.edges, partition.v)
        if unlinked:
            return replace(view, ranked=linked(view.alone, {}, {}, limit), unlinked=unlinked)
        rule = _rule(partition, request, now_ms)
        graph, explainer = view.arms.weights.graph, _explainer(partition, view)
        ranked, lent = with_links(view.alone, partition.edges, graph, explainer, rule, limit)
        return replace(view, ranked=ranked, lent=lent, unlinked=())

    def _author(self, partition: Partition, asked: Asked) -> int:
        """Ordinal of the one author whom the query names, 0 for none."""
        lists = (partition.terms.get(name) for name in asked.called)
        named = [held.authors(partition.columns) for held in lists if held is not None and held.count]
        if not any(named):
            return 0
        return named_author(named, partition.everyone.of_all(partition.columns))

    def _hits(
        self, partition: Partition, request: Search, view: View, records: Mapping[int, Record]
    ) -> tuple[Hit, ...] | None:
        """The answer, ties broken by id; None when a record is still to be read."""
        ranked = view.ranked
        if any(row not in records for row in ranked.rows):
            return None
        order = sorted(
            (-score, -time, records[row].id, row, text)
            for score, time, row, text in zip(
                ranked.scores, ranked.times, ranked.rows, ranked.texts, strict=True
            )
        )
        excluded = request.match.exclude
        kept = [entry for entry in order if entry[2] not in excluded][: request.limit]
        hits = tuple(Hit(records[row], -score, text) for score, _, _, row, text in kept)
        return self._explained(partition, request, view, hits) if request.explain else hits

    def _explained(
        self, partition: Partition, request: Search, view: View, hits: tuple[Hit, ...]
    ) -> tuple[Hit, ...]:
        explainer = _explainer(partition, view)
        rule = _rule(partition, request, self._reader.now(partition))
        places = explainer.places_by_own_text([hit.record.row for hit in hits], rule)
        explained = []
        for place, hit in enumerate(hits, 1):
            tree = tree_of(hit.record.row, explainer, view.lent, view.arms.weights.graph)
            by_text = places[hit.record.row]
            explained.append(replace(hit, parts=tree.flat(), tree=tree, place=place, place_by_text=by_text))
        return tuple(explained)

    def _about(
        self,
        partition: Partition,
        request: Search,
        view: View,
        hits: tuple[Hit, ...],
        placed: tuple[bytes, int] | None,
        now_ms: int,
    ) -> Absence | None:
        """Why the record asked about is not among the hits; None when none was asked about."""
        if placed is None:
            return None
        import numpy as np

        columns, match, row = partition.columns, request.match, np.array([placed[1]], np.int64)
        if not placed[1] or not columns.live_mask(row)[0]:
            return Absence("missing")
        rule = _rule(partition, request, now_ms)
        if not columns.visible(row, now_ms, rule.valid_ms)[0]:
            return Absence("expired")
        if request.about in match.exclude or not len(rule.keep(row)):
            return Absence("filtered")
        tree = tree_of(placed[1], _explainer(partition, view), view.lent, view.arms.weights.graph)
        least = hits[-1].score if len(hits) >= request.limit else 0.0
        if any(hit.record.row == placed[1] for hit in hits):
            return Absence("found", tree.value, least, tree)
        return Absence("outranked" if tree.value > 0 else "unmatched", tree.value, least, tree)


def _follows(request: Search) -> bool:
    """Whether the graph arm counts."""
    return request.scope.spec.graph is not None and weights_of(request).graph > 0


def _rule(partition: Partition, request: Search, now_ms: int) -> Filter:
    """What counts for a request, ids left out among it."""
    match, valid = request.match, instant_of(request.scope.spec, request.match, now_ms)
    return Filter(
        partition.columns, now_ms, allowed_rows(partition, match), (), ranges_of(match), valid_ms=valid
    )


def _term_lists(partition: Partition, asked: Asked) -> list[TermList]:
    lists = []
    for name, weight, stands_for in asked.terms:
        held = partition.held(name)
        if held is not None:
            lists.append(held.as_terms(weight, name, stands_for))
    return lists


def _explainer(partition: Partition, view: View) -> Explainer:
    ranked = view.ranked
    return Explainer(
        view.terms, view.table, partition.columns, partition.n, view.arms, ranked.best_text, ranked.fusion
    )
