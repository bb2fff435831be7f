"""The async face of the Redis store."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from omoide.ops import port
from omoide.ops import request as ask
from omoide.ops.request import Request
from omoide.stores import embedding
from omoide.stores.redis.awire import AsyncWire
from omoide.stores.redis.listing import list_keys
from omoide.stores.redis.store import OF_EACH_PRIMARY, Binding
from omoide.stores.redis.translate import reply_error

R = TypeVar("R")


class AsyncRedisStore:
    """The async face. Works in any running event loop."""

    def __init__(self, wire: AsyncWire, binding: Binding) -> None:
        self.wire = wire
        self.binding = binding

    async def execute(self, request: Request[R]) -> R:
        """Answer a request. Raises: StoreError and what the request names."""
        if isinstance(request, ask.Embed):
            made: R = await embedding.aembed(request)
            return made
        if isinstance(request, ask.Partitions):
            keys = await self._list(self.binding.patterns(request.model))
            described: Any = await self._drive(self.binding.describe(keys, request.model))
            return described  # type: ignore[no-any-return]
        if type(request) in OF_EACH_PRIMARY:
            command, read = OF_EACH_PRIMARY[type(request)]
            told = await self.wire.each_primary((command,), timeout=port.remaining())
            return read(told, self.wire, self.binding)  # type: ignore[no-any-return]
        if isinstance(request, ask.Pause):
            return await asyncio.sleep(request.seconds)  # type: ignore[func-returns-value, return-value]
        return await self._drive(self.binding.handle(request))

    async def _drive(self, handler: Generator[Any, Any, R]) -> R:
        try:
            commands = next(handler)
            while True:
                replies = await self.wire.call(commands, timeout=port.remaining())
                self.binding.cache.witness(self.wire.history)
                commands = handler.send(replies)
        except StopIteration as stop:
            result: R = stop.value
            return result

    async def _list(self, patterns: Sequence[bytes]) -> list[bytes]:
        wire = self.wire
        looks = list_keys(patterns, cluster=(await wire.capabilities(timeout=port.remaining())).cluster)
        answer: Any = None
        try:
            while True:
                look = looks.send(answer)
                if look is None:
                    answer = await wire.primaries(timeout=port.remaining(), fresh=True)
                else:
                    (answer,) = await wire.call([look[1]], timeout=port.remaining(), node=look[0])
                    if isinstance(answer, Exception):
                        raise reply_error(answer)
        except StopIteration as stop:
            keys: list[bytes] = stop.value
            return keys

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self.wire.aclose()
