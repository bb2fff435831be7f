"""Context assembly: from a question to a block of memories that fits the prompt.

    query ─▶ screen ─▶ rank (1-2 round trips) ─▶ pack and render ─▶ deliver (1) ─▶ AssemblyResult

    mode       ranks by                                           needs
    lexical    the text of the query, confidence and importance   BM25Field
    hybrid     text and meaning                                   BM25Field, EmbeddingField
    composite  relevance and confidence; ignores the query        nothing
    auto       the first of hybrid, lexical, composite that the model has fields for

Without a query (`assemble(order="recent", agent_id=...)`) memories come in an order: recent, important or
relevant. Filters, and validity at an instant, hold in every mode.

A query that matches nothing returns nothing. `fallback="recent"` asks for the newest memories
instead, and the metadata says when it was used. Delivery is noted after the recall, under a turn
id, so that outcomes can be reported by another process; a delivery that fails does not undo the
recall: the result has no turn id and its metadata says why.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omoide.context import render
from omoide.context.block import Block, build
from omoide.context.call import Call, Delivery, describe
from omoide.context.counting import guarded
from omoide.context.missing import Missing, verdict
from omoide.context.result import AssemblyResult
from omoide.core.arms.weights import RankWeights
from omoide.core.budget import TokenCounter, estimate_tokens
from omoide.errors import QueryError, StoreError, StoreTimeoutError
from omoide.mixins.never_record import policy_of
from omoide.model.instance import spec_of
from omoide.model.partition import check_ids, checked_seconds, ids_of, scope_of_call
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import port, search
from omoide.ops.load import BESIDE
from omoide.ops.lookups import ALL, Conditions, at, narrow, without
from omoide.ops.request import Record
from omoide.ops.run import Plan, arun, run
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.ops.model import Model

MODES = ("auto", "lexical", "hybrid", "composite")
FALLBACKS = (None, "recent")
MOST_ITEMS = 1_000
MOST_TOKENS = 10_000_000

_log = logging.getLogger("omoide.context")
_warned: set[str] = set()


class ContextAssembler:
    """Recall memories of one model for a prompt.

    Args:
        model: A Model class.
        mode: `auto`, `lexical`, `hybrid` or `composite`.
        max_items: Most memories, 1..1,000; default: the model's `Defaults`, 8.
        max_tokens: Most tokens of `formatted`, header included, 0..10,000,000; default: the model's, 800.
        token_counter: text -> tokens; default `estimate_tokens`.
        format: `content` (bullets), `structured` (JSON), `xml` or `natural`.
        fallback: None, or `recent`: the newest memories when the query matches none.
        ranking: What each arm of the ranking adds; default: the model's.
        deadline: Seconds for a whole call, or None for the connection's own timeout.
        track: Note deliveries: the access statistics, and the turn id for later outcomes.
    Raises:
        QueryError: an option that is not one of these, or a mode the model lacks a field for.

    Whatever a token counter raises becomes a QueryError of the call.
    """

    def __init__(
        self,
        model: type[Model],
        *,
        mode: str = "auto",
        max_items: int | None = None,
        max_tokens: int | None = None,
        token_counter: TokenCounter | None = None,
        format: str = "content",
        fallback: str | None = None,
        ranking: RankWeights | None = None,
        deadline: Seconds | None = None,
        track: bool = True,
    ) -> None:
        self.model = model
        self.spec = spec = spec_of(model)
        self.mode = _resolve(spec, mode)
        defaults = model.__omoide_defaults__
        self.max_items = _number(
            "max_items", defaults.max_items if max_items is None else max_items, 1, MOST_ITEMS
        )
        self.max_tokens = _number(
            "max_tokens", defaults.max_tokens if max_tokens is None else max_tokens, 0, MOST_TOKENS
        )
        if token_counter is not None and not callable(token_counter):
            raise QueryError("token_counter is a function of a text")
        self.token_counter = estimate_tokens if token_counter is None else token_counter
        self.format = _choice("format", format, render.FORMATS)
        self.fallback = _choice("fallback", fallback, FALLBACKS)
        self.ranking = _weights(ranking)
        self.deadline = None if deadline is None else checked_seconds("deadline", deadline)
        self.track = track

    def assemble(
        self,
        query: str = "",
        *,
        order: str | None = None,
        max_items: int | None = None,
        max_tokens: int | None = None,
        explain: bool = False,
        ranking: RankWeights | None = None,
        exclude: Iterable[str] = (),
        as_of: datetime | None = None,
        **filters: Any,
    ) -> AssemblyResult:
        """Recall for a query, or without one in an order.

        Args:
            query: Text in any script; its first 4,096 characters and 64 distinct terms count.
            order: Instead of a query: `recent`, `important`, or `relevant` (decayed importance x confidence).
                Ties by time, then id.
            max_items, max_tokens, ranking: Override the assembler's for this call.
            explain: Put the parts of every score, its rank before and after the arms, and what was cut, in
                `metadata["explain"]`.
            exclude: Ids to leave out.
            as_of: Only what was valid at this instant, of a model with a ValidityField; default: now.
            filters: The partition by its field names, and the filters of `Model.query.filter`
                that an index answers; dates by `time__gte` and `time__lt`.
        Raises:
            QueryError: not a string, no partition, a filter without an index, or `as_of` of a model without
                validity.
            StoreUnavailableError, StoreTimeoutError: an outage is never "no memories".
        Cost: 1 round trip (2 when nothing is cached), and 1 more to note the delivery. Hybrid recall calls
            the provider once before that, within half of a deadline; where it fails, words alone count.
        """
        where = self._where(exclude, as_of, filters)
        plan = self._steps(self._call(query, order, max_items, max_tokens, explain, ranking, where))
        with port.deadline(self.deadline):
            return run(plan, port.current().store)

    async def aassemble(
        self,
        query: str = "",
        *,
        order: str | None = None,
        max_items: int | None = None,
        max_tokens: int | None = None,
        explain: bool = False,
        ranking: RankWeights | None = None,
        exclude: Iterable[str] = (),
        as_of: datetime | None = None,
        **filters: Any,
    ) -> AssemblyResult:
        """Async twin of `assemble`."""
        where = self._where(exclude, as_of, filters)
        plan = self._steps(self._call(query, order, max_items, max_tokens, explain, ranking, where))
        with port.deadline(self.deadline):
            return await arun(plan, port.current().astore)

    def explain_missing(
        self,
        record_id: str,
        query: str,
        *,
        max_items: int | None = None,
        max_tokens: int | None = None,
        ranking: RankWeights | None = None,
        exclude: Iterable[str] = (),
        as_of: datetime | None = None,
        **filters: Any,
    ) -> Missing:
        """Why a memory does not come for a query; nothing is noted as delivered.

        Args:
            record_id: The memory asked about.
            query, max_items, max_tokens, ranking, exclude, as_of, filters: As for `assemble`.
        Raises:
            QueryError: as `assemble`, or recall ignores the query.
            StoreUnavailableError, StoreTimeoutError: the store does not answer.
        Cost: as `assemble`, and one round trip.
        """
        where = self._where(exclude, as_of, filters)
        call = self._call(query, None, max_items, max_tokens, False, ranking, where)
        with port.deadline(self.deadline):
            return run(self._verdict(call, record_id), port.current().store)

    async def aexplain_missing(
        self,
        record_id: str,
        query: str,
        *,
        max_items: int | None = None,
        max_tokens: int | None = None,
        ranking: RankWeights | None = None,
        exclude: Iterable[str] = (),
        as_of: datetime | None = None,
        **filters: Any,
    ) -> Missing:
        """Async twin of `explain_missing`."""
        where = self._where(exclude, as_of, filters)
        call = self._call(query, None, max_items, max_tokens, False, ranking, where)
        with port.deadline(self.deadline):
            return await arun(self._verdict(call, record_id), port.current().astore)

    def _call(
        self,
        query: str,
        order: str | None,
        max_items: int | None,
        max_tokens: int | None,
        explain: bool,
        ranking: RankWeights | None,
        where: tuple[Scope, Conditions],
    ) -> Call:
        """A call, checked before its first request."""
        scope, conditions = where
        call = Call(
            scope=scope,
            match=conditions.match,
            conditions=conditions,
            question=self._screened(query),
            mode=self._mode_of(query, order),
            max_items=self.max_items if max_items is None else _number("max_items", max_items, 1, MOST_ITEMS),
            max_tokens=self.max_tokens
            if max_tokens is None
            else _number("max_tokens", max_tokens, 0, MOST_TOKENS),
            explain=explain,
            ranking=self.ranking if ranking is None else _weights(ranking),
        )
        if call.mode == "composite" and query.strip():
            _warn_ignored(self.spec.name)
        return call

    def _screened(self, query: str) -> search.Question:
        defaults = self.model.__omoide_defaults__
        return search.screen(
            query,
            self.spec,
            max_chars=defaults.query_chars,
            max_terms=defaults.query_terms,
            policy=policy_of(self.model),
        )

    def _mode_of(self, query: str, order: str | None) -> str:
        """How one call ranks: by the assembler's mode, or without a query by an order."""
        if order is None:
            return self.mode
        if query.strip():
            raise QueryError("a query ranks by itself", hint="leave out the query, or order=")
        return str(_choice("order", order, search.ORDERS))

    def _where(
        self, exclude: Iterable[str], as_of: datetime | None, filters: dict[str, Any]
    ) -> tuple[Scope, Conditions]:
        """The partition a call names, and its filters."""
        spec = self.spec
        scope = scope_of_call(
            spec, {name: value for name, value in filters.items() if name in spec.partition_by}, "assemble"
        )
        lookups = {name: value for name, value in filters.items() if name not in spec.partition_by}
        conditions = narrow(ALL, spec, lookups, scan=False)
        if as_of is not None:
            conditions = at(conditions, spec, as_of)
        if conditions.ids is not None:
            raise QueryError(f"{spec.name}: recall does not filter by id", hint="use Model.query.get_many")
        left_out = (exclude,) if isinstance(exclude, str) else ids_of(exclude, "exclude")
        return scope, without(conditions, check_ids(spec, left_out, what="an id of exclude"))

    def _steps(self, call: Call) -> Plan[AssemblyResult]:
        started = perf_counter()
        ranking = yield from self._rank(call)
        ranked = perf_counter()
        block = self._build(call, ranking)
        packed = perf_counter()
        delivery = yield from self._deliver(call, block)
        metadata = describe(call, ranking, block, delivery)
        metadata["timings"] = {
            "rank_ms": _ms(ranked - started),
            "pack_ms": _ms(packed - ranked),
            "deliver_ms": _ms(perf_counter() - packed),
        }
        if ranking.embed_ms is not None:
            metadata["timings"]["embed_ms"] = ranking.embed_ms
        return AssemblyResult(list(block.records), block.text, metadata, delivery.turn, block.items)

    def _verdict(self, call: Call, record_id: str) -> Plan[Missing]:
        (checked,) = check_ids(self.spec, (record_id,))
        if call.mode == "composite":
            raise QueryError(f"{self.spec.name}: composite recall ranks without a query")
        ranking = yield from self._rank(call, checked)
        return verdict(checked, call.question, ranking, self._build(call, ranking))

    def _build(self, call: Call, ranking: search.Ranking) -> Block:
        return build(
            self.model,
            ranking.hits,
            format=self.format,
            max_tokens=call.max_tokens,
            count=guarded(self.token_counter),
        )

    def _rank(self, call: Call, about: str | None = None) -> Plan[search.Ranking]:
        """The hits of a call; with a bound that indexes are too coarse for, those on its right side."""
        if not call.conditions.edges:
            return (yield from self._ask(call, call.max_items, about))
        ranking = yield from self._ask(call, call.max_items + BESIDE, about)
        holding = [hit for hit in ranking.hits if self._holds(call.conditions, hit.record)]
        told = ranking.about
        if told is not None and told.reason == "found" and about not in {hit.record.id for hit in holding}:
            told = replace(told, reason="filtered")
        return replace(ranking, hits=tuple(holding[: call.max_items]), about=told)

    def _holds(self, conditions: Conditions, record: Record) -> bool:
        instance = self.model.from_record(record)
        return all(edge.holds(record, instance) for edge in conditions.edges)

    def _ask(self, call: Call, limit: int, about: str | None) -> Plan[search.Ranking]:
        if call.mode == "composite" or call.mode in search.ORDERS:
            order = call.mode if call.mode in search.ORDERS else search.RELEVANT
            return (
                yield from search.rank_without_query(
                    call.scope, order, limit=limit, match=call.match, explain=call.explain
                )
            )
        return (
            yield from search.rank(
                call.scope,
                call.question,
                limit=limit,
                match=call.match,
                explain=call.explain,
                fallback=None if about is not None else self.fallback,
                ranking=call.ranking,
                about=about,
                hybrid=call.mode == "hybrid",
            )
        )

    def _deliver(self, call: Call, block: Block) -> Plan[Delivery]:
        """Note what is delivered, and redactions; a failure is told and does not undo the recall."""
        redacted = call.question.redacted
        turn = new_turn() if self.track and block.items else None
        if turn is None and not redacted:
            return Delivery()
        try:
            if turn is not None:
                ids = (item.id for item in block.items)
                ttl = self.model.__omoide_defaults__.turn_ttl
                yield from search.deliver(call.scope, turn, ids, redacted, ttl)
            else:
                yield from search.count_redactions(call.scope, redacted)
        except StoreError as error:
            reason = "timeout" if isinstance(error, StoreTimeoutError) else "unavailable"
            _log.warning("what was recalled could not be noted as delivered: %s", reason)
            return Delivery(None, 1, reason)
        return Delivery(turn, 1)


def new_turn() -> str:
    """A fresh turn id: 32 hexadecimal digits, ordered by time."""
    import uuid_utils

    return str(uuid_utils.uuid7().hex)


def _warn_ignored(name: str) -> None:
    """Say once a model that composite recall does not read the query."""
    if name not in _warned:
        _warned.add(name)
        _log.warning("%s: composite recall ignores the query; a BM25Field would use it", name)


def _resolve(spec: ModelSpec, mode: str) -> str:
    _choice("mode", mode, MODES)
    if mode == "auto":
        if spec.text is None:
            return "composite"
        return "lexical" if spec.embedding is None else "hybrid"
    if mode in ("lexical", "hybrid") and spec.text is None:
        raise QueryError(f"{spec.name}: mode {mode!r} needs a BM25Field", hint="or use mode='composite'")
    if mode == "hybrid" and spec.embedding is None:
        raise QueryError(f"{spec.name}: mode 'hybrid' needs an EmbeddingField", hint="use mode='lexical'")
    return mode


def _choice(option: str, value: Any, choices: tuple[Any, ...]) -> Any:
    if value not in choices:
        raise QueryError(f"{option} is one of {', '.join(map(repr, choices))}")
    return value


def _number(option: str, value: int, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise QueryError(f"{option} is a whole number, {least}..{most:,}")
    return value


def _weights(ranking: object) -> RankWeights | None:
    if ranking is None or isinstance(ranking, RankWeights):
        return ranking
    raise QueryError(f"ranking is a RankWeights, not {type(ranking).__name__}")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


__all__ = ["FALLBACKS", "MODES", "ContextAssembler", "new_turn"]
