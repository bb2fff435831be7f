"""What a server must be, read from INFO and HELLO."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from redis.exceptions import NoPermissionError

from omoide.errors import CapabilityError
from omoide.stores.redis.capabilities import read_capabilities

DENIED = NoPermissionError("no")


def info(**lines: str) -> bytes:
    return ("# Server\r\n" + "".join(f"{name}:{value}\r\n" for name, value in lines.items())).encode()


@pytest.mark.parametrize(
    ("replies", "name", "version"),
    [
        ([info(redis_version="7.0.15"), DENIED], "redis", (7, 0, 15)),
        (
            [info(redis_version="7.2.4", server_name="valkey", valkey_version="9.1.2"), DENIED],
            "valkey",
            (9, 1, 2),
        ),
        ([DENIED, [b"server", b"redis", b"version", b"8.2.1", b"modules", []]], "redis", (8, 2, 1)),
    ],
)
def test_found(replies: list[Any], name: str, version: tuple[int, ...]) -> None:
    found = read_capabilities(replies, "h:1")
    assert (found.name, found.version) == (name, version)


@pytest.mark.parametrize(
    "reply",
    [info(redis_version="6.2.14"), info(redis_version="7.2.4", server_name="valkey", valkey_version="7.0.0")],
)
def test_too_old(reply: bytes) -> None:
    with pytest.raises(CapabilityError, match=r"needs Redis >= 7\.0 or Valkey >= 7\.2"):
        read_capabilities([reply, DENIED], "h:1")


def test_eviction_is_warned_about_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="omoide"):
        read_capabilities([info(redis_version="7.0.0", maxmemory_policy="allkeys-lru"), DENIED], "h:1")
        read_capabilities([info(redis_version="7.0.0", maxmemory_policy="noeviction"), DENIED], "h:1")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "allkeys-lru" in caplog.text


def test_a_server_that_tells_nothing_is_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    found = read_capabilities([DENIED, DENIED], "h:1")
    assert found.version_text == "unknown"
    assert "does not tell its version" in caplog.text
