"""A slow, plain float64 oracle of the default ranking over whole partitions.

It shares no code with the package: levels by brute force, weights and idf from their definitions,
every document looked at. Stored levels are part of the contract, so it scores those, not the raw
counts; `quantised=False` gives unquantised BM25, for measuring what the levels cost.

Rules: documents given are the live ones, and N and df count all of them. An expired document is still
counted there until it is erased (taken out of the dict), but is never a result, and lends nothing. A
document whose score is 0 is no result. Order: score, then time, both descending, then id ascending.

    score = (text x author + date x best text x match) x cue x asking x importance factor x confidence factor

A term's weight in a document is the greatest of its own and what neighbours of its session lend, who are
those one or two places away in the order of time, then id, of all visible documents; one that asks lends
`answer` to the next, unless both are of one author. `asking` counts for a document that asks more than it
tells. The best text is that of the visible documents that pass the filters, ids left out among them. An
author is named when the words of the query are a name of one author of live documents and there is
another author.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache

UNIT = 2.0**-20
TFS = (1, 2, 3, 4, 5, 6, 8, 12)
LENGTHS: list[int] = [*range(1, 65), *(math.floor(64 * 1.067**j + 0.5) for j in range(1, 65))]

Range = tuple[float | None, float | None]


@dataclass
class Document:
    """One live memory.

    `tf`: term -> raw count. `length`: terms, with repeats. `importance` has f32 precision, `confidence`
    is 0..65,535. `exact`: its equality terms. Expired documents are invisible. `cues`: bits of what it
    tells.
    """

    tf: Mapping[str, int]
    length: int
    importance: float = 1.0
    confidence: int = 65535
    time_ms: int = 0
    exact: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    expired: bool = False
    session: str | None = None
    author: str | None = None
    cues: int = 0
    asks: bool = False
    asking: bool = False


@dataclass(frozen=True)
class Weights:
    """What each arm adds."""

    near: float = 0.5
    far: float = 0.3
    answer: float = 1.2
    gate: int = 40
    asking: float = 0.8
    author: float = 1.75
    date: float = 1.0
    cue: float = 1.2
    importance: float = 0.15
    confidence: float = 0.2
    graph: float = 0.5
    meaning: float = 0.35
    meaning_near: float = 0.3
    meaning_far: float = 0.15


PartialDate = tuple[int | None, int | None, int | None]


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


def own_weight(
    document: Document,
    term: str,
    *,
    k1: float,
    b: float,
    pivot: float | None,
    average: float,
    quantised: bool,
) -> float:
    """Weight of a term in a document by the words it has itself."""
    tf = document.tf.get(term, 0)
    if not tf:
        return 0.0
    tf = tf_level(tf) if quantised else tf
    length = length_level(document.length) if quantised else document.length
    ratio = length / average if pivot is None else max(length, pivot) / pivot
    weight = (k1 + 1) * tf / (tf + k1 * (1 - b + b * ratio))
    return to_unit(weight) if quantised else weight


def neighbours(documents: Mapping[str, Document]) -> dict[str, tuple[list[str], list[str]]]:
    """Name -> (those one place away, those two places away) in its session."""
    sessions: dict[str, list[str]] = {}
    for name, document in documents.items():
        if document.session is not None and not document.expired:
            sessions.setdefault(document.session, []).append(name)
    found = {}
    for names in sessions.values():
        names.sort(key=lambda name: (documents[name].time_ms, name))
        for place, name in enumerate(names):
            found[name] = tuple(
                [names[other] for other in (place - step, place + step) if 0 <= other < len(names)]
                for step in (1, 2)
            )
    return found


def texts_of(
    documents: Mapping[str, Document], factors: Mapping[str, float], weights: Weights, **constants: object
) -> dict[str, float]:
    """The text score of every visible document."""
    near_ones = neighbours(documents)
    texts = {}
    for name, document in documents.items():
        if document.expired:
            continue
        gate = 1.0 if document.length <= weights.gate else weights.gate / document.length
        total = 0.0
        for term, factor in factors.items():
            best = own_weight(document, term, **constants)
            for reach, others in zip((weights.near, weights.far), near_ones.get(name, ((), ())), strict=True):
                for other in others:
                    lender = documents[other]
                    first = (lender.time_ms, other) < (document.time_ms, name)
                    answers = lender.asks and first and other in near_ones[name][0]
                    answers = answers and (lender.author is None or lender.author != document.author)
                    share = to_unit((weights.answer if answers else reach) * gate)
                    best = max(best, to_unit(share * own_weight(documents[other], term, **constants)))
            total += factor * best
        texts[name] = total
    return texts


def worths(
    documents: Mapping[str, Document],
    passing: Mapping[str, float],
    cosines: Mapping[str, float],
    weights: Weights,
) -> dict[str, float]:
    """What stands for the text where meaning counts, of the documents that pass the filters."""
    near_ones, z = neighbours(documents), {}
    for name in passing.keys() & cosines.keys():
        total, count = cosines[name], 1.0
        for share, others in zip(
            (weights.meaning_near, weights.meaning_far), near_ones.get(name, ((), ())), strict=True
        ):
            for other in sorted(others, key=lambda other: (documents[other].time_ms, other)):
                if other in cosines:
                    total += share * cosines[other]
                    count += share
        z[name] = total * (1.0 / count)
    best, least, greatest = (
        max(passing.values(), default=0.0),
        min(z.values(), default=0.0),
        max(z.values(), default=0.0),
    )
    scale = (1.0 - weights.meaning) / best if best > 0 else 0.0
    unit = weights.meaning / (greatest - least) if greatest > least else 0.0
    meant = {name: (value - least) * unit if unit else weights.meaning for name, value in z.items()}
    return {name: text * scale + meant.get(name, 0.0) for name, text in passing.items()}


def day_of(time_ms: int) -> date:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=time_ms // 86_400_000)).date()


def fit(dates: Sequence[PartialDate], day: date) -> float:
    """How well a day fits the dates named."""
    best = 0.0
    for year, month, day_of_month in dates:
        if month is None:
            best = max(best, 0.3 if day.year == year else 0.0)
        elif day_of_month is None:
            before = (day.replace(day=1) - timedelta(days=1)) if day > date(1, 2, 1) else date.max
            if day.month == month and year in (None, day.year):
                best = max(best, 1.0)
            elif before.month == month and year in (None, before.year):
                best = max(best, 0.4)
        else:
            for one in (day + timedelta(days=step) for step in range(-7, 8)):
                if (one.month, one.day) == (month, day_of_month) and year in (None, one.year):
                    best = max(best, 1.0 if abs((one - day).days) <= 1 else 0.5)
    return best


def named_author(documents: Mapping[str, Document], words: Collection[str]) -> str | None:
    """The one author whom words of a query name, when there is another one."""
    authors = {document.author for document in documents.values() if document.author}
    named = {author for author in authors if {author.lower(), author.lower().split()[0]}.intersection(words)}
    return named.pop() if len(named) == 1 and len(authors) > 1 else None


def trigrams(word: str) -> set[str]:
    return {f"^{word}$"[place : place + 3] for place in range(len(word))}


def stand_ins(documents: Mapping[str, Document], terms: Mapping[str, float]) -> dict[str, float]:
    """The terms of a query with up to three similar ones for each that no document has."""
    vocabulary = {term for document in documents.values() for term in document.tf if len(term) >= 4}
    found = dict(terms)
    for missing in terms:
        if len(missing) < 4 or any(missing in document.tf for document in documents.values()):
            continue
        mine = trigrams(missing)
        similar = []
        for word in vocabulary:
            dice = 2 * len(mine & trigrams(word)) / (len(mine) + len(trigrams(word)))
            if dice >= 0.5:
                similar.append((-dice, word))
        for negative, word in sorted(similar)[:3]:
            found[word] = max(found.get(word, 0.0), 0.3 * -negative)
    return found


def final_score(text: float, document: Document, weights: Weights, author: bool, bonus: float) -> float:
    importance = min(max(document.importance, 0.0), 1.0)
    score = text * (weights.author if author else 1.0) + bonus
    score = score * (weights.cue if document.cues else 1.0)
    score = score * (weights.asking if document.asking else 1.0)
    score = score * ((1.0 - weights.importance) + weights.importance * importance)
    return score * ((1.0 - weights.confidence) + weights.confidence * (document.confidence / 65535))


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
    weights: Weights = Weights(),
    words: Collection[str] = (),
    dates: Sequence[PartialDate] = (),
    cues: int = 0,
    back_off: bool = False,
    edges: Mapping[str, Mapping[str, float]] | None = None,
    cosines: Mapping[str, float] | None = None,
) -> list[tuple[str, float]]:
    """The first `limit` (id, score).

    `terms`: query term -> weight. `confidence` range in 1/65,535. `words` of the query, lower case; `dates`
    it names; `cues` it asks for. `edges`: id -> linked id -> weight, both ways, at most 16 a document.
    `cosines` of those that have a vector.
    """
    n = len(documents)
    average = sum(document.length for document in documents.values()) / max(n, 1) or 1.0
    factors = {}
    for term, weight in (stand_ins(documents, terms) if back_off else terms).items():
        df = sum(term in document.tf for document in documents.values())
        if df:
            factors[term] = term_weight(df, n, weight)
    texts = texts_of(
        documents, factors, weights, k1=k1, b=b, pivot=pivot, average=average, quantised=quantised
    )
    options = {"exact": exact, "time": time, "importance": importance, "confidence": confidence}
    passing = {name: texts[name] for name in texts if matches(name, documents[name], **options)}
    if cosines:
        passing = worths(documents, passing, cosines, weights)
    best = weights.date * max(passing.values(), default=0.0)
    author = named_author(documents, words)
    found = []
    for name, text in passing.items():
        document = documents[name]
        bonus = best * fit(dates, day_of(document.time_ms)) if dates else 0.0
        mine = author is not None and document.author == author
        cued = replace(document, cues=document.cues & cues)
        score = final_score(text, cued, weights, mine, bonus)
        found.append((-score, -document.time_ms, name))
    lent = links(
        {name: (score, time) for score, time, name in found if score < 0}, edges or {}, weights.graph
    )
    total = [(score - lent.get(name, 0.0), time, name) for score, time, name in found if name not in exclude]
    return [(name, -score) for score, _, name in sorted(total)[:limit] if score < 0]


def links(
    alone: Mapping[str, tuple[float, float]], edges: Mapping[str, Mapping[str, float]], graph: float
) -> dict[str, float]:
    """What each document is lent over the edges of the first three, given (-score, -time) of all matches."""
    ranks = sorted(alone.values())
    seeds = [name for name, rank in alone.items() if ranks and rank <= ranks[min(3, len(ranks)) - 1]]
    lent: dict[str, float] = {}
    for name in seeds if len(seeds) <= 8 else ():
        for other, weight in edges.get(name, {}).items():
            if weight > 0.5:
                value = graph * ((weight - 0.5) / (weight + 0.5)) * -alone[name][0]
                lent[other] = max(lent.get(other, 0.0), value)
    return lent
