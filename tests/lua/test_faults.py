"""A write happens whole or not at all, whatever fails in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import faults
import pytest
from memories import Keys
from situations import SITUATIONS

from omoide.connection import Connection
from omoide.errors import StoreError
from omoide.lua import names
from omoide.lua import load as plain_load
from omoide.model.schema import Scope
from omoide.ops.request import Batch, Check
from omoide.stores.redis import calls
from omoide.stores.redis.codec import digest

WRITE_COMMANDS = (
    "append", "del", "hdel", "hset", "persist", "pexpireat", "rename", "set", "setrange", "unlink", "zadd", "zrem",
)  # fmt: skip
LETTERS = "htsawxrmfdeqcgkion"
pytestmark = pytest.mark.parametrize("name", SITUATIONS)


def attempt(connection: Connection, request: Any) -> StoreError | None:
    """The error of a write, None when it succeeded."""
    try:
        connection.store.execute(request)
    except StoreError as error:
        return error
    return None


def whole(connection: Connection, scope: Scope) -> None:
    assert connection.store.execute(Check(scope)).findings == ()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(calls, "load", faults.load)
    return None


def test_a_fault_in_any_call_changes_nothing(
    name: str, connection: Connection, keys: Keys, counted: None
) -> None:
    faults.fail_at(keys.redis, 0)
    request = SITUATIONS[name](connection, keys)
    before = keys.dump()
    place, failed = 1, True
    while failed and place < 5_000:
        faults.fail_at(keys.redis, place)
        failed = attempt(connection, request) is not None
        if failed:
            assert keys.dump() == before, f"call {place}"
            place += 1
    assert place > 3
    assert keys.dump() != before
    whole(connection, request.scope)


def test_a_key_of_the_wrong_type_stops_a_write_before_it_changes_anything(
    name: str, connection: Connection, keys: Keys
) -> None:
    request = SITUATIONS[name](connection, keys)
    refused = 0
    for letter in LETTERS:
        key, aside = keys.name(request.scope, letter), keys.name(request.scope, "aside")
        there = keys.redis.exists(key)
        if there:
            keys.redis.rename(key, aside)
        keys.redis.rpush(key, "planted")
        before = keys.dump()
        error = attempt(connection, request)
        if error is None:  # a key that this write has no business with: as it was, or gone with the partition
            assert keys.redis.type(key) in (b"list", b"none")
            keys.redis.flushdb()
            request = SITUATIONS[name](connection, keys)
            continue
        refused += 1
        assert keys.dump() == before, letter
        keys.redis.delete(key)
        if there:
            keys.redis.rename(aside, key)
    assert refused or name == "forget"
    assert attempt(connection, request) is None
    whole(connection, request.scope)


@pytest.mark.parametrize("denied", WRITE_COMMANDS)
def test_a_user_who_lacks_a_command_changes_nothing(
    name: str, denied: str, connection: Connection, keys: Keys, store_url: str
) -> None:
    request = SITUATIONS[name](connection, keys)
    before = keys.dump()
    keys.redis.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">secret", "~*", "&*", "+@all", f"-{denied}")
    url = store_url.replace("unix://", "unix://limited:secret@")
    with Connection(url, reader="client") as limited:
        error = attempt(limited, request)
    if error is not None:
        assert keys.dump() == before
    else:
        whole(connection, request.scope)
