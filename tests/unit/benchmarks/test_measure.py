"""The measuring itself: clocks attributed to the right process, trips counted, rows summed up right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict

import pytest
import redis
from benchmarks.report import markdown
from benchmarks.server import Server
from benchmarks.speed.measure import Sample, Trips, measure, percentile, summarize

BUSY = "local x = 0 for i = 1, 3000000 do x = x + i end return x"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def test_server_work_is_the_servers_and_client_work_the_clients(server: Server) -> None:
    client = redis.Redis.from_url(server.url)
    client.ping()
    _, busy = measure(lambda: client.eval(BUSY, 0), server, Trips())
    _, idle = measure(client.ping, server, Trips())
    assert busy.server_ns > 5_000_000 > idle.server_ns > 0
    assert busy.client_ns < busy.server_ns
    assert busy.wall_ns >= busy.server_ns * 0.5
    client.close()


def test_another_server_does_not_count(server: Server) -> None:
    client = redis.Redis.from_url(server.url)
    with Server() as bystander:
        _, sample = measure(lambda: client.eval(BUSY, 0), bystander, Trips())
    assert sample.server_ns < 5_000_000
    client.close()


def test_round_trips_are_hand_overs_not_commands(server: Server) -> None:
    trips = Trips()
    with trips.counting(), redis.Redis.from_url(server.url) as client:
        client.ping()
        _, one = measure(client.ping, server, trips)
        _, two = measure(lambda: (client.get("a"), client.get("b")), server, trips)
        pipeline = client.pipeline(transaction=False)
        for number in range(100):
            pipeline.set(f"k{number}", number)
        _, batch = measure(pipeline.execute, server, trips)
    assert (one.round_trips, two.round_trips, batch.round_trips) == (1, 2, 1)


def test_counting_leaves_the_client_library_as_it_was() -> None:
    from redis.connection import AbstractConnection

    before = AbstractConnection.send_packed_command
    with Trips().counting():
        assert AbstractConnection.send_packed_command is not before
    assert AbstractConnection.send_packed_command is before


def test_emptied_server_holds_nothing(server: Server) -> None:
    client = redis.Redis.from_url(server.url)
    client.set("omoide:{M/a}:t", b"x" * 10_000)
    assert server.key_bytes()["t"] > 10_000
    server.empty()
    assert server.key_count() == 0
    client.close()


def test_processor_time_from_the_servers_own_report(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_scheduler_files", list)
    client = redis.Redis.from_url(server.url)
    _, busy = measure(lambda: client.eval(BUSY, 0), server, Trips())
    assert busy.server_ns > 5_000_000
    client.close()


def test_percentile_is_the_nearest_rank() -> None:
    assert percentile([3, 1, 2, 4], 0.5) == 2
    assert percentile([3, 1, 2, 4], 0.99) == 4
    assert percentile([5], 0.5) == percentile([5], 0.99) == 5
    assert percentile(range(1, 101), 0.99) == 99


def test_a_row_has_the_contracts_columns() -> None:
    samples = [Sample(1000, 2000, 4000, 1), Sample(3000, 2000, 8000, 2), Sample(2000, 2000, 6000, 1)]
    assert asdict(summarize(10, "save", "omoide", samples, 512.34)) == {
        "size": 10,
        "operation": "save",
        "system": "omoide",
        "server_cpu_us": 2.0,
        "client_cpu_us": 2.0,
        "wall_p50_us": 6.0,
        "wall_p99_us": 8.0,
        "round_trips": 1.333,
        "bytes_per_document": 512.3,
    }


def test_process_time_sees_the_client() -> None:
    def spin() -> None:
        until = time.process_time_ns() + 20_000_000
        while time.process_time_ns() < until:
            pass

    _, sample = measure(spin, None, Trips())
    assert sample.server_ns == 0
    assert sample.client_ns >= 20_000_000


def test_markdown_aligns_numbers_right_and_shows_missing_as_a_dash() -> None:
    table = markdown(["name", "n"], [["a", 1234], ["b", None]])
    assert table.splitlines() == [
        "| name |     n |",
        "| ---- | ----: |",
        "| a    | 1,234 |",
        "| b    |     - |",
    ]
