"""The two drivers: a plan yields requests, a driver carries them.

plan ──Request──▶ driver ──▶ Store.execute / AsyncStore.execute
     ◀──reply────        (an error of omoide is raised inside the plan)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol, TypeAlias, TypeVar

from omoide.errors import OmoideError
from omoide.ops.request import Request

R = TypeVar("R")
Plan: TypeAlias = Generator[Request[Any], Any, R]


class Store(Protocol):
    """What the sync driver needs."""

    def execute(self, request: Request[R], /) -> R: ...


class AsyncStore(Protocol):
    """What the async driver needs."""

    async def execute(self, request: Request[R], /) -> R: ...


def run(plan: Plan[R], store: Store) -> R:
    """Drive a plan to its end over a blocking store."""
    return carry(plan, store.execute)


async def arun(plan: Plan[R], store: AsyncStore) -> R:
    """Drive a plan to its end over an async store."""
    return await acarry(plan, store.execute)


def carry(plan: Generator[Any, Any, R], answer: Callable[[Any], Any]) -> R:
    """Drive a generator to its end; `answer` answers each of its steps."""
    try:
        step = next(plan)
        while True:
            try:
                reply = answer(step)
            except OmoideError as error:
                step = plan.throw(error)
            else:
                step = plan.send(reply)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        plan.close()


async def acarry(plan: Generator[Any, Any, R], answer: Callable[[Any], Awaitable[Any]]) -> R:
    """Async twin of `carry`."""
    try:
        step = next(plan)
        while True:
            try:
                reply = await answer(step)
            except OmoideError as error:
                step = plan.throw(error)
            else:
                step = plan.send(reply)
    except StopIteration as stop:
        result: R = stop.value
        return result
    finally:
        plan.close()
