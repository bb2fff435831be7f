"""pytest fixtures on real servers: `pytest_plugins = ["omoide.testing.plugin"]`.

    valkey_server    session   a ValkeyServer; its keys survive from test to test
    valkey_url       session   its URL
    store_url        function  the same URL, every key removed before the test
    valkey_cluster   session   three primaries
    cluster_url      function  its URL, every key removed before the test
    postgres_server  session   a PostgresServer
    postgres_url     module    URL of an empty database of its own

Each is started at first use and gone at the end of the session. Where there is no binary for
the platform, tests that use one are skipped with that reason.

`pytest --on-cluster` gives `valkey_server` and what comes from it a cluster of three primaries instead;
tests that kill or stop the server are skipped then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from omoide.errors import CapabilityError
from omoide.stores.embedded import server_binary
from omoide.testing.postgres import PostgresServer
from omoide.testing.servers import ValkeyCluster, ValkeyServer

__all__ = [
    "cluster_url",
    "postgres_server",
    "postgres_url",
    "store_url",
    "valkey_cluster",
    "valkey_server",
    "valkey_url",
]


def _need_binary() -> None:
    try:
        server_binary()
    except CapabilityError as error:
        pytest.skip(str(error))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option above."""
    parser.addoption("--on-cluster", action="store_true", help="run the tests of one server on a cluster")


class _OneServer(ValkeyCluster):
    """A cluster that tests take for a server, as far as they only send it commands."""

    def start(self) -> None:
        if not all(server.running for server in self.servers):
            super().start()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        pytest.skip(f"needs a single server, for its {name}")


@pytest.fixture(scope="session")
def valkey_server(request: pytest.FixtureRequest) -> Iterator[ValkeyServer]:
    """One server for the session."""
    _need_binary()
    if request.config.getoption("--on-cluster"):
        with _OneServer(primaries=3) as cluster:
            yield cast(ValkeyServer, cluster)
        return
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_url(valkey_server: ValkeyServer) -> str:
    """URL of the session's server."""
    return valkey_server.url


@pytest.fixture
def store_url(valkey_server: ValkeyServer) -> str:
    """URL of the session's server, emptied; scripts stay loaded."""
    valkey_server.start()
    valkey_server.command("FLUSHALL", "SYNC")
    return valkey_server.url


@pytest.fixture(scope="session")
def valkey_cluster() -> Iterator[ValkeyCluster]:
    """Three primaries for the session."""
    _need_binary()
    with ValkeyCluster(primaries=3) as cluster:
        yield cluster


@pytest.fixture
def cluster_url(valkey_cluster: ValkeyCluster) -> str:
    """URL of the session's cluster, emptied."""
    valkey_cluster.flush()
    return valkey_cluster.url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the session."""
    try:
        server = PostgresServer()
    except CapabilityError as error:
        pytest.skip(str(error))
    with server:
        yield server


@pytest.fixture(scope="module")
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """URL of an empty database, dropped after the module."""
    name = postgres_server.create()
    yield postgres_server.url_of(name)
    postgres_server.drop(name)
