"""Script calls over a wire: one command each, loaded where a server does not know the script yet.

A handler is a generator that yields lists of commands and is sent lists of replies; `send` is the
only place where it does. An error reply stays in its place, as an exception object; `answer` raises it
as an error of omoide.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from redis.exceptions import NoScriptError, RedisError

from omoide.errors import ModelError, OmoideError, StoreError
from omoide.lua import Script, load
from omoide.stores.redis.exchange import Argument, Command
from omoide.stores.redis.keys import model_of
from omoide.stores.redis.translate import reply_error

R = TypeVar("R")

PIPELINE = 256
"""Most commands in one round trip."""
Handler: TypeAlias = Generator[list[Command], list[Any], R]


@dataclass(frozen=True, slots=True)
class Call:
    """A verb on one partition. `safe`: calling it twice is the same as calling it once.

    `ahead`: it prepares what comes after it in the same round trip, and is of no use later.
    """

    verb: str
    head: bytes
    args: tuple[Argument, ...] = ()
    safe: bool = False
    ahead: bool = False

    def command(self, script: Script) -> Command:
        verb = b"EVALSHA_RO" if script.read_only else b"EVALSHA"
        return Command((verb, script.sha, 1, self.head, *self.args), self.head, self.safe or script.read_only)


def send(calls: Sequence[Call]) -> Handler[list[Any]]:
    """One reply per call, in their order. A server that lacks a script is sent it, and the call again.

    The reply of a call ahead is then 0.
    """
    scripts = [load(call.verb) for call in calls]
    commands = [call.command(script) for call, script in zip(calls, scripts, strict=True)]
    replies = yield commands
    missing = [place for place, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if missing:
        loads = {(scripts[place].name, calls[place].head): scripts[place] for place in missing}
        first = [
            Command((b"SCRIPT", b"LOAD", script.source), head, idempotent=True)
            for (_, head), script in loads.items()
        ]
        wanted = [place for place in missing if not calls[place].ahead]
        again = yield [*first, *(commands[place] for place in wanted)]
        replies = [0 if isinstance(reply, NoScriptError) else reply for reply in replies]
        for place, reply in zip(wanted, again[len(first) :], strict=True):
            replies[place] = reply
    return replies


def failure(reply: Any, call: Call) -> OmoideError | None:
    """The error an error reply stands for; None for an answer."""
    if not isinstance(reply, (RedisError, StoreError)):
        return None
    if isinstance(reply, StoreError):
        return reply
    text = str(reply)
    if text.startswith(("FINGERPRINT", "ERR FINGERPRINT")):
        return ModelError(
            f"{model_of(call.head)}: a stored index has another shape than the class: analyzer, fields or "
            "half-life",
            hint="run `omoide reindex module:Class`; until then the partition is read only",
        )
    if text.startswith(("FULL", "ERR FULL")):
        return ModelError(
            f"{model_of(call.head)}: a partition has used up its row numbers",
            hint="run `omoide reindex module:Class`",
        )
    return reply_error(reply, script=call.verb)


def answer(call: Call) -> Handler[Any]:
    """The reply of one call.

    Raises:
        ModelError: the stored index has another shape.
        StoreError: the server failed.
    """
    (reply,) = yield from answers([call])
    return reply


def answers(calls: Sequence[Call]) -> Handler[list[Any]]:
    """The replies of calls, in one round trip. Raises: as `answer`, for the first that failed.

    A call ahead may fail: what comes after it does without.
    """
    replies = yield from send(calls)
    for call, reply in zip(calls, replies, strict=True):
        error = None if call.ahead else failure(reply, call)
        if error is not None:
            raise error
    return replies
