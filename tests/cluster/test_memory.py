"""The whole store on a cluster of three primaries: the same answers, trips per node, status over all."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis.crc import key_slot

import omoide
from omoide import ContextAssembler, batch
from omoide.connection import Connection
from omoide.errors import StoreError, StoreUnavailableError
from omoide.model.instance import scope_of
from omoide.ops.reindex import reindex
from omoide.ops.upkeep import doctor
from omoide.recipes import DefaultMemory, SubconsciousMemory
from omoide.testing import ValkeyCluster, ValkeyServer

AGENTS = [f"agent-{number}" for number in range(30)]


@pytest.fixture
def connection(cluster_url: str) -> Iterator[Connection]:
    with omoide.connect(cluster_url) as connection:
        yield connection


def memory(agent: str, content: str, **values: object) -> DefaultMemory:
    return DefaultMemory(agent_id=agent, content=content, **values)


def fill() -> None:
    outcomes = DefaultMemory.save_many(
        memory(agent, f"the walrus of {agent} drinks tea number {number}")
        for number in range(5)
        for agent in AGENTS
    )
    assert all(outcomes)


def sound() -> bool:
    return all(health.sound for health in doctor())


def test_memories_go_to_a_file_and_come_back(connection: Connection, tmp_path: Path) -> None:
    fill()
    for agent in AGENTS:
        one, two = DefaultMemory.query.filter(agent_id=agent).limit(2).all()
        one.associations.link(two, 2.0)
    omoide.export_memories(DefaultMemory, tmp_path / "first")
    for agent in AGENTS:
        DefaultMemory.delete_partition(agent_id=agent)
    assert omoide.import_memories(DefaultMemory, tmp_path / "first").stored == 5 * len(AGENTS)
    omoide.export_memories(DefaultMemory, tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert sound()


def test_the_life_of_a_memory(connection: Connection) -> None:
    for agent in AGENTS[:9]:
        one = memory(agent, "deploys are blue-green", tags={"ops"})
        assert one.save()
        assert one.update(content="deploys are green-blue")
        found = DefaultMemory.query.get(agent_id=agent, memory_id=one.memory_id)
        assert found.content == "deploys are green-blue"
        assert DefaultMemory.query.filter(agent_id=agent, tags="ops").count() == 1
        assert DefaultMemory.query.filter(agent_id=agent).top_by_decay(n=3)[0].memory_id == one.memory_id
        other = memory(agent, "tea is at five")
        assert other.save()
        assert one.associations.link(other) == 1.0
        assert DefaultMemory.counters(agent_id=agent).increment("seen") == 1
        assert one.delete()
        assert DefaultMemory.count(agent_id=agent) == 1
    assert sound()


def test_both_readers_agree(connection: Connection, cluster_url: str) -> None:
    fill()
    answers = []
    for reader in ("client", "server", "auto"):
        with Connection(cluster_url, reader=reader) as other, other.use():
            assembler = ContextAssembler(DefaultMemory, track=False)
            for _ in range(2):
                answers.append([assembler.assemble("walrus tea 3", agent_id=agent).ids for agent in AGENTS])
            assert all(len(ids) == 5 for ids in answers[-1])
    assert all(answer == answers[0] for answer in answers)


def test_many_agents_in_one_call_take_a_trip_a_node(connection: Connection) -> None:
    before = connection.round_trips
    fill()
    assert connection.round_trips - before == 3
    with batch() as sent:
        for agent in AGENTS:
            memory(agent, "in a batch").save()
    assert all(sent.outcomes)
    assert connection.round_trips - before == 6
    assert sum(DefaultMemory.count(agent_id=agent) for agent in AGENTS) == 6 * len(AGENTS)


def test_status_finds_the_partitions_of_every_primary(
    connection: Connection, valkey_cluster: ValkeyCluster
) -> None:
    fill()
    status = omoide.status()
    assert sorted(part["partition"][0] for part in status["partitions"]) == sorted(AGENTS)
    assert {part["live"] for part in status["partitions"]} == {5}
    assert status["server"]["primaries"] == 3
    owners = [server.command("DBSIZE") for server in valkey_cluster.servers[:3]]
    assert all(owners), "agents live on every primary"


def test_a_rebuild_on_every_node(connection: Connection) -> None:
    fill()
    for agent in AGENTS[:6]:
        assert reindex(DefaultMemory, agent_id=agent) == 5
        assert ContextAssembler(DefaultMemory).assemble("walrus", agent_id=agent).records
    assert sound()


def test_a_whole_turn(connection: Connection) -> None:
    fill()
    for agent in AGENTS[:6]:
        loop = SubconsciousMemory(agent_id=agent)
        messages, result = loop.inject_context([{"role": "user", "content": "what does the walrus drink?"}])
        assert len(messages) == 2
        assert all(loop.extract_memories("The new rota starts on Friday.", result=result))
        assert set(loop.report_outcomes(result, "acted").states.values()) == {"applied"}
    assert sound()


def test_async(connection: Connection) -> None:
    async def main() -> None:
        await asyncio.gather(*(memory(agent, "async tea").asave() for agent in AGENTS))
        counts = await asyncio.gather(*(DefaultMemory.acount(agent_id=agent) for agent in AGENTS))
        assert counts == [1] * len(AGENTS)
        result = await ContextAssembler(DefaultMemory).aassemble("tea", agent_id=AGENTS[0])
        assert len(result.records) == 1
        assert len((await omoide.astatus())["partitions"]) == len(AGENTS)
        await connection.astore.close()  # type: ignore[attr-defined]

    for _ in range(2):
        asyncio.run(main())
        for agent in AGENTS:
            assert DefaultMemory.delete_partition(agent_id=agent) == 1


@pytest.mark.parametrize("way", ["at once", "key by key"])
def test_a_slot_moves_under_load(connection: Connection, valkey_cluster: ValkeyCluster, way: str) -> None:
    """The slot of one agent goes to another primary and back while four threads write to it."""
    agent = AGENTS[0]
    move = move_at_once if way == "at once" else move_key_by_key
    head = connection.store.binding.keys.head(scope_of(memory(agent, "x")))  # type: ignore[attr-defined]
    slot = key_slot(head)
    stop, stored, failures = threading.Event(), [0] * 4, list[BaseException]()

    def write(number: int) -> None:
        with connection.use():
            while not stop.is_set():
                try:
                    assert memory(agent, f"tea {number} {stored[number]}").save()
                except StoreError as error:
                    failures.append(error)
                    return
                stored[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    home = valkey_cluster.owner(slot)
    away = next(server for server in valkey_cluster.servers if server is not home)
    try:
        for source, target in ((home, away), (away, home)):
            before = sum(stored)
            move(valkey_cluster, slot, source, target)
            end = time.monotonic() + 60
            while sum(stored) < before + 20 and not failures and time.monotonic() < end:
                time.sleep(0.01)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert DefaultMemory.count(agent_id=agent) == min(sum(stored), 1000)
    assert sound()


def move_at_once(cluster: ValkeyCluster, slot: int, source: ValkeyServer, target: ValkeyServer) -> None:
    """Hand a slot over with all its keys at once, as Valkey 9 does it."""
    there = target.command("CLUSTER", "MYID")
    assert source.command("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", there) == b"OK"
    end = time.monotonic() + 60
    while cluster.owner(slot) is not target:
        assert time.monotonic() < end, "the slot did not move"
        time.sleep(0.01)


def move_key_by_key(cluster: ValkeyCluster, slot: int, source: ValkeyServer, target: ValkeyServer) -> None:
    """Hand a slot over one key after the other, as every Redis does it; in between neither side has all."""
    here, there = source.command("CLUSTER", "MYID"), target.command("CLUSTER", "MYID")
    target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", here)
    source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", there)
    while keys := source.command("CLUSTER", "GETKEYSINSLOT", slot, 1):
        source.command("MIGRATE", "127.0.0.1", target.port, keys[0], 0, 5000)
    for server in (target, source, *cluster.servers):
        server.command("CLUSTER", "SETSLOT", slot, "NODE", there)


def test_a_failover_under_load() -> None:
    """What was acknowledged by primary and replica is there afterwards, and nothing is torn."""
    with (
        ValkeyCluster(primaries=3, replicas=1) as cluster,
        omoide.connect(cluster.url, timeout=15) as connection,
    ):
        first = memory("agent-0", "before the failover")
        assert first.save()
        head = connection.store.binding.keys.head(scope_of(first))  # type: ignore[attr-defined]
        slot, stored = key_slot(head), 0
        victim = cluster.owner(slot)
        victim.command("WAIT", 1, 1000)
        timer = threading.Timer(0.2, victim.kill9)
        timer.start()
        end = time.monotonic() + 60
        while time.monotonic() < end and (victim.running or cluster.owner(slot) is victim):
            with contextlib.suppress(StoreError):
                stored += bool(memory("agent-0", f"tea number {stored}").save())
        timer.join()
        assert cluster.owner(slot) is not victim
        assert memory("agent-0", "after the failover").save()
        found = {one.content for one in DefaultMemory.query.filter(agent_id="agent-0").all()}
        assert {"before the failover", "after the failover"} <= found
        assert stored
        assert ContextAssembler(DefaultMemory).assemble("failover", agent_id="agent-0").records
        (health,) = doctor()
        assert health.findings == ()


class Leaving(DefaultMemory):
    """Every key of its partition has an expiry."""

    class Meta:
        ttl = 3600


@pytest.mark.parametrize("moved", [0, 1, 3])
def test_nothing_is_done_while_a_slot_is_half_moved(
    connection: Connection, valkey_cluster: ValkeyCluster, moved: int
) -> None:
    """Deleting the last record removes keys; where they could not be made again, it is not begun."""
    one = Leaving(agent_id="half", content="walrus tea")
    assert one.save()
    head = connection.store.binding.keys.head(scope_of(one))  # type: ignore[attr-defined]
    slot = key_slot(head)
    source = valkey_cluster.owner(slot)
    target = next(server for server in valkey_cluster.servers if server is not source)
    here, there = source.command("CLUSTER", "MYID"), target.command("CLUSTER", "MYID")
    target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", here)
    source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", there)
    for key in source.command("CLUSTER", "GETKEYSINSLOT", slot, moved):
        source.command("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
    calls: dict[str, Callable[[], object]] = {
        "delete": one.delete,
        "save": Leaving(agent_id="half", content="more tea").save,
        "update": lambda: one.update(content="less tea"),
        "count": lambda: Leaving.count(agent_id="half"),
        "list": lambda: Leaving.query.filter(agent_id="half").all(),
        "recall": lambda: ContextAssembler(Leaving).assemble("tea", agent_id="half"),
        "clear": lambda: Leaving.delete_partition(agent_id="half"),
    }
    with Connection(valkey_cluster.url, timeout=0.2) as hurried, hurried.use():
        for call in calls.values():
            with pytest.raises(StoreUnavailableError, match="being moved"):
                call()
        outcomes = Leaving.save_many(Leaving(agent_id=agent, content="tea") for agent in ("half", *AGENTS))
        assert [one.reason for one in outcomes if not one] == ["error"]
        assert [bool(one) for one in outcomes] == [False] + [True] * len(AGENTS)
    while keys := source.command("CLUSTER", "GETKEYSINSLOT", slot, 1):
        source.command("MIGRATE", "127.0.0.1", target.port, keys[0], 0, 5000)
    for server in (target, source, *valkey_cluster.servers):
        server.command("CLUSTER", "SETSLOT", slot, "NODE", there)
    with connection.use():
        assert [memory.content for memory in Leaving.query.filter(agent_id="half").all()] == ["walrus tea"]
        assert sound()
        assert one.delete()
        assert Leaving.count(agent_id="half") == 0
