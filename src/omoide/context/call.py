"""One assembly as data: what was asked, what was noted of it, and what its metadata say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omoide.context.block import Block
from omoide.core.arms.weights import DEFAULT_WEIGHTS, RankWeights
from omoide.fields.instants import from_milliseconds
from omoide.model.schema import Scope
from omoide.ops.lookups import ALL, Conditions
from omoide.ops.request import Match
from omoide.ops.search import Question, Ranking


@dataclass(frozen=True, slots=True)
class Call:
    """One assembly, checked: what to ask and how to fit it. `conditions` are those behind `match`."""

    scope: Scope
    match: Match
    question: Question
    mode: str
    max_items: int
    max_tokens: int
    explain: bool
    ranking: RankWeights | None = None
    conditions: Conditions = ALL


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of noting a delivery. `error`: `timeout` or `unavailable`, and then no turn."""

    turn: str | None = None
    round_trips: int = 0
    error: str | None = None


def describe(call: Call, ranking: Ranking, block: Block, delivery: Delivery) -> dict[str, Any]:
    """The metadata of a recall, all of it plain JSON."""
    question = call.question
    by_query = 0 if ranking.fallback else len(ranking.hits)
    metadata: dict[str, Any] = {
        "mode": "lexical" if ranking.without_meaning else call.mode,
        "reader": ranking.reader,
        "store": None if ranking.reader is None else "postgres" if ranking.reader == "postgres" else "redis",
        "round_trips": ranking.round_trips,
        "delivery_round_trips": delivery.round_trips,
        "matched": by_query,
        "live": ranking.live,
        "considered": len(ranking.hits),
        "delivered": len(block.items),
        "tokens": block.tokens,
        "cut": block.cut,
        "dropped": [list(pair) for pair in block.dropped],
        "terms": [] if call.mode == "composite" else list(question.terms),
        "fallback_used": ranking.fallback,
        "query_redacted": question.redacted,
    }
    if ranking.without_meaning:
        metadata["without_meaning"] = ranking.without_meaning
    if ranking.unembedded:
        metadata["unembedded"] = ranking.unembedded
    if delivery.error:
        metadata["delivery_error"] = delivery.error
    if question.cut:
        metadata["query_cut"] = question.cut
    if question.terms_cut and call.mode != "composite":
        metadata["query_terms_cut"] = question.terms_cut
    if question.dates_cut:
        metadata["query_dates_cut"] = question.dates_cut
    if ranking.stand_ins:
        metadata["stand_ins"] = {word: list(others) for word, others in ranking.stand_ins.items()}
    if ranking.skipped:
        metadata["arms_skipped"] = list(ranking.skipped)
    if call.mode == "composite":
        metadata["query_ignored"] = True
    if call.match.as_of is not None:
        metadata["as_of"] = from_milliseconds(call.match.as_of).isoformat()
    if call.explain:
        metadata["explain"] = _explain(ranking, block)
        metadata["arms"] = _arms(call)
    return metadata


def _arms(call: Call) -> list[dict[str, Any]]:
    """The arms of the ranking: name, weight, and what it says."""
    text = call.scope.spec.text
    weights = call.ranking or (DEFAULT_WEIGHTS if text is None else text.ranking)
    return [
        {"name": arm.name, "weight": arm.weight, "says": arm.says}
        for arm in weights.arms
        if arm.on and (arm.name != "meaning" or call.mode == "hybrid")
    ]


def _explain(ranking: Ranking, block: Block) -> dict[str, Any]:
    """By id: the score, its parts by name and as a tree, the rank by its own words alone (0: by none) and the
    final one, and why the record is not in the block (None when it is).
    """
    reasons = dict(block.dropped)
    return {
        hit.record.id: {
            "score": hit.score,
            "text": hit.text,
            "parts": dict(hit.parts),
            "tree": None if hit.tree is None else hit.tree.as_json(),
            "rank_by_own_words": hit.place_by_text,
            "rank": hit.place,
            "dropped": reasons.get(hit.record.id),
        }
        for hit in ranking.hits
    }


__all__ = ["Call", "Delivery", "describe"]
