"""A partition of versions beside a plain model of it.

    writes ──▶ store       what is valid when is a function of the set of versions alone: of a chain, in the
       └─────▶ known       order of start and id, each lasts until its own end or the next start

Every answer of the store is compared: intervals, both readers' rankings, listings, counts, the decay order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from histories import single

import oracle
from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    DatetimeField,
    DecayingSortedField,
    FloatField,
    KeyField,
    Model,
    PostgresMirror,
    StringField,
    TagField,
    ValidityField,
)
from omoide.connection import Connection
from omoide.fields.instants import from_milliseconds
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.prepare import prepare

BASE = 1_700_000_000_000
WORDS = ("bor", "dal", "fen", "gur", "kil", "mov")
TOPICS = (None, None, "home", "work")
TAGS = ("red", "green")
LAST = 12
INSTANTS = range(-1, LAST + 5)


class DatedStory(Model):
    """A model with validity and all that is masked by it."""

    story_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    tags = TagField()
    session_id = StringField(null=True)
    occurred_at = DatetimeField()
    topic = StringField(null=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    text = BM25Field(source="content")
    validity = ValidityField(key="topic")


class MirroredStory(DatedStory):
    """The same, with its truth in PostgreSQL."""

    class Meta:
        mirror = PostgresMirror()


@dataclass
class Version:
    """What was written last under an id. `own` None: no end of its own."""

    put: ask.Put
    chain: object
    start: int
    own: int | None


@dataclass
class Versions:
    """A writer, and what it knows is stored."""

    connection: Connection
    agent: str
    random: random.Random
    model: type[DatedStory] = DatedStory
    known: dict[str, Version] = field(default_factory=dict)
    made: int = 0
    mark: str = ""  # of the names and topics of one writer among several

    @property
    def scope(self) -> Scope:
        return Scope(spec_of(self.model), (self.agent,))

    def execute(self, request: Any) -> Any:
        return self.connection.store.execute(request)

    # ---- writes

    def put_of(self, name: str, topic: str | None, start: int, own: int | None) -> ask.Put:
        words = [self.random.choice(WORDS) for _ in range(self.random.randint(1, 8))]
        story = self.model(
            story_id=name,
            agent_id=self.agent,
            content=" ".join(words),
            importance=self.random.choice([0.0, 0.1, 0.5, 1.0]),
            tags={tag for tag in TAGS if self.random.random() < 0.3},
            session_id=self.random.choice([None, "s1", "s2"]),
            occurred_at=from_milliseconds(BASE + self.random.randrange(8) * 1000),
            topic=topic,
            valid_from=from_milliseconds(BASE + start),
            valid_to=None if own is None else from_milliseconds(BASE + own),
        )
        put = prepare(story).put
        assert put is not None
        return put

    def save(self, name: str | None = None, *, supersedes: str | None = None, **given: Any) -> ask.PutReply:
        """Write a record, a new one by default; the reply is what the model expects."""
        if name is None:
            self.made += 1
            name = f"{self.agent}-{self.mark}{self.made:03}"
        start = given.get("start", self.random.randrange(LAST))
        own = given.get("own", self.random.choice([None, None, None, start + self.random.randrange(4)]))
        topic = given["topic"] if "topic" in given else self._topic()
        put = replace(self.put_of(name, topic, start, own), supersedes=supersedes)
        before, ends = self.known.get(name), intervals(self.known)
        chain: object = ("key", topic) if topic else None
        if chain is None and before is not None and not keyed(before.chain):
            chain = before.chain
        status = "stored" if supersedes is None else self._standing(supersedes, chain, ends)
        reply: ask.PutReply = self.execute(put)
        assert reply.status == status
        if status != "stored":
            return reply
        if supersedes is not None:
            old = self.known[supersedes]
            if old.chain is None:
                old.chain = (self.mark, supersedes, self.made) if chain is None else chain
            chain = old.chain
        self.known[name] = Version(put, chain, start, own)
        now = intervals(self.known)
        assert reply.interval == shifted(now[name])
        assert reply.closed == closed_by(self.known, name, ends, now)
        return reply

    def _topic(self) -> str | None:
        topic = self.random.choice(TOPICS)
        return topic and self.mark + topic

    def _standing(self, name: str, chain: object, ends: dict[str, tuple[int, int | None]]) -> str:
        old = self.known.get(name)
        if old is None:
            return "missing"
        if ends[name][1] is not None:
            return "closed"
        if old.chain is None:
            return "other_key" if keyed(chain) else "stored"
        if chain is None:
            return "other_key" if keyed(old.chain) else "stored"
        return "stored" if old.chain == chain else "other_key"

    def supersede(self) -> None:
        name = self.random.choice([*self.known, "nobody"])
        topic = self.known[name].put.values["topic"] if name in self.known else None
        self.save(supersedes=name, topic=self.random.choice([topic, topic, topic, f"{self.mark}home", None]))

    def update(self) -> None:
        if self.known:
            self.save(self.random.choice(list(self.known)))

    def delete(self) -> None:
        if self.known:
            name = self.random.choice(list(self.known))
            assert self.execute(ask.Erase(self.scope, (name,))) == (True,)
            del self.known[name]

    def work(self, steps: int) -> None:
        kinds = ["save"] * 5 + ["supersede"] * 4 + ["update"] * 2 + ["delete"]
        for _ in range(steps):
            getattr(self, self.random.choice(kinds))()

    # ---- comparing

    def agrees(self, *readers: Connection, instants: int = 4) -> None:
        """Intervals and indexes are whole; every reader answers as the oracle, now and at some instants."""
        reply = self.execute(ask.Check(self.scope))
        assert (reply.records, reply.findings) == (len(self.known), ())
        ends = intervals(self.known)
        names = tuple(self.known)
        for name, record in zip(names, self.execute(ask.Get(self.scope, names)), strict=True):
            assert (record.valid_from_ms, record.valid_to_ms) == shifted(ends[name])
        for reader in readers:
            for place in (*self.random.sample(INSTANTS, instants), None):
                self._agrees_at(reader, place, ends)

    def _agrees_at(
        self, reader: Connection, place: int | None, ends: dict[str, tuple[int, int | None]]
    ) -> None:
        at = LAST * 1000 if place is None else place
        whole = {name: self._document(name, not within(ends[name], at)) for name in self.known}
        seen = {name: one for name, one in whole.items() if not one.expired}
        match = ask.Match(as_of=None if place is None else BASE + place)
        execute = reader.store.execute
        terms = dict.fromkeys(self.random.sample(WORDS, 2), 1.0)
        hits = execute(ask.Search(self.scope, terms, 3, match)).hits
        assert [(hit.record.id, hit.score) for hit in hits] == oracle.search(whole, terms, 3)
        newest = sorted(seen, key=lambda name: (-seen[name].time_ms, name))
        assert [one.id for one in execute(ask.Find(self.scope, match))] == newest
        assert execute(ask.Count(self.scope, match)) == len(seen)
        best = sorted((one.importance for one in seen.values()), reverse=True)[:3]
        assert [one.importance for one in execute(ask.Top(self.scope, 3, match))] == best
        tagged = replace(match, exact=(("tags", "red"),))
        red = {name for name, one in seen.items() if ("tags", "red") in one.exact}
        assert {one.id for one in execute(ask.Top(self.scope, 100, tagged))} == red
        assert execute(ask.Count(self.scope, replace(match, history=True))) == len(whole)

    def _document(self, name: str, hidden: bool) -> oracle.Document:
        put = self.known[name].put
        assert put.time_ms is not None
        return oracle.Document(
            dict(put.terms),
            put.length,
            importance=single(put.importance),
            confidence=32768,
            time_ms=put.time_ms,
            exact=frozenset(put.exact),
            expired=hidden,
            session=put.session,
        )


def keyed(chain: object) -> bool:
    """Whether a chain is that of a key."""
    return isinstance(chain, tuple) and chain[0] == "key"


def intervals(known: dict[str, Version]) -> dict[str, tuple[int, int | None]]:
    """Name -> (start, end or None), of versions in any order."""
    chains: dict[object, list[tuple[int, str]]] = {}
    for name, one in known.items():
        chains.setdefault(("alone", name) if one.chain is None else one.chain, []).append((one.start, name))
    found = {}
    for members in chains.values():
        members.sort()
        for place, (start, name) in enumerate(members):
            bounds = [known[name].own, *(following for following, _ in members[place + 1 : place + 2])]
            found[name] = (start, min((end for end in bounds if end is not None), default=None))
    return found


def closed_by(
    known: dict[str, Version],
    name: str,
    before: dict[str, tuple[int, int | None]],
    now: dict[str, tuple[int, int | None]],
) -> str | None:
    """The version that ends where this one starts, and did not before."""
    mine = known[name]
    earlier = [
        (one.start, other)
        for other, one in known.items()
        if mine.chain is not None and one.chain == mine.chain and (one.start, other) < (mine.start, name)
    ]
    if not earlier:
        return None
    _, last = max(earlier)
    own = known[last].own
    cut = own is None or own > mine.start
    return last if cut and now[last] != before[last] else None


def within(interval: tuple[int, int | None], at: int) -> bool:
    start, end = interval
    return start <= at and (end is None or at < end)


def shifted(interval: tuple[int, int | None]) -> tuple[int, int | None]:
    start, end = interval
    return BASE + start, None if end is None else BASE + end
