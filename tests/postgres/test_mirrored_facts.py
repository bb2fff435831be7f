"""Facts that change, with their truth in PostgreSQL: what a user sees is what a plain model shows."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.postgres.conftest import answer_from, compared

import omoide
from omoide import (
    AutoKeyField,
    ConflictError,
    ContextAssembler,
    DatetimeField,
    KeyField,
    Model,
    PostgresMirror,
    StringField,
    ValidityField,
    batch,
)
from omoide.connection import Connection
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.prepare import prepare
from omoide.recipes import DefaultMemory
from omoide.testing import ValkeyServer


class SettledFact(DefaultMemory):
    topic = StringField(null=True, index=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")

    class Meta:
        mirror = PostgresMirror()


class BriefSettledFact(SettledFact):
    class Meta:
        mirror = PostgresMirror()
        ttl = 600


class FewSettledFacts(SettledFact):
    max_records_per_partition = 12

    class Meta:
        mirror = PostgresMirror()


def day(number: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def fact(
    name: str,
    start: float | None = None,
    topic: str | None = "home",
    model: type[SettledFact] = SettledFact,
    **values: Any,
) -> Any:
    values.setdefault("content", f"Ada lives in {name}")
    begun = None if start is None else day(start)
    return model(memory_id=name, agent_id="a", topic=topic, valid_from=begun, **values)


def scope(model: type[SettledFact] = SettledFact) -> Scope:
    return Scope(spec_of(model), ("a",))


def intervals(model: type[SettledFact] = SettledFact) -> dict[str, Any]:
    return {one.memory_id: one.validity for one in model.query.filter(agent_id="a").history().all()}


def sound(connection: Connection, model: type[SettledFact] = SettledFact) -> bool:
    findings = connection.store.execute(ask.Check(scope(model))).findings
    return findings == () and compared(connection, scope(model)).equal


@pytest.fixture(autouse=True)
def _clean(mirrored: Connection) -> None:
    for model in (SettledFact, BriefSettledFact, FewSettledFacts):
        model.delete_partition(agent_id="a")


@pytest.mark.parametrize("store", ["redis", "postgres"])
def test_both_paths_see_what_is_valid_then(mirrored: Connection, store: str) -> None:
    """Five hundred old versions are in nobody's way."""
    versions = [
        fact(f"v{number:03}", -600 + number, content=f"Ada lives in town {number}") for number in range(501)
    ]
    assert all(SettledFact.save_many(reversed(versions)))
    others = [fact(f"o{number}", 1, f"t{number}", content=f"other {number}") for number in range(20)]
    assert all(SettledFact.save_many(others))
    assert sound(mirrored)
    assembler = ContextAssembler(SettledFact, max_items=1, track=False)
    query = SettledFact.query.filter(agent_id="a")
    answer_from(mirrored, store)
    for asked, name in (({}, "v500"), ({"as_of": day(-600 + 250.5)}, "v250"), ({"as_of": day(-600)}, "v000")):
        result = assembler.assemble("in which town does Ada live", agent_id="a", **asked)
        assert (result.ids, result.metadata["store"]) == ((name,), store)
        assert [one.memory_id for one in query.filter(topic="home", **asked).all()] == [name]
    assert assembler.assemble("in which town does Ada live", agent_id="a", as_of=day(-601)).ids == ()
    assert query.count() == 21
    assert query.history().count() == 521
    assert [one.memory_id for one in query.history().order_by("valid_from").all()[:2]] == ["v000", "v001"]
    old = SettledFact.query.get(agent_id="a", memory_id="v007")
    assert old.validity == (day(-593), day(-592))


def test_recall_without_a_query_and_outcomes_of_old_versions(mirrored: Connection) -> None:
    fact("oslo", 1, importance=0.9).save()
    fact("rome", 5, importance=0.5).save()
    recall = ContextAssembler(SettledFact, track=False)
    for order in ("recent", "important", "relevant"):
        assert recall.assemble(order=order, agent_id="a").ids == ("rome",)
        assert recall.assemble(order=order, agent_id="a", as_of=day(2)).ids == ("oslo",)
    old = SettledFact.query.get(agent_id="a", memory_id="oslo")
    assert old is not None
    before = old.confidence
    memory = omoide.recipes.SubconsciousMemory(agent_id="a", model=SettledFact)
    memory.report_outcomes(recall.assemble("where does Ada live", agent_id="a", as_of=day(2)), "contradicted")
    assert old.refresh().confidence < before
    assert old.validity == (day(1), day(5))
    assert sound(mirrored)


def test_superseding_is_one_step_or_nothing(mirrored: Connection) -> None:
    fact("nine", 1, None).save()
    fact("home", 1).save()
    first = fact("ten", 7, None).save(supersedes="nine", operation_id="once")
    again = fact("ten", 7, None).save(supersedes="nine", operation_id="once")
    assert (first.closed, again.closed, again.repeated) == ("nine", "nine", True)
    held = intervals()
    for name, topic, reason in (
        ("nine", None, "closed"),
        ("nobody", None, "missing"),
        ("home", None, "other_key"),
        ("ten", "home", "other_key"),
    ):
        with pytest.raises(ConflictError) as refused:
            fact("new", 9, topic).save(supersedes=name)
        assert refused.value.reason == reason
    with batch() as group:
        fact("noon", 12, None).save(supersedes="ten")
        fact("late", 14, None).save(supersedes="ten")
        fact("night", 15, None).save(supersedes="noon")
    assert [(one.closed, one.reason) for one in group.outcomes] == [
        ("ten", ""),
        (None, "closed"),
        ("noon", ""),
    ]
    assert intervals() == held | {
        "ten": (day(7), day(12)),
        "noon": (day(12), day(15)),
        "night": (day(15), None),
    }
    SettledFact.delete_many(["noon"], agent_id="a")
    assert intervals()["ten"] == (day(7), day(15))
    assert sound(mirrored)


def test_a_version_that_expired_was_true(mirrored: Connection) -> None:
    """The one before keeps its end, whoever erases it: another write, or a user."""
    put = prepare(fact("rome", 5, model=BriefSettledFact)).put
    assert put is not None
    mirrored.store.execute(replace(put, ttl_ms=1))
    time.sleep(0.01)
    pair = [fact(name, start, model=BriefSettledFact) for name, start in (("a", 1), ("b", 2))]
    assert all(BriefSettledFact.save_many(pair))
    assert intervals(BriefSettledFact) == {"a": (day(1), day(2)), "b": (day(2), None)}
    mirrored.store.execute(replace(put, ttl_ms=50))
    assert intervals(BriefSettledFact)["b"] == (day(2), day(5))
    time.sleep(0.06)
    for _ in range(2):
        assert intervals(BriefSettledFact) == {"a": (day(1), day(2)), "b": (day(2), day(5))}
        assert BriefSettledFact.count(agent_id="a") == 2
        assert sound(mirrored, BriefSettledFact)
        omoide.prune(BriefSettledFact)
    BriefSettledFact.delete_many(["a"], agent_id="a")
    fact("c", 9, model=BriefSettledFact).save()
    assert intervals(BriefSettledFact) == {"b": (day(2), day(5)), "c": (day(9), None)}
    assert sound(mirrored, BriefSettledFact)


def test_what_is_over_goes_first(mirrored: Connection) -> None:
    valid = [fact(f"valid-{n}", 1, f"t{n}", FewSettledFacts, importance=0.01) for n in range(8)]
    assert all(FewSettledFacts.save_many(valid))
    assert all(
        FewSettledFacts.save_many(
            [fact(f"old-{n:02}", n, model=FewSettledFacts, importance=1.0) for n in range(40)]
        )
    )
    names = {one.memory_id for one in valid}
    assert set(intervals(FewSettledFacts)) == names | {f"old-{n}" for n in (36, 37, 38, 39)}
    assert FewSettledFacts.counters(agent_id="a").read("evicted") == 48 - 12
    assert sound(mirrored, FewSettledFacts)
    assert omoide.reindex(FewSettledFacts, agent_id="a") == 12
    assert sound(mirrored, FewSettledFacts)


def _story() -> dict[str, Any]:
    for number, start in enumerate((5, 1, 9, 3)):
        fact(f"home-{number}", start).save()
    fact("alone", None, None).save()
    fact("ended", 2, None, valid_to=day(4)).save()
    fact("first", 1, None).save()
    fact("second", 2, None).save(supersedes="first")
    fact("third", 6, None).save(supersedes="second")
    SettledFact.query.get(agent_id="a", memory_id="home-0").delete()
    held = intervals()
    assert held["home-3"] == (day(3), day(9))
    return held


def test_a_file_brings_versions_back_in_both_stores(mirrored: Connection, tmp_path: Path) -> None:
    before = _story()
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    omoide.export_memories(SettledFact, first, agent_id="a")
    SettledFact.delete_partition(agent_id="a")
    omoide.import_memories(SettledFact, first)
    assert intervals() == before
    assert sound(mirrored)
    omoide.export_memories(SettledFact, second, agent_id="a")
    assert first.read_bytes() == second.read_bytes()
    fact("fourth", 8, None).save(supersedes="third")
    SettledFact.query.get(agent_id="a", memory_id="second").delete()
    assert intervals()["first"] == (day(1), day(6))
    assert sound(mirrored)


def test_a_lost_partition_comes_back_with_its_versions(
    mirrored: Connection, valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    before = _story()
    omoide.export_memories(SettledFact, tmp_path / "first", agent_id="a")
    valkey_server.flush()
    assert omoide.rebuild(SettledFact) == {("a",): 8}
    assert intervals() == before
    assert sound(mirrored)
    assert omoide.import_memories(SettledFact, tmp_path / "first").present == 8


def test_forgetting_leaves_no_version_in_either_store(mirrored: Connection) -> None:
    _story()
    assert omoide.forget(SettledFact, agent_id="a", certify=True).records == 8
    assert intervals() == {}
    assert compared(mirrored, scope()).equal


def test_a_wrong_interval_is_found_and_mended(mirrored: Connection) -> None:
    before = _story()
    seq = mirrored.store.execute(ask.Applied(scope()))
    wrong = ask.Changes(spans=(("alone", ask.Span(5, 9, 9)),))
    mirrored._store.execute(ask.Apply(scope(), seq, seq + 1, wrong))
    assert not compared(mirrored, scope()).equal
    assert omoide.rebuild(SettledFact) == {("a",): 8}
    assert intervals() == before
    assert sound(mirrored)


def _aging(**fields: Any) -> type[Model]:
    meta = type("Meta", (), {"name": "Aging", "mirror": PostgresMirror(table="aging")})
    body = {"note_id": AutoKeyField(), "agent_id": KeyField(), "topic": StringField(null=True)}
    body |= {"since": DatetimeField(), "until": DatetimeField(null=True), "Meta": meta, **fields}
    return type("Aging", (Model,), {**body, "__module__": __name__, "__qualname__": "Aging"})


def test_a_class_that_gets_validity_gets_versions(mirrored: Connection) -> None:
    """Its rows become versions when it is rebuilt; so do those of another key later."""
    first = _aging()
    for name, start in (("c", 9), ("a", 1), ("b", 5)):
        made = first(note_id=name, agent_id="a", topic="home", since=day(start), until=day(start + 6))
        assert made.save()
    second = _aging(validity=ValidityField(key="topic", start="since"))
    late = second(note_id="d", agent_id="a", topic="home", since=day(12)).save()
    assert (late.stored, late.mirrored) == (True, False)

    def told(model: type[Model]) -> dict[str, Any]:
        assert omoide.reindex(model, agent_id="a") == 4
        here = Scope(spec_of(model), ("a",))
        assert mirrored.store.execute(ask.Check(here)).findings == ()
        assert compared(mirrored, here).equal
        return {one.note_id: one.validity for one in model.query.filter(agent_id="a").history().all()}

    ends = {"a": (day(1), day(5)), "b": (day(5), day(9)), "c": (day(9), day(12)), "d": (day(12), None)}
    assert told(second) == ends
    whole = {name: (day(start), day(start + 6)) for name, start in (("a", 1), ("b", 5), ("c", 9))}
    third = _aging(validity=ValidityField(start="since", end="until"))
    assert told(third) == whole | {"d": (day(12), None)}
    again = _aging(validity=ValidityField(key="topic", start="since"))
    assert told(again) == ends
    again.delete_partition(agent_id="a")
