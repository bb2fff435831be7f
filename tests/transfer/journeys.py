"""Models with a field of every kind, records with every extreme, and how to look at a store as bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, Flag
from pathlib import Path
from typing import Any
from uuid import UUID

import omoide
from omoide import (
    AutoKeyField,
    BM25Field,
    BoolField,
    BytesField,
    ConfidenceField,
    CoOccurrenceField,
    DateField,
    DatetimeField,
    DecayingSortedField,
    DecimalField,
    DictField,
    EnumField,
    FloatField,
    IntField,
    KeyField,
    ListField,
    Model,
    StringField,
    TagField,
    UUIDField,
)
from omoide.mixins import AccessTrackerMixin
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import port
from omoide.ops.request import Evidence, Observe

TEXTS = (
    "",
    "plain words of a memory",
    "Mia moved to Berlin with Tom",
    "昨日は東京で会議がありました",
    "مرحبا بالعالم",
    "emoji 👩‍👩‍👧 and \x00 NUL, \u2028 separator, \x7f",
    'quotes " and \\ backslash\n\t\r line',
)
NUMBERS = (0, 1, -1, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 0.1, 1.0, 5e-324, 1.7976931348623157e308, -1e16, 1 / 3)


class Shade(Enum):
    DARK = "d"
    LIGHT = "l"


class Marks(Flag):
    NEW = 1
    OLD = 2


class JourneyMemory(AccessTrackerMixin, Model):
    """Every kind of field, each of them null somewhere."""

    memory_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField(null=True)
    day = DateField(null=True)
    number = IntField(null=True, index=True)
    share = FloatField(null=True)
    price = DecimalField(null=True)
    open = BoolField(null=True)
    blob = BytesField(null=True)
    shade = EnumField(Shade, null=True)
    marks = EnumField(Marks, null=True)
    code = UUIDField(null=True)
    tags = TagField()
    parts = ListField(null=True)
    facts = DictField(null=True)
    label = StringField(null=True)
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    search = BM25Field(source="content")
    links = CoOccurrenceField()

    class Meta:
        ttl = timedelta(days=400)
        unique_together = ("label",)


def values(rng: random.Random, number: int) -> dict[str, Any]:
    """Values of one record, None and extremes among them."""

    def maybe(value: Any) -> Any:
        return None if rng.random() < 0.3 else value

    moment = datetime(1, 1, 1, tzinfo=UTC) + timedelta(microseconds=rng.randrange(315_000_000_000_000_000))
    return {
        "content": f"{rng.choice(TEXTS)} {rng.choice('abcdefgh')} {rng.randrange(50)}",
        "importance": rng.choice((0.0, 1.0, rng.random(), -1.0, 1e30)),
        "session_id": maybe(f"session {number // 20}"),
        "author": maybe(rng.choice(("Ann", "Бо", "陳"))),
        "occurred_at": maybe(moment),
        "day": maybe(rng.choice((date.min, date.max, date(2026, 2, 28)))),
        "number": maybe(rng.choice(NUMBERS)),
        "share": maybe(rng.choice(FLOATS)),
        "price": maybe(rng.choice((Decimal("1E+3"), Decimal("-0.00"), Decimal(rng.random())))),
        "open": maybe(rng.random() < 0.5),
        "blob": maybe(rng.randbytes(rng.randrange(20))),
        "shade": maybe(rng.choice(tuple(Shade))),
        "marks": maybe(Marks.NEW | Marks.OLD),
        "code": maybe(UUID(int=rng.getrandbits(128))),
        "tags": set(rng.sample(("work", "été", "a:b", "{x}"), rng.randrange(4))),
        "parts": maybe([1, -2.5, None, True, "x", [], {"": {}}]),
        "facts": maybe({"$bytes": "AA==", "z": 1, "a": [0.1, {"deep": None}], "é": ""}),
        "label": maybe(f"label {number}"),
    }


def fill(count: int, partitions: int = 3, seed: int = 1) -> None:
    """Partitions with records, edges, outcomes, accesses, touches, updates, deletes and counters."""
    rng = random.Random(seed)
    made = [
        JourneyMemory(agent_id=f"agent {number % partitions}/é:{{}}", **values(rng, number))
        for number in range(count)
    ]
    for start in range(0, count, 1_000):
        assert all(JourneyMemory.save_many(made[start : start + 1_000]))
    store = port.current().store
    for number in range(partitions):
        mine = made[number::partitions]
        scope = Scope(spec_of(JourneyMemory), (mine[0].agent_id,))
        for start in range(0, len(mine), 7):
            ids = [one.memory_id for one in mine[start : start + 5]]
            evidence = tuple(
                Evidence(name, rng.choice((0.0, 1.0, 0.5)), rng.choice((0.0, 2.0)), rng.random() < 0.5, True)
                for name in ids
            )
            store.execute(Observe(scope, evidence, linked=tuple(ids), link=rng.choice((1.0, 0.3))))
        for one in mine[3::50]:
            assert one.update(content="Mia changed her mind in Berlin")
        for one in mine[5::50]:
            assert one.delete()
        mine[0].links.link(mine[1], 2.5)
        counters = JourneyMemory.counters(agent_id=mine[0].agent_id)
        counters.increment("recalls", 5)
        counters.increment("zero", 0)
        counters.increment("debts ☂", -3)


def wipe(model: type[Model] = JourneyMemory) -> None:
    """Erase every partition of a model."""
    for part in omoide.status(model)["partitions"]:
        model.delete_partition(**dict(zip(spec_of(model).partition_by, part["partition"], strict=True)))
    assert omoide.status(model)["partitions"] == []


def written(path: Path, model: type[Model] = JourneyMemory, **partition: Any) -> bytes:
    """The bytes of an export."""
    omoide.export_memories(model, path, **partition)
    return path.read_bytes()


def everything(raw: Any) -> dict[bytes, Any]:
    """Every key of the server with its value and its expiry."""
    readers = {
        b"string": raw.get,
        b"hash": raw.hgetall,
        b"set": raw.smembers,
        b"zset": lambda key: raw.zrange(key, 0, -1, withscores=True),
    }
    return {key: (readers[raw.type(key)](key), raw.pexpiretime(key)) for key in sorted(raw.keys())}


def lines_of(data: bytes) -> Iterator[bytes]:
    yield from data.splitlines(keepends=True)
