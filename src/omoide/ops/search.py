"""Plans of recall: prepare a query, rank a partition, note what was delivered.

    text ──first characters──▶ screened by the firewall ──▶ terms ───────────▶ Search | Top | Find
                                                   └──▶ Embed ──▶ vector ──▶   │
                                     what went into the prompt ──▶ Deliver

Screening comes before analysis, so that nothing of a credential leaves the process, as a term or
otherwise. A query without terms asks the store nothing: it matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

from omoide.core.arms.weights import DEFAULT_WEIGHTS, RankWeights
from omoide.core.text.cues import PartialDate
from omoide.errors import QueryError
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.embedding import vector_of
from omoide.ops.request import (
    Absence,
    Deliver,
    Find,
    Hit,
    Increment,
    Match,
    Record,
    Search,
    SearchReply,
    Top,
)
from omoide.ops.run import Plan
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.privacy import Policy

QUERY_REDACTED = "query_redacted"
_ASTRIDE = re.compile(r"[\x21-\x7e]+\Z")
RECENT, IMPORTANT, RELEVANT = "recent", "important", "relevant"
ORDERS = (RECENT, IMPORTANT, RELEVANT)
"""What recall without a query can go by."""


@dataclass(frozen=True, slots=True)
class Question:
    """A screened query.

    `text`: as far as it counts, without what the firewall removed. `names`: its words that may name an
    author. `dates` it names. `cues` it asks for, see `core.text.cues`. `cut`, `terms_cut`, `dates_cut`:
    characters, terms and dates left out. `redacted`: spans removed.
    """

    terms: tuple[str, ...] = ()
    text: str = ""
    redacted: int = 0
    cut: int = 0
    terms_cut: int = 0
    names: tuple[str, ...] = ()
    dates: tuple[PartialDate, ...] = ()
    dates_cut: int = 0
    cues: int = 0


@dataclass(frozen=True, slots=True)
class Ranking:
    """Best first. `live` is None when the store was not asked for it; `fallback` names the one used.

    `without_meaning`: why a hybrid recall went by words alone, "" when it did not.
    """

    hits: tuple[Hit, ...] = ()
    reader: str | None = None
    round_trips: int = 0
    live: int | None = None
    skipped: tuple[str, ...] = ()
    fallback: str | None = None
    stand_ins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    about: Absence | None = None
    without_meaning: str = ""
    unembedded: int = 0
    embed_ms: float | None = None


def screen(
    query: object, spec: ModelSpec, *, max_chars: int, max_terms: int, policy: Policy | None = None
) -> Question:
    """Cut, redact and analyse a query; pure.

    The firewall sees as far beyond the cut as a secret may reach, so that one astride it is recognised; a
    token that goes on even there is left out. Names are looked for where the model has authors, dates where
    it has a time. `policy`: the model's own, None for the default.

    Raises:
        QueryError: the query is not a string.
    Cost: linear in the first `max_chars` characters and the reach of the firewall's rules.
    """
    if not isinstance(query, str):
        raise QueryError(f"a query is a string, not {type(query).__name__}")
    redaction = _redact(_read(query, max_chars, policy), policy)
    text = redaction[0][:max_chars]
    cut = max(0, len(query) - max_chars)
    if spec.text is None:
        return Question(text=text, redacted=redaction[1], cut=cut)
    from omoide.core.arms import authors
    from omoide.core.arms.dates import MOST_DATES
    from omoide.core.text import cues

    terms = spec.text.analyzer.query_terms(text)
    dates = cues.dates_named(text) if spec.time is not None else []
    return Question(
        terms=tuple(terms[:max_terms]),
        text=text,
        redacted=redaction[1],
        cut=cut,
        terms_cut=max(0, len(terms) - max_terms),
        names=tuple(authors.words_of(text)) if spec.author is not None else (),
        dates=tuple(dates[:MOST_DATES]),
        dates_cut=max(0, len(dates) - MOST_DATES),
        cues=cues.asked_for(text),
    )


def _read(query: str, max_chars: int, policy: Policy | None) -> str:
    """What the firewall sees of a query; in a longer one without the token that its end cuts."""
    if len(query) <= max_chars:
        return query
    from omoide.privacy import default_policy

    end = max_chars + (policy or default_policy()).reach
    return query if len(query) <= end else _ASTRIDE.sub("", query[:end])


def _redact(text: str, policy: Policy | None) -> tuple[str, int]:
    """A text without what the firewall blocks, and how many spans that took."""
    if not text or text.isspace():
        return "", 0
    from omoide.privacy import redact

    redaction = redact(text, policy=policy)
    return redaction.text, redaction.removed


def rank(
    scope: Scope,
    question: Question,
    *,
    limit: int,
    match: Match,
    explain: bool,
    fallback: str | None,
    ranking: RankWeights | None = None,
    about: str | None = None,
    hybrid: bool = False,
) -> Plan[Ranking]:
    """Rank a partition by a question; fill an empty answer only when asked to.

    `ranking`: weights of the arms, None for the model's. `about`: an id to tell of why it does not come.
    `hybrid`: by what the query means as well; a provider that fails leaves its words.

    Cost: 0 round trips without terms, else 1 or 2, and 1 for a fallback; a hybrid one
    calls the provider once.
    """
    found, vector, lacking, took = Ranking(), None, "", None
    if hybrid and meant(scope.spec, ranking):
        started = perf_counter()
        vector, lacking = yield from vector_of(scope.spec, question.text)
        took = round((perf_counter() - started) * 1000, 3)
        found = replace(found, without_meaning=lacking, embed_ms=took)
    if question.terms or vector is not None:
        weights = dict.fromkeys(question.terms, 1.0)
        reply: SearchReply = yield Search(
            scope,
            weights,
            limit,
            match,
            explain,
            question.names,
            question.dates,
            question.cues,
            ranking,
            about,
            vector,
        )
        found = Ranking(
            reply.hits,
            reply.reader,
            reply.round_trips,
            reply.live,
            reply.skipped,
            stand_ins=reply.stand_ins,
            about=reply.about,
            without_meaning=lacking or reply.without_meaning,
            unembedded=reply.unembedded,
            embed_ms=took,
        )
    if found.hits or fallback is None:
        return found
    records: tuple[Record, ...] = yield Find(scope, match, "time", True, limit)
    hits = tuple(Hit(record, 0.0, 0.0) for record in records)
    used = fallback if hits else None
    return replace(found, hits=hits, round_trips=found.round_trips + 1, fallback=used)


def meant(spec: ModelSpec, ranking: RankWeights | None) -> bool:
    """Whether what a query means has a share of a score at all."""
    weights = ranking or (DEFAULT_WEIGHTS if spec.text is None else spec.text.ranking)
    return spec.embedding is not None and weights.meaning > 0


def rank_without_query(scope: Scope, order: str, *, limit: int, match: Match, explain: bool) -> Plan[Ranking]:
    """The first of a partition in an order of ORDERS; relevant is relevance x (.8 + .2 confidence).

    Cost: as `Find` and `Top`.
    """
    if order == RELEVANT:
        records: tuple[Record, ...] = yield Top(scope, limit, match, True)
        return Ranking(tuple(_composite(record, explain) for record in records), "server", 1)
    column = "time" if order == RECENT else "importance"
    found: tuple[Record, ...] = yield Find(scope, match, column, True, limit)
    return Ranking(tuple(_in_order(record, order, explain) for record in found), "client", 1)


def _in_order(record: Record, order: str, explain: bool) -> Hit:
    if order == RECENT:
        return Hit(record, 0.0, 0.0)
    return Hit(record, record.importance, 0.0, {"importance": record.importance} if explain else {})


def _composite(record: Record, explain: bool) -> Hit:
    relevance = 1.0 if record.relevance is None else record.relevance
    certainty = 0.8 + 0.2 * record.confidence
    parts = {"relevance": relevance, "confidence": certainty} if explain else {}
    return Hit(record, relevance * certainty, 0.0, parts)


def deliver(scope: Scope, turn: str, ids: Iterable[str], redacted: int, ttl: Seconds) -> Plan[None]:
    """Note for `ttl` what a turn was given, with the count of redactions in its query. Cost: 1 round trip."""
    counters = ((QUERY_REDACTED, redacted),) if redacted else ()
    yield Deliver(scope, turn, tuple(ids), counters, round(ttl * 1000))


def count_redactions(scope: Scope, redacted: int) -> Plan[None]:
    """Count redactions where nothing was delivered. Cost: 1 round trip."""
    yield Increment(scope, QUERY_REDACTED, redacted)


__all__ = [
    "IMPORTANT",
    "ORDERS",
    "QUERY_REDACTED",
    "RECENT",
    "RELEVANT",
    "Question",
    "Ranking",
    "count_redactions",
    "deliver",
    "rank",
    "rank_without_query",
    "screen",
]
