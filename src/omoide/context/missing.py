"""Why a memory did not come: the verdict on one id for one query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from omoide.context.block import Block
from omoide.ops.search import Question, Ranking

NO_TERMS = "no_terms"
DELIVERED = "delivered"

_SAYS = {
    NO_TERMS: "the query has no term that could match: only stop words, or nothing",
    "missing": "there is no such memory in the partition: never stored there, erased, or evicted",
    "expired": "it has expired, or is not valid at the instant asked about",
    "filtered": "a filter of the call leaves it out",
    "unmatched": "neither it nor a neighbour in its session has a term of the query; no date or meaning fits",
    "outranked": "others rank higher",
    "cut": "it was ranked, but left out of the block",
    DELIVERED: "it is delivered",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """The verdict on one memory.

    Attributes:
        id: The memory asked about.
        reason: `delivered`, `missing`, `expired`, `filtered`, `no_terms`, `unmatched`, `outranked`, or `cut`.
        says: The reason in a sentence.
        score: Its score, 0 where it has none.
        behind: How far the score is below that of the last memory ranked; 0 when it ties with it.
        cut: Why the block left it out (`over_budget`, `duplicate`, `empty`, `corrupt`), "" otherwise.
        tree: The parts of the score.
        redacted: Parts of the query that the firewall took out before it was asked.
    """

    id: str
    reason: str
    says: str
    score: float = 0.0
    behind: float = 0.0
    cut: str = ""
    tree: Mapping[str, Any] = field(default_factory=dict)
    redacted: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def verdict(record_id: str, question: Question, ranking: Ranking, block: Block) -> Missing:
    """Why a memory is not in a block, from the ranking that was asked about it."""
    absence = ranking.about
    if absence is None:
        reason = "missing" if ranking.live is not None else NO_TERMS
        return Missing(record_id, reason, _says(reason, question), redacted=question.redacted)
    tree = {} if absence.tree is None else absence.tree.as_json()
    reason, cut = absence.reason, ""
    if reason == "found":
        cut = dict(block.dropped).get(record_id, "")
        reason = "cut" if cut else DELIVERED
    behind = max(0.0, absence.least - absence.score) if reason == "outranked" else 0.0
    says = _says(reason, question)
    return Missing(record_id, reason, says, absence.score, behind, cut, tree, question.redacted)


def _says(reason: str, question: Question) -> str:
    says = _SAYS[reason]
    return f"{says}; the firewall took parts of the query out" if question.redacted else says


__all__ = ["DELIVERED", "NO_TERMS", "Missing", "verdict"]
