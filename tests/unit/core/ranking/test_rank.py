"""Both ways of ranking against the oracle, bit for bit, over random partitions."""

import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from omoide.core import accumulator, bm25, postings, ranking
from omoide.core.arms import DEFAULT_WEIGHTS
from omoide.core.arms.formula import factors
from omoide.core.columns import DEAD, Columns, Ranges, pack
from omoide.core.explanation import Explainer
from omoide.errors import CorruptRecordError, QueryError

FULL = os.environ.get("OMOIDE_FULL") == "1"
NOW = 1_000
WORDS = [f"w{n}" for n in range(12)]
TAGS = [("tag", "a"), ("tag", "b")]


@dataclass
class Partition:
    """Documents in row order, some erased, and the structures a reader would hold of them."""

    documents: dict[str, oracle.Document]
    rows: dict[str, int]
    columns: Columns
    lists: dict[str, list[tuple[int, int]]]

    def terms(self, query: dict[str, float]) -> list[ranking.TermList]:
        found = []
        for word, weight in query.items():
            df = sum(word in document.tf for document in self.documents.values())
            rows, codes = postings.decode(postings.encode(self.lists.get(word, [])))
            found.append(ranking.TermList(rows, codes, df, weight, word))
        return found

    def allowed(self, exact: list[tuple[str, str]]) -> np.ndarray | None:
        if not exact:
            return None
        names = [name for name, document in self.documents.items() if set(exact) <= document.exact]
        return np.array(sorted(self.rows[name] for name in names), dtype=np.int64)


def partition(seed: int, size: int, *, ties: bool, dead: float) -> Partition:
    rng = random.Random(seed)
    documents, rows, lists, data, spans = {}, {}, {}, [], []
    for row in range(1, size + 1):
        words = [WORDS[min(int(rng.expovariate(0.4)), 11)] for _ in range(rng.randint(1, 4 if ties else 30))]
        document = oracle.Document(
            tf={word: words.count(word) for word in words},
            length=len(words) * (1 if ties else rng.choice([1, 1, 3, 40])),
            importance=float(np.float32(rng.choice([0.5, 1.0] if ties else [-1, 0, 0.3, 0.77, 1, 5]))),
            confidence=rng.choice([32768] if ties else [0, 1, 20_000, 65_535]),
            time_ms=rng.randint(1, 3 if ties else 10_000),
            exact=frozenset(tag for tag in TAGS if rng.random() < 0.4),
            expired=rng.random() < 0.1,
        )
        erased = rng.random() < dead
        for word, tf in document.tf.items():
            lists.setdefault(word, []).append((row, postings.code(tf, document.length)))
        data.append(
            pack(
                flags=DEAD if erased else 0,
                confidence=document.confidence / 65535,
                length=document.length,
                importance=document.importance,
                time=document.time_ms,
            )
        )
        spans.append(np.array([NOW if document.expired else 0, 0, 0], "<i8").tobytes())
        if not erased:
            name = f"id{rng.randint(0, 10**9)}-{row}"
            documents[name], rows[name] = document, row
    columns = Columns(intervals=True)
    columns.extend(b"".join(data), b"".join(spans))
    return Partition(documents, rows, columns, lists)


def resolved(held: Partition, ranked: ranking.Ranked, limit: int) -> list[tuple[str, float]]:
    """What a caller makes of it: ties broken by id, cut at the limit."""
    names = {row: name for name, row in held.rows.items()}
    found = zip(ranked.scores, ranked.times, ranked.rows, strict=True)
    entries = sorted((-score, -time, names[row]) for score, time, row in found)
    return [(name, -score) for score, _, name in entries[:limit]]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    def ends(low: float, high: float) -> st.SearchStrategy:
        end = st.one_of(st.none(), st.sampled_from([low, (low + high) / 2, high]))
        return st.one_of(st.none(), st.none(), st.tuples(end, end))

    return {
        "seed": draw(st.integers(0, 10**6)),
        "size": draw(st.sampled_from([1, 7, 60, 400])),
        "ties": draw(st.booleans()),
        "dead": draw(st.sampled_from([0.0, 0.3, 0.9])),
        "query": draw(st.dictionaries(st.sampled_from([*WORDS, "absent"]), st.floats(0.05, 1), max_size=8)),
        "limit": draw(st.sampled_from([1, 3, 10, 500])),
        "exact": draw(st.sampled_from([[], [], TAGS[:1], TAGS])),
        "time": draw(ends(2, 5_000)),
        "importance": draw(ends(0.0, 1.0)),
        "confidence": draw(ends(0.0, 1.0)),
        "pivot": draw(st.sampled_from([32, 32, None])),
        "excluding": draw(st.booleans()),
    }


@settings(max_examples=150, deadline=None)
@given(cases())
def test_numpy_plain_python_and_oracle_agree_to_the_last_bit(case):
    held = partition(case["seed"], case["size"], ties=case["ties"], dead=case["dead"])
    live, limit, pivot = len(held.documents), case["limit"], case["pivot"]
    excluded = sorted(held.rows)[:3] if case["excluding"] else []
    average = sum(document.length for document in held.documents.values()) / max(live, 1) or 1.0
    steps = case["confidence"] and tuple(
        end if end is None else round(end * 65535 + 0.001) for end in case["confidence"]
    )
    expected = oracle.search(
        held.documents,
        case["query"],
        limit,
        pivot=pivot,
        exact=case["exact"],
        exclude=excluded,
        time=case["time"],
        importance=case["importance"],
        confidence=steps,
    )
    for small in (0, 10**9):
        ranked = ranking.rank(
            held.terms(case["query"]),
            bm25.weight_table(pivot=pivot, average=average),
            held.columns,
            live=live,
            limit=limit,
            now_ms=NOW,
            allowed=held.allowed(case["exact"]),
            excluded=[held.rows[name] for name in excluded],
            ranges=Ranges(case["time"], case["importance"], case["confidence"]),
            small=small,
        )
        assert resolved(held, ranked, limit) == expected


@settings(max_examples=40 if FULL else 12, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 0.5]))
def test_unfiltered_ranking_of_a_larger_partition(seed, ties, dead):
    held = partition(seed, 1500, ties=ties, dead=dead)
    query = dict.fromkeys(WORDS[seed % 5 :: 2], 1.0)
    for document in held.documents.values():
        document.expired = False
    options = {"live": len(held.documents), "limit": 10, "now_ms": 0}
    large = ranking.rank(held.terms(query), bm25.weight_table(), held.columns, **options, small=0)
    plain = ranking.rank(held.terms(query), bm25.weight_table(), held.columns, **options, small=10**9)
    assert large == plain
    assert resolved(held, large, 10) == oracle.search(held.documents, query, 10)


def test_sparse_matches_in_a_large_partition_leave_nothing_behind():
    size = 20_000
    columns = Columns()
    columns.extend(b"".join(pack(importance=row % 7 / 7, time=row % 50) for row in range(1, size + 1)))
    rng = np.random.default_rng(3)

    def term(df: int) -> ranking.TermList:
        rows = np.sort(rng.choice(np.arange(1, size + 1), df, replace=False))
        return ranking.TermList(rows, rng.integers(0, 1024, df).astype(np.int16), df)

    for sizes in [(400, 500), (9, 8), (12_000, 40, 3), (700,), (5, 600, 900)]:
        terms = [term(df) for df in sizes]
        options = {"live": size, "limit": 10}
        large = ranking.rank(terms, bm25.weight_table(), columns, **options, small=0)
        assert large == ranking.rank(terms, bm25.weight_table(), columns, **options, small=10**9)
        assert not any(sums.any() for sums in accumulator._POOL)


def test_every_row_that_ties_with_the_last_place_is_there():
    columns = Columns()
    columns.extend(b"".join(pack(time=row == 1) for row in range(1, 31)))
    rows = np.arange(1, 31)
    term = ranking.TermList(rows, np.zeros(30, np.int16), 30)
    for small in (0, 300):
        ranked = ranking.rank([term], bm25.weight_table(), columns, live=40, limit=5, small=small)
        assert ranked.rows[0] == 1
        assert sorted(ranked.rows) == rows.tolist()
        assert ranked.tied == 29
        whole = ranking.rank([term], bm25.weight_table(), columns, live=40, limit=30, small=small)
        assert (len(whole.rows), whole.tied) == (30, 0)


@pytest.mark.parametrize("small", [0, 300])
def test_nothing_to_rank(small):
    columns = Columns()
    term = ranking.TermList(np.zeros(0, np.int64), np.zeros(0, np.int16), 0)
    options = {"live": 0, "limit": 5, "small": small}
    assert ranking.rank([], bm25.weight_table(), columns, **options) == ranking.Ranked()
    assert ranking.rank([term], bm25.weight_table(), columns, **options) == ranking.Ranked()


@pytest.mark.parametrize("small", [0, 300])
def test_a_posting_without_attributes_is_corrupt_and_harms_no_later_query(small):
    held = partition(1, 60, ties=False, dead=0.0)
    options = {"live": 60, "limit": 10, "small": small, "now_ms": 1}
    terms = held.terms({"w0": 1.0, "w1": 1.0})
    before = ranking.rank(terms, bm25.weight_table(), held.columns, **options)
    lost = ranking.TermList(np.array([3, 10**6]), np.zeros(2, np.int16), 2)
    with pytest.raises(CorruptRecordError):
        ranking.rank([*terms, lost], bm25.weight_table(), held.columns, **options)
    assert ranking.rank(terms, bm25.weight_table(), held.columns, **options) == before


def test_weights_beyond_exact_sums_are_refused():
    held = partition(1, 60, ties=False, dead=0.0)
    with pytest.raises(QueryError):
        ranking.rank(held.terms({"w0": 1e6}), bm25.weight_table(), held.columns, live=60, limit=1)


def test_threads_share_accumulators_safely():
    held = partition(4, 1500, ties=False, dead=0.1)
    terms = held.terms(dict.fromkeys(WORDS, 1.0))

    def once(_: int) -> ranking.Ranked:
        return ranking.rank(terms, bm25.weight_table(), held.columns, live=1400, limit=10, small=0)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(once, range(60)))
    assert all(result == results[0] for result in results)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.dictionaries(st.sampled_from(WORDS), st.floats(0.1, 1), min_size=1))
def test_an_explanation_adds_up_exactly_to_the_score(seed, query):
    held = partition(seed, 60, ties=False, dead=0.2)
    terms, live = held.terms(query), len(held.documents)
    ranked = ranking.rank(terms, bm25.weight_table(), held.columns, live=live, limit=10)
    for row, score, text in zip(ranked.rows, ranked.scores, ranked.texts, strict=True):
        tree = Explainer(terms, bm25.weight_table(), held.columns, live, ranking.TEXT_ONLY).tree(row)
        assert tree.value == tree.again() == score
        assert tree.flat()["text"] == text


def test_multipliers_never_raise_a_score_and_are_bounded_by_a_factor_of_one_and_a_half():
    lowest, highest = factors(-3.0, 0.0, DEFAULT_WEIGHTS), factors(7.0, 1.0, DEFAULT_WEIGHTS)
    assert highest == (1.0, 1.0)
    assert 1 / (lowest[0] * lowest[1]) < 1.5


def texts_of(rng: random.Random, size: int, *, topical: bool) -> Iterator[Counter[str]]:
    """Texts of 10 to 2,000 words, lengths even in log space, words Zipfian without the 150 commonest.

    Half the words of a topical text are drawn from a vocabulary of its own, of length^0.6 words.
    """
    words = [f"v{n}" for n in range(150, 30_000)]
    sums = list(accumulate(1 / n for n in range(150, 30_000)))
    for _ in range(size):
        length = int(10 * 200 ** rng.random())
        text = rng.choices(words, cum_weights=sums, k=length)
        if topical:
            own = rng.choices(words, cum_weights=sums, k=max(3, int(length**0.6)))
            ranks = [1 / n for n in range(1, len(own) + 1)]
            text[: length // 2] = rng.choices(own, ranks, k=length // 2)
        yield Counter(text)


@pytest.mark.parametrize(("topical", "least"), [(False, 0.98), (True, 0.93)])
def test_top_ten_shared_with_unquantised_bm25(topical, least):
    """Levels cost next to nothing while words do not repeat; repeated topic words meet the cap at 12."""
    rng = random.Random(11)
    documents, lists = {}, {}
    for row, tf in enumerate(texts_of(rng, 500, topical=topical), 1):
        length = tf.total()
        documents[str(row)] = oracle.Document(tf=tf, length=length)
        for word, n in tf.items():
            lists.setdefault(word, []).append((row, postings.code(n, length)))
    columns = Columns()
    columns.extend(pack() * len(documents))
    held = Partition(documents, {name: int(name) for name in documents}, columns, lists)
    shared = total = 0
    for _ in range(60):
        tf = documents[rng.choice(list(documents))].tf
        query = dict.fromkeys(rng.sample(list(tf), min(6, len(tf))), 1.0)
        best = oracle.search(documents, query, 500, quantised=False)
        places = min(10, len(best))
        reach = best[places - 1][1] * (1 - 1e-12)
        terms = held.terms(query)
        ranked = ranking.rank(terms, bm25.weight_table(), columns, live=len(documents), limit=10)
        top = {name for name, _ in resolved(held, ranked, 10)}
        shared += len(top & {name for name, score in best if score >= reach})
        total += places
    assert shared / total >= least, shared / total
