from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from omoide.connection import Connection
from omoide.testing.servers import ValkeyServer


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    """A connection to an empty store, in force."""
    with Connection(store_url) as opened, opened.use():
        yield opened


@pytest.fixture
def raw(store_url: str, valkey_server: ValkeyServer) -> Iterator[object]:
    """The server itself, past the library."""
    client = valkey_server.client()
    yield client
    client.close()


@pytest.fixture
def full() -> bool:
    """Whether the whole of a bar is to run."""
    return os.environ.get("OMOIDE_FULL") == "1"
