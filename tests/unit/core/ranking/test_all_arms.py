"""The ranking with all arms against the oracle, bit for bit, over random partitions with sessions."""

import random
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from omoide.core import bm25, postings, ranking
from omoide.core.arms import RankWeights, authors, dates, questions
from omoide.core.arms.sessions import Links, Sessions
from omoide.core.columns import ASKING, ASKS, DEAD, Columns, Filter, Ranges, pack
from omoide.core.explanation import Explainer
from omoide.core.text.cues import match
from omoide.core.text.vocabulary import Vocabulary, may_be_stood_in_for
from omoide.errors import ModelError

NOW = 1_000
WORDS = [f"w{n}" for n in range(12)]
PEOPLE = ["Ann", "Bob", "Cy"]
DAY = 86_400_000
START = int(datetime(2023, 4, 27, tzinfo=UTC).timestamp()) * 1000


@dataclass
class Partition:
    """Documents in row order, some erased, and the structures a reader would hold of them."""

    columns: Columns
    documents: dict[str, oracle.Document] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    lists: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, name: str, document: oracle.Document) -> None:
        """Write a document, over an older one of its name."""
        self.erase(name)
        row = self.columns.next
        for word, tf in document.tf.items():
            self.lists.setdefault(word, []).append((row, postings.code(tf, document.length)))
        data = pack(
            flags=document.cues | ASKS * document.asks | ASKING * document.asking,
            confidence=document.confidence / 65535,
            length=document.length,
            importance=document.importance,
            session=0 if document.session is None else 1 + int(document.session),
            author=0 if document.author is None else 1 + PEOPLE.index(document.author),
            time=document.time_ms,
        )
        self.columns.extend(data, struct.pack("<qqq", NOW if document.expired else 0, 0, 0))
        self.documents[name], self.rows[name], self.names[row] = document, row, name

    def erase(self, name: str) -> None:
        if name in self.documents:
            row = self.rows.pop(name)
            self.columns.assign([row], pack(flags=DEAD, importance=0, confidence=0), bytes(24))
            del self.documents[name]

    def terms(self, query: dict[str, float]) -> list[ranking.TermList]:
        found = []
        for word, weight in query.items():
            df = sum(word in document.tf for document in self.documents.values())
            rows, codes = postings.decode(postings.encode(self.lists.get(word, [])))
            found.append(ranking.TermList(rows, codes, df, weight, word))
        return found

    def settle(self, sessions: Sessions) -> Links | None:
        """Links once every id that they depend on is known."""
        links = sessions.links(NOW)
        while sessions.wanted:
            sessions.learn({row: self.names[row].encode() for row in sessions.wanted})
            links = sessions.links(NOW)
        return links


def document(rng: random.Random, *, ties: bool) -> oracle.Document:
    words = [WORDS[min(int(rng.expovariate(0.4)), 11)] for _ in range(rng.randint(1, 4 if ties else 30))]
    return oracle.Document(
        tf={word: words.count(word) for word in words},
        length=len(words) * (1 if ties else rng.choice([1, 1, 3, 40])),
        importance=float(np.float32(rng.choice([0.5, 1.0] if ties else [-1, 0, 0.3, 0.77, 1, 5]))),
        confidence=rng.choice([32768] if ties else [0, 1, 20_000, 65_535]),
        time_ms=START + (rng.randint(0, 2) * DAY if ties else rng.randint(0, 90 * DAY)),
        expired=rng.random() < 0.1,
        session=rng.choice([None, "0", "1", "2"]) if ties else str(rng.randint(0, 9)),
        author=rng.choice([None, *PEOPLE]),
        cues=rng.choice([0, 4, 64, 128, 196]),
        asks=rng.random() < 0.4,
        asking=rng.random() < 0.4,
    )


def partition(seed: int, size: int, *, ties: bool, changes: float) -> Partition:
    rng = random.Random(seed)
    held = Partition(Columns(intervals=True))
    for _ in range(size):
        if held.documents and rng.random() < changes:
            name = rng.choice(sorted(held.documents))
            if rng.random() < 0.5:
                held.erase(name)
                continue
        else:
            name = f"id{rng.randint(0, 10**6)}"
        held.add(name, document(rng, ties=ties))
    return held


def resolved(held: Partition, ranked: ranking.Ranked, limit: int) -> list[tuple[str, float]]:
    found = zip(ranked.scores, ranked.times, ranked.rows, strict=True)
    entries = sorted((-score, -time, held.names[row]) for score, time, row in found)
    return [(name, -score) for score, _, name in entries[:limit]]


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "size": st.sampled_from([1, 7, 60, 400]),
        "ties": st.booleans(),
        "changes": st.sampled_from([0.0, 0.3, 0.6]),
        "query": st.dictionaries(st.sampled_from([*WORDS, "absent"]), st.floats(0.05, 1), max_size=8),
        "limit": st.sampled_from([1, 3, 10, 500]),
        "words": st.sampled_from([(), ("ann",), ("bob", "w1"), ("ann", "bob")]),
        "dates": st.sampled_from(
            [(), ((None, 5, None),), ((2023, 4, 28),), ((None, 6, 2), (2023, 7, None)), ((2023, None, None),)]
        ),
        "cues": st.sampled_from([0, 4, 64, 132, 196]),
        "weights": st.sampled_from(
            [
                {},
                {},
                {"near": 0.0, "far": 0.0, "answer": 0.0},
                {
                    "near": 1.0,
                    "far": 0.9,
                    "answer": 1.7,
                    "asking": 0.5,
                    "gate": 3,
                    "author": 2.5,
                    "date": 3.0,
                    "cue": 1.0,
                },
            ]
        ),
        "excluding": st.booleans(),
        "time": st.sampled_from([None, None, (START + DAY, START + 40 * DAY)]),
    }
)


def arms_of(held: Partition, case: dict, links: Links | None) -> ranking.Arms:
    weights = RankWeights(**case["weights"])
    named = oracle.named_author(held.documents, case["words"])
    return ranking.Arms(
        weights,
        links if weights.borrows else None,
        0 if named is None else 1 + PEOPLE.index(named),
        case["dates"],
        case["cues"],
    )


@settings(max_examples=100, deadline=None)
@given(CASES)
def test_both_ways_of_ranking_and_the_oracle_agree_to_the_last_bit(case):
    held = partition(case["seed"], case["size"], ties=case["ties"], changes=case["changes"])
    excluded = sorted(held.rows)[:3] if case["excluding"] else []
    expected = oracle.search(
        held.documents,
        case["query"],
        case["limit"],
        exclude=excluded,
        time=case["time"],
        words=case["words"],
        dates=case["dates"],
        cues=case["cues"],
        weights=oracle.Weights(**case["weights"]),
    )
    arms = arms_of(held, case, held.settle(Sessions(held.columns)))
    terms, table, live = held.terms(case["query"]), bm25.weight_table(), len(held.documents)
    for small in (0, 10**9):
        ranked = ranking.rank(
            terms,
            table,
            held.columns,
            live=live,
            limit=case["limit"],
            now_ms=NOW,
            excluded=[held.rows[name] for name in excluded],
            ranges=Ranges(case["time"]),
            arms=arms,
            small=small,
        )
        assert resolved(held, ranked, case["limit"]) == expected
    explainer = Explainer(terms, table, held.columns, live, arms, ranked.best_text)
    for row, score, text in list(zip(ranked.rows, ranked.scores, ranked.texts, strict=True))[:20]:
        tree = explainer.tree(row)
        assert tree.value == pytest.approx(score, abs=1e-9)
        assert tree.again() == tree.value
        assert tree.flat().get("text", 0.0) == text


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_large_partition_with_few_and_with_many_postings(seed, ties):
    rng = random.Random(seed)
    held = Partition(Columns(intervals=True))
    for number in range(3000):
        one = document(rng, ties=ties)
        one.session, one.time_ms = str(number // 20), START + number * 60_000
        if rng.random() < 0.9:
            one.tf = {f"v{rng.randint(0, 300)}": 1}
        held.add(f"id{number:05}", one)
    links = held.settle(Sessions(held.columns))
    for query in ({"w0": 1.0, "w1": 1.0, "v3": 1.0}, {"v1": 1.0, "v2": 0.5}):
        for dated in ((), ((2023, 4, 28),)):
            case = {"weights": {}, "words": ("ann",), "dates": dated, "cues": 4}
            options = {"words": ("ann",), "dates": dated, "cues": 4}
            expected = oracle.search(held.documents, query, 10, **options)
            ranked = ranking.rank(
                held.terms(query),
                bm25.weight_table(),
                held.columns,
                live=len(held.documents),
                limit=10,
                now_ms=NOW,
                arms=arms_of(held, case, links),
            )
            assert resolved(held, ranked, 10) == expected


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_links_follow_what_is_written_erased_and_what_expires(seed, ties, timed):
    rng = random.Random(seed)
    held = Partition(Columns(intervals=timed))
    if not timed:
        held.columns = Columns()
    sessions = Sessions(held.columns)
    for size in (1, 600, 1, 3, 1, 40):
        for _ in range(size):
            one = document(rng, ties=ties)
            one.expired = timed and one.expired
            _write(held, rng, one, timed)
        links = held.settle(sessions)
        expected = oracle.neighbours(held.documents)
        for name, (near, _) in expected.items():
            row = held.rows[name]
            around = [] if links is None else [int(links.before[row]), int(links.after[row])]
            assert [held.names[other] for other in around if other] == near


def _write(held: Partition, rng: random.Random, one: oracle.Document, timed: bool) -> None:
    names = list(held.documents)
    kind = rng.random()
    if names and kind < 0.2:
        name = rng.choice(names)
        row = held.rows.pop(name)
        held.columns.kill([row])
        del held.documents[name]
    else:
        name = rng.choice(names) if names and kind < 0.5 else f"id{rng.randint(0, 10**6)}"
        if timed:
            held.add(name, one)
        else:
            old = held.rows.get(name)
            if old is not None:
                held.columns.assign([old], pack(flags=DEAD))
            row = held.columns.next
            session = 0 if one.session is None else 1 + int(one.session)
            held.columns.extend(pack(session=session, time=one.time_ms))
            held.documents[name], held.rows[name], held.names[row] = one, row, name


def test_expiry_takes_a_memory_out_of_its_session_and_time_may_go_back():
    columns = Columns(intervals=True)
    for row, expires in enumerate((0, 50, 0, 80), 1):
        columns.extend(pack(session=1, time=row), struct.pack("<qqq", expires, 0, 0))
    sessions = Sessions(columns)
    for now, after in ((10, [2, 3, 4, 0]), (50, [3, 0, 4, 0]), (90, [3, 0, 0, 0]), (60, [3, 0, 4, 0])):
        links = sessions.links(now)
        assert links is not None
        assert links.after[1:5].tolist() == after


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(1, 9999)),
            st.one_of(st.none(), st.integers(1, 12)),
            st.one_of(st.none(), st.integers(1, 28)),
        ).filter(lambda named: named[1] is not None or (named[0] is not None and named[2] is None)),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(-63_000_000_000_000, 254_000_000_000_000), min_size=1, max_size=30),
)
def test_days_fit_dates_as_one_at_a_time(named, times):
    got = dates.fits(named, np.array(times))
    for time_ms, value in zip(times, got.tolist(), strict=True):
        assert value == dates.fit_of(named, time_ms)
        if -62_135_596_800_000 <= time_ms < 253_402_300_800_000:
            assert value == match(named, oracle.day_of(time_ms))
        else:
            assert value == 0


def test_a_leap_day_is_looked_for_in_leap_years_only():
    named = [(None, 2, 29)]
    for day in (datetime(2023, 2, 28), datetime(2024, 2, 22), datetime(2024, 3, 1), datetime(2023, 3, 1)):
        time_ms = int(day.replace(tzinfo=UTC).timestamp()) * 1000
        assert dates.fits(named, np.array([time_ms])).tolist() == [match(named, day.date())]


def test_names_are_filed_and_looked_up_alike():
    assert authors.called("Ann-Marie O'Neil") == ("ann marie oneil", "ann")
    assert authors.called("Zoë") == ("zoe",)
    assert authors.called("  ") == ()
    assert authors.words_of("What did Zoë's sister WILL say?")[2:5] == ["zoe", "sister", "will"]
    assert "小明" in authors.words_of("小明喜欢什么")
    assert len(authors.words_of(" ".join(f"n{n}" for n in range(500)))) == authors.MOST_NAMES


def test_witnesses_see_authors_come_and_go():
    columns = Columns()
    witnesses, rows = authors.Witnesses(), np.arange(1, 200)
    for author in (0, 1, 1, 1):
        columns.extend(pack(author=author))
    assert witnesses.of(rows[:4], columns) == {1}
    columns.extend(b"".join(pack(author=2) for _ in range(60)))
    assert witnesses.of(rows[:64], columns) == {1, 2}
    columns.assign([2, 3, 4], pack(flags=DEAD) * 3)
    assert witnesses.of(rows[:64], columns) == {2}
    assert authors.Witnesses().of_all(columns) == {2}
    assert authors.named_author([frozenset({2}), frozenset()], frozenset({1, 2})) == 2
    assert authors.named_author([frozenset({2})], frozenset({2})) == 0
    assert authors.named_author([frozenset({2}), frozenset({1})], frozenset({1, 2})) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"near": 1.5},
        {"answer": 0.4},
        {"answer": 2.5},
        {"asking": 0.0},
        {"asking": 1.1},
        {"far": -0.1},
        {"author": 0.5},
        {"cue": float("nan")},
        {"gate": 0},
        {"importance": 1.0},
    ],
)
def test_weights_that_cannot_work_are_refused(wrong):
    with pytest.raises(ModelError):
        RankWeights(**wrong)


def test_every_arm_has_a_name_a_weight_and_says_what_it_is():
    arms = RankWeights(author=1.0, answer=0.5).arms
    assert [arm.name for arm in arms if not arm.on] == ["answer", "author"]
    assert all(arm.says for arm in arms)
    assert len({arm.name for arm in arms}) == len(arms)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is it?", True),
        ("“Where is it?” she said", True),
        ("Where? Here.", True),
        ("你在哪里？我在这", True),
        ("أين هو؟", True),
        ("see https://example.org/?a=1", False),
        ("Here it is.", False),
        ("", False),
    ],
)
def test_what_asks(text, expected):
    assert questions.asks(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Where is it?", True),
        ("Wow, great! Where did you buy it?", True),
        ("你住在哪里？", True),
        ("أين هو؟", True),
        ("I have two days in Rome. What should I see?", False),
        ("We moved to Oslo in May because of the new job, and it rains. How are you?", False),
        (
            "Is the service that answers the billing requests of the northern region down since Tuesday?",
            False,
        ),
        ("see https://example.org/?a=1", False),
        ("我明天去哪里？", False),
        ("?!", False),
        ("Here it is.", False),
        ("", False),
    ],
)
def test_what_mostly_asks(text, expected):
    assert questions.mostly_asks(text) == expected


def test_filters_without_exclusions():
    assert Filter(Columns(), excluded={1}).including_excluded().plain


def test_words_come_and_go():
    words = Vocabulary(["kayaking", "kayaks"])
    assert [word for word, _ in words.similar("kayakin")] == ["kayaking", "kayaks"]
    words.discard("kayaking")
    assert [word for word, _ in words.similar("kayakin")] == ["kayaks"]
    words.add("kayaking")
    words.add("kayaking")
    assert len(words) == 2
    assert [word for word, _ in words.similar("kayakin")] == ["kayaking", "kayaks"]
    assert [may_be_stood_in_for(word) for word in ("kayak", "abc", "山", "=a/b", "x")] == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_ties_whose_ids_are_known_stay_in_order_while_others_are_unknown():
    columns = Columns()
    columns.extend(pack(session=1, time=5) * 2)
    sessions = Sessions(columns)
    sessions.links(0)
    assert sessions.wanted == {1, 2}
    sessions.learn({1: b"b", 2: b"a"})
    columns.extend(pack(session=2, time=7) * 600)
    links = sessions.links(0)
    assert links is not None
    assert (links.after[2], links.before[1]) == (1, 2)
    assert sessions.wanted == set(range(3, 603))
