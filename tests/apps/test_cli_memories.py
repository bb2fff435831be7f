"""retain, recall, list, forget: one store, seen through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.apps.conftest import Cli

MODEL = """
from omoide import AutoKeyField, BM25Field, IntField, KeyField, Model, StringField

class Ticket(Model):
    class Meta:
        partition_by = ("customer", "desk")
    ticket_id = AutoKeyField()
    customer = KeyField()
    desk = KeyField()
    text = StringField(default="")
    urgency = IntField(default=1)
    search = BM25Field(source="text")
"""


def test_a_memory_goes_in_comes_back_and_goes(cli: Cli) -> None:
    kept = cli(
        "retain", "Deploys are blue-green", "--agent", "ada", "--tag", "ops", "--set", "importance=0.5"
    )
    assert (kept.code, kept.err) == (0, "")
    record_id = kept.out.strip()

    found = cli("recall", "how do we deploy?", "--agent", "ada", "--json").data
    (memory,) = found["memories"]
    assert memory["id"] == record_id
    assert memory["content"] == "Deploys are blue-green"
    assert (memory["tags"], memory["importance"]) == (["ops"], 0.5)
    assert memory["score"] > 0
    assert "blue-green" in found["formatted"]

    listed = cli("list", "--agent", "ada", "--json").data
    assert [one["id"] for one in listed["memories"]] == [record_id]
    assert listed["total"] == 1

    assert cli("forget", record_id, "--agent", "ada").out == "forgot 1\n"
    assert cli("list", "--agent", "ada", "--json").data == {"memories": [], "total": 0}


def test_text_comes_from_stdin_in_any_script(cli: Cli) -> None:
    text = "会議は木曜日の九時です"
    assert cli("retain", "-", "--agent", "ada", stdin=text).code == 0
    found = cli("recall", "木曜日", "--agent", "ada")
    assert text in found.out


def test_another_agent_sees_nothing(cli: Cli) -> None:
    kept = cli("retain", "the code word is heron", "--agent", "ada", "--json").data
    other = cli("recall", "code word heron", "--agent", "bob", "--json").data
    assert other["memories"] == []
    assert cli("forget", kept["id"], "--agent", "bob", "--json").code == 1
    assert cli("list", "--agent", "ada", "--json").data["total"] == 1


def test_a_secret_is_refused_and_counted(cli: Cli) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    refused = cli("retain", f"the token is {secret}", "--agent", "ada", "--json")
    assert refused.code == 1
    assert refused.data["stored"] is False
    assert refused.data["reason"] == "credential"
    assert secret not in refused.out + refused.err
    status = cli("status", "--json").data
    assert status["partitions"][0]["counters"]["never_record:credential"] == 1
    assert cli("doctor", "--json").data["partitions"][0]["never_record"] == {"credential": 1}


def test_a_recall_counts_as_delivery_only_when_asked(cli: Cli) -> None:
    cli("retain", "the standup is at nine", "--agent", "ada")
    plain = cli("recall", "standup", "--agent", "ada", "--json").data
    assert plain["turn_id"] is None
    delivered = cli("recall", "standup", "--agent", "ada", "--deliver", "--json").data
    assert delivered["turn_id"]
    assert cli("list", "--agent", "ada", "--json").data["memories"][0]["access_count"] == 1


def test_explain_shows_the_parts(cli: Cli) -> None:
    cli("retain", "the standup is at nine", "--agent", "ada")
    told = cli("recall", "standup", "--agent", "ada", "--explain").out
    assert "confidence" in told
    explained = cli("recall", "standup", "--agent", "ada", "--explain", "--json").data["metadata"]["explain"]
    assert explained


def test_nothing_matches_is_said_and_a_fallback_too(cli: Cli) -> None:
    cli("retain", "the standup is at nine", "--agent", "ada")
    nothing = cli("recall", "zeppelin", "--agent", "ada")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "nothing matches\n")
    filled = cli("recall", "zeppelin", "--agent", "ada", "--fallback", "recent")
    assert "standup" in filled.out
    assert "recent" in filled.err


def test_list_pages_and_says_what_is_left(cli: Cli) -> None:
    for number in range(3):
        cli("retain", f"note {number}", "--agent", "ada")
    first = cli("list", "--agent", "ada", "--limit", "2")
    assert len(first.out.splitlines()) == 2
    assert first.err.startswith("1 more")
    rest = cli("list", "--agent", "ada", "--offset", "2", "--order", "-time")
    assert rest.out.splitlines()[0].endswith("note 0")


def test_forget_everything_leaves_other_agents(cli: Cli) -> None:
    for agent in ("ada", "ada", "bob"):
        cli("retain", "a note", "--agent", agent)
    data = cli("forget", "--everything", "--agent", "ada", "--json").data
    assert (data["forgotten"], data["missing"], data["rewritten"]) == (2, 0, None)
    assert cli("list", "--agent", "bob", "--json").data["total"] == 1


def test_a_certificate_says_what_is_out_of_reach(cli: Cli) -> None:
    cli("retain", "a note", "--agent", "ada")
    told = cli("forget", "--everything", "--certify", "--agent", "ada")
    assert told.out.splitlines()[:2] == ["forgot 1", "the files of the store were written anew"]
    assert all(line.startswith("out of reach: ") for line in told.out.splitlines()[2:])
    assert cli("forget", "some-id", "--certify", "--agent", "ada").code == 2


def test_control_characters_do_not_reach_the_terminal(cli: Cli) -> None:
    cli("retain", "-", "--agent", "ada", stdin="bell \x1b[31mred\x1b[0m\nsecond line")
    line = cli("list", "--agent", "ada").out
    assert "\x1b" not in line
    assert line.count("\n") == 1


def test_a_model_of_ones_own_with_two_partition_fields(cli: Cli) -> None:
    Path(cli.folder, "tickets.py").write_text(MODEL)
    where = ("--model", "tickets:Ticket", "--partition", "customer=acme", "--partition", "desk=2")
    assert cli("retain", "printer on fire", *where, "--set", "urgency=9").code == 0
    found = cli("recall", "printer", *where, "--json").data["memories"]
    assert [(one["customer"], one["desk"], one["urgency"]) for one in found] == [("acme", "2", 9)]
    refused = cli("recall", "printer", "--model", "tickets:Ticket", "--agent", "acme")
    assert refused.code == 2
    assert "--partition" in refused.err


def test_every_value_survives_json(cli: Cli) -> None:
    cli("retain", "noted", "--agent", "ada", "--set", "occurred_at=2026-03-02T09:00:00+09:00")
    (memory,) = cli("list", "--agent", "ada", "--json").data["memories"]
    assert memory["occurred_at"] == "2026-03-02T00:00:00+00:00"
    assert json.dumps(memory)


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_the_line_break_that_ends_stdin_is_not_stored(cli: Cli, end: str) -> None:
    cli("retain", "-", "--agent", "ada", stdin=f"first\n\nlast{end}")
    (memory,) = cli("list", "--agent", "ada", "--json").data["memories"]
    assert memory["content"] == "first\n\nlast"


def test_a_refused_memory_is_one_line_without_its_text(cli: Cli) -> None:
    told = cli("retain", "the admin password is hunter2-Xy93kQ", "--agent", "ada")
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith("omoide: not stored: ")
    assert told.err.count("\n") == 1
    assert "hunter2" not in told.err


def test_the_json_of_an_outcome_has_the_names_of_the_library(cli: Cli) -> None:
    from omoide import SaveOutcome

    told = cli("retain", "a note", "--agent", "ada", "--json").data
    assert set(told) <= set(SaveOutcome.__dataclass_fields__)
    assert told["left_out"] == 0


@pytest.mark.parametrize(
    ("pair", "rule"),
    [
        ("importance=much", "DefaultMemory.importance: must be a float"),
        ("tags=work", "DefaultMemory.tags: must be a set of strings"),
        ("occurred_at=soon", "DefaultMemory.occurred_at: must be an ISO 8601 instant"),
        ("occurred_at=2026-03-02T09:00:00", "DefaultMemory.occurred_at: must be aware"),
        ("relevance=1", "DefaultMemory.relevance: is computed"),
    ],
)
def test_a_value_that_breaks_a_rule_is_told_the_rule(cli: Cli, pair: str, rule: str) -> None:
    told = cli("retain", "a note", "--agent", "ada", "--set", pair)
    assert told.code == 2
    assert rule in told.err


def test_a_format_prints_the_block_for_a_prompt(cli: Cli) -> None:
    cli("retain", "the standup is at nine", "--agent", "ada")
    ask = ("recall", "standup", "--agent", "ada")
    for format in ("content", "labelled", "structured", "xml", "natural"):
        block = cli(*ask, "--format", format, "--json").data["formatted"]
        assert cli(*ask, "--format", format).out == f"{block}\n"
    assert cli(*ask).out != cli(*ask, "--format", "content").out
    explained = cli(*ask, "--format", "xml", "--explain").out
    assert explained.startswith("<memories")
    assert "confidence =" in explained


def test_what_the_budget_leaves_out_is_told(cli: Cli) -> None:
    for number in range(2):
        cli("retain", f"the standup of team {number} is at nine", "--agent", "ada")
    told = cli("recall", "standup", "--agent", "ada", "--max-tokens", "0")
    assert (told.code, told.out) == (0, "")
    assert told.err == "2 of 2 memories were left out: 2 beyond --max-tokens\n"
