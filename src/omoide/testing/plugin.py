"""pytest fixtures on real servers: `pytest_plugins = ["omoide.testing.plugin"]`.

    valkey_server    session   a ValkeyServer; its keys survive from test to test
    valkey_url       session   its URL
    store_url        function  the same URL, every key removed before the test
    valkey_cluster   session   three primaries
    cluster_url      function  its URL, every key removed before the test

Each is started at first use and gone at the end of the session. Where there is no binary for
the platform, tests that use one are skipped with that reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omoide.errors import CapabilityError
from omoide.stores.embedded import server_binary
from omoide.testing.servers import ValkeyCluster, ValkeyServer

__all__ = ["cluster_url", "store_url", "valkey_cluster", "valkey_server", "valkey_url"]


def _need_binary() -> None:
    try:
        server_binary()
    except CapabilityError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """One server for the session."""
    _need_binary()
    with ValkeyServer() as server:
        yield server


@pytest.fixture(scope="session")
def valkey_url(valkey_server: ValkeyServer) -> str:
    """URL of the session's server."""
    return valkey_server.url


@pytest.fixture
def store_url(valkey_server: ValkeyServer) -> str:
    """URL of the session's server, emptied."""
    valkey_server.start()
    valkey_server.flush()
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
