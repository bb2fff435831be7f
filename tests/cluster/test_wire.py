"""The wires on a real cluster: routing, redirections, migration by hand, failover; and sentinels."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from redis.crc import key_slot

from omoide.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.awire import AsyncWire
from omoide.stores.redis.wire import Command, SyncWire
from omoide.testing import ValkeyCluster, ValkeyServer
from omoide.testing.servers import free_ports

KEYS = [f"k{number}" for number in range(60)]


def command(*args: bytes | str | int, key: str, idempotent: bool = False) -> Command:
    return Command(args, key.encode(), idempotent)


@pytest.fixture
def wire(cluster_url: str) -> Iterator[SyncWire]:
    with contextlib.closing(SyncWire(cluster_url)) as wire:
        wire.capabilities()
        yield wire


@pytest.fixture
def resharded(valkey_cluster: ValkeyCluster) -> Iterator[tuple[int, ValkeyServer, ValkeyServer]]:
    """Slot of `{move}`, its owner and another primary; the slot is given back at the end."""
    slot = key_slot(b"{move}")
    source = valkey_cluster.owner(slot)
    target = next(server for server in valkey_cluster.servers if server is not source)
    yield slot, source, target
    identity = source.command("CLUSTER", "MYID")
    valkey_cluster.flush()
    for server in (source, target, *valkey_cluster.servers):
        server.command("CLUSTER", "SETSLOT", slot, "NODE", identity)


def hand_over(slot: int, source: ValkeyServer, target: ValkeyServer) -> None:
    identity = target.command("CLUSTER", "MYID")
    target.command("CLUSTER", "SETSLOT", slot, "NODE", identity)
    source.command("CLUSTER", "SETSLOT", slot, "NODE", identity)


def open_migration(slot: int, source: ValkeyServer, target: ValkeyServer) -> None:
    target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", source.command("CLUSTER", "MYID"))
    source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", target.command("CLUSTER", "MYID"))


def test_one_round_trip_per_node_and_replies_in_order(wire: SyncWire) -> None:
    trips = wire.round_trips
    assert wire.call([command("SET", key, key, key=key) for key in KEYS]) == [b"OK"] * len(KEYS)
    assert wire.round_trips - trips == 3
    assert wire.call([command("GET", key, key=key) for key in KEYS]) == [key.encode() for key in KEYS]
    assert wire.call([command("GET", "k1", key="k1")]) == [b"k1"]
    assert wire.round_trips - trips == 7


def test_the_hash_tag_decides(wire: SyncWire) -> None:
    trips = wire.round_trips
    commands = [command("SET", f"omoide:{{M/a}}:{part}", 1, key=f"omoide:{{M/a}}:{part}") for part in "hts"]
    assert wire.call(commands) == [b"OK"] * 3
    assert wire.round_trips - trips == 1


def test_every_primary_is_asked(wire: SyncWire) -> None:
    wire.call([command("SET", key, key, key=key) for key in KEYS])
    trips = wire.round_trips
    sizes = wire.each_primary(("DBSIZE",))
    assert (len(sizes), sum(sizes)) == (3, len(KEYS))
    assert wire.round_trips - trips == 3
    by_hand = [wire.call([command("DBSIZE", key="")], node=node)[0] for node in wire.primaries()]
    assert by_hand == sizes


def test_a_plain_url_of_a_cluster_node_finds_the_cluster(
    valkey_cluster: ValkeyCluster, cluster_url: str
) -> None:
    with contextlib.closing(SyncWire(valkey_cluster.servers[2].url)) as wire:
        assert wire.call([command("SET", key, key, key=key) for key in KEYS]) == [b"OK"] * len(KEYS)
        assert wire.capabilities().cluster
        assert len(wire.primaries()) == 3


def test_a_moved_slot_costs_one_more_round_trip_once(
    wire: SyncWire, resharded: tuple[int, ValkeyServer, ValkeyServer]
) -> None:
    wire.call([command("GET", "{move}", key="{move}")])
    hand_over(*resharded)
    trips = wire.round_trips
    assert wire.call([command("SET", "{move}", 1, key="{move}")]) == [b"OK"]
    assert wire.round_trips - trips == 3, "the command, the slot map, the command"
    assert wire.call([command("GET", "{move}", key="{move}")]) == [b"1"]
    assert wire.round_trips - trips == 4


def test_moved_in_the_middle_of_a_call_for_many(
    wire: SyncWire, resharded: tuple[int, ValkeyServer, ValkeyServer]
) -> None:
    keys = [*KEYS, "{move}", "{move}2"]
    wire.call([command("SET", key, 0, key=key) for key in KEYS])
    hand_over(*resharded)
    assert wire.call([command("INCR", key, key=key) for key in keys]) == [1] * len(keys)
    assert wire.call([command("GET", key, key=key) for key in keys]) == [b"1"] * len(keys)


def test_a_slot_in_the_middle_of_its_migration(
    wire: SyncWire, resharded: tuple[int, ValkeyServer, ValkeyServer]
) -> None:
    wire.call([command("SET", "{move}here", 1, key="{move}")])
    open_migration(*resharded)
    commands = [
        command("GET", "{move}here", key="{move}"),
        command("INCR", "{move}there", key="{move}"),
        command("SET", "k1", 1, key="k1"),
    ]
    here, there, other = wire.call(commands, timeout=0.3)
    assert (here, other) == (b"1", b"OK")
    assert isinstance(there, StoreUnavailableError)
    assert "being moved" in str(there)
    slot, source, target = resharded
    assert target.command("CLUSTER", "COUNTKEYSINSLOT", slot) == 0
    over = threading.Timer(0.2, hand_over, (slot, source, target))
    source.command("MIGRATE", "127.0.0.1", target.port, "{move}here", 0, 5000)
    over.start()
    assert wire.call(commands) == [b"1", 1, b"OK"]
    over.join()
    assert target.command("CLUSTER", "COUNTKEYSINSLOT", slot) == 2


def test_async_has_the_same_answers(
    cluster_url: str, resharded: tuple[int, ValkeyServer, ValkeyServer]
) -> None:
    async def main() -> None:
        wire = AsyncWire(cluster_url)
        assert await wire.call([command("SET", key, 0, key=key) for key in KEYS]) == [b"OK"] * len(KEYS)
        trips = wire.round_trips
        assert await wire.call([command("INCR", key, key=key) for key in KEYS]) == [1] * len(KEYS)
        assert wire.round_trips - trips == 3
        open_migration(*resharded)
        with pytest.raises(StoreUnavailableError, match="being moved"):
            await wire.call([command("INCR", "{move}new", key="{move}")], timeout=0.3)
        over = asyncio.get_running_loop().run_in_executor(None, hand_over, *resharded)
        assert await wire.call([command("INCR", "{move}new", key="{move}")]) == [1]
        await over
        assert await wire.call([command("INCR", "{move}new", key="{move}")]) == [2]
        assert len(await wire.each_primary(("DBSIZE",))) == 3

    asyncio.run(main())


@pytest.fixture(scope="module")
def replicated() -> Iterator[ValkeyCluster]:
    """Three primaries, each with a replica."""
    with ValkeyCluster(primaries=3, replicas=1) as cluster:
        yield cluster


def test_a_failover_under_load_repeats_nothing_that_is_not_idempotent(replicated: ValkeyCluster) -> None:
    key = "k1"
    slot = key_slot(key.encode())
    victim = replicated.owner(slot)
    acknowledged = failed = 0
    with contextlib.closing(SyncWire(replicated.url)) as wire:
        killer = threading.Timer(0.2, victim.kill9)
        killer.start()
        end = time.monotonic() + 60
        while time.monotonic() < end and (
            victim.running or not acknowledged or replicated.owner(slot) is victim
        ):
            try:
                wire.call([command("INCR", key, key=key), command("WAIT", 1, 100, key=key)], timeout=15)
            except StoreError:
                failed += 1
            else:
                acknowledged += 1
        killer.join()
        wire.call([command("INCR", key, key=key)], timeout=15)
        (value,) = wire.call([command("GET", key, key=key, idempotent=True)], timeout=15)
    assert replicated.owner(slot) is not victim
    assert acknowledged > 0
    assert acknowledged < int(value) <= acknowledged + failed + 1


def served_by_another(slot: int, victim: ValkeyServer, cluster: ValkeyCluster) -> bool:
    """Whether every running node but the victim knows another primary for the slot."""
    ports = set()
    for server in cluster.servers:
        if server is not victim and server.running:
            slots: Any = server.command("CLUSTER", "SLOTS")
            ports |= {primary[1] for start, end, primary, *_ in slots if start <= slot <= end}
    return victim.port not in ports


def test_a_node_that_hangs_is_left_for_its_successor(replicated: ValkeyCluster) -> None:
    victim = next(server for server in replicated.servers[:3] if server.running)
    slots: Any = victim.command("CLUSTER", "SLOTS")
    slot = next(start for start, _end, primary, *_ in slots if primary[1] == victim.port)
    key = next(key for key in map(str, range(10**6)) if key_slot(key.encode()) == slot)
    with contextlib.closing(SyncWire(replicated.url)) as wire:
        assert wire.call([command("SET", key, 1, key=key)]) == [b"OK"]
        victim.pause()
        try:
            with pytest.raises(StoreTimeoutError):
                wire.call([command("INCR", key, key=key)], timeout=0.5)
            wait_for(lambda: served_by_another(slot, victim, replicated))
            assert wire.call([command("SET", key, 5, key=key)], timeout=0.5) == [b"OK"]
            aio = AsyncWire(replicated.url)
            assert asyncio.run(aio.call([command("GET", key, key=key)], timeout=15)) == [b"5"]
        finally:
            victim.resume()


@pytest.fixture
def sentinel() -> Iterator[tuple[str, ValkeyServer, ValkeyServer]]:
    """URL of a sentinel, its primary and a replica in sync."""
    (port,) = free_ports(1)
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(ValkeyServer(port=True, config=[("repl-diskless-sync-delay", "0")]))
        replica = ValkeyServer(port=True, config=[("repl-diskless-sync-delay", "0")])
        stack.enter_context(replica).command("REPLICAOF", "127.0.0.1", primary.port)
        wait_for(lambda: b"master_link_status:up" in replica.command("INFO", "replication"))
        watcher = stack.enter_context(
            ValkeyServer(
                port=port,
                sentinel=[f"monitor mine 127.0.0.1 {primary.port} 1", "down-after-milliseconds mine 500"],
            )
        )
        wait_for(lambda: watcher.command("SENTINEL", "REPLICAS", "mine"))
        yield f"redis+sentinel://127.0.0.1:1,127.0.0.1:{port}/mine", primary, replica


def wait_for(ready: Any) -> None:
    deadline = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_sentinels_are_asked_for_the_primary_and_again_after_a_failover(
    sentinel: tuple[str, ValkeyServer, ValkeyServer],
) -> None:
    url, primary, replica = sentinel
    with contextlib.closing(SyncWire(url)) as wire:
        assert wire.call([command("SET", "k", "v", key="k"), command("WAIT", 1, 1000, key="k")]) == [b"OK", 1]
        assert wire.primaries() == [("127.0.0.1", primary.port)]
        assert asyncio.run(AsyncWire(url).call([command("GET", "k", key="k")])) == [b"v"]
        primary.kill9()
        (value,) = wire.call([command("GET", "k", key="k", idempotent=True)], timeout=20)
        assert value == b"v"
        assert wire.primaries() == [("127.0.0.1", replica.port)]
        assert wire.call([command("SET", "k", "w", key="k")], timeout=20) == [b"OK"]
