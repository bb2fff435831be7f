"""All arms on a real server: every reader equals the slow oracle to the last bit, whatever was written."""

from __future__ import annotations

import contextlib
import os
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    CoOccurrenceField,
    DatetimeField,
    DecayingSortedField,
    FloatField,
    KeyField,
    Model,
    StringField,
    TagField,
)
from omoide.connection import Connection
from omoide.core.arms import RankWeights
from omoide.core.text import cues
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.prepare import prepare
from omoide.testing.servers import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"
WORDS = [f"{a}{b}" for a in ("borak", "dalim", "fenod", "gurup") for b in ("sel", "tun", "vik")]
MISSPELT = ["boraksek", "dalimtum", "fenodviq", "xyzzyplugh"]
PEOPLE = ["Ann Lee", "Bob", "Cy"]
START = 1_682_553_600_000
DAY = 86_400_000


class ArmsSaying(Model):
    saying_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    tags = TagField()
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    text = BM25Field(source="content")
    associations = CoOccurrenceField(entities=lambda text: ())


SPEC = spec_of(ArmsSaying)


@pytest.fixture(scope="module")
def readers(valkey_server: ValkeyServer) -> Iterator[list[Connection]]:
    """The client reader twice (only one of them writes), the server reader, and both."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Connection(valkey_server.url, reader=reader))
            for reader in ("client", "client", "server", "auto")
        ]


class Agent:
    """One partition, and what is known to be in it."""

    def __init__(self, writers: list[Connection], agent: str, seed: int, *, ties: bool) -> None:
        self.writers, self.scope, self.ties = writers, Scope(SPEC, (agent,)), ties
        self.random = random.Random(seed)
        self.documents: dict[str, oracle.Document] = {}
        self.edges: dict[str, dict[str, float]] = {}

    def change(self, times: int) -> None:
        """Save, edit and delete, through any of the writers."""
        for _ in range(times):
            names = sorted(self.documents)
            kind = self.random.random()
            store = self.random.choice(self.writers).store
            if names and kind < 0.15:
                name = self.random.choice(names)
                assert store.execute(ask.Erase(self.scope, (name,))) == (True,)
                del self.documents[name]
                for other in self.edges.pop(name, {}):
                    del self.edges[other][name]
            elif len(names) > 1 and kind < 0.25:
                self._link(store, *self.random.sample(names, 2))
            elif names and kind < 0.35:
                self._put(store, self.random.choice(names))
            else:
                self._put(store, f"{self.random.randint(0, 10**9):x}")

    def _link(self, store: object, name: str, other: str) -> None:
        weight = self.random.choice([0.5, 1.0, 1.0, 2.0])
        if max(len(self.edges.get(one, {})) for one in (name, other)) < 16:
            assert store.execute(ask.Link(self.scope, name, other, weight)) > 0  # type: ignore[attr-defined]
            for one, two in ((name, other), (other, name)):
                held = self.edges.setdefault(one, {})
                held[two] = held.get(two, 0.0) + weight

    def _put(self, store: object, name: str) -> None:
        choose = self.random
        words = choose.choices(WORDS, k=choose.randint(1, 5 if self.ties else 60))
        asks = choose.random() < 0.4
        saying = ArmsSaying(
            saying_id=name,
            agent_id=self.scope.values[0],
            content=" ".join(words)
            + choose.choice(["", " yesterday", " two near Oslo"])
            + ("?" if asks else ""),
            importance=choose.choice([0.5, 1.0] if self.ties else [0.0, 0.3, 0.7, 1.0]),
            tags={"red"} if choose.random() < 0.5 else set(),
            session_id=choose.choice([None, "s1", "s2"]),
            author=choose.choice([None, *PEOPLE]),
            occurred_at=datetime.fromtimestamp((START + self._time()) / 1000, UTC),
        )
        put = prepare(saying).put
        assert put is not None
        told = {"yesterday": cues.TIME, "Oslo": cues.PLACE | cues.NUMBER}
        assert put.cues == told.get(saying.content.rstrip("?").split()[-1], 0)
        assert (put.asks, put.asking) == (asks, asks and sum(map(str.isalnum, saying.content)) <= 60)
        assert put.time_ms is not None
        assert store.execute(put).status == "stored"  # type: ignore[attr-defined]
        (importance,) = struct.unpack("<f", struct.pack("<f", put.importance))
        self.documents[name] = oracle.Document(
            dict(put.terms),
            put.length,
            importance=importance,
            confidence=32768,
            time_ms=put.time_ms,
            exact=frozenset(put.exact),
            session=put.session,
            author=put.author,
            cues=put.cues,
            asks=asks,
            asking=put.asking,
        )

    def _time(self) -> int:
        return self.random.randint(0, 3) * DAY if self.ties else self.random.randint(0, 80 * DAY)


QUERIES = st.fixed_dictionaries(
    {
        "terms": st.lists(st.sampled_from([*WORDS, *MISSPELT]), max_size=6, unique=True),
        "words": st.sampled_from([(), ("ann",), ("bob", "what"), ("ann", "bob"), ("cy",)]),
        "dates": st.sampled_from(
            [(), (), ((None, 5, None),), ((2023, 4, 28),), ((2023, None, None), (None, 6, 2))]
        ),
        "cues": st.sampled_from([0, 4, 64, 132, 196]),
        "limit": st.sampled_from([1, 3, 10, 200]),
        "match": st.sampled_from(["", "", "tag", "time", "importance", "exclude"]),
        "loud": st.booleans(),
    }
)
LOUD = {
    "near": 0.9,
    "far": 0.8,
    "answer": 1.9,
    "asking": 0.3,
    "gate": 4,
    "author": 3.0,
    "date": 2.0,
    "cue": 1.5,
    "importance": 0.5,
    "graph": 0.9,
}


def searched(agent: Agent, case: dict[str, object]) -> tuple[ask.Search, list[tuple[str, float]]]:
    """A search, and what it has to give."""
    terms = dict.fromkeys(case["terms"], 1.0)
    left_out = tuple(sorted(agent.documents)[:2])
    match, options = {
        "": (ask.EVERYTHING, {}),
        "tag": (ask.Match((("tags", "red"),)), {"exact": (("tags", "red"),)}),
        "time": (ask.Match(time=(START, START + 2 * DAY)), {"time": (START, START + 2 * DAY)}),
        "importance": (ask.Match(importance=(0.7, None)), {"importance": (0.699999, None)}),
        "exclude": (ask.Match(exclude=left_out), {"exclude": left_out}),
    }[case["match"]]
    weights = LOUD if case["loud"] else {}
    search = ask.Search(
        agent.scope,
        terms,
        case["limit"],
        match,
        names=case["words"],
        dates=case["dates"],
        cues=case["cues"],
        ranking=RankWeights(**weights) if weights else None,
    )
    expected = oracle.search(
        agent.documents,
        terms,
        case["limit"],
        words=case["words"],
        dates=case["dates"],
        cues=case["cues"],
        weights=oracle.Weights(**weights),
        back_off=True,
        edges=agent.edges,
        **options,
    )
    return search, expected


@settings(max_examples=60 if FULL else 25, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.lists(QUERIES, min_size=1, max_size=4))
def test_every_reader_equals_the_oracle(
    readers: list[Connection], seed: int, ties: bool, cases: list[dict[str, object]]
) -> None:
    agent = Agent([readers[0], readers[3]], f"arms-{seed}", seed, ties=ties)
    try:
        for case in cases:
            agent.change(agent.random.choice([1, 12, 40]))
            search, expected = searched(agent, case)
            for connection in readers:
                reply = connection.store.execute(search)
                assert [(hit.record.id, hit.score) for hit in reply.hits] == expected
                assert reply.skipped == ()
            explained = readers[1].store.execute(replace(search, explain=True))
            assert [(hit.record.id, hit.score) for hit in explained.hits] == expected
            for place, hit in enumerate(explained.hits, 1):
                assert hit.tree is not None
                assert hit.tree.value == pytest.approx(hit.score, abs=1e-9)
                assert hit.tree.again() == hit.tree.value
                assert hit.place == place
            _absences(readers[1], search, agent, expected)
    finally:
        readers[0].store.execute(ask.Drop(agent.scope))


def _absences(
    connection: Connection, search: ask.Search, agent: Agent, expected: list[tuple[str, float]]
) -> None:
    """What is said of a memory that comes and of one that does not."""
    found = dict(expected)
    for name in agent.random.sample(sorted(agent.documents), min(3, len(agent.documents))):
        reply = connection.store.execute(replace(search, about=name))
        assert [(hit.record.id, hit.score) for hit in reply.hits] == expected
        absence = reply.about
        assert absence is not None
        assert (absence.reason == "found") == (name in found)
        if absence.reason == "found":
            assert absence.score == pytest.approx(found[name], abs=1e-9)
        elif absence.reason == "outranked":
            assert len(expected) == search.limit
            assert absence.score <= expected[-1][1] + 1e-9
            assert absence.least == expected[-1][1]
        else:
            assert absence.reason in ("filtered", "unmatched")
    gone = connection.store.execute(replace(search, about="never-stored")).about
    assert gone is not None
    assert gone.reason == "missing"


def trips(connection: Connection, search: ask.Search) -> int:
    return int(connection.store.execute(search).round_trips)


def test_round_trips_are_one_when_warm_and_two_when_cold(valkey_server: ValkeyServer) -> None:
    with contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(Connection(valkey_server.url, reader="client")) for _ in range(2))
        agent = Agent([one], "trips", 3, ties=False)
        agent.change(80)
        search = ask.Search(
            agent.scope,
            {WORDS[0]: 1.0, WORDS[1]: 1.0, MISSPELT[0]: 1.0},
            5,
            names=("ann",),
            dates=((2023, 4, None),),
            cues=4,
        )
        assert trips(other, search) == 2
        assert trips(other, search) == 1
        assert trips(other, replace(search, explain=True)) == 1
        assert trips(one, search) <= 2
        for _ in range(5):
            agent.change(1)
            assert trips(one, search) <= 3  # a deletion forgets the words; they are read again
            assert trips(one, search) == 1
        one.store.execute(ask.Drop(agent.scope))


def test_links_cost_a_call_only_where_they_bring_someone_in(valkey_server: ValkeyServer) -> None:
    with contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(Connection(valkey_server.url, reader="client")) for _ in range(2))
        agent = Agent([one], "links", 3, ties=False)
        agent.change(80)
        search = ask.Search(agent.scope, {WORDS[0]: 1.0}, 5)
        assert trips(other, search) == 2
        assert trips(other, search) == 1
        found = [hit.record.id for hit in other.store.execute(search).hits]
        others = sorted(set(agent.documents) - set(found))
        one.store.execute(ask.Link(agent.scope, others[0], others[1], 3.0))
        assert trips(other, search) == 1
        one.store.execute(ask.Link(agent.scope, found[0], others[0], 0.5))
        assert trips(other, search) == 1
        one.store.execute(ask.Link(agent.scope, found[0], others[0], 9.0))
        assert trips(other, search) == 2
        assert others[0] in [hit.record.id for hit in other.store.execute(search).hits]
        for _ in range(8):
            assert trips(other, search) == 1
            assert trips(other, replace(search, explain=True)) == 1
        alone = replace(search, ranking=RankWeights(graph=0.0))
        assert [hit.record.id for hit in other.store.execute(alone).hits] == found
        one.store.execute(ask.Drop(agent.scope))


def test_ties_in_time_cost_a_call_more_only_where_ids_do_not_follow_the_order_of_saving(
    valkey_server: ValkeyServer,
) -> None:
    with contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(Connection(valkey_server.url, reader="client")) for _ in range(2))
        for agent_id, step, cold in (("in order", 1, 2), ("shuffled", 7, 3)):
            scope = Scope(SPEC, (agent_id,))
            for number in range(30):
                saying = ArmsSaying(
                    saying_id=f"{number * step % 30:02}",
                    agent_id=agent_id,
                    content=WORDS[number % 12],
                    session_id="s",
                    occurred_at=datetime.fromtimestamp(START / 1000, UTC),
                )
                put = prepare(saying).put
                assert put is not None
                one.store.execute(put)
            search = ask.Search(scope, {WORDS[1]: 1.0}, 4)
            assert trips(other, search) == cold
            assert trips(other, search) == 1
            one.store.execute(ask.Drop(scope))


def test_the_server_reader_names_the_arms_it_skips_and_auto_takes_none(valkey_server: ValkeyServer) -> None:
    with contextlib.ExitStack() as stack:
        server, client, auto = (
            stack.enter_context(Connection(valkey_server.url, reader=reader))
            for reader in ("server", "client", "auto")
        )
        scope = Scope(SPEC, ("skips",))
        puts = []
        for number in range(2100):
            saying = ArmsSaying(
                agent_id="skips",
                content=f"common {number}",
                session_id=str(number // 30),
                occurred_at=datetime.fromtimestamp(START / 1000 + number, UTC),
            )
            put = prepare(saying).put
            assert put is not None
            puts.append(put)
        server.store.execute(ask.Batch(tuple(puts)))
        search = ask.Search(scope, {"common": 1.0, "77": 1.0}, 4)
        assert server.store.execute(search).skipped == ("neighbours",)
        reply = auto.store.execute(search)
        assert (reply.reader, reply.skipped) == ("client", ())
        whole = client.store.execute(search)
        assert [(hit.record.id, hit.score) for hit in reply.hits] == [
            (hit.record.id, hit.score) for hit in whole.hits
        ]
        rare = ask.Search(scope, {"77": 1.0}, 5)
        near = server.store.execute(rare)
        assert (near.skipped, len(near.hits)) == ((), 5)
        assert [(hit.record.id, hit.score) for hit in near.hits] == [
            (hit.record.id, hit.score) for hit in client.store.execute(rare).hits
        ]
        server.store.execute(ask.Drop(scope))


def test_words_read_in_pages_serve_until_the_partition_grows(valkey_server: ValkeyServer) -> None:
    with contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(Connection(valkey_server.url, reader="client")) for _ in range(2))
        scope = Scope(SPEC, ("pages",))

        def save(text: str) -> None:
            put = prepare(ArmsSaying(agent_id="pages", content=text, occurred_at=datetime.now(UTC))).put
            assert put is not None
            one.store.execute(put)

        for start in range(0, 4800, 400):
            save(" ".join(f"filler{number}" for number in range(start, start + 400)))
        save("a remarkable borealis")
        search = ask.Search(scope, {"borealsi": 1.0}, 3)
        first = other.store.execute(search)
        assert first.stand_ins == {"borealsi": ("boreali",)}
        assert len(first.hits) == 1
        assert trips(other, search) == 1
        save("another sentence")
        assert trips(other, search) <= 2
        assert trips(other, search) == 1
        one.store.execute(ask.Drop(scope))
