"""What the tests of the scripts write, and how they look at the keys behind it.

Words of a text are its index terms as they stand, so a test knows every posting it causes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import oracle
from omoide.connection import Connection
from omoide.core import vectors
from omoide.core.columns import stored_confidence
from omoide.core.text import default_analyzer
from omoide.model.schema import (
    Certainty,
    DecayIndex,
    EmbeddingIndex,
    ModelSpec,
    Scope,
    TextIndex,
    ValidityIndex,
)
from omoide.ops.request import (
    BeginReindex,
    Check,
    CopyRecords,
    Erase,
    FinishReindex,
    Get,
    Page,
    Put,
    Record,
    RowState,
    Search,
    Span,
)
from omoide.stores.redis.codec import STATISTICS, chained, encode_put, identifier, statistics
from omoide.testing.servers import ValkeyServer

HALF_LIFE = 30 * 86_400.0
_DUMP = """
local out = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local kind = redis.call('TYPE', key).ok
  local held
  if kind == 'string' then held = { redis.call('GET', key) }
  elseif kind == 'hash' then held = redis.call('HGETALL', key)
  elseif kind == 'zset' then held = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else held = redis.call('LRANGE', key, 0, -1) end
  out[#out + 1] = { key, kind, redis.call('PEXPIRETIME', key), held }
end
return out
"""


def note_spec(
    *,
    ttl: float | None = None,
    pivot: int | None = 32,
    fingerprint: str = "shape-1",
    k1: float = 1.2,
    b: float = 0.9,
    validity: bool = False,
    kind: str = "",
) -> ModelSpec:
    """A model with every kind of index."""
    return ModelSpec(
        "Note",
        {},
        "id",
        ("agent",),
        fingerprint,
        text=TextIndex("bm25", ("content",), default_analyzer(), k1=k1, b=b, pivot=pivot),
        decay=DecayIndex("relevance", "importance", 1.0, HALF_LIFE),
        certainty=Certainty("certainty"),
        graph="graph",
        importance="importance",
        session="session",
        author="author",
        exact=("tag",),
        ttl=ttl,
        validity=ValidityIndex("validity", ("key",)) if validity else None,
        tracks_access=True,
        embedding=EmbeddingIndex("meaning", ("content",), _no_provider, kind) if kind else None,
    )


def _no_provider(texts: list[str]) -> Any:
    raise AssertionError("the scripts ask no provider")


def slot(scope: Scope, text: str, dimensions: int = 8) -> bytes:
    """What is stored of the vector of a text, made of its words."""
    import numpy as np

    assert scope.spec.embedding is not None
    vector = np.zeros((1, dimensions), np.float32)
    for word in text.split():
        vector[0, sum(word.encode()) % dimensions] += 1
    unit = vectors.directions(vector, 1)
    return vectors.slots(unit, [vectors.digest(scope.spec.embedding.kind, text)])[0]


def put(scope: Scope, name: str, text: str = "", **fields: Any) -> Put:
    """A write of a text; `importance` is its base score too, `tags` equality terms, `key` makes versions."""
    words = Counter(text.split())
    fields["exact"] = tuple(("tag", tag) for tag in fields.pop("tags", ()))
    key = fields.pop("key", None)
    fields["chain"] = None if key is None else "k" + f"{key:-<16}"
    fields.setdefault("base", fields.get("importance", 1.0))
    values = {"id": name, "content": text} | ({} if key is None else {"key": key})
    return Put(scope, name, values, terms=words, length=sum(words.values()), **fields)


def find(
    connection: Connection, scope: Scope, text: str, limit: int = 10, **more: Any
) -> list[tuple[str, float]]:
    """(id, score) of the best records."""
    terms = dict.fromkeys(text.split(), 1.0)
    reply = connection.store.execute(Search(scope, terms, limit, **more))
    return [(hit.record.id, hit.score) for hit in reply.hits]


@dataclass
class Mirror:
    """A partition beside its oracle: what is written to one is noted in the other.

    `client` and `server` are connections with one reader each.
    """

    scope: Scope
    client: Connection
    server: Connection
    documents: dict[str, oracle.Document] = field(default_factory=dict)

    def save(self, name: str, text: str, **fields: Any) -> None:
        fields.setdefault("time_ms", 1_700_000_000_000 + len(text))
        reply = self.client.store.execute(put(self.scope, name, text, **fields))
        assert reply.status == "stored"
        words = Counter(text.split())
        confidence = stored_confidence(0.5)
        self.documents[name] = oracle.Document(
            words,
            sum(words.values()),
            float(as_float32(fields.get("importance", 1.0))),
            confidence,
            fields["time_ms"],
            frozenset(("tag", tag) for tag in fields.get("tags", ())),
        )

    def erase(self, *names: str) -> None:
        assert all(self.client.store.execute(Erase(self.scope, names)))
        for name in names:
            del self.documents[name]

    def agrees(self, *queries: str, limit: int = 10) -> None:
        """`Check` finds nothing, and both readers give the oracle's answer to the last bit."""
        reply = self.client.store.execute(Check(self.scope))
        assert (reply.records, reply.findings) == (len(self.documents), ())
        text = self.scope.spec.text
        assert text is not None
        for query in queries:
            terms = dict.fromkeys(query.split(), 1.0)
            expected = oracle.search(self.documents, terms, limit, k1=text.k1, b=text.b, pivot=text.pivot)
            assert find(self.server, self.scope, query, limit) == expected
            assert find(self.client, self.scope, query, limit) == expected


def as_float32(value: float) -> float:
    """The nearest float32."""
    import numpy as np

    return float(np.float32(value))


def records(connection: Connection, scope: Scope, *names: str) -> list[Record | None]:
    return list(connection.store.execute(Get(scope, names)))


def record(connection: Connection, scope: Scope, name: str) -> Record:
    (found,) = records(connection, scope, name)
    assert found is not None
    return found


def rebuild(connection: Connection, scope: Scope, *, size: int = 100, until: Any = None) -> int:
    """A whole rebuild, page by page; `until(page)` runs after each."""
    state = connection.store.execute(BeginReindex(scope))
    cursor = state.cursor
    pages = 0
    while True:
        page = connection.store.execute(Page(scope, cursor, size))
        copy_page(connection, scope, state.token, page.records)
        pages += 1
        if until is not None:
            until(pages)
        cursor = page.cursor
        if not cursor:
            break
    return connection.store.execute(FinishReindex(scope, state.token))


def copy_page(connection: Connection, scope: Scope, token: str, page: Any) -> int:
    """Copy records into the shadow, importance and all, as the plan of a rebuild does."""
    puts = tuple(
        put(
            scope,
            found.id,
            found.values["content"],
            importance=found.importance,
            key=found.values.get("key"),
            **{name: found.values[name] for name in ("session", "author") if name in found.values},
        )
        for found in page
    )
    return connection.store.execute(CopyRecords(scope, token, tuple(found.row for found in page), puts))


class Keys:
    """The raw keys of a namespace, over a client of its own."""

    def __init__(self, server: ValkeyServer) -> None:
        self.redis = server.client()
        self._server = server

    def dump(self, pattern: str = "omoide:*") -> dict[bytes, tuple[Any, ...]]:
        """Key -> (type, expiry, content): what a client could see of it."""
        found = {}
        nodes = getattr(self._server, "servers", [self._server])
        for key, kind, expiry, held in (
            one for node in nodes for one in node.command("EVAL", _DUMP, 0, pattern)
        ):
            if kind == b"hash":
                held = sorted(zip(held[::2], held[1::2], strict=True))
            found[key] = (kind, expiry, held)
        return found

    def name(self, scope: Scope, letter: str) -> str:
        return f"omoide:{{{scope.spec.name}/{scope.values[0]}}}:{letter}"


def row_of(write: Put, span: Span | None = None) -> RowState:
    """What an authoritative row of a first write would tell the store."""
    plan, footprint, body, _ = encode_put(write)
    if span is not None:
        name = identifier(write.id)
        footprint = name + chained(span.chain) + footprint[len(name) :]
    given = statistics(write)
    return RowState(
        id=write.id,
        body=body,
        operations=b"operated\0\0",
        footprint=footprint,
        codes=tuple(plan["codes"]),
        length=plan["length"],
        flags=plan["flags"],
        version=1,
        time_ms=1_700_000_000_000,
        importance=plan["importance"],
        confidence=plan["confidence"],
        statistics=STATISTICS.unpack(given) if given else None,  # type: ignore[arg-type]
        order=5.0,
        span=span,
    )
