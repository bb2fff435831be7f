"""Facts that change: what is valid is found, what was is history, and no amount of history is in the way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

import omoide
from omoide import (
    ConflictError,
    ContextAssembler,
    CoOccurrenceField,
    DatetimeField,
    EmbeddingField,
    QueryError,
    StringField,
    Validity,
    ValidityField,
    batch,
)
from omoide.connection import Connection
from omoide.recipes import DefaultMemory

Dump = Callable[..., dict[bytes, bytes]]
NONE = None


class LivingFact(DefaultMemory):
    """A fact about a topic."""

    topic = StringField(null=True, index=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")


class BriefFact(LivingFact):
    """One that expires."""

    class Meta:
        ttl = 0.4


class FewFacts(LivingFact):
    """At most sixty of them."""

    max_records_per_partition = 60


class UndatedFact(DefaultMemory):
    """Valid from when it was stored, as far as anybody knows."""

    created_at = NONE
    occurred_at = DatetimeField(null=True)
    validity = ValidityField()


def day(number: float) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def fact(name: str, start: float | None = None, topic: str | None = "home", **values: object) -> LivingFact:
    return LivingFact(
        memory_id=name,
        agent_id="a",
        content=values.pop("content", f"Ada lives in {name}"),
        topic=topic,
        valid_from=None if start is None else day(start),
        **values,
    )


def found(
    query: str = "where does Ada live", model: type[DefaultMemory] = LivingFact, **asked: object
) -> list[str]:
    result = ContextAssembler(model, track=False).assemble(query, agent_id="a", **asked)
    return list(result.ids)


def intervals(model: type[LivingFact] = LivingFact) -> dict[str, Validity]:
    return {one.memory_id: one.validity for one in model.query.filter(agent_id="a").history().all()}


def sound() -> bool:
    return all(health.sound for health in omoide.doctor())


def test_a_late_earlier_fact_is_history(connection: Connection) -> None:
    assert fact("june", 151).save().closed is None
    late = fact("may", 120)
    assert late.save().closed is None
    assert late.validity == (day(120), day(151))
    assert intervals() == {"june": (day(151), None), "may": (day(120), day(151))}
    assert found() == ["june"]
    assert found(as_of=day(130)) == ["may"]
    assert sound()


def test_an_instant_belongs_to_the_version_that_starts_then(connection: Connection) -> None:
    for number, name in enumerate(("oslo", "rome", "lima"), 1):
        fact(name, number).save()
    moment = timedelta(milliseconds=1)
    for reader in ("client", "server", "auto"):
        with omoide.connect(connection.url, reader=reader):
            assert found(as_of=day(1) - moment) == []
            assert found(as_of=day(1)) == found(as_of=day(2) - moment) == ["oslo"]
            assert found(as_of=day(2)) == found(as_of=day(3) - moment) == ["rome"]
            assert found(as_of=day(3)) == found() == ["lima"]


def test_every_way_of_asking_is_masked(connection: Connection) -> None:
    fact("oslo", 1, tags={"place"}, importance=0.9).save()
    fact("rome", 5, tags={"place"}, importance=0.5).save()
    fact("soon", 90_000, tags={"place"}, importance=1.0).save()
    query = LivingFact.query.filter(agent_id="a")
    for asked, name in (({}, "rome"), ({"as_of": day(2)}, "oslo"), ({"as_of": day(99_999)}, "soon")):
        narrowed = query.filter(**asked)
        assert found(**asked) == [name]
        for order in ("recent", "important", "relevant"):
            assert found("", order=order, **asked) == [name]
        assert found("", order="recent", tags="place", **asked) == [name]
        assert [one.memory_id for one in narrowed.all()] == [name]
        assert [one.memory_id for one in narrowed.top_by_decay(5)] == [name]
        assert [one.memory_id for one in narrowed.filter(tags="place").top_by_decay(5)] == [name]
        assert [one.memory_id for one in narrowed.iterate()] == [name]
        scanned = narrowed.filter(content__contains="lives", scan=True)
        assert [one.memory_id for one in scanned.all()] == [name]
        assert [one.memory_id for one in narrowed.filter(id__in=["oslo", "rome", "soon"]).all()] == [name]
        assert narrowed.count() == len(narrowed.ids()) == 1
        first = narrowed.order_by("-importance").first()
        assert first is not None
        assert first.memory_id == name
    filling = ContextAssembler(LivingFact, fallback="recent", track=False)
    assert filling.assemble("nobody knows", agent_id="a", as_of=day(2)).ids == ("oslo",)
    composite = ContextAssembler(LivingFact, mode="composite", track=False)
    assert composite.assemble(agent_id="a").ids == ("rome",)
    assert query.history().count() == LivingFact.count(agent_id="a") == 3
    versions = query.history().order_by("-valid_from").all()
    assert [one.memory_id for one in versions] == ["soon", "rome", "oslo"]
    old = LivingFact.query.get(agent_id="a", memory_id="oslo")
    assert old is not None
    assert old.validity == (day(1), day(5))
    assert query.delete() == 1
    assert found() == ["oslo"]  # what took its place was never true


def test_why_a_version_does_not_come(connection: Connection) -> None:
    fact("oslo", 1).save()
    fact("rome", 5).save()
    assembler = ContextAssembler(LivingFact)
    missing = assembler.explain_missing("oslo", "where does Ada live", agent_id="a")
    assert missing.reason == "expired"
    assert assembler.explain_missing("oslo", "Ada", agent_id="a", as_of=day(2)).reason == "delivered"


def test_a_version_is_superseded_in_one_step_or_not_at_all(connection: Connection, dump: Dump) -> None:
    old = fact("nine", 1, topic=None, content="the standup is at nine")
    old.save()
    fact("home", 1).save()
    DefaultMemory(agent_id="b", memory_id="foreign", content="not yours").save()
    before = connection.round_trips
    new = fact("ten", 7, topic=None, content="the standup is at ten")
    outcome = new.save(supersedes="nine")
    assert (outcome.stored, outcome.closed, connection.round_trips - before) == (True, "nine", 1)
    assert found("when is the standup") == ["ten"]
    state = dump()
    for name, topic, reason in (
        ("nine", None, "closed"),
        ("nobody", None, "missing"),
        ("foreign", None, "missing"),
        ("home", None, "other_key"),
        ("home", "work", "other_key"),
        ("ten", "home", "other_key"),
    ):
        with pytest.raises(ConflictError) as refused:
            fact("new", 9, topic=topic).save(supersedes=name)
        assert refused.value.reason == reason
        assert dump() == state, reason
    with pytest.raises(QueryError, match="no versions"):
        DefaultMemory(agent_id="a", content="plain").save(supersedes="ten")
    assert sound()


def test_a_superseding_save_that_is_repeated_says_what_it_said(connection: Connection) -> None:
    fact("nine", 1, topic=None).save()
    first = fact("ten", 7, topic=None).save(supersedes="nine", operation_id="once")
    again = fact("ten", 7, topic=None).save(supersedes="nine", operation_id="once")
    assert (first.closed, again.closed, again.repeated) == ("nine", "nine", True)
    assert intervals() == {"nine": (day(1), day(7)), "ten": (day(7), None)}


def test_groups_and_twins_keep_versions(connection: Connection) -> None:
    outcomes = LivingFact.save_many([fact("rome", 5), fact("oslo", 1), fact("lima", 9)])
    assert [outcome.closed for outcome in outcomes] == [None, None, "rome"]
    with batch() as group:
        fact("kiev", 12).save(supersedes="lima")
        fact("bonn", 14).save(supersedes="oslo")
    assert [outcome.reason for outcome in group.outcomes] == ["", "closed"]
    assert LivingFact.query.get(agent_id="a", memory_id="bonn") is None

    async def main() -> None:
        with omoide.connect(connection.url) as other:
            assert (await fact("cork", 20).asave(supersedes="kiev")).closed == "kiev"
            with pytest.raises(ConflictError):
                await fact("deal", 21).asave(supersedes="kiev")
            query = LivingFact.query.filter(agent_id="a", as_of=day(10))
            assert [one.memory_id for one in await query.aall()] == ["lima"]
            assembler = ContextAssembler(LivingFact, track=False)
            result = await assembler.aassemble("Ada lives", agent_id="a", as_of=day(6))
            assert result.ids == ("rome",)
            await other.aclose()

    asyncio.run(main())
    with omoide.connect(connection.url):
        starts = sorted(validity.valid_from for validity in intervals().values() if validity.valid_from)
        assert starts == [day(1), day(5), day(9), day(12), day(20)]
        assert sound()


def test_updates_move_a_version_and_keep_the_rest(connection: Connection) -> None:
    for name, start in (("oslo", 1), ("rome", 5), ("lima", 9)):
        fact(name, start).save()
    rome = LivingFact.query.get(agent_id="a", memory_id="rome")
    assert rome is not None
    assert rome.update(content="Ada lives in Roma").closed is None
    assert intervals()["rome"] == rome.validity == (day(5), day(9))
    rome.update(valid_from=day(12))
    assert intervals() == {"oslo": (day(1), day(9)), "lima": (day(9), day(12)), "rome": (day(12), None)}
    rome.update(valid_to=day(13))
    assert rome.validity == (day(12), day(13))
    assert found() == []
    rome.update(topic="holidays")
    assert intervals()["lima"] == (day(9), None)
    rome.update(topic=None)
    assert found() == ["lima"]
    assert sound()


def test_a_version_taken_back_was_never_true(connection: Connection) -> None:
    for name, start in (("oslo", 1), ("rome", 5), ("lima", 9)):
        fact(name, start).save()
    assert LivingFact.delete_many(["rome"], agent_id="a") == 1
    assert intervals() == {"oslo": (day(1), day(9)), "lima": (day(9), None)}
    assert LivingFact.delete_many(["lima"], agent_id="a") == 1
    assert found() == ["oslo"]
    assert found(as_of=day(9)) == ["oslo"]
    assert sound()


def test_a_version_that_expired_was_true(connection: Connection) -> None:
    """The one before keeps its end, whenever the expired one is erased."""

    def brief(name: str, start: float) -> BriefFact:
        return BriefFact(memory_id=name, agent_id="a", content=name, topic="home", valid_from=day(start))

    brief("rome", 5).save()
    time.sleep(0.2)
    brief("oslo", 1).save()
    assert intervals(BriefFact)["oslo"] == (day(1), day(5))
    time.sleep(0.25)
    for _ in range(2):
        assert intervals(BriefFact) == {"oslo": (day(1), day(5))}
        assert BriefFact.query.filter(agent_id="a").count() == 0
        omoide.prune(BriefFact)
    assert BriefFact.query.filter(agent_id="a", as_of=day(6)).count() == 0


def test_a_rebuild_keeps_every_interval(connection: Connection) -> None:
    fact("oslo", 1).save()
    fact("rome", 5, valid_to=day(7)).save()
    fact("nine", 1, topic=None).save()
    fact("ten", 2, topic=None).save(supersedes="nine")
    undated = UndatedFact(memory_id="undated", agent_id="a", content="undated")
    undated.save()
    before = intervals()
    start = undated.validity
    assert omoide.reindex(LivingFact, agent_id="a") == 4
    assert omoide.reindex(UndatedFact, agent_id="a") == 1
    assert intervals() == before
    assert undated.refresh().validity == start
    fact("noon", 3, topic=None).save(supersedes="ten")
    assert intervals()["ten"] == (day(2), day(3))
    assert sound()


def test_what_says_no_start_is_valid_at_once(connection: Connection) -> None:
    """Also when the time it tells of, or the clock of its process, is ahead."""
    ahead = datetime.now(UTC) + timedelta(days=9)
    planned = UndatedFact(memory_id="planned", agent_id="a", content="the party", occurred_at=ahead)
    planned.save()
    assert found("party", UndatedFact) == ["planned"]
    start = planned.validity.valid_from
    assert start is not None
    assert abs((start - datetime.now(UTC)).total_seconds()) < 60
    time.sleep(0.002)
    planned.update(content="the big party")
    assert planned.validity.valid_from == start


def test_five_hundred_old_versions_are_in_nobodys_way(connection: Connection) -> None:
    """Found first by both readers, in one round trip, whatever the limit."""
    start = -600
    versions = [
        fact(f"v{number:03}", start + number, content=f"Ada lives in town {number}") for number in range(501)
    ]
    assert all(LivingFact.save_many(reversed(versions)))
    others = [fact(f"o{number}", 1, topic=f"t{number}", content=f"other {number}") for number in range(20)]
    assert all(LivingFact.save_many(others))
    assembler = ContextAssembler(LivingFact, max_items=1, track=False)
    for reader in ("client", "server"):
        with omoide.connect(connection.url, reader=reader) as other:
            for _ in range(2):
                before = other.round_trips
                result = assembler.assemble("in which town does Ada live", agent_id="a")
                warm = other.round_trips - before
                assert result.ids == ("v500",)
                assert result.metadata["reader"] == reader
            assert warm == 1
            then = assembler.assemble("in which town does Ada live", agent_id="a", as_of=day(start + 250.5))
            assert then.ids == ("v250",)
            before = other.round_trips
            top = LivingFact.query.filter(agent_id="a").top_by_decay(21)
            assert other.round_trips - before == 1
            assert {one.memory_id for one in top} == {"v500", *(one.memory_id for one in others)}
            assert LivingFact.query.filter(agent_id="a").count() == 21


def test_old_versions_are_evicted_before_what_is_valid(connection: Connection) -> None:
    def few(name: str, start: float, topic: str, importance: float) -> FewFacts:
        return FewFacts(
            memory_id=name,
            agent_id="a",
            content=name,
            topic=topic,
            valid_from=day(start),
            importance=importance,
        )

    valid = [few(f"valid-{number}", 1, f"topic {number}", 0.01) for number in range(50)]
    assert all(FewFacts.save_many(valid))
    assert all(FewFacts.save_many(few(f"old-{number:03}", number, "home", 1.0) for number in range(200)))
    alive = {one.memory_id for one in FewFacts.query.filter(agent_id="a").all()}
    assert alive == {one.memory_id for one in valid} | {"old-199"}
    history = sorted(set(intervals(FewFacts)) - alive)
    assert history == [f"old-{number:03}" for number in range(190, 199)]  # the last to be over stay
    assert FewFacts.counters(agent_id="a").read("evicted") == 250 - 60
    assert sound()


def test_what_is_evicted_leaves_the_end_it_made(connection: Connection) -> None:
    """The last version goes for lack of room; the one before does not come back."""

    class TinyFacts(LivingFact):
        max_records_per_partition = 2

    def tiny(name: str, start: float, topic: str, importance: float) -> TinyFacts:
        values = {"content": name, "topic": topic, "importance": importance}
        return TinyFacts(memory_id=name, agent_id="a", valid_from=day(start), **values)

    tiny("now", 1, "home", 1.0).save()
    tiny("to-come", 90_000, "home", 0.1).save()
    assert tiny("other", 1, "work", 1.0).save().evicted == 1
    assert intervals(TinyFacts) == {"now": (day(1), day(90_000)), "other": (day(1), None)}


def test_what_is_erased_leaves_no_trace_of_what_it_said(
    connection: Connection, contents: Callable[[], bytes]
) -> None:
    fact("oslo", 1, topic="secret place", content="the heron nests in the reeds").save()
    fact("rome", 5, topic="secret place", content="the heron left").save()
    fact("nine", 1, topic=None).save()
    fact("ten", 2, topic=None).save(supersedes="nine")
    assert b"heron" in contents()
    assert LivingFact.delete_many(["oslo", "rome", "nine", "ten"], agent_id="a") == 4
    held = contents()
    for word in (b"heron", b"secret", b"oslo", b"rome", b"nine"):
        assert word not in held


def test_links_lead_to_what_is_valid(connection: Connection) -> None:
    class LinkedFact(LivingFact):
        links = CoOccurrenceField()
        associations = NONE

    facts = [
        LinkedFact(memory_id=name, agent_id="a", content=name, topic=topic, valid_from=day(start))
        for name, topic, start in (("ada", "who", 1), ("oslo", "home", 1), ("rome", "home", 5))
    ]
    for one in facts:
        one.save()
    facts[0].links.link(facts[1])
    facts[0].links.link(facts[2])
    assert [name for name, _ in facts[0].links.neighbours()] == ["rome"]


def test_an_instant_has_to_be_one(connection: Connection) -> None:
    fact("oslo", 1).save()
    for asked in (datetime(2026, 1, 1), "2026-01-01", 1.0):
        with pytest.raises(QueryError, match="as_of is an aware datetime"):
            found(as_of=asked)
    with pytest.raises(QueryError, match="no ValidityField"):
        found(model=DefaultMemory, as_of=day(1))
    with pytest.raises(QueryError, match="no ValidityField"):
        DefaultMemory.query.filter(agent_id="a").history()
    with pytest.raises(QueryError, match="order"):
        DefaultMemory.query.filter(agent_id="a").order_by("valid_from")


def test_instants_long_ago_and_the_epoch_itself(connection: Connection) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    long_ago = datetime(1, 1, 1, tzinfo=UTC)
    for name, start in (("rome", long_ago), ("oslo", epoch), ("lima", epoch + timedelta(days=1))):
        LivingFact(memory_id=name, agent_id="a", content=name, topic="home", valid_from=start).save()
    moment = timedelta(milliseconds=1)
    for reader in ("client", "server"):
        with omoide.connect(connection.url, reader=reader):
            assert found("rome oslo lima", as_of=long_ago) == ["rome"]
            assert found("rome oslo lima", as_of=epoch - moment) == ["rome"]
            assert found("rome oslo lima", as_of=epoch) == ["oslo"]
            assert intervals()["rome"] == (long_ago, epoch)
            assert sound()


def test_meaning_is_masked_too(connection: Connection) -> None:
    """Versions that mean the same as the query, without a word of it."""

    class MeantFact(LivingFact):
        meaning = EmbeddingField(source="content", provider=lambda texts: [[1.0, 0.5] for _ in texts])

    for name, start in (("oslo", 1), ("rome", 5)):
        MeantFact(memory_id=name, agent_id="a", content=name, topic="home", valid_from=day(start)).save()
    assembler = ContextAssembler(MeantFact, track=False)
    for _ in range(2):
        assert assembler.assemble("where does she live", agent_id="a").ids == ("rome",)
        assert assembler.assemble("where does she live", agent_id="a", as_of=day(2)).ids == ("oslo",)
