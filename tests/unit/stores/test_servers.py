"""The servers tests run on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot as reference_slot

from omoide.errors import StoreUnavailableError
from omoide.stores.redis.topology import key_slot
from omoide.stores.redis.wire import Command, SyncWire
from omoide.testing import ValkeyServer
from omoide.testing.servers import free_ports


def test_a_server_is_gone_with_its_folder_also_after_a_failure() -> None:
    server = ValkeyServer()
    with contextlib.suppress(ZeroDivisionError), server:
        pid = server.pid
        raise ZeroDivisionError
    assert not server.folder.exists()
    assert not server.running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_server_that_cannot_start_says_so_and_is_removed() -> None:
    server = ValkeyServer(config=[("no-such-directive", "1")])
    with pytest.raises(StoreUnavailableError, match="ended with 1"), server:
        pass
    assert not server.folder.exists()


def test_kill_and_restart_keep_address_and_with_aof_the_data(tmp_path: Path) -> None:
    with ValkeyServer(tmp_path / "data", port=True, aof=True) as server:
        url = server.url
        server.command("SET", "k", "v")
        server.restart()
        assert server.url == url
        assert server.command("GET", "k") == b"v"
        server.command("CONFIG", "SET", "appendfsync", "always")
        server.command("SET", "l", "w")
        server.kill9()
        server.start()
        assert server.command("GET", "l") == b"w"
    assert (tmp_path / "data").is_dir()


def test_cpu_time_grows_with_work(valkey_server: ValkeyServer) -> None:
    before, before_info = valkey_server.cpu_seconds(), valkey_server.cpu_seconds_by_info()
    valkey_server.command("EVAL", "local n = 0; for i = 1, 2e7 do n = n + i end; return n", 0)
    assert valkey_server.cpu_seconds() > before
    assert valkey_server.cpu_seconds_by_info() > before_info


def test_each_test_gets_an_empty_store(valkey_server: ValkeyServer, store_url: str) -> None:
    assert valkey_server.command("DBSIZE") == 0
    valkey_server.command("SET", "left", "over")


def test_each_test_gets_an_empty_store_again(store_url: str) -> None:
    with contextlib.closing(SyncWire(store_url)) as wire:
        assert wire.call([Command(("DBSIZE",), b"")]) == [0]


def test_ports_are_not_handed_out_twice() -> None:
    ports = free_ports(5) + free_ports(5)
    assert len(set(ports)) == 10


@given(st.binary(max_size=40) | st.text(alphabet="a{}", max_size=8).map(str.encode))
def test_slots_are_the_servers(key: bytes) -> None:
    assert key_slot(key) == reference_slot(key)
