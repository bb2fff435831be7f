"""Random histories of one partition, and what must be true of it once they stand still.

    writers (threads or processes) ──save, update, delete, observe, expire, recall──▶ partition
    one rebuilder                  ──begin, copy, finish───────────────────────────▶    "
    one watcher                    ──recall: nothing dead, expired or foreign──────▶    "

A writer owns the ids it makes, so that it knows exactly what is stored under them; a few ids are shared by
all writers, of which only the last content is unknown. The comparison is with the slow oracle over all of it.
"""

from __future__ import annotations

import contextlib
import random
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

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
from omoide.errors import StoreError
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import reindex
from omoide.ops import request as ask
from omoide.ops.run import run
from omoide.ops.save import prepare

WORDS = [
    f"{a}{b}" for a in ("bor", "dal", "fen", "gur", "kil", "mov") for b in ("ak", "im", "od", "up", "yx")
]
TAGS = ("red", "green")
NAMES = ("Caroline", "Melanie")
SHARED = ("shared-1", "shared-2", "shared-3")
TEXT_WORDS = (1, 60)
EVIDENCE = ((1.0, 0.0), (0.5, 0.0), (0.0, 0.25), (0.0, 2.0))
SOON = 0.004

reindex.PAGE = 20  # so that writes come between the pages of a small partition


class Story(Model):
    """A model with every index a history can disturb."""

    story_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    tags = TagField()
    session_id = StringField(null=True)
    occurred_at = DatetimeField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    links = CoOccurrenceField()
    text = BM25Field(source="content")

    class Meta:
        ttl = 3600


SPEC = spec_of(Story)
Edges = Mapping[str, Mapping[str, float]]


@dataclass
class Known:
    """What a writer stored last under an id. `gone_at`: monotonic time from which it is invisible."""

    content: str
    terms: dict[str, int]
    length: int
    importance: float
    tags: frozenset[str]
    time_ms: int
    session: str | None = None
    alpha: float = 1.0
    beta: float = 1.0
    gone_at: float | None = None

    def document(self) -> oracle.Document:
        share = self.alpha / (self.alpha + self.beta)
        return oracle.Document(
            self.terms,
            self.length,
            importance=self.importance,
            confidence=int(share * 65535 + 0.5),
            time_ms=self.time_ms,
            exact=frozenset(("tags", tag) for tag in self.tags),
            expired=self.gone_at is not None,
            session=self.session,
        )


@dataclass
class Tombstones:
    """Ids that no recall may show any more, and since when."""

    since: dict[str, float] = field(default_factory=dict)

    def bury(self, name: str, at: float) -> None:
        self.since[name] = at

    def now(self) -> set[str]:
        moment = time.monotonic()
        return {name for name, at in list(self.since.items()) if at <= moment}


def put_of(story: Story, *, ttl_ms: int = 3_600_000) -> ask.Put:
    put = prepare(story).put
    assert put is not None
    return replace(put, ttl_ms=ttl_ms)


def single(number: float) -> float:
    """Rounded to float32, as the attribute column holds it."""
    held: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return held


class Writer:
    """One writer of a history: its ids, and what it knows is stored under them."""

    def __init__(self, connection: Connection, agent: str, name: str, seed: int) -> None:
        self.store = connection.store
        self.agent, self.name = agent, name
        self.scope = Scope(SPEC, (agent,))
        self.random = random.Random(seed)
        self.known: dict[str, Known] = {}
        self.said: dict[str, set[str]] = {}
        self.tombstones = Tombstones()
        self.made = 0

    def work(self, steps: int) -> None:
        kinds = ["save"] * 9 + ["update"] * 5 + ["delete"] * 4 + ["expire"] * 2 + ["observe"] * 3
        kinds += ["link", "shared", "shared", "recall", "recall"]
        for _ in range(steps):
            getattr(self, self.random.choice(kinds))()

    # ---- one step each

    def save(self, ttl_ms: int = 3_600_000) -> None:
        self.made += 1
        self._put(f"{self.agent}-{self.name}-{self.made}", ttl_ms)

    def expire(self) -> None:
        """A record whose time is over as soon as it is written; a new one, or one that was there."""
        if self.random.random() < 0.5 and (name := self._any()):
            self._put(name, 1)
        else:
            self.save(1)

    def update(self) -> None:
        if name := self._any():
            self._put(name, 3_600_000)

    def delete(self) -> None:
        if name := self._any():
            assert self.store.execute(ask.Erase(self.scope, (name,))) == (True,)
            del self.known[name]
            self.tombstones.bury(name, time.monotonic())

    def observe(self) -> None:
        names = [name for name in self._alive() if self.random.random() < 0.2][:3]
        if not names:
            return
        pieces = tuple(
            ask.Evidence(
                name, *self.random.choice([(1.0, 0.0), (0.5, 0.0), (0.0, 0.25), (0.0, 2.0)]), touch=True
            )
            for name in names
        )
        reply = self.store.execute(ask.Observe(self.scope, pieces, linked=tuple(names), link=1.0))
        assert reply.states == ("applied",) * len(names)
        for piece in pieces:
            known = self.known[piece.id]
            known.alpha, known.beta = known.alpha + piece.support, known.beta + piece.against
            if known.alpha + known.beta > 20.0:
                scale = 20.0 / (known.alpha + known.beta)
                known.alpha, known.beta = known.alpha * scale, known.beta * scale

    def link(self) -> None:
        names = self._alive()
        if len(names) > 1:
            first, second = self.random.sample(names, 2)
            assert self.store.execute(ask.Link(self.scope, first, second, 0.5)) > 0

    def shared(self) -> None:
        name = self.random.choice(SHARED)
        story = self._story(name)
        self.said.setdefault(name, set()).add(story.content)
        assert self.store.execute(put_of(story)).status == "stored"

    def recall(self) -> None:
        """A writer reads what it wrote: no record of its own that it deleted, all others as last written."""
        for hit in self.store.execute(ask.Search(self.scope, query(self.random), 5)).hits:
            name = hit.record.id
            if name.startswith(f"{self.agent}-{self.name}-"):
                assert name in self.known, "a record that was deleted before"
                assert hit.record.values["content"] == self.known[name].content, (
                    "an older version of a record"
                )

    # ---- parts

    def _alive(self) -> list[str]:
        return [name for name, known in self.known.items() if known.gone_at is None]

    def _any(self) -> str | None:
        alive = self._alive()
        return self.random.choice(alive) if alive else None

    def _story(self, name: str) -> Story:
        count = self.random.randint(*TEXT_WORDS)
        words = [WORDS[min(int(self.random.expovariate(0.15)), len(WORDS) - 1)] for _ in range(count)]
        return Story(
            story_id=name,
            agent_id=self.agent,
            content=" ".join(words + [name for name in NAMES if self.random.random() < 0.2]),
            importance=self.random.choice([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]),
            tags={tag for tag in TAGS if self.random.random() < 0.3},
            session_id=self.random.choice([None, "s1", "s2"]),
            occurred_at=datetime.fromtimestamp(1_700_000_000 + self.random.randrange(40), UTC),
        )

    def _put(self, name: str, ttl_ms: int) -> None:
        story = self._story(name)
        put = put_of(story, ttl_ms=ttl_ms)
        reply = self.store.execute(put)
        before = self.known.get(name)
        assert (reply.status, reply.created) == ("stored", before is None)
        assert put.time_ms is not None
        known = Known(
            story.content,
            dict(put.terms),
            put.length,
            single(put.importance),
            frozenset(story.tags),
            put.time_ms,
            put.session,
        )
        if before is not None:
            known.alpha, known.beta = before.alpha, before.beta
        if ttl_ms == 1:
            known.gone_at = time.monotonic() + SOON
            self.tombstones.bury(name, known.gone_at)
        self.known[name] = known


def query(source: random.Random) -> dict[str, float]:
    return dict.fromkeys(source.sample(WORDS, source.randint(1, 4)), 1.0)


# ---- beside the writers ---------------------------------------------------------------------------


def rebuild(connection: Connection, agent: str) -> int:
    """One whole rebuild of the partition; the live records it ended with, 0 for no partition.

    A partition all of whose records expire goes with its keys, and a rebuild under way goes with it.
    """
    try:
        return run(reindex.rebuild(Story, Scope(SPEC, (agent,))), connection.store)
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        return 0


def watch(connection: Connection, agent: str, tombstones: list[Tombstones], stop: threading.Event) -> int:
    """Recall until told to stop; how often. No hit is dead, expired, foreign or out of order."""
    scope, source, times = Scope(SPEC, (agent,)), random.Random(agent), 0
    while not stop.is_set():
        dead = set().union(*(one.now() for one in tombstones))
        hits = connection.store.execute(ask.Search(scope, query(source), 10)).hits
        names = [hit.record.id for hit in hits]
        assert not dead.intersection(names)
        assert len(set(names)) == len(names) <= 10
        assert all(name.startswith((agent + "-", "shared-")) for name in names)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        times += 1
    return times


# ---- at rest --------------------------------------------------------------------------------------


def documents(
    connection: Connection,
    agent: str,
    known: Mapping[str, Known],
    said: Mapping[str, set[str]],
    ids: set[str],
) -> dict[str, oracle.Document]:
    """Every record that is not erased yet (`ids`: those the store has), as the oracle takes it."""
    alive = {name for name, one in known.items() if one.gone_at is None}
    assert alive <= ids <= set(known) | set(said), "a record is missing, or one that was deleted is there"
    whole = {name: known[name].document() for name in ids if name in known}
    scope = Scope(SPEC, (agent,))
    shared = sorted(said)
    for name, record in zip(shared, connection.store.execute(ask.Get(scope, tuple(shared))), strict=True):
        assert record is not None
        assert record.values["content"] in said[name]
        put = put_of(Story.from_record(record))
        whole[name] = oracle.Document(
            dict(put.terms),
            put.length,
            importance=single(put.importance),
            confidence=32768,
            time_ms=record.time_ms,
            exact=frozenset(put.exact),
            session=put.session,
        )
    return whole


def edges_of(connection: Connection, agent: str, whole: Mapping[str, oracle.Document]) -> Edges:
    """The links of every record; their weights are halves, so a share of w / (1 + w) tells them exactly."""
    scope, found = Scope(SPEC, (agent,)), {}
    for name in whole:
        reached = connection.store.execute(ask.Spread(scope, {name: 1.0}, 1, 64, 1.0, 64))
        found[name] = {other: round(2 * share / (1 - share)) / 2 for other, share in reached}
        assert sum(weight > 0.5 for weight in found[name].values()) <= 16, "the oracle follows them all"
    return found


def agree(
    connection: Connection,
    agent: str,
    whole: Mapping[str, oracle.Document],
    edges: Edges,
    source: random.Random,
) -> None:
    """Ranking, listing, counting and the decay order of one connection against brute force."""
    store, scope = connection.store, Scope(SPEC, (agent,))
    for match, options in _filters(source, whole):
        terms = query(source)
        reply = store.execute(ask.Search(scope, terms, 10, match))
        assert [(hit.record.id, hit.score) for hit in reply.hits] == oracle.search(
            whole, terms, 10, edges=edges, **options
        )
        seen = {name: one for name, one in whole.items() if oracle.matches(name, one, **options)}
        assert store.execute(ask.Count(scope, match)) == len(seen)
        newest = sorted(seen, key=lambda name: (-seen[name].time_ms, name))
        assert [record.id for record in store.execute(ask.Find(scope, match))] == newest
        least = sorted(seen, key=lambda name: (seen[name].importance, -seen[name].time_ms, name))
        found = store.execute(ask.Find(scope, match, "importance", False, 7, 2))
        assert [record.id for record in found] == least[2:9]
        surest = sorted(seen, key=lambda name: (-seen[name].confidence, -seen[name].time_ms, name))
        assert [record.id for record in store.execute(ask.Find(scope, match, "confidence"))] == surest
        top = [record.importance for record in store.execute(ask.Top(scope, 10, match))]
        assert top == sorted((one.importance for one in seen.values()), reverse=True)[:10]


def _filters(
    source: random.Random, whole: Mapping[str, oracle.Document]
) -> Iterator[tuple[ask.Match, dict[str, object]]]:
    yield ask.EVERYTHING, {}
    yield ask.EVERYTHING, {}
    exact = (("tags", source.choice(TAGS)),)
    yield ask.Match(exact=exact), {"exact": exact}
    left_out = tuple(source.sample(sorted(whole), min(3, len(whole))))
    time_range = (1_700_000_005_000, 1_700_000_030_000)
    yield ask.Match(exclude=left_out, time=time_range), {"exclude": left_out, "time": time_range}
    yield (
        ask.Match(importance=(0.2, 0.95), confidence=(0.55, None)),
        {"importance": (0.2, 0.95), "confidence": (0.55 * 65535, None)},
    )


def at_rest(
    connections: list[Connection],
    agent: str,
    writers: list[Writer] | list[Outcome],
    seed: int,
    ids: set[str],
) -> None:
    """All of it, for every connection, with its cache as the history left it."""
    known = {name: one for writer in writers for name, one in writer.known.items()}
    said: dict[str, set[str]] = {}
    for writer in writers:
        for name, texts in writer.said.items():
            said.setdefault(name, set()).update(texts)
    whole = documents(connections[0], agent, known, said, ids)
    edges = edges_of(connections[0], agent, whole)
    for connection in connections:
        agree(connection, agent, whole, edges, random.Random(seed))


@dataclass
class Outcome:
    """What a writer in another process reports."""

    known: dict[str, Known]
    said: dict[str, set[str]]


def write_in_process(url: str, agent: str, name: str, seed: int, steps: int, reader: str) -> Outcome:
    """A writer with a process and a connection of its own."""
    with contextlib.closing(Connection(url, reader=reader)) as connection:
        writer = Writer(connection, agent, name, seed)
        writer.work(steps)
        return Outcome(writer.known, writer.said)
