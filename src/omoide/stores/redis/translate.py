"""The one place where server replies and client exceptions become errors of omoide.

Replies quote what they complain about: an unknown command repeats its arguments, a script
error may carry a value. So no reply text is passed on. What is passed on is matched out of it
piece by piece: the error code, the name of a command, the line of a script.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from omoide.errors import (
    CapabilityError,
    CorruptRecordError,
    ScriptError,
    StoreError,
    StoreTimeoutError,
    StoreUnavailableError,
)

__all__ = ["LoadingError", "RefusedError", "connection_error", "reply_error", "server_reply"]


class LoadingError(StoreUnavailableError):
    """The server is there but still reads its data: worth waiting for."""


class RefusedError(StoreUnavailableError):
    """The server is there and refuses the user: not worth trying again."""


_CODE = re.compile(r"(?:ERR )?([A-Z]{3,16})(?= |$)")
_DENIED = re.compile(r"run the '([A-Za-z|_-]{1,40})' command")
_UNKNOWN = re.compile(r"unknown (?:command|subcommand)[ '`]+([A-Za-z|_-]{1,40})['`]", re.IGNORECASE)
_LINE = re.compile(r"user_script:(\d+)")
_PART = re.compile(r"CORRUPT (:[a-z])(?= |$)")

_MOVING = "access a non local key"
"""A script looked whether its slot is being moved (partition.lua) and did nothing else; later it works."""

_CLASSES = {
    "NOSCRIPT": "NoScriptError",
    "NOPERM": "NoPermissionError",
    "READONLY": "ReadOnlyError",
    "LOADING": "BusyLoadingError",
    "MOVED": "MovedError",
    "ASK": "AskError",
    "TRYAGAIN": "TryAgainError",
    "CLUSTERDOWN": "ClusterDownError",
    "MASTERDOWN": "MasterDownError",
    "CROSSSLOT": "ClusterCrossSlotError",
    "OOM": "OutOfMemoryError",
    "NOAUTH": "AuthenticationError",
    "WRONGPASS": "AuthenticationError",
}
"""Error code -> class of redis-py, which is imported when the first error reply arrives."""

_OUTAGES: dict[str, tuple[str, str]] = {
    "OOM": ("the server is out of memory and refuses writes", "raise maxmemory, or prune memories"),
    "MISCONF": ("the server cannot persist and refuses writes", "look at its log: the disk may be full"),
    "NOREPLICAS": ("the server has too few replicas and refuses writes", ""),
    "READONLY": ("the server is a replica and refuses writes", "connect to the primary"),
    "LOADING": ("the server is still loading its data", "try again in a moment"),
    "CLUSTERDOWN": ("the cluster is down", "see CLUSTER INFO"),
    "MASTERDOWN": ("the replica has lost its primary", ""),
    "ASK": ("the slot is being moved", "try again in a moment"),
    "TRYAGAIN": ("the slot is being moved", "try again in a moment"),
    "BUSY": ("a script keeps the server busy", "try again in a moment"),
    "NOAUTH": ("the server wants a user name and password", "put them into the URL"),
    "WRONGPASS": ("the server refused the user name or password", "check the URL"),
}


def server_reply(text: str) -> Exception:
    """Exception object of an error reply, of redis-py's class for its code.

    Known codes are cut off the text as redis-py does; any other reply is a
    `redis.exceptions.ResponseError` with the whole text.
    """
    from redis import exceptions as client

    code, _, rest = text.partition(" ")
    if _MOVING in text:
        return client.TryAgainError(rest)
    known: type[Exception] = getattr(client, _CLASSES.get(code, "ResponseError"))
    return known(rest if code in _CLASSES else text)


def reply_error(error: Exception, *, script: str = "") -> StoreError:
    """Error of omoide for an error reply of the server, without its text.

    Args:
        script: Name of the script that was called, for `ScriptError.script`.
    """
    text = str(error)
    code = next((code for code, name in _CLASSES.items() if type(error).__name__ == name), "")
    if not code and (match := _CODE.match(text)):
        code = match[1]
    if code == "CORRUPT":
        part = match[1] if (match := _PART.match(text)) else "a record"
        return CorruptRecordError(f"{part} is not what was written", hint="omoide doctor says more")
    if code == "WRONGTYPE":
        return CorruptRecordError("a key is of another type than omoide's", hint="omoide doctor says more")
    if code in _OUTAGES:
        message, hint = _OUTAGES[code]
        return StoreUnavailableError(message, hint=hint)
    if code == "NOPERM":
        what = f"run {match[1].upper()}" if (match := _DENIED.search(text)) else "use omoide's keys"
        return CapabilityError(f"this user may not {what}", hint="extend its ACL rules")
    if match := _UNKNOWN.search(text):
        return CapabilityError(
            f"the server does not know {match[1].upper()}", hint="Redis >= 7.0 or Valkey >= 7.2 is needed"
        )
    where = f" in line {match[1]}" if (match := _LINE.search(text)) else ""
    what = f"script {script}" if script else "the server"
    return ScriptError(f"{what} answered {code or 'ERR'}{where}", script=script)


def connection_error(error: BaseException, address: str) -> StoreError:
    """Error of omoide for trouble with the connection to `address` (no credentials in it)."""
    if isinstance(error, StoreError):
        return error
    # An instance of a class of redis-py can only be there when redis-py is.
    client: Any = sys.modules.get("redis.exceptions")
    if client is None:
        if isinstance(error, TimeoutError):
            return StoreTimeoutError(f"no answer from {address} in time")
        return StoreUnavailableError(f"no connection to {address}", hint="is the server running there?")
    if isinstance(error, (client.TimeoutError, TimeoutError)):
        return StoreTimeoutError(f"no answer from {address} in time")
    if isinstance(error, client.AuthenticationError):
        message, hint = _OUTAGES["WRONGPASS"]
        return RefusedError(f"{address}: {message}", hint=hint)
    if isinstance(error, client.ResponseError):
        return reply_error(error)
    if isinstance(error, client.BusyLoadingError):
        message, hint = _OUTAGES["LOADING"]
        return LoadingError(f"{address}: {message}", hint=hint)
    return StoreUnavailableError(f"no connection to {address}", hint="is the server running there?")
