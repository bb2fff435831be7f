"""Closing a connection: everything is given back, and an event loop turns meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from omoide.connection import Connection


async def test_closing_keeps_the_loop_free(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turned = threading.Event()
    seen: list[bool] = []

    class Slow:
        def release(self) -> None:
            seen.append(turned.wait(5))

    connection = Connection(store_url)
    monkeypatch.setattr(connection, "_finish_mirror", lambda: seen.append(turned.wait(5)))
    monkeypatch.setattr(connection, "_server", Slow())
    monkeypatch.setattr(connection, "_postgres", Slow())
    asyncio.get_running_loop().call_later(0.01, turned.set)
    await connection.aclose()
    assert seen == [True, True, True]
    await connection.aclose()
    assert len(seen) == 4, "what was given up is not given up again"
