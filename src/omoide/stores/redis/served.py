"""The plan that the server ranks by, and its answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from omoide.core.bm25 import K1, B
from omoide.core.columns import CONFIDENCE_STEPS, stored_confidence
from omoide.core.text.cues import CUES
from omoide.model.instance import single
from omoide.ops.request import Hit, Match, Search
from omoide.stores.redis.asked import called_of, weights_of
from omoide.stores.redis.codec import decode_records
from omoide.stores.redis.filters import instant_asked, must

BUDGET = 40_000
LOOKS = 8_000
BORROW = 2_000


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
