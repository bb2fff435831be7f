"""A mirrored model answers as an unmirrored one does; and again once it was lost and rebuilt."""

from __future__ import annotations

import os
import random
import string
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.postgres.conftest import answer_from, compared

import omoide
from omoide import (
    AccessTrackerMixin,
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    CoOccurrenceField,
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
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.prepare import prepare
from omoide.testing import ValkeyServer

HISTORIES = 200 if os.environ.get("OMOIDE_FULL") == "1" else 8
WORDS = [a + b for a in ("bor", "dal", "fen", "gur") for b in ("ak", "im", "od", "up")]
NAMES = ("Caroline Fisher", "Melanie Stone", "Ottawa")
IDS = [f"id-{letter}" for letter in string.ascii_lowercase[:14]]


class _Tale(AccessTrackerMixin, Model):
    tale_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    key = StringField(null=True)
    importance = FloatField(default=1.0)
    tags = TagField()
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField(null=True)
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    links = CoOccurrenceField()
    text = BM25Field(source="content")
    max_records_per_partition = 9

    class Meta:
        abstract = True
        unique_together = ("key",)


class PlainTale(_Tale):
    pass


class MirroredTale(_Tale):
    class Meta:
        mirror = PostgresMirror()


class PlainDatedTale(PlainTale):
    """Versions, of a topic or by supersession, within a cap."""

    topic = StringField(null=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")


class MirroredDatedTale(PlainDatedTale):
    class Meta:
        mirror = PostgresMirror()


START = datetime(2025, 1, 1, tzinfo=UTC)
MODELS = {False: (PlainTale, MirroredTale), True: (PlainDatedTale, MirroredDatedTale)}


class History:
    """The same random calls for both models."""

    def __init__(self, connection: Connection, seed: int, *, dated: bool = False) -> None:
        self.store, self.connection = connection.store, connection
        self.random, self.dated, self.models = random.Random(seed), dated, MODELS[dated]
        self.scopes = [Scope(spec_of(model), ("ada",)) for model in self.models]
        self.turns = self.made = 0

    def both(self, make: Any) -> Any:
        """The answer to one request, which has to be the same for both."""
        plain, mirrored = (self.store.execute(make(scope)) for scope in self.scopes)
        assert told(plain) == told(mirrored)
        return mirrored

    def step(self) -> None:
        kinds = ["put"] * 8 + ["erase", "observe", "observe", "link", "deliver", "count", "batch"]
        getattr(self, self.random.choice(kinds))()

    def put(self) -> None:
        puts = self._puts()
        plain, mirrored = (self.store.execute(put) for put in puts)
        assert plain == mirrored
        if self.random.random() < 0.2:
            plain, mirrored = (self.store.execute(put) for put in puts)
            assert plain == mirrored

    def batch(self) -> None:
        puts = [self._puts() for _ in range(self.random.randint(1, 4))]
        erase = self.random.sample(IDS, 1)
        plain, mirrored = (
            self.store.execute(
                ask.Batch((*(pair[side] for pair in puts), ask.Erase(self.scopes[side], tuple(erase))))
            )
            for side in (0, 1)
        )
        assert plain == mirrored

    def erase(self) -> None:
        ids = tuple(self.random.sample(IDS, self.random.randint(1, 3)))
        self.both(lambda scope: ask.Erase(scope, ids))

    def observe(self) -> None:
        ids = self.random.sample(IDS, 3)
        outcomes = [(1.0, 0.0), (0.5, 0.0), (0.0, 0.25), (0.0, 2.0), (0.0, 0.0)]
        pieces = tuple(
            ask.Evidence(
                id, *self.random.choice(outcomes), self.random.random() < 0.5, self.random.random() < 0.5
            )
            for id in ids
        )
        turn = self.random.choice([None, f"turn-{self.turns}"])
        if turn and self.random.random() < 0.5:
            pieces = (ask.Evidence("", 1.0, 0.0, True),)
        link = self.random.choice([0.0, 1.0])
        counters = (("mine", 2),) if self.random.random() < 0.2 else ()
        echo = self.random.random() < 0.3
        self.both(
            lambda scope: ask.Observe(
                scope, pieces, turn, tuple(ids) if pieces[0].id else (), link, echo, counters
            )
        )

    def link(self) -> None:
        first, second = self.random.sample(IDS, 2)
        delta = self.random.choice([1.0, 0.25, -0.5])
        self.both(lambda scope: ask.Link(scope, first, second, delta))

    def deliver(self) -> None:
        self.turns += 1
        ids = tuple(self.random.sample(IDS, 4))
        self.both(lambda scope: ask.Deliver(scope, f"turn-{self.turns}", ids, (("seen", 1),)))
        self.connection.store.drive(self.connection.mirror.flush())  # type: ignore[attr-defined]

    def count(self) -> None:
        delta = self.random.randint(-3, 9)
        self.both(lambda scope: ask.Increment(scope, "own", delta))

    def _puts(self) -> tuple[ask.Put, ask.Put]:
        """One write for each; no clock decides who is evicted, or who stands beside whom in a session."""
        self.made += 1
        values = {
            "tale_id": self.random.choice(IDS),
            "agent_id": "ada",
            "content": " ".join(
                self.random.choices(WORDS, k=self.random.randint(1, 30))
                + [name for name in NAMES if self.random.random() < 0.2]
            ),
            "key": self.random.choice([None, None, "k1", "k2", "nul \0 byte"]),
            "importance": self.random.choice([0.0, 0.25, 0.5, 1.0]) + self.made / 1024,
            "tags": {tag for tag in ("red", "a\0b") if self.random.random() < 0.3},
            "session_id": self.random.choice([None, "s1", "s2"]),
            "author": self.random.choice([None, "Mel"]),
            "occurred_at": self.random.choice(
                [None, datetime(2024, 1, self.random.randint(1, 28), tzinfo=UTC)]
            ),
        }
        if values["session_id"] is not None:  # the order of a session is that of its times
            values["occurred_at"] = datetime(2024, 2, self.random.randint(1, 28), tzinfo=UTC)
        if self.dated:
            values |= self._validity()
        mode = self.random.choice(["upsert"] * 4 + ["create", "update"])
        expect = self.random.choice([None] * 5 + [1, 2])
        operation = str(self.random.random())
        told = {"mode": mode, "expect_version": expect, "operation_id": operation}
        if self.dated and self.random.random() < 0.3:
            told["supersedes"] = self.random.choice([id for id in IDS if id != values["tale_id"]])
        puts = [prepare(model(**values)).put for model in self.models]
        plain, mirrored = (replace(put, **told) for put in puts if put)
        return plain, mirrored

    def _validity(self) -> dict[str, Any]:
        """No two versions start or end at one instant, so that no row decides who is over longest."""
        start = START + timedelta(days=self.random.randrange(100), milliseconds=self.made)
        days = self.random.randrange(30)
        return {
            "occurred_at": START - timedelta(days=self.random.randrange(100), milliseconds=self.made),
            "topic": self.random.choice([None, "home", "work"]),
            "valid_from": self.random.choice([None, start, start, start]),
            "valid_to": self.random.choice([None, None, start + timedelta(days=days)]),
        }

    def agree(self) -> None:
        """All that can be asked."""
        self.both(ask.Count)
        self.both(lambda scope: ask.Get(scope, tuple(IDS)))
        self.both(ask.ReadCounters)
        self.both(lambda scope: ask.Find(scope, order="importance"))
        self.both(lambda scope: ask.Find(scope, ask.Match(exact=(("tags", "red"),)), order="confidence"))
        for id in IDS:
            self.both(lambda scope, id=id: ask.Spread(scope, {id: 1.0}, hops=2))
        for _ in range(5):
            terms = dict.fromkeys(self.random.sample(WORDS, 3), 1.0)
            self.both(lambda scope, terms=terms: ask.Search(scope, terms))
        for scope in self.scopes:
            assert self.store.execute(ask.Check(scope)).findings == ()
        self.both(lambda scope: ask.Top(scope, 20))
        if self.dated:
            self._agree_at_instants()

    def _agree_at_instants(self) -> None:
        """What is valid then: of both models, and of the rows alone, which know no links."""
        days = self.random.sample(range(-100, 130), 6)
        instants = [round((START + timedelta(days=day)).timestamp() * 1000) for day in days]
        told_of = {word for record in self.store.execute(ask.Get(self.scopes[1], tuple(IDS))) if record
                   for word in record.values["content"].split() if word in WORDS}  # fmt: skip
        for match in (ask.Match(history=True), *(ask.Match(as_of=instant) for instant in instants)):
            terms = dict.fromkeys(self.random.sample(sorted(told_of), min(2, len(told_of))), 1.0)
            self.both(lambda scope, match=match: ask.Find(scope, match, "valid_from", False))
            self.both(lambda scope, match=match: ask.Top(scope, 20, match))
            self.both(lambda scope, match=match, terms=terms: ask.Search(scope, terms, 20, match))
            scope = self.scopes[1]
            asked = (
                ask.Get(scope, tuple(IDS)),
                ask.Count(scope, match),
                ask.Find(scope, match, "valid_from"),
                ask.Find(scope, match, "time", False, 3, 1),
            )
            search = ask.Search(scope, terms, 20, match)
            shown = [told(self.store.execute(request)) for request in asked]
            hits = {hit.record.id for hit in self.store.execute(search).hits if hit.text > 0}
            answer_from(self.connection, "postgres")
            assert [told(self.store.execute(request)) for request in asked] == shown
            found = self.store.execute(search)
            answer_from(self.connection, "redis")
            assert found.reader == "postgres"
            assert {hit.record.id for hit in found.hits} == hits
            assert found.live == self.store.execute(ask.Count(scope, ask.Match(history=True)))


def told(reply: Any) -> Any:
    """A reply without what a clock or a place in the store gave it."""
    if isinstance(reply, ask.Record):
        rounded = None if reply.relevance is None else round(reply.relevance, 4)
        time_ms = reply.time_ms // 3_600_000
        return replace(
            reply,
            row=0,
            time_ms=time_ms,
            relevance=rounded,
            order=0.0,
            accessed_ms=reply.accessed_ms > 0,
            read_ms=0,
        )
    if isinstance(reply, ask.SearchReply):
        return [(told(hit.record), hit.score) for hit in reply.hits], reply.live
    if isinstance(reply, tuple):
        return [told(one) for one in reply]
    return reply


@pytest.fixture
def history(mirrored: Connection, request: pytest.FixtureRequest) -> Iterator[History]:
    dated, seed = request.param
    history = History(mirrored, seed, dated=dated)
    yield history
    history.models[1].delete_partition(agent_id="ada")


@pytest.mark.parametrize(
    "history", [(dated, seed) for dated in (False, True) for seed in range(HISTORIES)], indirect=True, ids=str
)
def test_a_mirrored_model_answers_as_an_unmirrored_one(history: History, valkey_server: ValkeyServer) -> None:
    for number in range(60):
        history.step()
        if number % 20 == 19:
            history.agree()
    scope = history.scopes[1]
    assert compared(history.connection, scope).equal
    before = [told(one) for one in history.store.execute(ask.Get(scope, tuple(IDS)))]
    keys = [key for key in valkey_server.command("KEYS", f"*{scope.spec.name}*") if not key.endswith(b":i")]
    valkey_server.command("DEL", *keys)
    assert omoide.reindex(history.models[1], agent_id="ada") == sum(one is not None for one in before)
    history.agree()
    assert compared(history.connection, scope).equal
    for _ in range(20):
        history.step()
    history.agree()
    assert compared(history.connection, scope).equal
