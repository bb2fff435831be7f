"""How many round trips each call takes, exactly."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from omoide import ContextAssembler
from omoide.connection import Connection
from omoide.recipes import DefaultMemory, SubconsciousMemory
from omoide.stores.redis import served
from omoide.stores.redis.exchange import Command
from omoide.testing import ValkeyServer

FACTS = [
    "Deploys to production are blue-green and start on Tuesdays",
    "The staging database runs on Postgres sixteen",
    "Caroline prefers tea without sugar",
    "Incident reviews happen every Thursday afternoon",
    "The deploy script needs the production flag",
    "Production logs are kept for ninety days",
    "The on-call rota changes on Tuesdays",
    "Blue is the colour of the production banner",
    "Tuesdays are for deploy rehearsals in production",
]


class Meter:
    """Round trips of a connection since the last look."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.before = connection, connection.round_trips

    def __call__(self) -> int:
        before, self.before = self.before, self.connection.round_trips
        return self.before - before


@pytest.fixture
def trips(connection: Connection) -> Meter:
    return Meter(connection)


def memory(content: str, **values: object) -> DefaultMemory:
    return DefaultMemory(agent_id="a", content=content, **values)


def fill() -> None:
    assert all(DefaultMemory.save_many(memory(fact) for fact in FACTS))


def test_save_update_delete(trips: Meter) -> None:
    one = memory(FACTS[0])
    assert one.save()
    assert trips() == 1
    assert one.update(content=FACTS[1])
    assert trips() == 1
    one.content = FACTS[2]
    assert one.save()
    assert trips() == 1
    assert one.touch()
    assert trips() == 1
    assert one.delete()
    assert trips() == 1


def test_reads(trips: Meter) -> None:
    one = memory(FACTS[0], tags={"ops"})
    one.save()
    trips()
    query = DefaultMemory.query.filter(agent_id="a")
    calls: list[Callable[[], object]] = [
        lambda: DefaultMemory.query.get(agent_id="a", memory_id=one.memory_id),
        lambda: DefaultMemory.query.get_many([one.memory_id] * 900, agent_id="a"),
        lambda: DefaultMemory.count(agent_id="a"),
        lambda: query.top_by_decay(n=5),
        lambda: query.filter(tags="ops").count(),
        lambda: DefaultMemory.counters(agent_id="a").read("evicted"),
        lambda: DefaultMemory.never_record_counts(agent_id="a"),
    ]
    for call in calls:
        assert call() is not None
        assert trips() == 1


def test_a_cold_recall_takes_two_and_a_warm_one_one(store_url: str, trips: Meter) -> None:
    fill()
    for reader in ("client", "server", "auto"):
        with Connection(store_url, reader=reader) as other, other.use():
            assembler, measure = ContextAssembler(DefaultMemory, track=False), Meter(other)
            first = assembler.assemble("when do production deploys start?", agent_id="a")
            assert first.records
            assert measure() == first.metadata["round_trips"] <= 2
            for turn in range(3):
                result = assembler.assemble("when do production deploys start?", agent_id="a")
                assert result.ids == first.ids
                expected = 2 if (reader, turn) == ("auto", 0) else 1  # its second recall fills the cache
                assert measure() == result.metadata["round_trips"] <= expected


@pytest.mark.parametrize(("limit", "value"), [("BUDGET", 3), ("BORROW", 3), ("LOOKS", 0)])
def test_a_cold_recall_that_the_server_refuses_takes_two(
    store_url: str, trips: Meter, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    fill()
    question = "when do production deploys start on Tuesdays in May?"
    with Connection(store_url, reader="client") as other, other.use():
        expected = ContextAssembler(DefaultMemory, track=False).assemble(question, agent_id="a")
    monkeypatch.setattr(served, limit, value)
    with Connection(store_url, reader="auto") as other, other.use():
        assembler, measure = ContextAssembler(DefaultMemory, track=False), Meter(other)
        result = assembler.assemble(question, agent_id="a")
        assert result.metadata["reader"] == "client"
        assert result.ids == expected.ids != ()
        assert measure() == result.metadata["round_trips"] == 2
        again = assembler.assemble(question, agent_id="a")
        assert (again.ids, measure()) == (expected.ids, 1)


def test_a_first_recall_on_the_server_brings_no_index_along(store_url: str, trips: Meter) -> None:
    fill()
    sizes = {}
    for reader in ("server", "auto"):
        with Connection(store_url, reader=reader) as other, other.use():
            other.store.wire.call([Command((b"PING",), b"", idempotent=True)])
            before = other.store.wire.bytes_in
            result = ContextAssembler(DefaultMemory, track=False).assemble("production deploys", agent_id="a")
            assert result.metadata["reader"] == "server"
            sizes[reader] = other.store.wire.bytes_in - before
    assert sizes["auto"] <= sizes["server"] + 4 * len("*0\r\n")


def test_a_recall_after_a_save_of_this_process_takes_one(trips: Meter) -> None:
    fill()
    assembler = ContextAssembler(DefaultMemory, track=False)
    assembler.assemble("production deploys", agent_id="a")
    for number in range(5):
        memory(f"production note {number} about walruses").save()
        trips()
        result = assembler.assemble("production walruses", agent_id="a")
        assert result.records[0].content.startswith("production note")
        assert trips() == 1


def test_outcomes_of_seven_records_take_one(trips: Meter) -> None:
    fill()
    loop = SubconsciousMemory(agent_id="a", assembler=ContextAssembler(DefaultMemory, max_items=7))
    question = "Tuesdays production Postgres tea Thursday rota logs deploy blue"
    _, result = loop.inject_context([{"role": "user", "content": question}])
    assert len(result.ids) == 7
    trips()
    report = loop.report_outcomes(result, "acted")
    assert set(report.states.values()) == {"applied"}
    assert trips() == 1


def test_a_whole_turn_takes_at_most_five(store_url: str) -> None:
    with Connection(store_url) as connection, connection.use():
        fill()
        loop, measure = SubconsciousMemory(agent_id="a"), Meter(connection)
        for turn in range(6):
            messages = [{"role": "user", "content": f"how do production deploys go, take {turn}?"}]
            messages, result = loop.inject_context(messages)
            assert result
            assert all(loop.extract_memories(f"The answer of walrus {turn} was kept.", result=result))
            loop.report_outcomes(result, "used")
            assert measure() <= 5


def test_save_many_of_a_thousand_takes_at_most_five(trips: Meter) -> None:
    outcomes = DefaultMemory.save_many(memory(f"fact number {number}") for number in range(1000))
    assert sum(map(bool, outcomes)) == 1000
    assert trips() <= 5
    assert DefaultMemory.count(agent_id="a") == 1000


def test_a_thousand_outcomes_of_a_batch(trips: Meter) -> None:
    from omoide import batch

    with batch() as sent:
        for number in range(1000):
            memory(f"fact number {number}").save()
    assert sum(map(bool, sent.outcomes)) == 1000
    assert trips() <= 5


def loop_of_turns(turns: int, before: Callable[[], object] = lambda: None) -> float:
    """Average round trips of the recalls of a loop that saves at every turn."""
    assembler, total = ContextAssembler(DefaultMemory, track=False), 0
    for turn in range(turns):
        before()
        memory(f"{FACTS[turn % len(FACTS)]}, as turn {turn} said").save()
        total += assembler.assemble(FACTS[turn * 5 % len(FACTS)], agent_id="a").metadata["round_trips"]
    return total / turns


def test_a_loop_with_one_writer(store_url: str) -> None:
    with Connection(store_url) as connection, connection.use():
        fill()
        average = loop_of_turns(100)
    assert average <= 1.1, f"{average} round trips a recall"


@contextlib.contextmanager
def four_others(server: ValkeyServer) -> Iterator[Callable[[], None]]:
    """Four threads with connections of their own, that write to the same partition: two of them at each call.

    The pace is that of the loop they disturb: how fast the machine is does not matter.
    """
    stopped, turns = threading.Event(), [threading.Semaphore(0) for _ in range(4)]
    pairs = itertools.cycle([turns[:2], turns[2:]])

    def write(name: int) -> None:
        with Connection(server.url) as other, other.use():
            for number in itertools.count():
                turns[name].acquire()
                if stopped.is_set():
                    return
                memory(f"{FACTS[number % len(FACTS)]} by {name} in {number}").save()

    def two_write() -> None:
        for turn in next(pairs):
            turn.release()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield two_write
    finally:
        stopped.set()
        for turn in turns:
            turn.release()
        for thread in threads:
            thread.join()


def test_a_loop_with_four_other_writers(store_url: str, valkey_server: ValkeyServer) -> None:
    with Connection(store_url) as connection, connection.use():
        fill()
        with four_others(valkey_server) as two_write:
            average = loop_of_turns(100, two_write)
    assert average <= 1.5, f"{average} round trips a recall"


def test_async_takes_as_many(connection: Connection) -> None:
    async def main() -> None:
        measure = Meter(connection)

        async def expect(least: int, call: Awaitable[object], most: int | None = None) -> object:
            result = await call
            assert least <= measure() <= (most or least)
            return result

        one = memory(FACTS[0])
        await expect(1, one.asave())
        await expect(1, one.aupdate(content=FACTS[1]))
        await expect(1, one.adelete())
        await expect(1, DefaultMemory.asave_many([memory(fact) for fact in FACTS]))
        assembler = ContextAssembler(DefaultMemory, track=False)
        await expect(2, assembler.aassemble("production deploys", agent_id="a"))
        await expect(1, assembler.aassemble("production deploys", agent_id="a"))
        loop = SubconsciousMemory(agent_id="a")
        messages = [{"role": "user", "content": "how do production deploys go?"}]
        _, result = await loop.ainject_context(messages)
        measure()
        await expect(1, loop.areport_outcomes(result, "acted"))
        _, result = await loop.ainject_context(messages)
        await loop.aextract_memories("The walrus was fed.", result=result)
        await loop.areport_outcomes(result, "acted")
        assert measure() <= 5
        numbers = [memory(f"fact number {number}") for number in range(1000)]
        await expect(4, DefaultMemory.asave_many(numbers), 5)
        await connection.aclose()

    asyncio.run(main())


def sent_to_clients(server: ValkeyServer) -> int:
    lines = server.command("INFO", "stats").decode().split("\r\n")
    return sum(int(line.split(":")[1]) for line in lines if line.startswith("total_net_output_bytes:"))


def test_a_warm_recall_moves_what_it_returns(connection: Connection, valkey_server: ValkeyServer) -> None:
    words = ["production", "deploy", "walrus", "tea", "rota", "banner", "logs"]
    DefaultMemory.save_many(
        memory(f"{words[n % 7]} {words[n // 7 % 7]} and the long story number {n} " + "of it " * 40)
        for n in range(900)
    )
    assembler = ContextAssembler(DefaultMemory, track=False, max_items=8)
    query = "production walrus deploy"
    assembler.assemble(query, agent_id="a")
    sent_to_clients(valkey_server)
    info = -sent_to_clients(valkey_server) + sent_to_clients(valkey_server)  # what a look itself costs
    before = sent_to_clients(valkey_server)
    result = assembler.assemble(query, agent_id="a")
    moved = sent_to_clients(valkey_server) - before - info
    returned = sum(len(record.content.encode()) for record in result.records)
    assert len(result.records) == 8
    assert returned < moved < returned + 8 * 400 + 500, f"{moved} bytes for {returned} of content"
