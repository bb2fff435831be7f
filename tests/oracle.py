"""A slow, plain float64 oracle of the default ranking over whole partitions.

It shares no code with the package: levels by brute force, weights and idf from their definitions,
every document looked at. Stored levels are part of the contract, so it scores those, not the raw
counts; `quantised=False` gives unquantised BM25, for measuring what the levels cost.

Rules: documents given are the live ones, and N and df count all of them. An expired document is still
counted there until it is erased (taken out of the dict), but is never a result. A document whose text
score is 0 is no result. Order: score, then time, both descending, then id ascending.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache

UNIT = 2.0**-20
TFS = (1, 2, 3, 4, 5, 6, 8, 12)
LENGTHS: list[int] = [*range(1, 65), *(math.floor(64 * 1.067**j + 0.5) for j in range(1, 65))]

Range = tuple[float | None, float | None]


@dataclass
class Document:
    """One live memory.

    `tf`: term -> raw count. `length`: terms, with repeats. `importance` has f32 precision, `confidence`
    is 0..65,535. `exact`: its equality terms. Expired documents are invisible.
    """

    tf: Mapping[str, int]
    length: int
    importance: float = 1.0
    confidence: int = 65535
    time_ms: int = 0
    exact: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    expired: bool = False


@cache
def tf_level(tf: int) -> int:
    """The frequency a raw one is stored as."""
    return tf if tf <= 6 else 8 if tf <= 9 else 12


@cache
def length_level(length: int) -> int:
    """The stored length nearest in log space, the lower of two."""
    near = max(length, 1)
    nearest: int = min(LENGTHS, key=lambda level: (abs(math.log(level) - math.log(near)), level))
    return nearest


def to_unit(x: float) -> float:
    return math.floor(x / UNIT + 0.5) * UNIT


def term_weight(df: int, n: int, weight: float) -> float:
    return to_unit(weight * math.log((n - df + 0.5) / (df + 0.5) + 1))


def text_score(
    document: Document,
    factors: Mapping[str, float],
    *,
    k1: float,
    b: float,
    pivot: float | None,
    average: float,
    quantised: bool,
) -> float:
    """Sum over the query's terms, in the order of the query."""
    total = 0.0
    length = length_level(document.length) if quantised else document.length
    ratio = length / average if pivot is None else max(length, pivot) / pivot
    for term, factor in factors.items():
        tf = document.tf.get(term, 0)
        if tf:
            tf = tf_level(tf) if quantised else tf
            weight = (k1 + 1) * tf / (tf + k1 * (1 - b + b * ratio))
            total += factor * (to_unit(weight) if quantised else weight)
    return total


def final_score(text: float, document: Document) -> float:
    importance = min(max(document.importance, 0.0), 1.0)
    return text * (0.85 + 0.15 * importance) * (0.8 + 0.2 * (document.confidence / 65535))


def matches(
    name: str,
    document: Document,
    *,
    exact: Collection[tuple[str, str]] = (),
    exclude: Collection[str] = (),
    time: Range | None = None,
    importance: Range | None = None,
    confidence: Range | None = None,
) -> bool:
    """Whether a document passes the filters; ranges are half-open and in stored units."""
    if document.expired or name in exclude or not set(exact) <= document.exact:
        return False
    checks = (
        (time, document.time_ms),
        (importance, document.importance),
        (confidence, document.confidence),
    )
    return all(
        bounds is None
        or ((bounds[0] is None or value >= bounds[0]) and (bounds[1] is None or value < bounds[1]))
        for bounds, value in checks
    )


def search(
    documents: Mapping[str, Document],
    terms: Mapping[str, float],
    limit: int,
    *,
    k1: float = 1.2,
    b: float = 0.9,
    pivot: float | None = 32,
    quantised: bool = True,
    exact: Collection[tuple[str, str]] = (),
    exclude: Collection[str] = (),
    time: Range | None = None,
    importance: Range | None = None,
    confidence: Range | None = None,
) -> list[tuple[str, float]]:
    """The first `limit` (id, score). `terms`: query term -> weight. `confidence` range in 1/65,535."""
    n = len(documents)
    average = sum(document.length for document in documents.values()) / max(n, 1) or 1.0
    factors = {}
    for term, weight in terms.items():
        df = sum(term in document.tf for document in documents.values())
        if df:
            factors[term] = term_weight(df, n, weight)
    found = []
    for name, document in documents.items():
        if not matches(
            name,
            document,
            exact=exact,
            exclude=exclude,
            time=time,
            importance=importance,
            confidence=confidence,
        ):
            continue
        text = text_score(document, factors, k1=k1, b=b, pivot=pivot, average=average, quantised=quantised)
        if text > 0:
            found.append((-final_score(text, document), -document.time_ms, name))
    return [(name, -score) for score, _, name in sorted(found)[:limit]]
