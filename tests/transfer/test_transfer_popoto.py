"""A popoto 1.10 keyspace: laid out by hand, and, where popoto is installed, by popoto itself."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from journeys import everything
from msgspec import msgpack

import omoide
from omoide import (
    AutoKeyField,
    BoolField,
    BytesField,
    ConfidenceField,
    CoOccurrenceField,
    DateField,
    DatetimeField,
    DecayingSortedField,
    DecimalField,
    DictField,
    FloatField,
    IntField,
    KeyField,
    ListField,
    Model,
    StringField,
    TagField,
    TransferError,
)
from omoide.connection import Connection
from omoide.core.decay import touched_at
from omoide.mixins import AccessTrackerMixin
from omoide.model.instance import spec_of
from omoide.privacy.samples import Maker
from omoide.recipes import DefaultMemory
from omoide.testing.servers import ValkeyServer

TOKEN = "gh" + "p_" + Maker(37).body("an", 36)
THEN = 1_767_225_600.125


class PopotoRich(AccessTrackerMixin, Model):
    rid = AutoKeyField()
    team = KeyField()
    kind = StringField(default="")
    text = StringField(null=True)
    number = IntField(null=True)
    share = FloatField(null=True)
    flag = BoolField(null=True)
    moment = DatetimeField(null=True)
    day = DateField(null=True)
    price = DecimalField(null=True)
    facts = DictField(null=True)
    parts = ListField(null=True)
    several = TagField()
    pair = ListField(null=True)
    blob = BytesField(null=True)
    tags = TagField()
    weight = DecayingSortedField()
    certainty = ConfidenceField()
    links = CoOccurrenceField()

    class Meta:
        ttl = 10_000_000


def tagged(tag: str, value: Any) -> dict[str, Any]:
    return {f"__{tag}__": True, "as_encodable": value}


def lay_out(raw: Any, name: str, key: str, values: dict[str, Any], touched: float | None = None) -> None:
    """A record where popoto puts it."""
    raw.sadd(f"$Class:{name}", key)
    raw.hset(key, mapping={field: msgpack.encode(value) for field, value in values.items()})
    if touched is not None:
        raw.zadd(f"$DecayingSortF:{name}:relevance:ada", {key: touched})


def memory(raw: Any, number: int, **values: Any) -> str:
    key = f"DefaultMemory:ada:{number:032x}"
    held = {
        "memory_id": f"{number:032x}",
        "agent_id": "ada",
        "content": f"memory {number}",
        "importance": 0.5,
        "relevance": THEN + number,
        "confidence": 0.5,
        "content_bm25": None,
        "associations": None,
        **values,
    }
    lay_out(raw, "DefaultMemory", key, held, THEN + 1_000 + number)
    return key


def test_memories_come_with_what_was_kept_of_them(connection: Connection, raw: Any, store_url: str) -> None:
    first, second, third = (memory(raw, number) for number in (1, 2, 3))
    told = {"confidence": 0.75, "evidence_count": 3, "corroborations": 2, "contradictions": 1}
    raw.hset("$ConfidencF:DefaultMemory:confidence:data", first, msgpack.encode(told))
    raw.hset(f"$AT:DefaultMemory:meta:{second}", mapping={"access_count": 4, "last_accessed": THEN})
    raw.zadd(f"$CoOccurrencF:DefaultMemory:associations:{first}", {second: 0.5, "DefaultMemory:ada:gone": 1})
    raw.zadd(f"$CoOccurrencF:DefaultMemory:associations:{second}", {first: 0.5, third: 1.0})
    raw.zadd("$CoOccurrencF:DefaultMemory:associations:mia", {"tom": 0.1})
    before = everything(raw)
    done = omoide.import_popoto(DefaultMemory, store_url)
    assert (done.records, done.stored, done.partitions, done.ignored) == (3, 3, 1, {})
    after = everything(raw)
    assert {key: after[key] for key in before} == before
    found = {one.memory_id: one for one in DefaultMemory.query.filter(agent_id="ada").all()}
    one, two, three = (found[f"{number:032x}"] for number in (1, 2, 3))
    assert (one.content, one.importance) == ("memory 1", 0.5)
    assert one.created_at == datetime.fromtimestamp(THEN + 1, UTC)
    assert one.evidence() == (0.75, 2, 1)
    assert (two.access_count, two.last_accessed) == (4, datetime.fromtimestamp(THEN, UTC))
    assert three.evidence() == (0.5, 0, 0)
    record: Any = one._omoide.record
    decay = spec_of(DefaultMemory).decay
    assert decay is not None
    assert touched_at(record.order, 0.5, decay.half_life) == pytest.approx(THEN + 1_001, abs=1e-3)
    assert two.associations.neighbours() == [
        (three.memory_id, pytest.approx(0.95)),
        (one.memory_id, pytest.approx(0.5)),
    ]
    assert [one.memory_id for one in DefaultMemory.query.filter(agent_id="ada").top_by_decay(3)] == [
        three.memory_id,
        two.memory_id,
        one.memory_id,
    ]


def test_importing_twice_changes_nothing(connection: Connection, raw: Any, store_url: str) -> None:
    for number in range(1, 300):
        memory(raw, number)
    assert omoide.import_popoto(DefaultMemory, store_url).stored == 299
    before = everything(raw)
    assert omoide.import_popoto(DefaultMemory, store_url).present == 299
    assert everything(raw) == before


def test_every_kind_of_value(connection: Connection, raw: Any, store_url: str) -> None:
    key = "Rich:k:1:a{&#58;}b"
    values = {
        "rid": "1",
        "team": "a:b",
        "kind": "k",
        "text": "昨日",
        "number": 2**40,
        "share": 0.5,
        "flag": True,
        "moment": tagged("datetime", "2026-01-02T03:04:05.000006"),
        "day": tagged("date", "20260102"),
        "price": tagged("Decimal", "1.50"),
        "facts": {"a": [1, None], "when": tagged("datetime", "2026-01-02T03:04:05+09:00")},
        "parts": [1, "x", tagged("Decimal", "2.0")],
        "several": tagged("set", ["v", "u"]),
        "pair": tagged("tuple", [1, 2]),
        "blob": b"\0\xff",
        "tags": ["t1", "t2"],
        "score": 3.5,
        "clock": tagged("time", "12:00:00"),
        "weight": THEN,
        "certainty": 0.5,
        "links": None,
    }
    lay_out(raw, "Rich", key, values)
    raw.zadd("$DecayingSortF:Rich:weight", {key: THEN})
    raw.hset("$ConfidencF:Rich:certainty:data:a{&#58;}b", key, msgpack.encode({"evidence_count": 0}))
    raw.pexpire(key, 5_000_000)
    done = omoide.import_popoto(PopotoRich, store_url, saved_as="Rich")
    assert (done.stored, done.ignored) == (1, {"clock": 1, "score": 1})
    one = PopotoRich.query.get(team="a:b", rid="1")
    assert (one.kind, one.text, one.number, one.share, one.flag) == ("k", "昨日", 2**40, 0.5, True)
    assert one.moment == datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert (one.day, one.price) == (date(2026, 1, 2), Decimal("1.50"))
    assert one.facts == {"a": [1, None], "when": "2026-01-02 03:04:05+09:00"}
    assert (one.parts, one.several, one.pair, one.blob) == ([1, "x", "2.0"], {"u", "v"}, [1, 2], b"\0\xff")
    assert one.tags == {"t1", "t2"}
    record: Any = one._omoide.record
    assert record.expires_ms == pytest.approx(raw.pexpiretime(key), abs=2_000)


def test_fields_of_other_names_are_mapped(connection: Connection, raw: Any, store_url: str) -> None:
    key = "Note:7"
    raw.zadd("$DecayingSortF:Note:fresh", {key: THEN})
    lay_out(raw, "Note", key, {"slug": "7", "body": "a note", "fresh": THEN, "junk": 1})
    names = {"slug": "memory_id", "body": "content", "fresh": "relevance", "junk": ""}
    done = omoide.import_popoto(DefaultMemory, store_url, saved_as="Note", field_map=names, agent_id="ada")
    assert (done.stored, done.ignored) == (1, {})
    one = DefaultMemory.query.get(agent_id="ada", memory_id="7")
    assert (one.content, one.created_at) == ("a note", datetime.fromtimestamp(THEN, UTC))


def test_what_cannot_be_imported_is_one_error(connection: Connection, raw: Any, store_url: str) -> None:
    with pytest.raises(TransferError, match="no records of 'DefaultMemory'"):
        omoide.import_popoto(DefaultMemory, store_url)
    memory(raw, 1)
    memory(raw, 2, content=7)
    with pytest.raises(TransferError, match=r"record 2: DefaultMemory\.content: must be a string"):
        omoide.import_popoto(DefaultMemory, store_url)
    raw.hset(memory(raw, 2), "content", b"\xc1")
    with pytest.raises(TransferError, match="record 2: a value is not what popoto writes"):
        omoide.import_popoto(DefaultMemory, store_url)
    memory(raw, 2)
    for name, value in (("relevance", 1e300), ("relevance", float("nan")), ("created_at", tagged("date", 7))):
        key = memory(raw, 2, **{name: value})
        with pytest.raises(TransferError, match="record 2: a value is not what popoto writes"):
            omoide.import_popoto(DefaultMemory, store_url)
        raw.delete(key)
    key = memory(raw, 2)
    raw.hset("$ConfidencF:DefaultMemory:confidence:data", key, msgpack.encode([1]))
    with pytest.raises(TransferError, match="record 2: a value is not what popoto writes"):
        omoide.import_popoto(DefaultMemory, store_url)
    raw.hset(f"$AT:DefaultMemory:meta:{key}", "access_count", "many")
    with pytest.raises(TransferError, match="a key is not what popoto writes"):
        omoide.import_popoto(DefaultMemory, store_url)
    assert not raw.keys("omoide*")
    with pytest.raises(omoide.QueryError):
        omoide.import_popoto(DefaultMemory, "ftp://nowhere")
    with pytest.raises(omoide.StoreUnavailableError):
        omoide.import_popoto(DefaultMemory, "unix:///nowhere/at/all.sock")


def test_a_key_without_a_record_is_passed_over(connection: Connection, raw: Any, store_url: str) -> None:
    memory(raw, 1)
    raw.sadd("$Class:DefaultMemory", "DefaultMemory:ada:gone")
    assert omoide.import_popoto(DefaultMemory, store_url).records == 1


def test_the_firewall_reads_them(connection: Connection, raw: Any, store_url: str) -> None:
    memory(raw, 1, content=f"the token is {TOKEN}")
    memory(raw, 2)
    done = asyncio.run(omoide.aimport_popoto(DefaultMemory, store_url))
    assert (done.stored, done.refused) == (1, {"credential": 1})
    assert DefaultMemory.never_record_counts(agent_id="ada") == {"credential": 1}


PROGRAM = """
import json, sys
from popoto import ObservationProtocol
from popoto.fields.co_occurrence_field import CoOccurrenceField
from popoto.fields.confidence_field import ConfidenceField
from popoto.recipes import DefaultMemory, SubconsciousMemory

made = []
for agent in ("ada", "b:o {b}*?"):
    for number in range(20):
        one = DefaultMemory(
            agent_id=agent,
            content=f"Deploys of {agent} number {number} by Mia à Paris",
            importance=0.04 * number,
        )
        assert one.save()
        made.append(one)
ConfidenceField.update_confidence(made[0], "confidence", 0.9)
ConfidenceField.update_confidence(made[0], "confidence", 0.9)
ConfidenceField.update_confidence(made[0], "confidence", 0.1)
field = DefaultMemory._meta.fields["associations"]
field.link(DefaultMemory, made[0].db_key.redis_key, made[1].db_key.redis_key, 0.5)
memory = SubconsciousMemory(agent_id="ada")
_, result = memory.inject_context([{"role": "user", "content": "How are deploys?"}])
memory.report_outcomes(result, "acted")
told = []
for one in made:
    held = ConfidenceField.get_confidence_data(one, "confidence") or {}
    told.append({
        "id": one.memory_id, "agent": one.agent_id, "content": one.content, "importance": one.importance,
        "confidence": held.get("confidence"), "count": held.get("evidence_count"),
        "corroborations": held.get("corroborations"), "contradictions": held.get("contradictions"),
        "accesses": getattr(one, "access_count", 0),
        "linked": sorted(str(key) for key, _ in field.get_linked(DefaultMemory, one.db_key.redis_key)),
    })
print(json.dumps(told))
"""


def test_what_popoto_itself_wrote(connection: Connection, tmp_path: Path) -> None:
    if importlib.util.find_spec("popoto") is None:
        pytest.skip("popoto is not installed: pip install '.[bench]'")
    with ValkeyServer() as theirs:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "REDIS_URL": theirs.url},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout.splitlines()[-1])
        moved = omoide.import_popoto(DefaultMemory, theirs.url)
    assert (moved.stored, moved.partitions, moved.ignored) == (40, 2, {})
    for one in told:
        found = DefaultMemory.query.get(agent_id=one["agent"], memory_id=one["id"])
        assert (found.content, found.importance) == (one["content"], one["importance"])
        assert found.access_count == one["accesses"]
        standing = found.evidence()
        if one["count"]:
            assert standing.confidence == pytest.approx(one["confidence"])
        assert (standing.corroborations, standing.contradictions) == (
            one["corroborations"],
            one["contradictions"],
        )
        linked = {name.rpartition(":")[2] for name in one["linked"]}
        assert {name for name, _ in found.associations.neighbours(64)} == linked
    assert sum(one["accesses"] for one in told) > 0
    assert sum(len(one["linked"]) for one in told) >= 2
