"""The async face of the Redis store."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

from omoide.ops import port
from omoide.ops import request as ask
from omoide.ops.request import Request
from omoide.stores.redis.awire import AsyncWire
from omoide.stores.redis.store import Binding, scan_command, server_status

R = TypeVar("R")


class AsyncRedisStore:
    """The async face. Works in any running event loop."""

    def __init__(self, wire: AsyncWire, binding: Binding) -> None:
        self.wire = wire
        self.binding = binding

    async def execute(self, request: Request[R]) -> R:
        """Answer a request. Raises: StoreError and what the request names."""
        if isinstance(request, ask.Partitions):
            keys = []
            for letter in "hn":
                keys += await self._scan(self.binding.keys.pattern(request.model, letter))
            described: Any = await self._drive(self.binding.describe(keys, request.model))
            return described  # type: ignore[no-any-return]
        if isinstance(request, ask.ServerStatus):
            infos = await self.wire.each_primary((b"INFO",), timeout=port.remaining())
            return server_status(infos, self.wire, self.binding)  # type: ignore[return-value]
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

    async def _scan(self, pattern: bytes) -> list[bytes]:
        found: list[bytes] = []
        for node in await self.wire.primaries():
            cursor: Any = b"0"
            while True:
                command = scan_command(cursor, pattern)
                ((cursor, keys),) = await self.wire.call([command], timeout=port.remaining(), node=node)
                found += keys
                if cursor in (b"0", 0):
                    break
        return found

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self.wire.aclose()
