"""The Redis store: one binding from requests to commands, and its blocking face.

    Request ──▶ Binding.handle ──commands──▶ wire
                     ▲◀──────────replies────

The binding and its cache are shared with the async face, `astore`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from omoide.errors import QueryError
from omoide.lua import load, names
from omoide.ops import port
from omoide.ops import request as ask
from omoide.ops.request import Request
from omoide.stores import embedding
from omoide.stores.redis.cache import Cache
from omoide.stores.redis.calls import Handler
from omoide.stores.redis.codec import sound
from omoide.stores.redis.dumps import Dumps
from omoide.stores.redis.exchange import Command
from omoide.stores.redis.keys import Keys
from omoide.stores.redis.listing import list_keys
from omoide.stores.redis.mirrored import Mirrored
from omoide.stores.redis.persisted import persistence, rewriting
from omoide.stores.redis.reader import Reader
from omoide.stores.redis.reads import Lookup
from omoide.stores.redis.slots import Slots
from omoide.stores.redis.translate import reply_error
from omoide.stores.redis.upkeep import Upkeep
from omoide.stores.redis.wire import SyncWire
from omoide.stores.redis.writes import Writer

R = TypeVar("R")


class Binding:
    """Finds the handler of a request.

    Args:
        reader: `auto`, `client` or `server`.
        cache_bytes: Budget of the client cache.
    """

    def __init__(self, keys: Keys, *, reader: str = "auto", cache_bytes: int | None = None) -> None:
        if reader not in ("auto", "client", "server"):
            raise QueryError("reader is one of auto, client, server")
        self.keys = keys
        self.cache = Cache() if cache_bytes is None else Cache(cache_bytes)
        self.reader = Reader(self.cache, reader)
        self.writer = Writer(keys, self.cache)
        self.lookup = Lookup(keys, self.reader)
        self.upkeep = Upkeep(keys, self.cache)
        writer, lookup, upkeep = self.writer, self.lookup, self.upkeep
        mirrored = Mirrored(keys, self.cache)
        slots = Slots(keys, self.cache)
        self._handlers: dict[type, Any] = {
            ask.Put: writer.one,
            ask.Erase: writer.one,
            ask.Observe: writer.one,
            ask.Deliver: writer.one,
            ask.Batch: writer.batch,
            ask.Drop: writer.drop,
            ask.Increment: writer.increment,
            ask.Link: writer.link,
            ask.Get: lookup.get,
            ask.GetUnique: lookup.get_unique,
            ask.Page: lookup.page,
            ask.Dump: Dumps(keys).dump,
            ask.ReadTurn: lookup.turn,
            ask.Spread: lookup.spread,
            ask.Count: lookup.count,
            ask.ReadCounters: lookup.counters,
            ask.Top: lookup.top,
            ask.Digests: slots.digests,
            ask.Unembedded: slots.unembedded,
            ask.PutVectors: slots.put,
            ask.Search: self._search,
            ask.Find: self._find,
            ask.KeysLeft: upkeep.keys_left,
            ask.Prune: upkeep.prune,
            ask.Check: upkeep.check,
            ask.BeginReindex: upkeep.begin,
            ask.CopyRecords: upkeep.copy,
            ask.FinishReindex: upkeep.finish,
            ask.Apply: mirrored.apply,
            ask.Applied: mirrored.applied,
            ask.BeginRestore: mirrored.begin,
            ask.LoadRows: mirrored.load,
            ask.Adopt: mirrored.adopt,
            ask.TurnIds: mirrored.turn_ids,
        }

    def handle(self, request: Request[R]) -> Handler[R]:
        """The handler of a request that one or several calls answer."""
        handler: Handler[R] = self._handlers[type(request)](request)
        return handler

    def _search(self, request: ask.Search) -> Handler[ask.SearchReply]:
        return self.reader.search(self.keys.head(request.scope), request)

    def _find(self, request: ask.Find) -> Handler[tuple[ask.Record, ...]]:
        found = yield from self.reader.find(self.keys.head(request.scope), request)
        return sound(found)

    def patterns(self, model: str | None) -> list[bytes]:
        """What the head and counter keys of a model's partitions (None: of all) match."""
        return [self.keys.pattern(model, letter) for letter in "hn"]

    def describe(self, keys: list[bytes], model: str | None) -> Handler[tuple[ask.PartitionStatus, ...]]:
        """Status of the partitions of a model (None: of all) behind head and counter keys."""
        heads = dict.fromkeys(key[:-1] + b"h" for key in keys if self.keys.belongs(key, model))
        return self.upkeep.describe(list(heads))


OF_EACH_PRIMARY: dict[type, tuple[bytes, Callable[[list[Any], Any, Binding], Any]]] = {
    ask.ServerStatus: (b"INFO", lambda infos, wire, binding: server_status(infos, wire, binding)),
    ask.Persistence: (b"INFO", lambda infos, *_: persistence(infos)),
    ask.RewriteLog: (b"BGREWRITEAOF", lambda told, *_: rewriting(told)),
}
"""What every primary is asked for a request about the whole store, and who reads the answers."""


class RedisStore:
    """The blocking face. Safe for threads."""

    def __init__(self, wire: SyncWire, binding: Binding) -> None:
        self.wire = wire
        self.binding = binding

    def execute(self, request: Request[R]) -> R:
        """Answer a request. Raises: StoreError and what the request names."""
        if isinstance(request, ask.Embed):
            made: R = embedding.embed(request)
            return made
        if isinstance(request, ask.Partitions):
            keys = self._list(self.binding.patterns(request.model))
            described: Any = self._drive(self.binding.describe(keys, request.model))
            return described  # type: ignore[no-any-return]
        if type(request) in OF_EACH_PRIMARY:
            command, read = OF_EACH_PRIMARY[type(request)]
            told = self.wire.each_primary((command,), timeout=port.remaining())
            return read(told, self.wire, self.binding)  # type: ignore[no-any-return]
        if isinstance(request, ask.Pause):
            return time.sleep(request.seconds)  # type: ignore[func-returns-value, return-value]
        return self._drive(self.binding.handle(request))

    def _drive(self, handler: Generator[Any, Any, R]) -> R:
        try:
            commands = next(handler)
            while True:
                replies = self.wire.call(commands, timeout=port.remaining())
                self.binding.cache.witness(self.wire.history)
                commands = handler.send(replies)
        except StopIteration as stop:
            result: R = stop.value
            return result

    def _list(self, patterns: Sequence[bytes]) -> list[bytes]:
        wire = self.wire
        looks = list_keys(patterns, cluster=wire.capabilities(timeout=port.remaining()).cluster)
        answer: Any = None
        try:
            while True:
                look = looks.send(answer)
                if look is None:
                    answer = wire.primaries(timeout=port.remaining(), fresh=True)
                else:
                    (answer,) = wire.call([look[1]], timeout=port.remaining(), node=look[0])
                    if isinstance(answer, Exception):
                        raise reply_error(answer)
        except StopIteration as stop:
            keys: list[bytes] = stop.value
            return keys

    def load_scripts(self) -> None:
        """Give every primary the scripts it lacks, so that no later call has to.

        A user who may not run SCRIPT goes on without: then each first call carries its script.
        Cost: one round trip a primary, a second one where something is missing.
        """
        scripts = [load(name) for name in names()]
        wanted = (b"SCRIPT", b"EXISTS", *(script.sha for script in scripts))
        for node in self.wire.primaries():
            (known,) = self.wire.call([Command(wanted, b"", idempotent=True)], node=node)
            if not isinstance(known, list):
                return
            missing = [script.source for script, there in zip(scripts, known, strict=True) if not there]
            loads = [Command((b"SCRIPT", b"LOAD", source), b"", idempotent=True) for source in missing]
            self.wire.call(loads, node=node)

    def close(self) -> None:
        """Close the connections."""
        self.wire.close()


def server_status(infos: list[bytes], wire: Any, binding: Binding) -> dict[str, Any]:
    facts: list[dict[str, str]] = []
    for info in infos:
        if isinstance(info, Exception):
            raise info
        lines = (line.partition(":") for line in info.decode().splitlines() if ":" in line)
        facts.append({name: value for name, _, value in lines})
    first = facts[0]
    return {
        "server": "valkey" if "valkey_version" in first else "redis",
        "version": first.get("valkey_version", first.get("redis_version", "")),
        "primaries": len(facts),
        "memory_bytes": sum(int(fact.get("used_memory", 0)) for fact in facts),
        "maxmemory_policy": first.get("maxmemory_policy", ""),
        "uptime_seconds": int(first.get("uptime_in_seconds", 0)),
        "round_trips": wire.round_trips,
        "cache": binding.cache.stats(),
    }
