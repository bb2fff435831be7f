"""Server replies and client exceptions as errors of omoide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import exceptions as client

from omoide.errors import (
    CapabilityError,
    CorruptRecordError,
    ScriptError,
    StoreError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from omoide.stores.redis.translate import connection_error, reply_error, server_reply


@pytest.mark.parametrize(
    ("reply", "kind", "shown"),
    [
        ("NOPERM User x has no permissions to run the 'config|get' command", CapabilityError, "CONFIG|GET"),
        ("NOPERM No permissions to access a key", CapabilityError, "keys"),
        (
            "ERR unknown command 'EVALSHA_RO', with args beginning with: 'secret'",
            CapabilityError,
            "EVALSHA_RO",
        ),
        ("CORRUPT :h has no n", CorruptRecordError, ":h"),
        ("CORRUPT secret", CorruptRecordError, "a record"),
        ("ERR secret script: f, on @user_script:12.", ScriptError, "line 12"),
        ("WRONGTYPE Operation against a key holding secret", CorruptRecordError, "another type"),
        ("BADFORMAT secret", ScriptError, "BADFORMAT"),
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreUnavailableError, "memory"),
        ("MISCONF Valkey is configured to save RDB snapshots", StoreUnavailableError, "persist"),
        ("READONLY You can't write against a read only replica.", StoreUnavailableError, "replica"),
        ("BUSY Valkey is busy running a script.", StoreUnavailableError, "busy"),
        ("NOAUTH Authentication required.", StoreUnavailableError, "password"),
    ],
)
def test_reply(reply: str, kind: type[StoreError], shown: str) -> None:
    error = reply_error(server_reply(reply), script="save")
    assert type(error) is kind
    assert shown in str(error)
    assert "secret" not in str(error) + error.hint


def test_script_errors_name_their_script() -> None:
    error = reply_error(server_reply("ERR something"), script="erase")
    assert isinstance(error, ScriptError)
    assert error.script == "erase"


@given(st.text(alphabet="abcdef '`:,", min_size=8, max_size=60))
def test_no_text_of_a_reply_gets_through(text: str) -> None:
    for code in ("ERR", "CORRUPT", "WRONGTYPE", "NOPERM", "ERR user_script:3:"):
        error = reply_error(server_reply(f"{code} {text}"))
        assert not text.strip() or text.strip() not in str(error) or len(text.strip()) < 4


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (client.TimeoutError("x"), StoreTimeoutError),
        (TimeoutError(), StoreTimeoutError),
        (client.ConnectionError("redis://u:pw@h"), StoreUnavailableError),
        (ConnectionResetError(), StoreUnavailableError),
        (client.AuthenticationError("pw"), StoreUnavailableError),
        (client.BusyLoadingError("x"), StoreUnavailableError),
        (client.InvalidResponse("pw"), StoreUnavailableError),
    ],
)
def test_connection_trouble(error: Exception, kind: type[StoreError]) -> None:
    translated = connection_error(error, "h:1")
    assert isinstance(translated, kind)
    assert "pw" not in str(translated)
