"""Upkeep of long-term memory: what has had its time goes, with a reason, and facts stay."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.postgres.conftest import emptied

from omoide import Connection, QueryError
from omoide.ops import port
from omoide.recipes import LongTermMemory, LongTermRecord, aledger, amaintain, ledger, maintain
from omoide.testing import PostgresServer

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(params=["omoide", "my%_app"])
def connection(
    request: pytest.FixtureRequest, store_url: str, postgres_server: PostgresServer, postgres_url: str
) -> Iterator[Connection]:
    url = emptied(postgres_server, postgres_url)
    with Connection(store_url, namespace=request.param, postgres=url) as connection, connection.use():
        yield connection


def episodes(resource: str, *days_ago: float) -> None:
    records = [
        LongTermRecord(
            resource_id=resource,
            kind="episode",
            content=f"episode {days}",
            identity=f"{number} {days}",
            created_at=NOW - timedelta(days=days),
        )
        for number, days in enumerate(days_ago)
    ]
    assert all(LongTermRecord.save_many(records))


def left(resource: str) -> list[str]:
    return [one.content for one in LongTermMemory(resource).records("episode").order_by("time").all()]


def test_old_episodes_go_and_facts_stay(connection: Connection) -> None:
    episodes("a/b:c", 91, 90, 89.9, 1)
    episodes("%", 400)
    for resource in ("a/b:c", "%"):
        old = LongTermRecord(
            resource_id=resource, content="fact", identity="f", created_at=NOW - timedelta(days=900)
        )
        assert old.save()
    dry = maintain(dry_run=True, now=NOW)
    assert (dry.counts, dry.erased, dry.run_id) == ({"age": 2}, 2, "")
    assert len(left("a/b:c")) == 4
    seen: list[tuple[int, int]] = []
    done = maintain(now=NOW, progress=lambda gone, due: seen.append((gone, due)))
    assert (done.counts, done.missed) == ({"age": 2}, 0)
    assert seen[-1] == (2, 2)
    assert left("a/b:c") == ["episode 90", "episode 89.9", "episode 1"]
    assert left("%") == []
    assert [LongTermMemory(one).records("fact").count() for one in ("a/b:c", "%")] == [1, 1]
    assert not LongTermMemory("%").recall("episode").records
    (entry,) = ledger("%")
    assert (entry.run_id, entry.reason) == (done.run_id, "age")
    assert entry.created_at == NOW - timedelta(days=400)
    assert entry.erased_at is not None
    assert maintain(now=NOW).erased == 0
    assert maintain(now=NOW, episode_days=0).counts == {"age": 3}


def test_the_newest_of_a_resource_and_of_all_stay(connection: Connection) -> None:
    episodes("a", *range(10))
    episodes("b", *(day + 0.5 for day in range(4)))
    episodes("c", 95, 2)
    bounds = {"episodes_per_resource": 5, "episodes_in_all": 8, "now": NOW}
    wanted = {"age": 1, "per_resource": 5, "in_all": 2}
    assert maintain(dry_run=True, **bounds).counts == wanted
    done = maintain(**bounds)
    assert done.counts == wanted
    assert left("a") == [f"episode {day}" for day in (3, 2, 1, 0)]
    assert left("b") == [f"episode {day}" for day in (2.5, 1.5, 0.5)]
    assert left("c") == ["episode 2"]
    assert Counter(entry.reason for name in "abc" for entry in ledger(name)) == wanted
    assert [entry.reason for entry in ledger("a", limit=2)] == ["in_all", "per_resource"]
    assert maintain(**bounds).erased == 0
    assert maintain(episodes_per_resource=0, now=NOW).erased == 8


def test_many_go_in_pieces_and_two_runs_at_once_count_each_once(connection: Connection) -> None:
    episodes("a", *(100 + number / 1000 for number in range(600)))
    episodes("b", 1)

    def one(_: int) -> Any:
        with port.using(connection):
            return maintain(now=NOW)

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(one, range(2)))
    assert sum(run.erased for run in runs) == 600
    assert left("a") == []
    assert left("b") == ["episode 1"]
    assert all(entry.erased_at for entry in ledger("a", limit=1_000))


@pytest.mark.parametrize(
    "bad",
    [
        {"episode_days": -1},
        {"episode_days": float("nan")},
        {"episode_days": True},
        {"episodes_per_resource": -1},
        {"episodes_per_resource": None},
        {"episodes_in_all": 1.5},
        {"now": datetime(2026, 1, 1)},
    ],
)
def test_a_bound_that_cannot_be_meant_erases_nothing(connection: Connection, bad: dict[str, Any]) -> None:
    episodes("a", 400)
    with pytest.raises(QueryError):
        maintain(**bad)
    assert left("a")


def test_async_twins(connection: Connection) -> None:
    episodes("a", 100, 1)

    async def main() -> None:
        assert (await amaintain(now=NOW, dry_run=True)).counts == {"age": 1}
        assert (await amaintain(now=NOW)).counts == {"age": 1}
        assert [entry.reason for entry in await aledger("a")] == ["age"]

    asyncio.run(main())
    assert left("a") == ["episode 1"]
