"""recall, retain and list with versions, dates and orders, through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.apps.conftest import Cli

MODEL = """
from omoide import DatetimeField, StringField, ValidityField
from omoide.recipes import DefaultMemory

class CliFact(DefaultMemory):
    topic = StringField(null=True)
    valid_from = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField(key="topic")
"""
HERE = ("--agent", "ada")


@pytest.fixture
def fact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    (tmp_path / "cli_facts.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return (*HERE, "--model", "cli_facts:CliFact")


def test_versions_are_retained_recalled_and_listed(cli: Cli, fact: tuple[str, ...]) -> None:
    home = ("--set", "topic=home", "--set")
    oslo = cli("retain", "Ada lives in Oslo", *home, "valid_from=2026-01-01T00:00:00Z", *fact).out.strip()
    rome = cli("retain", "Ada lives in Rome", *home, "valid_from=2026-06-01T00:00:00Z", *fact, "--json").data
    assert rome["closed"] == oslo

    now = cli("recall", "where does ada live", *fact, "--json").data
    assert [one["id"] for one in now["memories"]] == [rome["id"]]
    then = cli("recall", "where does ada live", "--as-of", "2026-03-01T00:00:00+00:00", *fact, "--json").data
    assert [one["id"] for one in then["memories"]] == [oslo]
    assert then["metadata"]["as_of"] == "2026-03-01T00:00:00+00:00"
    assert then["memories"][0]["validity"]["valid_to"] == "2026-06-01T00:00:00+00:00"

    assert [one["id"] for one in cli("list", *fact, "--json").data["memories"]] == [rome["id"]]
    versions = cli("list", "--history", "--order", "valid_from", *fact, "--json").data
    assert [one["id"] for one in versions["memories"]] == [oslo, rome["id"]]
    assert versions["total"] == 2


def test_a_version_is_superseded_once(cli: Cli, fact: tuple[str, ...]) -> None:
    old = cli("retain", "the standup is at nine", *fact).out.strip()
    assert cli("retain", "the standup is at ten", "--supersedes", old, *fact).code == 0
    again = cli("retain", "the standup is at noon", "--supersedes", old, *fact, "--json")
    assert again.code == 1
    assert again.data["error"]["type"] == "ConflictError"
    assert cli("list", *fact, "--json").data["total"] == 1


def test_recall_without_a_query(cli: Cli) -> None:
    for day, importance, tag in ((1, 0.9, "work"), (2, 0.1, "home"), (3, 0.5, "work")):
        values = (f"importance={importance}", f"occurred_at=2026-05-0{day}T00:00:00Z")
        settings = [part for value in values for part in ("--set", value)]
        cli("retain", f"day {day}", *settings, "--tag", tag, *HERE)

    def said(*options: str) -> list[str]:
        return [one["content"] for one in cli("recall", *options, *HERE, "--json").data["memories"]]

    assert said("--order", "recent") == ["day 3", "day 2", "day 1"]
    assert said("--order", "important") == ["day 1", "day 3", "day 2"]
    assert said("--order", "relevant") == ["day 1", "day 3", "day 2"]
    assert said("--order", "recent", "--tag", "work") == ["day 3", "day 1"]
    between = ("--since", "2026-05-02T00:00:00Z", "--until", "2026-05-03T00:00:00Z")
    assert said("--order", "important", *between) == ["day 2"]
    assert said("day", *between) == ["day 2"]
    first = cli("recall", "--order", "recent", *HERE, "--json").data["memories"][0]["id"]
    assert said("--order", "recent", "--exclude", first) == ["day 2", "day 1"]
    assert len(cli("list", *HERE, "--since", "2026-05-02T00:00:00Z", "--json").data["memories"]) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "recall takes a query, or --order"),
        (("day", "--order", "recent"), "recall takes a query, or --order"),
        (("--order", "newest"), "order is one of"),
        (("day", "--since", "yesterday"), "--since takes an ISO 8601 instant with a time zone"),
        (("day", "--until", "2026-05-01"), "--until takes an ISO 8601 instant with a time zone"),
        (("day", "--as-of", "2026-05-01T00:00:00Z"), "has no ValidityField, which as_of needs"),
    ],
)
def test_a_call_that_cannot_be_meant_is_told(cli: Cli, options: tuple[str, ...], says: str) -> None:
    answer = cli("recall", *options, *HERE)
    assert answer.code == 2
    assert says in answer.err
