"""One emptied server and a default connection for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import omoide
from omoide.connection import Connection
from omoide.testing import ValkeyServer


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    """The default connection, which ranks in the client."""
    with omoide.connect(store_url, reader="client") as connection:
        yield connection


@pytest.fixture
def dump(valkey_server: ValkeyServer) -> Callable[..., dict[bytes, bytes]]:
    """A function: key -> DUMP of it, for the keys that hold `part`."""

    def dump(part: str = "") -> dict[bytes, bytes]:
        keys = valkey_server.command("KEYS", "*")
        return {key: valkey_server.command("DUMP", key) for key in keys if part.encode() in key}

    return dump


@pytest.fixture
def contents(valkey_server: ValkeyServer) -> Callable[[], bytes]:
    """A function: every key with all it holds, decoded, as one run of bytes."""
    readers = {
        b"hash": ("HGETALL",),
        b"string": ("GET",),
        b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
        b"set": ("SMEMBERS",),
        b"list": ("LRANGE", 0, -1),
    }

    def contents() -> bytes:
        parts: list[bytes] = []
        for key in valkey_server.command("KEYS", "*"):
            verb, *rest = readers[valkey_server.command("TYPE", key)]
            held = valkey_server.command(verb, key, *rest)
            parts += [key, held] if isinstance(held, bytes) else [key, *held]
        return b"\n".join(parts)

    return contents
