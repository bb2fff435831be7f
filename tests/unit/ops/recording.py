"""A store in a dict that records what it is asked: enough to test plans without a server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from omoide.core.decay import order_score
from omoide.errors import StoreUnavailableError
from omoide.model.schema import Scope
from omoide.ops import port
from omoide.ops import request as ask


@dataclass
class Partition:
    records: dict[str, ask.Record] = field(default_factory=dict)
    puts: dict[str, ask.Put] = field(default_factory=dict)
    unique: dict[bytes, str] = field(default_factory=dict)
    operations: dict[str, ask.PutReply] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    edges: dict[frozenset[str], float] = field(default_factory=dict)
    next_row: int = 1


class RecordingStore:
    """Executes requests over dicts. `asked` lists them; `down` makes every call an outage."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.partitions: dict[tuple[str, tuple[str, ...]], Partition] = {}
        self.down = False
        self.failing: set[str] = set()

    def execute(self, request: Any, /) -> Any:
        self.asked.append(request)
        if self.down:
            raise StoreUnavailableError("no server answers")
        return self._reply(request)

    def at(self, scope: Scope) -> Partition:
        return self.partitions.setdefault((scope.spec.name, scope.values), Partition())

    def _reply(self, request: Any) -> Any:
        return getattr(self, "on_" + type(request).__name__.lower())(request)

    # ---- writes

    def on_batch(self, request: ask.Batch) -> tuple[Any, ...]:
        replies: list[Any] = []
        for write in request.writes:
            bad = isinstance(write, ask.Put) and write.id in self.failing
            replies.append(StoreUnavailableError("lost") if bad else self._reply(write))
        return tuple(replies)

    def on_put(self, put: ask.Put) -> ask.PutReply:
        part = self.at(put.scope)
        if put.operation_id in part.operations:
            return replace(part.operations[put.operation_id], repeated=True)
        old = part.records.get(put.id)
        if put.mode == "update" and old is None:
            return ask.PutReply("deleted")
        if put.mode == "create" and old is not None:
            return ask.PutReply("exists", old.version)
        if put.expect_version is not None and (0 if old is None else old.version) != put.expect_version:
            return ask.PutReply("version", 0 if old is None else old.version)
        clash = next((part.unique[d] for d in put.unique if part.unique.get(d, put.id) != put.id), None)
        if clash is not None:
            return ask.PutReply("duplicate", duplicate_of=clash)
        part.unique = {digest: one for digest, one in part.unique.items() if one != put.id}
        part.unique.update(dict.fromkeys(put.unique, put.id))
        reply = self._write(part, put, old)
        part.operations[put.operation_id or ""] = reply
        return reply

    def _write(self, part: Partition, put: ask.Put, old: ask.Record | None) -> ask.PutReply:
        certainty = put.scope.spec.certainty
        prior = put.confidence or (0.5 if certainty is None else certainty.initial)
        record = ask.Record(
            id=put.id,
            row=part.next_row,
            values=dict(put.values),
            version=1 if old is None else old.version + 1,
            time_ms=put.time_ms or (old.time_ms if old else int(time.time() * 1000)),
            importance=put.importance,
            confidence=old.confidence if old else prior,
            relevance=None if put.base is None else max(0.0, put.base),
            order=0.0 if put.base is None else order_score(put.base, 1_600_000_000.0, 86_400.0),
        )
        part.next_row += 1
        part.records.pop(put.id, None)
        part.records[put.id], part.puts[put.id] = record, put
        evicted = 0
        while put.cap and len(part.records) > put.cap and evicted < 16:
            del part.records[next(iter(part.records))]
            evicted += 1
        return ask.PutReply("stored", record.version, old is None, evicted)

    def on_erase(self, request: ask.Erase) -> tuple[bool, ...]:
        records = self.at(request.scope).records
        return tuple(records.pop(one, None) is not None for one in request.ids)

    def on_observe(self, request: ask.Observe) -> ask.ObserveReply:
        part = self.at(request.scope)
        for name, delta in request.counters:
            part.counters[name] = part.counters.get(name, 0) + delta
        ids = tuple(evidence.id for evidence in request.evidence)
        return ask.ObserveReply(ids, tuple("applied" if one in part.records else "missing" for one in ids))

    def on_drop(self, request: ask.Drop) -> int:
        return len(self.partitions.pop((request.scope.spec.name, request.scope.values), Partition()).records)

    # ---- reads

    def on_get(self, request: ask.Get) -> tuple[ask.Record | None, ...]:
        return tuple(self.at(request.scope).records.get(one) for one in request.ids)

    def on_getunique(self, request: ask.GetUnique) -> ask.Record | None:
        part = self.at(request.scope)
        return part.records.get(part.unique.get(request.digest, ""))

    def _matching(self, scope: Scope, match: ask.Match) -> list[ask.Record]:
        part = self.at(scope)
        ranges = ((match.time, "time_ms"), (match.importance, "importance"), (match.confidence, "confidence"))
        found = []
        for record in part.records.values():
            inside = all(
                (bounds[0] is None or getattr(record, name) >= bounds[0])
                and (bounds[1] is None or getattr(record, name) < bounds[1])
                for bounds, name in ranges
                if bounds is not None
            )
            exact = set(match.exact) <= set(part.puts[record.id].exact)
            if inside and exact and record.id not in match.exclude:
                found.append(record)
        return found

    def on_find(self, request: ask.Find) -> tuple[ask.Record, ...]:
        name = {"time": "time_ms"}.get(request.order, request.order)
        found = self._matching(request.scope, request.match)
        found.sort(key=lambda r: (getattr(r, name), r.time_ms, r.id), reverse=request.descending)
        return tuple(found[request.offset :][: request.limit])

    def on_top(self, request: ask.Top) -> tuple[ask.Record, ...]:
        found = self._matching(request.scope, request.match)
        return tuple(sorted(found, key=lambda r: -(r.relevance or 0.0))[: request.limit])

    def on_count(self, request: ask.Count) -> int:
        return len(self._matching(request.scope, request.match))

    def on_page(self, request: ask.Page) -> ask.PageReply:
        records = sorted(self.at(request.scope).records.values(), key=lambda r: r.row)
        start = int(request.cursor or 0)
        rest = [record for record in records if record.row > start]
        page = rest[: request.size]
        return ask.PageReply(tuple(page), str(page[-1].row) if len(rest) > request.size else "")

    # ---- graph and counters

    def on_link(self, request: ask.Link) -> float:
        edges, pair = self.at(request.scope).edges, frozenset((request.first, request.second))
        weight = max(0.0, edges.get(pair, 0.0) + request.delta)
        edges[pair] = weight
        return weight

    def on_spread(self, request: ask.Spread) -> tuple[tuple[str, float], ...]:
        (seed,) = request.seeds
        edges = self.at(request.scope).edges
        found = [
            (next(iter(pair - {seed})), request.decay * w / (1 + w))
            for pair, w in edges.items()
            if seed in pair and w
        ]
        return tuple(sorted(found, key=lambda pair: (-pair[1], pair[0]))[: request.limit])

    def on_increment(self, request: ask.Increment) -> int:
        counters = self.at(request.scope).counters
        counters[request.name] = counters.get(request.name, 0) + request.delta
        return counters[request.name]

    def on_readcounters(self, request: ask.ReadCounters) -> dict[str, int]:
        return dict(self.at(request.scope).counters)


class AsyncFace:
    def __init__(self, store: RecordingStore) -> None:
        self._store = store

    async def execute(self, request: Any, /) -> Any:
        return self._store.execute(request)


class RecordingConnection:
    """A connection of both faces over one RecordingStore."""

    def __init__(self) -> None:
        self.store = RecordingStore()
        self.astore = AsyncFace(self.store)


@contextmanager
def recording() -> Iterator[RecordingStore]:
    """Run plans over a fresh RecordingStore within the block."""
    connection = RecordingConnection()
    with port.using(connection):
        yield connection.store
