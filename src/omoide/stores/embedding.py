"""Calling a provider of vectors: what it raises, returns, and how long it takes are its own affair.

    sync    in this thread; with a bound on its time, or where it has to be awaited, in a thread of its own
    async   a coroutine function is awaited in the loop, any other provider called in a thread of its own

A call that is over its time is left alone, since nothing can end it; at most 16 of one provider may hang
so, then further calls fail at once. A deadline of the caller (`port.deadline`) leaves a call half of what
remains, so that there is time for the answer without vectors.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections import Counter
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OutOfTime
from typing import Any

from omoide.core.vectors import directions
from omoide.errors import EmbeddingError
from omoide.ops import port
from omoide.ops.request import Embed
from omoide.stores.background import in_background

MOST_AT_ONCE = 16
_running: Counter[int] = Counter()
_counting = threading.Lock()


def _after_fork() -> None:
    """No thread comes along into a child: its calls are not waited for, and no lock is held by one."""
    global _counting
    _counting = threading.Lock()
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def embed(request: Embed) -> Any:
    """float32[n, dimensions] of length 1 each.

    Raises:
        EmbeddingError: the provider failed, took too long, or returned something else.
    """
    seconds = _seconds(request)
    if seconds is None and not _awaited(request):
        return directions(_call(request), len(request.texts))
    future = _in_thread(request)
    try:
        return directions(future.result(seconds), len(request.texts))
    except OutOfTime:
        raise _late(request) from None


async def aembed(request: Embed) -> Any:
    """`embed`, async."""
    seconds = _seconds(request)
    try:
        if _awaited(request):
            found = await asyncio.wait_for(_acall(request), seconds)
        else:
            found = await asyncio.wait_for(asyncio.wrap_future(_in_thread(request)), seconds)
    except TimeoutError:
        raise _late(request) from None
    return directions(found, len(request.texts))


def _seconds(request: Embed) -> float | None:
    """Most seconds for a call."""
    left = port.remaining()
    own = request.index.timeout if request.query else None
    if left is None:
        return own
    return left / 2 if own is None else min(own, left / 2)


def _function(request: Embed) -> Any:
    """What to call: a provider may have a way of its own for queries."""
    provider = request.index.provider
    return getattr(provider, "embed_query", provider) if request.query else provider


def _awaited(request: Embed) -> bool:
    provider = _function(request)
    return inspect.iscoroutinefunction(provider) or inspect.iscoroutinefunction(
        getattr(provider, "__call__", None)  # noqa: B004 - of an object that is called
    )


def _call(request: Embed) -> Any:
    """What the provider returns, awaited where it has to be."""
    try:
        found = _function(request)(list(request.texts))
        return asyncio.run(_wait(found)) if inspect.isawaitable(found) else found
    except EmbeddingError:
        raise
    except Exception as error:  # noqa: BLE001 - code of the user, whose message may hold what was embedded
        raise _failed(request, error) from None


async def _acall(request: Embed) -> Any:
    try:
        return await _function(request)(list(request.texts))
    except EmbeddingError:
        raise
    except Exception as error:  # noqa: BLE001 - code of the user, whose message may hold what was embedded
        raise _failed(request, error) from None


async def _wait(found: Any) -> Any:
    return await found


def _in_thread(request: Embed) -> Future[Any]:
    key = id(request.index.provider)
    with _counting:
        if _running[key] >= MOST_AT_ONCE:
            raise EmbeddingError(
                f"{request.index.provider_name}: {MOST_AT_ONCE} calls have not come back", reason="timeout"
            )
        _running[key] += 1

    def call() -> Any:
        try:
            return _call(request)
        finally:
            _came_back(key)

    try:
        return in_background("omoide-embedding", call)
    except RuntimeError:
        _came_back(key)
        raise EmbeddingError(f"{request.index.provider_name}: there is no thread to call it in") from None


def _came_back(key: int) -> None:
    with _counting:
        _running[key] -= 1


def _failed(request: Embed, error: Exception) -> EmbeddingError:
    return EmbeddingError(f"{request.index.provider_name} raised {type(error).__name__}")


def _late(request: Embed) -> EmbeddingError:
    return EmbeddingError(f"{request.index.provider_name} took too long", reason="timeout")


__all__ = ["MOST_AT_ONCE", "aembed", "embed"]
