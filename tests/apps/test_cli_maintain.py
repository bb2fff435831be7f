"""`omoide maintain`: the daily upkeep of long-term memory from a command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.apps.conftest import Cli
from tests.postgres.conftest import emptied

from omoide import Connection
from omoide.recipes import LongTermRecord
from omoide.testing import PostgresServer


@pytest.fixture
def postgres(postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OMOIDE_POSTGRES", postgres_url)
    return emptied(postgres_server, postgres_url)


def _fill(cli: Cli, postgres: str) -> None:
    with Connection(cli.url, postgres=postgres) as connection, connection.use():
        for kind in ("episode", "fact"):
            for days in (0, 50, 100, 200):
                created = datetime.now(UTC) - timedelta(days=days)
                record = LongTermRecord(
                    resource_id="ada",
                    kind=kind,
                    content=f"needle {days}",
                    identity=f"{kind} {days}",
                    created_at=created,
                )
                assert record.save()


def test_a_dry_run_counts_and_a_run_erases(cli: Cli, postgres: str) -> None:
    _fill(cli, postgres)
    dry = cli("maintain", "--dry-run", "--json").data
    assert (dry["erased"], dry["counts"], dry["dry_run"]) == (2, {"age": 2}, True)
    told = cli("maintain", "--per-resource", "1", "--days", "150")
    assert told.code == 0
    assert told.out.splitlines() == [
        "3 episodes erased",
        "  1 older than 150 days",
        "  2 beyond the newest 1 of a resource",
    ]
    assert "needle" not in told.out + told.err
    assert cli("maintain", "--json").data["erased"] == 0
    facts = cli("list", "--model", "omoide.recipes:LongTermRecord", "--agent", "ada", "--json").data
    assert facts["total"] == 5
    assert cli("maintain", "--in-all", "0").out.splitlines()[1] == "  1 beyond the newest 0 of all"


def test_without_postgres_it_says_what_is_missing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMOIDE_POSTGRES", raising=False)
    done = cli("maintain", "--dry-run")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert "OMOIDE_POSTGRES" in done.err


@pytest.mark.parametrize("bad", [["--days", "-1"], ["--per-resource", "x"], ["--in-all", "-2"]])
def test_a_bound_that_cannot_be_meant_is_a_misuse(cli: Cli, postgres: str, bad: list[str]) -> None:
    assert cli("maintain", *bad).code == 2
