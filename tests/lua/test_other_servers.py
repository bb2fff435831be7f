"""The scripts on servers that are out of memory, and on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memories import Keys
from situations import SITUATIONS

from omoide.connection import Connection
from omoide.errors import StoreError, StoreUnavailableError
from omoide.ops.request import Check
from omoide.stores.redis.topology import key_slot
from omoide.testing.servers import ValkeyCluster

FREEING = {"erase", "erase_the_last", "erase_under_rebuild", "erase_the_permanent_one", "prune", "forget"}


@pytest.fixture
def exhausted(keys: Keys) -> Iterator[None]:
    """Nothing yet; whatever the test sets is undone."""
    yield
    keys.redis.config_set("maxmemory", 0)


@pytest.mark.parametrize("name", SITUATIONS)
def test_out_of_memory_a_write_happens_whole_or_not(
    name: str, connection: Connection, keys: Keys, exhausted: None
) -> None:
    request = SITUATIONS[name](connection, keys)
    before = keys.dump()
    keys.redis.config_set("maxmemory", 1)
    try:
        connection.store.execute(request)
    except StoreUnavailableError:
        assert keys.dump() == before
        assert name not in FREEING
    assert connection.store.execute(Check(request.scope)).findings == ()


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_write_runs_on_a_cluster(name: str, cluster_url: str, valkey_cluster: ValkeyCluster) -> None:
    owner = valkey_cluster.owner(key_slot(b"{Note/a}"))
    keys = Keys(owner)
    with Connection(cluster_url, reader="client") as connection:
        request = SITUATIONS[name](connection, keys)
        before = keys.dump()
        try:
            connection.store.execute(request)
        except StoreError as error:
            pytest.fail(f"{error}")
        assert keys.dump() != before
        assert connection.store.execute(Check(request.scope)).findings == ()
    keys.redis.close()
