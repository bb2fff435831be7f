"""Connections for asyncio: loops that come and go, cancellation, deadlines."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import threading
import time

import pytest

from omoide.errors import StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.awire import AsyncWire
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.wire import SyncWire
from omoide.testing import ValkeyServer

PING = Command(("PING",), b"", idempotent=True)


def command(*args: bytes | str | int | float) -> Command:
    return Command(args, b"k")


async def test_one_call_is_one_round_trip(store_url: str) -> None:
    wire = AsyncWire(store_url)
    await wire.capabilities()
    trips, out, into = wire.round_trips, wire.bytes_out, wire.bytes_in
    assert await wire.call([command("SET", "k", 1), command("GET", "k")]) == [b"OK", b"1"]
    assert wire.round_trips - trips == 1
    assert (wire.bytes_out - out, wire.bytes_in - into) == (47, 12)
    assert await wire.each_primary(("DBSIZE",)) == [1]
    assert await wire.call([]) == []


async def test_the_server_is_asked_once_however_many_tasks_come_first(store_url: str) -> None:
    wire = AsyncWire(store_url)
    await asyncio.gather(*(wire.call([PING]) for _ in range(10)))
    assert wire.round_trips == 1 + 10


async def test_tasks_never_get_each_others_replies(store_url: str) -> None:
    wire = AsyncWire(store_url)

    async def work(number: int) -> bool:
        texts = [b"%d-%d" % (number, turn) for turn in range(50)]
        return all([await wire.call([command("ECHO", text)]) == [text] for text in texts])

    assert all(await asyncio.gather(*(work(number) for number in range(8))))


def test_loops_one_after_the_other_leave_nothing_behind(store_url: str) -> None:
    wire = AsyncWire(store_url)
    for turn in range(3):
        assert asyncio.run(wire.call([command("ECHO", b"%d" % turn)])) == [b"%d" % turn]
        assert len(wire._loops) == 0
    gc.collect()


def test_loops_in_threads(store_url: str) -> None:
    wire = AsyncWire(store_url)
    wrong: list[bytes] = []

    def work(number: int) -> None:
        async def main() -> None:
            for turn in range(50):
                text = b"%d-%d" % (number, turn)
                if await wire.call([command("ECHO", text)]) != [text]:
                    wrong.append(text)

        asyncio.run(main())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(wire._loops) == 0


async def test_a_cancelled_call_leaves_no_reply_behind(store_url: str) -> None:
    wire = AsyncWire(store_url)
    await wire.call([PING])
    for delay in (0.0, 0.0005, 0.001, 0.05):
        task = asyncio.create_task(
            wire.call([command("EVAL", "return {'old'}", 0), command("BLPOP", "none", 1)])
        )
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await wire.call([command("ECHO", "fresh")]) == [b"fresh"]


async def test_a_call_cancelled_while_it_connects(valkey_server: ValkeyServer, store_url: str) -> None:
    valkey_server.pause()
    try:
        wire = AsyncWire(f"{store_url}?password=x")
        task = asyncio.create_task(wire.call([PING]))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        valkey_server.resume()
    gc.collect()


async def test_a_hanging_server_costs_no_more_than_the_timeout(
    valkey_server: ValkeyServer, store_url: str
) -> None:
    wire = AsyncWire(store_url)
    await wire.call([PING])
    valkey_server.pause()
    try:
        started = time.monotonic()
        with pytest.raises(StoreTimeoutError):
            await wire.call([command("INCR", "k")], timeout=0.3)
        assert 0.25 < time.monotonic() - started < 4
    finally:
        valkey_server.resume()
    assert await wire.call([command("ECHO", "fresh")]) == [b"fresh"]


async def test_the_callers_own_timeout_stays_the_callers(store_url: str) -> None:
    wire = AsyncWire(store_url)
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.1):
            await wire.call([command("BLPOP", "none", 2)])
    assert not isinstance(caught.value, StoreTimeoutError)


async def test_restart_and_outage() -> None:
    with ValkeyServer() as server:
        wire = AsyncWire(server.url)
        await wire.call([PING])
        server.restart()
        assert await wire.call([command("INCR", "k")]) == [1]
        server.kill9()
        with pytest.raises(StoreUnavailableError):
            await wire.call([PING])
        server.start()
        assert await wire.call([PING]) == [b"PONG"]
        await wire.aclose()


def test_beside_a_blocking_wire_it_shares_what_is_known_and_counted(store_url: str) -> None:
    with contextlib.closing(SyncWire(store_url)) as blocking:
        blocking.call([PING])
        wire = AsyncWire(blocking)
        asyncio.run(wire.call([PING]))
        assert wire.round_trips == blocking.round_trips == 3


def test_both_wires_have_the_same_face() -> None:
    for name in ("call", "each_primary", "primaries", "capabilities"):
        assert inspect.signature(getattr(SyncWire, name)) == inspect.signature(getattr(AsyncWire, name))
