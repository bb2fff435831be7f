"""The firewall over what is already stored: the verb and its Python twin, on real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.apps.conftest import Cli

import omoide
from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    DatetimeField,
    KeyField,
    Model,
    NeverRecordMixin,
    StringField,
    privacy,
)
from omoide.connection import Connection
from omoide.errors import PolicyError, QueryError, StoreUnavailableError
from omoide.mixins import never_record
from omoide.ops import quarantine, screening
from omoide.privacy import Policy, Verdict
from omoide.privacy.samples import Maker
from omoide.testing import ValkeyServer

TOKEN = "gh" + "p_" + Maker(77).body("an", 36)
PLAIN = """
from omoide import AutoKeyField, KeyField, Model, StringField

class ScanPlainNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
"""


class ScanNote(NeverRecordMixin, Model):
    class Meta:
        partition_by = ("team", "agent")

    note_id = AutoKeyField()
    team = KeyField()
    agent = KeyField()
    text = StringField(default="")
    happened = DatetimeField(null=True)
    trust = ConfidenceField()
    search = BM25Field(source="text", time="happened")


class ScanSingle(Model):
    note_id = AutoKeyField()
    text = StringField(default="")

    class Meta:
        partition_by = ()


@pytest.fixture
def off(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The firewall is off while a test stores what it must find."""
    monkeypatch.setenv("OMOIDE_NEVER_RECORD_DISABLE", "1")
    return monkeypatch


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    with omoide.connect(store_url) as connection:
        yield connection


def _store(team: str, agent: str, *texts: str) -> list[str]:
    notes = [ScanNote(team=team, agent=agent, text=text) for text in texts]
    assert all(ScanNote.save_many(notes))
    return [note.note_id for note in notes]


# ---- the verb --------------------------------------------------------------------------------------


def test_the_verb_reports_without_content(cli: Cli, off: pytest.MonkeyPatch) -> None:
    clean = cli("retain", "We deploy on Tuesdays", "--agent", "ada").out.strip()
    bad = cli("retain", f"the deploy token is {TOKEN}", "--agent", "ada").out.strip()
    off.delenv("OMOIDE_NEVER_RECORD_DISABLE")
    ran = cli("scan", "--json")
    assert ran.code == 1
    assert ran.data["memories"] == [
        {"model": "DefaultMemory", "partition": ["ada"], "id": bad, "reason": "credential", "rule": "github"}
    ]
    assert (ran.data["scanned"], ran.data["reasons"], ran.data["removed"]) == (2, {"credential": 1}, 0)
    shown = cli("scan", "--agent", "ada")
    assert bad in shown.out
    assert clean not in shown.out
    assert TOKEN not in ran.out + ran.err + shown.out + shown.err
    assert cli("scan", "--agent", "bob").code == 2


def test_the_verb_erases_with_every_trace(cli: Cli, off: pytest.MonkeyPatch) -> None:
    cli("retain", "We deploy on Tuesdays", "--agent", "ada")
    cli("retain", f"the deploy token is {TOKEN}", "--agent", "ada")
    ran = cli("scan", "--action", "erase")
    assert (ran.code, "1 erased" in ran.out) == (0, True)
    assert cli("list", "--agent", "ada", "--json").data["total"] == 1
    assert cli("doctor").code == 0
    assert cli("scan").code == 0
    (part,) = cli("status", "--json").data["partitions"]
    assert part["counters"]["never_record_stored:erased"] == 1


def test_the_verb_puts_in_quarantine_and_upkeep_knows_it(cli: Cli, off: pytest.MonkeyPatch) -> None:
    cli("retain", f"the deploy token is {TOKEN}", "--agent", "ada")
    assert cli("scan", "--action", "quarantine", "--json").data["removed"] == 1
    assert cli("recall", "deploy token", "--agent", "ada", "--json").data["memories"] == []
    assert cli("doctor").code == 0
    assert cli("reindex", "--all", "--json").code == 0
    names = {part["model"] for part in cli("status", "--json").data["partitions"]}
    assert names == {"DefaultMemory", "QuarantinedMemory"}


def test_the_verb_takes_any_model_and_checks_what_it_is_given(cli: Cli, off: pytest.MonkeyPatch) -> None:
    Path(cli.folder, "plain.py").write_text(PLAIN)
    here = ("--model", "plain:ScanPlainNote")
    cli("retain", f"token {TOKEN}", *here, "--agent", "ada")
    assert cli("scan", *here, "--json").data["blocked"] == 1
    for wrong in (("--action", "burn"), ("--resume", "nonsense"), ("--partition", "colour=red")):
        assert cli("scan", *here, *wrong).code == 2


# ---- the twin --------------------------------------------------------------------------------------


def test_a_run_that_is_cut_short_goes_on_where_it_was(
    connection: Connection, off: pytest.MonkeyPatch
) -> None:
    off.setattr(screening, "PAGE", 2)
    bad = set()
    for agent in ("ada", "bob", "eve", "zoe"):
        ids = _store("web", agent, "clean one", TOKEN, "clean two", f"x {TOKEN}", f"y {TOKEN}")
        bad |= {ids[1], ids[3], ids[4]}
    for after in range(1, 13):
        seen: set[str] = set()
        cursors: list[str] = []

        def stop(
            done: int, total: int, cursor: str, cursors: list[str] = cursors, after: int = after
        ) -> None:
            assert total == 20
            cursors.append(cursor)
            if len(cursors) == after:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            screening.scan_memories(ScanNote, progress=stop)
        found = screening.scan_memories(ScanNote, cursor=cursors[-1])
        seen = {one.id for one in found.found}
        assert found.scanned == 20 - [2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 19, 20][after - 1]
        assert seen <= bad
    assert {one.id for one in screening.scan_memories(ScanNote).found} == bad


def test_one_partition_or_all_but_not_a_half(connection: Connection, off: pytest.MonkeyPatch) -> None:
    _store("web", "ada", TOKEN)
    _store("web", "bob", TOKEN)
    ScanSingle(text=TOKEN).save()
    assert screening.scan_memories(ScanNote).scanned == 2
    assert screening.scan_memories(ScanNote, team="web", agent="bob").scanned == 1
    assert screening.scan_memories(ScanNote, team="web", agent="nobody").scanned == 0
    assert screening.scan_memories(ScanSingle, action="erase").removed == 1
    with pytest.raises(QueryError):
        screening.scan_memories(ScanNote, team="web")
    with pytest.raises(QueryError):
        screening.scan_memories(ScanNote, action="delete")


def test_quarantine_takes_out_and_gives_back(
    connection: Connection, valkey_server: ValkeyServer, off: pytest.MonkeyPatch
) -> None:
    when = datetime(2024, 5, 1, tzinfo=UTC)
    bad = ScanNote(team="we/b", agent="日本", text=f"x {TOKEN}", happened=when, trust=0.75)
    bad.save()
    other = _store("we/b", "日本", "clean")
    off.delenv("OMOIDE_NEVER_RECORD_DISABLE")
    where: dict[str, Any] = {"team": "we/b", "agent": "日本"}
    found = screening.scan_memories(ScanNote, action="quarantine", **where)
    assert (found.removed, found.left, found.reasons, found.rules) == (1, 0, {"credential": 1}, {"github": 1})
    assert [note.note_id for note in ScanNote.query.filter(**where).all()] == other
    held = valkey_server.command("KEYS", "*ScanNote*")
    for key in held:
        if b"Quarantined" not in key:
            kind = valkey_server.command("TYPE", key)
            body = (
                valkey_server.command("HGETALL", key)
                if kind == b"hash"
                else valkey_server.command("DUMP", key)
            )
            assert TOKEN.encode() not in repr(body).encode()
    (kept,) = quarantine.quarantined(ScanNote, **where)
    assert (kept.record_id, kept.reason, kept.rule) == (bad.note_id, "credential", "github")
    assert TOKEN not in repr(kept)
    assert quarantine.quarantined(ScanNote, team="we", agent="b/日本") == []

    assert quarantine.restore(ScanNote, [bad.note_id, "gone"], **where) == {
        bad.note_id: "restored",
        "gone": "missing",
    }
    back = ScanNote.query.get(note_id=bad.note_id, **where)
    assert back is not None
    assert (back.text, back.happened) == (bad.text, when)
    assert back.trust == pytest.approx(0.75, abs=1e-3)
    assert quarantine.quarantined(ScanNote, **where) == []


def test_a_taken_id_stays_in_quarantine_until_it_is_erased(
    connection: Connection, off: pytest.MonkeyPatch
) -> None:
    (bad,) = _store("web", "ada", TOKEN)
    screening.scan_memories(ScanNote, action="quarantine", team="web", agent="ada")
    ScanNote(team="web", agent="ada", note_id=bad, text="taken").save(resurrect=True)
    assert quarantine.restore(ScanNote, [bad], team="web", agent="ada") == {bad: "exists"}
    assert quarantine.erase_quarantined(ScanNote, ["other"], team="web", agent="ada") == 0
    assert quarantine.erase_quarantined(ScanNote, team="web", agent="ada") == 1
    assert quarantine.quarantined(ScanNote, team="web", agent="ada") == []


def test_a_blocked_name_of_a_partition_is_never_written_again(
    connection: Connection, valkey_server: ValkeyServer, off: pytest.MonkeyPatch
) -> None:
    _store("web", TOKEN, "clean")
    found = screening.scan_memories(ScanNote, action="quarantine")
    assert (found.removed, found.left) == (0, 1)
    assert TOKEN not in repr(found)
    assert valkey_server.command("KEYS", "*Quarantined*") == []
    assert screening.scan_memories(ScanNote, action="erase").removed == 1
    assert not any(key.endswith(b":n") for key in valkey_server.command("KEYS", "*"))


def test_a_firewall_that_fails_erases_nothing(connection: Connection, off: pytest.MonkeyPatch) -> None:
    (note,) = _store("web", "ada", "clean")
    off.setattr(privacy, "self_test", lambda: Verdict(True, "self_test", "x"))
    with pytest.raises(PolicyError) as caught:
        screening.scan_memories(ScanNote, action="erase")
    assert caught.value.reason == "self_test"
    off.undo()

    off.setattr(privacy, "scan_values", lambda values, policy=None: Verdict(True, "error", "internal"))
    found = screening.scan_memories(ScanNote, action="erase")
    assert (found.removed, found.left, found.reasons) == (0, 1, {"error": 1})
    off.setattr(never_record, "_clean", set())  # names that were judged before
    with pytest.raises(PolicyError, match="team is kept out by the firewall: error"):
        ScanNote.query.filter(team="web", agent="ada")
    off.undo()
    assert [one.note_id for one in ScanNote.query.filter(team="web", agent="ada").all()] == [note]


def test_nothing_is_erased_that_was_not_copied(
    connection: Connection, valkey_server: ValkeyServer, off: pytest.MonkeyPatch
) -> None:
    _store("web", "ada", TOKEN)
    place = quarantine.quarantine_of(ScanNote._scope({"team": "web", "agent": "ada"}, "test"))
    head = f"omoide:{{QuarantinedMemory/{place.values[0]}/{place.values[1].replace('/', '%2F')}}}:h"
    valkey_server.command("SET", head, "in the way")
    with pytest.raises(omoide.StoreError):
        screening.scan_memories(ScanNote, action="quarantine")
    assert ScanNote.count(team="web", agent="ada") == 1


def test_a_record_too_large_for_quarantine_is_left(connection: Connection, off: pytest.MonkeyPatch) -> None:
    off.setattr(quarantine.QuarantinedMemory.__omoide_spec__.fields["body"], "max_bytes", 64)  # type: ignore[union-attr]
    _store("web", "ada", TOKEN)
    found = screening.scan_memories(ScanNote, action="quarantine")
    assert (found.removed, found.left) == (0, 1)


def test_the_policy_of_the_model_judges(connection: Connection, off: pytest.MonkeyPatch) -> None:
    _store("web", "ada", TOKEN)
    off.setattr(ScanNote, "never_record_policy", Policy(disabled=frozenset({"github"})))
    assert screening.scan_memories(ScanNote).found == ()


def test_the_async_twins(connection: Connection, off: pytest.MonkeyPatch) -> None:
    (bad,) = _store("web", "ada", TOKEN)
    where = {"team": "web", "agent": "ada"}

    async def go() -> None:
        assert (await screening.ascan_memories(ScanNote, action="quarantine")).removed == 1
        assert len(await quarantine.aquarantined(ScanNote, **where)) == 1
        assert await quarantine.arestore(ScanNote, [bad], **where) == {bad: "restored"}
        assert await quarantine.aerase_quarantined(ScanNote, **where) == 0

    asyncio.run(go())


def test_an_outage_is_raised(connection: Connection, valkey_server: ValkeyServer) -> None:
    valkey_server.kill9()
    with pytest.raises(StoreUnavailableError):
        screening.scan_memories(ScanNote)


# ---- what the firewall counted ---------------------------------------------------------------------


def test_status_and_doctor_add_up_by_model_and_partition(cli: Cli) -> None:
    for agent, text in (("ada", TOKEN), ("bob", TOKEN), ("bob", "Off the record, Mark leaves.")):
        assert cli("retain", text, "--agent", agent).code == 1
    cli("retain", f"build {Maker(3).body('an', 30)} is out", "--agent", "ada")
    sums = {"DefaultMemory": {"credential": 2, "off_the_record": 1, "suspect": 1}}
    status = cli("status", "--json").data
    assert status["never_record"]["models"] == sums
    assert status["never_record"]["disabled"] is False
    by_name = {part["partition"][0]: part["never_record"] for part in status["partitions"]}
    assert by_name == {
        "ada": {"credential": 1, "suspect": 1},
        "bob": {"credential": 1, "off_the_record": 1},
    }
    doctor = cli("doctor", "--json").data
    assert doctor["never_record"] == sums
    assert {part["partition"][0]: part["never_record"] for part in doctor["partitions"]} == by_name
    line = "never recorded, DefaultMemory: 2 credential, 1 off_the_record, 1 suspect (stored)"
    assert line in cli("status").out
    assert line in cli("doctor").out


def test_status_says_that_the_firewall_is_off(cli: Cli, off: pytest.MonkeyPatch) -> None:
    assert cli("status", "--json").data["never_record"]["disabled"] is True
    assert "switched off" in cli("status").out


def test_status_counts_this_process_as_well(connection: Connection) -> None:
    before = omoide.status()["never_record"]["process"].get("ScanNote", {}).get("credential", 0)
    assert not ScanNote(team="web", agent="ada", text=TOKEN).save()
    told = omoide.status()["never_record"]
    assert told["models"] == {"ScanNote": {"credential": 1}}
    assert told["process"]["ScanNote"]["credential"] == before + 1
    assert ScanNote.never_record_counts(team="web", agent="ada") == {"credential": 1}
    assert ScanNote.never_record_rules(team="web", agent="ada") == {"github": 1}
    assert asyncio.run(ScanNote.anever_record_counts(team="web", agent="ada")) == {"credential": 1}
    assert asyncio.run(ScanNote.anever_record_rules(team="web", agent="ada")) == {"github": 1}
