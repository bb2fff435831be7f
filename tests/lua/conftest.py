from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from memories import Keys, Mirror, note_spec

from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.testing.servers import ValkeyServer

FULL = os.environ.get("OMOIDE_FULL") == "1"


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    with Connection(store_url, reader="client") as opened:
        yield opened


@pytest.fixture
def server_reader(store_url: str) -> Iterator[Connection]:
    with Connection(store_url, reader="server") as opened:
        yield opened


@pytest.fixture
def keys(store_url: str, valkey_server: ValkeyServer) -> Iterator[Keys]:
    raw = Keys(valkey_server)
    yield raw
    raw.redis.close()


@pytest.fixture
def one_server(valkey_server: ValkeyServer) -> None:
    """Scripts are changed, and users made, on one node: on a cluster the test is skipped."""
    assert valkey_server.socket_path


@pytest.fixture
def scope() -> Scope:
    return Scope(note_spec(), ("a",))


@pytest.fixture
def mirror(connection: Connection, server_reader: Connection) -> Callable[..., Mirror]:
    """A partition beside its oracle; arguments go to its model."""

    def open_mirror(**shape: Any) -> Mirror:
        return Mirror(Scope(note_spec(**shape), ("a",)), connection, server_reader)

    return open_mirror


@pytest.fixture
def full() -> bool:
    """Whether the whole of a bar is to run."""
    return FULL
