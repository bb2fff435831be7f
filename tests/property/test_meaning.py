"""Hybrid recall on a real server equals the slow oracle to the last bit, whatever was written by whom."""

from __future__ import annotations

import contextlib
import math
import os
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from omoide import (
    AutoKeyField,
    BM25Field,
    CoOccurrenceField,
    DatetimeField,
    EmbeddingField,
    FloatField,
    KeyField,
    Model,
    StringField,
    TagField,
)
from omoide.connection import Connection
from omoide.core import vectors
from omoide.core.arms import RankWeights
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.prepare import prepare
from omoide.testing.servers import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"
WORDS = [f"{a}{b}" for a in ("borak", "dalim", "fenod") for b in ("sel", "tun", "vik")]
START = 1_682_553_600_000
DAY = 86_400_000
DIMENSIONS = 6


def nobody(texts: list[str]) -> Any:
    raise AssertionError("these tests make their vectors themselves")


class MeantSaying(Model):
    saying_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    tags = TagField()
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField()
    text = BM25Field(source="content")
    meaning = EmbeddingField(source="content", provider=nobody)
    associations = CoOccurrenceField(entities=lambda text: ())


SPEC = spec_of(MeantSaying)


@pytest.fixture(scope="module")
def readers(valkey_server: ValkeyServer) -> Iterator[list[Connection]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Connection(valkey_server.url, reader=reader))
            for reader in ("client", "client", "auto")
        ]


def random_vector(choose: random.Random) -> list[float]:
    return [choose.choice([-1.0, 0.0, 0.3, 1.0]) + choose.random() / 8 for _ in range(DIMENSIONS)]


def unit_of(vector: list[float]) -> Any:
    return vectors.directions([vector], 1)[0]


def cosine(slot: bytes, query: Any) -> float:
    """By whole numbers, from the definition of the format."""
    (scale,) = struct.unpack_from("<f", slot, 8)
    steps = struct.unpack_from(f"<{DIMENSIONS}b", slot, 12)
    fineness = 2**24 / (127 * DIMENSIONS**0.5) - DIMENSIONS**0.5
    levels = [round(float(part) * fineness) for part in query]
    product = sum(step * level for step, level in zip(steps, levels, strict=True))
    return product / math.sqrt(sum(level**2 for level in levels)) * scale


class Agent:
    """One partition, and what is known to be in it."""

    def __init__(self, writers: list[Connection], agent: str, seed: int) -> None:
        self.writers, self.scope = writers, Scope(SPEC, (agent,))
        self.random = random.Random(seed)
        self.documents: dict[str, oracle.Document] = {}
        self.slots: dict[str, bytes] = {}
        self.sayings: dict[str, MeantSaying] = {}
        self.edges: dict[str, dict[str, float]] = {}

    def change(self, times: int) -> None:
        """Save, edit, delete and embed later, through any of the writers."""
        for _ in range(times):
            names = sorted(self.documents)
            kind = self.random.random()
            store = self.random.choice(self.writers).store
            if names and kind < 0.15:
                name = self.random.choice(names)
                assert store.execute(ask.Erase(self.scope, (name,))) == (True,)
                for held in (self.documents, self.slots, self.sayings):
                    held.pop(name, None)
                for other in self.edges.pop(name, {}):
                    del self.edges[other][name]
            elif len(names) > 1 and kind < 0.22:
                self._link(store, *self.random.sample(names, 2))
            elif names and kind < 0.3:
                self._put(store, self.random.choice(names))
            elif names and kind < 0.4:
                self._touch_up(store, self.random.choice(names))
            elif kind < 0.5:
                self._embed(store)
            else:
                self._put(store, f"{self.random.randint(0, 10**9):x}")

    def _link(self, store: Any, name: str, other: str) -> None:
        weight = self.random.choice([0.5, 1.0, 3.0])
        if max(len(self.edges.get(one, {})) for one in (name, other)) < 16:
            assert store.execute(ask.Link(self.scope, name, other, weight)) > 0
            for one, two in ((name, other), (other, name)):
                held = self.edges.setdefault(one, {})
                held[two] = held.get(two, 0.0) + weight

    def _put(self, store: Any, name: str) -> None:
        choose = self.random
        words = choose.choices(WORDS, k=choose.randint(1, 20))
        saying = MeantSaying(
            saying_id=name,
            agent_id=self.scope.values[0],
            content=" ".join(words) + ("?" if choose.random() < 0.3 else ""),
            importance=choose.choice([0.0, 0.5, 1.0]),
            tags={"red"} if choose.random() < 0.5 else set(),
            session_id=choose.choice([None, "s1", "s2"]),
            author=choose.choice([None, "Ann Lee", "Bob"]),
            occurred_at=datetime.fromtimestamp((START + choose.randint(0, 60 * DAY)) / 1000, UTC),
        )
        self._store(store, name, saying, self._slot(saying) if choose.random() < 0.7 else b"")

    def _touch_up(self, store: Any, name: str) -> None:
        """The same text again, known by its digest: what vector there is stays."""
        saying = self.sayings[name]
        saying.importance = self.random.choice([0.2, 0.9])
        kept = self.slots.get(name, b"")
        self._store(store, name, saying, vectors.digest(self._kind, saying.meaning), kept)

    def _store(
        self, store: Any, name: str, saying: MeantSaying, slot: bytes, kept: bytes | None = None
    ) -> None:
        put = prepare(saying).put
        assert put is not None
        assert put.time_ms is not None
        reply = store.execute(replace(put, slot=slot, mode="upsert"))
        held = slot if kept is None else kept
        assert (reply.status, reply.embedded) == ("stored", held != b"")
        (importance,) = struct.unpack("<f", struct.pack("<f", put.importance))
        self.sayings[name] = saying
        self.slots.pop(name, None)
        if held:
            self.slots[name] = held
        self.documents[name] = oracle.Document(
            dict(put.terms),
            put.length,
            importance=importance,
            time_ms=put.time_ms,
            exact=frozenset(put.exact),
            session=put.session,
            author=put.author,
            cues=put.cues,
            asks=put.asks,
            asking=put.asking,
        )

    def _embed(self, store: Any) -> None:
        page = store.execute(ask.Unembedded(self.scope, "", 3))
        slots = tuple(self._slot(self.sayings[record.id]) for record in page.records)
        rows = tuple(record.row for record in page.records)
        if rows:
            taken = store.execute(ask.PutVectors(self.scope, self._kind, page.gen, rows, slots))
            assert taken == (True,) * len(rows)
            self.slots.update(zip((record.id for record in page.records), slots, strict=True))

    def _slot(self, saying: MeantSaying) -> bytes:
        unit = vectors.directions([random_vector(self.random)], 1)
        return vectors.slots(unit, [vectors.digest(self._kind, saying.meaning)])[0]

    @property
    def _kind(self) -> str:
        assert SPEC.embedding is not None
        return SPEC.embedding.kind


QUERIES = st.fixed_dictionaries(
    {
        "terms": st.lists(st.sampled_from([*WORDS, "xyzzyplugh"]), max_size=4, unique=True),
        "words": st.sampled_from([(), (), ("ann",), ("bob", "what")]),
        "dates": st.sampled_from([(), (), ((None, 5, None),), ((2023, 4, 28),)]),
        "cues": st.sampled_from([0, 0, 4]),
        "limit": st.sampled_from([1, 3, 10, 200]),
        "match": st.sampled_from(["", "", "tag", "time", "exclude"]),
        "loud": st.booleans(),
    }
)
LOUD = {"near": 0.9, "far": 0.8, "answer": 0.95, "meaning": 0.8, "meaning_near": 0.9, "meaning_far": 0.5}


def searched(agent: Agent, case: dict[str, Any]) -> tuple[ask.Search, list[tuple[str, float]]]:
    """A search, and what it has to give."""
    terms, query = dict.fromkeys(case["terms"], 1.0), unit_of(random_vector(agent.random))
    left_out = tuple(sorted(agent.documents)[:2])
    match, options = {
        "": (ask.EVERYTHING, {}),
        "tag": (ask.Match((("tags", "red"),)), {"exact": (("tags", "red"),)}),
        "time": (ask.Match(time=(START, START + 9 * DAY)), {"time": (START, START + 9 * DAY)}),
        "exclude": (ask.Match(exclude=left_out), {"exclude": left_out}),
    }[case["match"]]
    weights = LOUD if case["loud"] else {}
    asked = {name: case[name] for name in ("dates", "cues")}
    search = ask.Search(
        agent.scope,
        terms,
        case["limit"],
        match,
        names=case["words"],
        ranking=RankWeights(**weights) if weights else None,
        vector=query,
        **asked,
    )
    expected = oracle.search(
        agent.documents,
        terms,
        case["limit"],
        words=case["words"],
        weights=oracle.Weights(**weights),
        back_off=True,
        edges=agent.edges,
        cosines={name: cosine(slot, query) for name, slot in agent.slots.items()},
        **asked,
        **options,
    )
    return search, expected


@settings(max_examples=60 if FULL else 25, deadline=None)
@given(st.integers(0, 10**6), st.lists(QUERIES, min_size=1, max_size=4))
def test_hybrid_recall_equals_the_oracle(
    readers: list[Connection], seed: int, cases: list[dict[str, Any]]
) -> None:
    agent = Agent(readers[:2], f"meant-{seed}", seed)
    try:
        for case in cases:
            agent.change(agent.random.choice([1, 12, 40]))
            search, expected = searched(agent, case)
            for connection in readers:
                reply = connection.store.execute(search)
                assert [(hit.record.id, hit.score) for hit in reply.hits] == expected
                if agent.slots:
                    assert (reply.without_meaning, reply.reader) == ("", "client")
                    assert reply.unembedded == len(agent.documents) - len(agent.slots)
                elif agent.documents:
                    assert reply.without_meaning == "nothing_embedded"
            explained = readers[1].store.execute(replace(search, explain=True))
            assert [(hit.record.id, hit.score) for hit in explained.hits] == expected
            for hit in explained.hits:
                assert hit.tree is not None
                assert hit.tree.value == pytest.approx(hit.score, abs=1e-9)
                assert hit.tree.again() == hit.tree.value
        assert readers[0].store.execute(ask.Check(agent.scope)).findings == ()
    finally:
        readers[0].store.execute(ask.Drop(agent.scope))
