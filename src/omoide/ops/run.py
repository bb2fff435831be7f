"""The two drivers: a plan yields requests, a driver carries them.

plan ──Request──▶ driver ──▶ Store.execute / AsyncStore.execute
     ◀──reply────        (an error of omoide is raised inside the plan)
"""

from __future__ import annotations

from collections.abc import Generator
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
    try:
        request = next(plan)
        while True:
            try:
                reply = store.execute(request)
            except OmoideError as error:
                request = plan.throw(error)
            else:
                request = plan.send(reply)
    except StopIteration as stop:
        result: R = stop.value
        return result


async def arun(plan: Plan[R], store: AsyncStore) -> R:
    """Drive a plan to its end over an async store."""
    try:
        request = next(plan)
        while True:
            try:
                reply = await store.execute(request)
            except OmoideError as error:
                request = plan.throw(error)
            else:
                request = plan.send(reply)
    except StopIteration as stop:
        result: R = stop.value
        return result
