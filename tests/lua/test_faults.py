"""A write happens whole or not at all, whatever fails in it."""

from __future__ import annotations

from typing import Any

import faults
import pytest
from memories import Keys
from situations import SITUATIONS

from omoide.connection import Connection
from omoide.errors import StoreError
from omoide.model.schema import Scope
from omoide.ops.request import Check
from omoide.stores.redis import calls

WRITE_COMMANDS = (
    "append",
    "del",
    "hdel",
    "hset",
    "persist",
    "pexpireat",
    "rename",
    "set",
    "setrange",
    "unlink",
    "zadd",
    "zrem",
)
LETTERS = "htsawxrmfdeqcgkionvz"
BUILDS_ANEW = ("adopt", "swap", "swap_with_vectors", "embed_first", "embed_over_another_kind")
pytestmark = [pytest.mark.parametrize("name", SITUATIONS), pytest.mark.usefixtures("one_server")]


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
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "load", faults.load)


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
    assert place > (2 if name.startswith("forget") else 3)  # it looks at a damaged head without failing
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
        if error is None:  # not this write's business: as it was, gone with the partition, or built anew
            assert keys.redis.type(key) in (b"list", b"none") or name in BUILDS_ANEW
            keys.redis.flushdb()
            request = SITUATIONS[name](connection, keys)
            continue
        refused += 1
        assert keys.dump() == before, letter
        keys.redis.delete(key)
        if there:
            keys.redis.rename(aside, key)
    # one needs nothing whole, one leaves it be, one replaces what is there, and two work beside it
    assert refused or name in (
        "forget",
        "forget_with_vectors",
        "prune",
        "adopt",
        "restore",
        "apply_to_a_copy",
    )
    assert attempt(connection, request) is None
    whole(connection, request.scope)


def test_a_user_who_lacks_a_command_changes_nothing(
    name: str, connection: Connection, keys: Keys, store_url: str
) -> None:
    def allow(*rules: str) -> None:
        keys.redis.execute_command("ACL", "SETUSER", "limited", "on", ">secret", "~*", "&*", "+@all", *rules)

    allow()
    refused = 0
    request, before = None, {}
    with Connection(store_url.replace("unix://", "unix://limited:secret@"), reader="client") as limited:
        for command in WRITE_COMMANDS:
            if request is None:
                keys.redis.flushdb()
                request = SITUATIONS[name](connection, keys)
                before = keys.dump()
            allow(f"-{command}")
            error = attempt(limited, request)
            if error is not None:
                refused += 1
                assert keys.dump() == before, command
            else:
                whole(connection, request.scope)
                request = None
    assert refused
