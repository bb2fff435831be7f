"""What keys lost from outside do to a mirrored partition, and that it is repaired from its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import Python

import omoide
from omoide import DatetimeField, PostgresMirror, StringField, ValidityField
from omoide.connection import Connection
from omoide.errors import CorruptRecordError, StoreUnavailableError
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.recipes import DefaultMemory
from omoide.testing import ValkeyServer

MODULE = """
from omoide import DatetimeField, PostgresMirror, StringField, ValidityField
from omoide.recipes import DefaultMemory

class TornFact(DefaultMemory):
    topic = StringField(null=True, index=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")

    class Meta:
        mirror = PostgresMirror()
"""
LETTERS = "amrdfwtkovhn"


class TornFact(DefaultMemory):
    topic = StringField(null=True, index=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")

    class Meta:
        mirror = PostgresMirror()


class TornBriefNote(DefaultMemory):
    class Meta:
        mirror = PostgresMirror()
        ttl = 600


@pytest.fixture(autouse=True)
def _clean(mirrored: Connection) -> Iterator[None]:
    yield
    for model in (TornFact, TornBriefNote):
        for agent in (*LETTERS, "ada", "bob", "cyd"):
            model.delete_partition(agent_id=agent)


def save_facts(agent: str) -> None:
    """Two versions of one fact and two facts of no key: every key of a partition has something in it."""
    for number in range(4):
        topic = "home" if number < 2 else None
        content = f"Ada lives in town {number}"
        assert TornFact(agent_id=agent, content=content, topic=topic, session_id="s", author="Ada").save()
    TornFact.counters(agent_id=agent).increment("seen", 3)


def lose(server: ValkeyServer, letters: str, agent: str, model: str = "TornFact") -> None:
    """Delete keys of a partition, as somebody from outside would."""
    for letter in letters:
        assert server.command("DEL", f"omoide:{{{model}/{agent}}}:{letter}") == 1


def differing(*, repair: bool = False) -> dict[str, bool]:
    """The agents whose partitions differ, and whether they were repaired."""
    found = omoide.compare(TornFact, repair=repair)
    return {agent: one.repaired for (agent,), one in found.items() if not one.equal}


@pytest.mark.parametrize("letter", LETTERS)
def test_a_lost_key_is_a_difference_and_repaired(
    mirrored: Connection, valkey_server: ValkeyServer, letter: str
) -> None:
    for agent in ("ada", "bob", "cyd"):
        save_facts(agent)
    assert differing() == {}
    lose(valkey_server, letter, "ada")
    lose(valkey_server, "m", "cyd")
    for _ in range(2):
        assert differing() == {"ada": False, "cyd": False}
    assert omoide.compare(TornFact, agent_id="cyd")["cyd",].damaged
    assert differing(repair=True) == {"ada": True, "cyd": True}
    assert differing() == {}
    assert TornFact.query.filter(agent_id="ada").history().count() == 4


def test_the_command_repairs_them_in_one_go(
    mirrored: Connection, valkey_server: ValkeyServer, postgres_url: str, tmp_path: Path, python: Python
) -> None:
    (tmp_path / "torn_model.py").write_text(MODULE)

    def doctor(*options: str) -> tuple[int, Any]:
        words = ("doctor", "--model", "torn_model:TornFact", "--json", *options)
        where = ("--url", valkey_server.url, "--postgres", postgres_url)
        done = python("-m", "omoide.apps.cli.main", *words, *where, cwd=tmp_path, timeout=120)
        return done.returncode, json.loads(done.stdout)

    for agent in (*LETTERS, "ada"):
        save_facts(agent)
    for letter in LETTERS:
        lose(valkey_server, letter, letter)
    code, answer = doctor()
    differ = {one["partition"][0] for one in answer["mirrored"] if not one["equal"]}
    assert (code, differ) == (1, set(LETTERS))
    code, answer = doctor("--repair")
    repaired = {one["partition"][0] for one in answer["mirrored"] if one["repaired"]}
    assert (code, repaired) == (0, set(LETTERS))
    code, answer = doctor()
    assert (code, [one for one in answer["mirrored"] if not one["equal"]]) == (0, [])


@pytest.mark.parametrize("reader", ["client", "server"])
@pytest.mark.parametrize("model", [TornFact, TornBriefNote])
def test_without_intervals_nothing_looks_empty(
    valkey_server: ValkeyServer, postgres_url: str, mirrored: Connection, model: Any, reader: Any
) -> None:
    """Neither a chain nor an end says here that there were any: the head does."""
    for number in range(3):
        assert model(agent_id="ada", content=f"Ada lives in town {number}").save()
    lose(valkey_server, "w", "ada", model.__name__)
    scope = Scope(spec_of(model), ("ada",))
    assert ("wrong number of intervals", 1) in mirrored.store.execute(ask.Check(scope)).findings
    fresh = Connection(valkey_server.url, postgres=postgres_url, reader=reader)
    with fresh, fresh.use():
        with pytest.raises(CorruptRecordError):
            omoide.ContextAssembler(model, track=False).assemble("where does Ada live", agent_id="ada")
        with pytest.raises(CorruptRecordError):
            model.query.filter(agent_id="ada").all()
        assert omoide.rebuild(model, agent_id="ada") == {("ada",): 3}
        lose(valkey_server, "w", "ada", model.__name__)
        assert omoide.compare(model, repair=True, agent_id="ada")["ada",].repaired
        found = omoide.ContextAssembler(model, track=False).assemble("where does Ada live", agent_id="ada")
        assert len(found.ids) == 3


def test_a_head_of_another_type_is_replaced(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    save_facts("ada")
    lose(valkey_server, "h", "ada")
    valkey_server.command("SET", "omoide:{TornFact/ada}:h", "something else")
    assert differing(repair=True) == {"ada": True}
    assert differing() == {}


def test_what_a_rebuild_leaves_is_not_said_to_be_repaired(
    mirrored: Connection, valkey_server: ValkeyServer
) -> None:
    """Turns are in the store only."""
    save_facts("ada")
    valkey_server.command("HSET", "omoide:{TornFact/ada}:i", "turn", "jun")
    assert differing(repair=True) == {"ada": False}


def test_an_outage_is_no_damage(mirrored: Connection, valkey_server: ValkeyServer) -> None:
    save_facts("ada")
    valkey_server.kill9()
    try:
        for repair in (False, True):
            with pytest.raises(StoreUnavailableError):
                omoide.compare(TornFact, repair=repair)
    finally:
        valkey_server.start()
        omoide.compare(TornFact, repair=True)
