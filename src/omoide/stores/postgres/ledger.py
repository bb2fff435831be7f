"""One transaction of a partition: writes are decided here, by the authoritative rows.

    begin    hold the partition's row: no other writer decides until the commit
    put, erase, observe, link, count, prune, drop
    finish   next sequence number, outbox entry (which records, edges, counters; not what they say)

The rules are those of the scripts in `lua/` for records without authoritative rows: create, update,
`expect_version`, operation ids, uniqueness, versions, expiry, the cap. `changes` is what the store is told
afterwards; whoever replays the outbox reads the rows instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omoide.model.schema import Scope
from omoide.ops.request import Changes, Observe, ObserveReply, Put, PutReply, RowState
from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.edges import Edges
from omoide.stores.postgres.parts import parts_of
from omoide.stores.postgres.rows import (
    KNOWN,
    Entries,
    Known,
    Prepared,
    entries_of,
    order_of,
    state_of,
)
from omoide.stores.postgres.rules import begin_evidence, believe, done_before, expanded, keep, refusal
from omoide.stores.postgres.script import Script, Step, identifier
from omoide.stores.postgres.tables import Table, row_values
from omoide.stores.postgres.told import tell, told_of
from omoide.stores.postgres.versions import Versions, place_of, unkeyed
from omoide.stores.redis.codec import digest, kind

__all__ = ["Committed", "Ledger"]

DUE_AT_ONCE = 16
MOST_EVICTED = 16
MOST_OPERATIONS = 5
DIGEST = 8
"""Bytes of a slot that stand for the text alone; more hold its vector."""

_BEGIN = """
INSERT INTO omoide_partitions AS held (model, partition, seq)
VALUES (%s, %s, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (model, partition) DO UPDATE SET seq = held.seq
RETURNING seq, begun, records, next_row, EXISTS (
    SELECT FROM omoide_rebuilds AS one
    WHERE one.model = held.model AND one.partition = held.partition AND one.until > now()
), floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
"""
_ENTRY = """
INSERT INTO omoide_outbox (model, partition, seq, op, begins, ids, linked, counters)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_FINISH = f"""
WITH counted AS (
    UPDATE omoide_partitions SET seq = %s, begun = true, records = %s, next_row = %s
    WHERE model = %s AND partition = %s
), gone AS (
    DELETE FROM omoide_outbox WHERE model = %s AND partition = %s AND seq <= %s
)
{_ENTRY}"""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a transaction did: replies in order, and what the store has to be told (nothing: nothing changed).

    `changes` have a sequence number each, `seq` the last one. `begins`: the first begins the partition.
    """

    replies: tuple[Any, ...]
    seq: int = 0
    begins: bool = False
    changes: tuple[Changes, ...] = ()


class Ledger:
    """The transaction of one partition; each method is a script."""

    def __init__(self, table: Table, scope: Scope, partition: str, shown: int = 0) -> None:
        self.table, self.scope, self.spec = table, scope, scope.spec
        self.at = (escaped(scope.spec.name), partition)
        self.partition = partition
        self._shown = shown
        self._rows: dict[str, RowState] = {}
        self._states: dict[str, RowState] = {}
        self._erased: dict[str, None] = {}
        self._counters: dict[str, int] = {}
        self._edges = Edges(table, partition, self.at)
        self._versions = Versions(table, partition)
        self._op = ""

    # ---- the frame

    def begin(self) -> Script[None]:
        """Hold the partition."""
        rows = yield Step(_BEGIN, self.at)
        self._seq, self._begun, self._records, self._next_row, self._kept, self.now_ms = rows[0]

    def finish(self, replies: Iterable[Any]) -> Script[Committed]:
        """Note what changed, and let go."""
        spans = self._versions.changed
        if not (self._rows or self._states or spans or self._erased or self._counters or self._edges.changed):
            return Committed(tuple(replies))
        edges = yield from self._edges.told()
        changes = parts_of(
            Changes(
                rows=tuple(self._rows.values()),
                states=tuple(self._states.values()),
                spans=tuple(spans.items()),
                erased=tuple(self._erased),
                edges=edges,
                counters=tuple(self._counters.items()),
            )
        )
        entries = [
            (*self.at, self._seq + number, self._op, not self._begun and number == 1, _ids_of(part))
            for number, part in enumerate(changes, 1)
        ]
        seq = self._seq + len(changes)
        linked = [escaped(id) for id in sorted(self._edges.changed)]
        counters = [escaped(name) for name in self._counters]
        shown = 0 if self._kept else self._shown
        for entry in entries[:-1]:
            yield Step(_ENTRY, (*entry, [], []))
        yield Step(
            _FINISH,
            (
                *(seq, self._records, self._next_row, *self.at),
                *(*self.at, shown),
                *(*entries[-1], linked, counters),
            ),
        )
        return Committed(tuple(replies), seq, not self._begun, changes)

    # ---- records

    def put(self, put: Put) -> Script[PutReply]:
        """Write one record, or say what stands in the way."""
        operation = digest(put.operation_id)
        old = yield from self._known(put.id)
        if old is not None:
            done = done_before(old.operations, operation)
            if done is not None:
                ago, evicted = done
                version = old.version - ago
                closed = (yield from self._versions.closed_by(put.id, old)) if version == 1 else None
                return PutReply("stored", version, version == 1, evicted, repeated=True, closed=closed)
        yield from self.erase_due(DUE_AT_ONCE)
        if old is not None and old.expired(self.now_ms):
            yield from self._erase([put.id], seal=True)
            old = None
        refused = refusal(put, old, self.now_ms) or (yield from self._clash(put))
        if refused is not None:
            return refused
        prepared = entries_of(put)
        known = self._next(put, prepared, old, operation)
        if put.supersedes is not None:
            chain = yield from self._superseding(put.supersedes, known.chain, prepared.chain is not None)
            if isinstance(chain, PutReply):
                return chain
            known.chain = chain
        known.valid_to = yield from self._versions.end_of(put.id, known)
        if self.spec.graph:
            yield from self._link(put, prepared, known.row, known_before=old is not None)
        embedded = yield from self._store(put, prepared, known, new=old is None)
        closed = yield from self._versions.enter(put.id, known, old)
        evicted = yield from self._evict(put)
        if evicted:
            known.operations = operation + evicted.to_bytes(2, "little") + known.operations[10:]
            yield Step(
                self._sql("UPDATE {table} SET _operations = %s" + _THIS),
                (known.operations, *self._this(put.id)),
            )
        span = self._versions.changed.pop(put.id, None)
        if span is not None:
            known.valid_to, known.own_end = span.end, span.own
        self._note_row(put.id, known, prepared.entries, prepared.body, put.slot)
        span = known.span(self.spec)
        interval = None if span is None else (span.start, span.end)
        return PutReply(
            "stored", known.version, old is None, evicted, closed=closed, interval=interval, embedded=embedded
        )

    def erase(self, ids: Sequence[str]) -> Script[tuple[bool, ...]]:
        """Erase records; True where one was there."""
        rows = yield Step(
            self._sql("SELECT {id}, _expires FROM {table} WHERE _partition = %s AND {id} = ANY(%s)"),
            (self.partition, [escaped(id) for id in ids]),
        )
        there = {unescaped(id): expires is None or expires > self.now_ms for id, expires in rows}
        yield from self._erase(list(there))
        found = []
        for id in ids:
            found.append(there.pop(id, False))
        return tuple(found)

    def erase_due(self, limit: int) -> Script[int]:
        """Erase records whose time is over; how many went."""
        if self.spec.ttl is None:
            return 0
        rows = yield Step(
            self._sql(
                "SELECT {id} FROM {table} WHERE _partition = %s AND _expires <= %s ORDER BY _expires LIMIT %s"
            ),
            (self.partition, self.now_ms, limit),
        )
        yield from self._erase([unescaped(id) for (id,) in rows], seal=True)
        return len(rows)

    def observe(self, request: Observe, turn_ids: Sequence[str] | None) -> Script[ObserveReply]:
        """Apply outcomes. `turn_ids`: the records of the turn; None when nobody can tell."""
        for name, delta in request.counters:
            yield from self.count(name, delta)
        items, linked = expanded(request, turn_ids or ())
        told: dict[str, int] = {}
        if request.turn is not None:
            told = yield from told_of(self.at, request.turn, [item.id for item in items])
        mark = 2 if request.echo else 1
        states: list[str] = []
        applied: dict[str, None] = {}
        for item in items:
            known = yield from self._known(item.id)
            state = "applied"
            if known is None or known.expired(self.now_ms):
                state = "missing"
            elif request.turn is not None:
                if turn_ids is not None and item.id not in turn_ids:
                    state = "missing"
                elif told.get(item.id, 0) & mark:
                    state = "repeated"
                else:
                    told[item.id] = told.get(item.id, 0) | mark
            states.append(state)
            if state == "applied" and known is not None:
                if believe(self.spec, item, known, self.now_ms):
                    yield from self._store_state(item.id, known)
                applied[item.id] = None
        if request.turn is not None and applied:
            yield from tell(self.at, request.turn, {id: told[id] for id in applied})
        together = [id for id in linked if id in applied]
        if request.link > 0 and len(together) > 1:
            yield from self._edges.link_all(together, request.link)
        self._op = self._op or "observe"
        return ObserveReply(tuple(item.id for item in items), tuple(states))

    def access(self, counts: Sequence[tuple[str, int, int]]) -> Script[None]:
        """Add deliveries: (id, how many, instant of the last in ms)."""
        for id, number, last_ms in counts:
            known = yield from self._known(id)
            if known is None or known.expired(self.now_ms):
                continue
            begin_evidence(self.spec, known)
            known.accesses += number
            known.accessed_ms = max(known.accessed_ms, last_ms)
            yield from self._store_state(id, known)
        self._op = self._op or "access"

    def link(self, first: str, second: str, delta: float) -> Script[float]:
        """Change one edge; its new weight."""
        for id in (first, second):
            known = yield from self._known(id)
            if known is None or known.expired(self.now_ms) or first == second:
                return 0.0
        weight = yield from self._edges.link(first, second, delta)
        self._op = self._op or "link"
        return weight

    def count(self, name: str, delta: int) -> Script[int]:
        """Add to a counter; its new value."""
        rows = yield Step(
            "INSERT INTO omoide_counters AS held (model, partition, name, value) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (model, partition, name) DO UPDATE SET value = held.value + excluded.value"
            " RETURNING value",
            (*self.at, escaped(name), delta),
        )
        value = int(rows[0][0])
        self._counters[name] = value
        self._op = self._op or "count"
        return value

    def drop(self) -> Script[Committed]:
        """Erase everything of the partition, the trace of it in these tables included."""
        rows = yield Step(
            self._sql(
                "SELECT count(*) FROM {table} WHERE _partition = %s AND (_expires IS NULL OR _expires > %s)"
            ),
            (self.partition, self.now_ms),
        )
        yield Step(self._sql("DELETE FROM {table} WHERE _partition = %s"), (self.partition,))
        for name in ("outbox", "counters", "edges", "entities", "told", "rebuilds", "partitions"):
            yield Step(
                f"DELETE FROM omoide_{name} WHERE model = %s AND partition = %s",
                self.at,
            )
        seq = self._seq + 1
        yield Step(
            "INSERT INTO omoide_outbox (model, partition, seq, op) VALUES (%s, %s, %s, 'drop')",
            (*self.at, seq),
        )
        return Committed((int(rows[0][0]),), seq, changes=(Changes(drops=True),))

    # ---- parts

    def _sql(self, text: str) -> str:
        return self.table.statement(text)

    def _this(self, id: str) -> tuple[str, str]:
        return self.partition, escaped(id)

    def _known(self, id: str) -> Script[Known | None]:
        rows = yield Step(
            self.table.statement("SELECT {columns} FROM {table}" + _THIS, columns=self.table.list_of(KNOWN)),
            self._this(id),
        )
        return Known.of(rows[0]) if rows else None

    def _clash(self, put: Put) -> Script[PutReply | None]:
        """A record that holds a unique value of this one; one whose time is over gives way."""
        for name, value in self._digests(put):
            rows = yield Step(
                self.table.statement(
                    "SELECT {id}, _version, _expires FROM {table}"
                    " WHERE _partition = %s AND {name} = %s AND {id} <> %s",
                    name=name,
                ),
                (self.partition, value, escaped(put.id)),
            )
            if not rows:
                continue
            holder, version, expires = rows[0]
            if expires is None or expires > self.now_ms:
                return PutReply("duplicate", version, duplicate_of=unescaped(holder))
            yield from self._erase([unescaped(holder)], seal=True)
        return None

    def _superseding(self, id: str, chain: str | None, keyed: bool) -> Script[str | PutReply]:
        """The chain of a write that supersedes a version, or what stands in the way."""
        old = yield from self._known(id)
        if old is not None and old.expired(self.now_ms):
            old = None
        return (yield from self._versions.supersede(id, chain, keyed, old))

    def _digests(self, put: Put) -> list[tuple[str, bytes]]:
        """(column, digest) of each rule that applies: those without a None among their values."""
        rules = [
            name
            for name, rule in zip(self.table.unique, self.spec.unique, strict=True)
            if all(put.values.get(part) is not None for part in rule)
        ]
        return list(zip(rules, put.unique, strict=True))

    def _next(self, put: Put, prepared: Prepared, old: Known | None, operation: bytes) -> Known:
        """The system columns after this write."""
        row, self._next_row = self._next_row, self._next_row + 1
        known = Known(
            row=row,
            version=1 if old is None else old.version + 1,
            operations=operation + b"\0\0",
            time_ms=self.now_ms if put.time_ms is None else put.time_ms,
            base=prepared.base,
            order=order_of(self.spec, prepared.base, self.now_ms / 1000),
            prior=prepared.prior,
            alpha=prepared.alpha,
            beta=prepared.beta,
            expires_ms=None if put.ttl_ms is None else self.now_ms + put.ttl_ms,
        )
        if put.kept is not None:
            keep(known, put.kept)
        if old is not None:
            known.operations += old.operations[: 10 * (MOST_OPERATIONS - 1)]
            known.time_ms = old.time_ms if put.time_ms is None else put.time_ms
            known.prior, known.alpha, known.beta = old.prior, old.alpha, old.beta
            known.up, known.down = old.up, old.down
            known.accesses, known.accessed_ms = old.accesses, old.accessed_ms
        if self.spec.validity is not None:
            latest = self.now_ms if old is None or old.valid_from is None else old.valid_from
            start = min(known.time_ms, latest) if prepared.valid_from is None else prepared.valid_from
            known.valid_from, known.own_end = start, prepared.own_end
            known.chain = prepared.chain or (None if old is None else unkeyed(old.chain))
        return known

    def _store(self, put: Put, prepared: Prepared, known: Known, *, new: bool) -> Script[bool]:
        """Write the row; whether it has the vector of its text."""
        values, extra = row_values(self.table, put.values)
        digests = dict(self._digests(put))
        held: dict[str, Any] = {
            **dict(zip(KNOWN, known.columns, strict=True)),
            "_place": place_of(known.valid_from or 0, put.id) if known.chain else None,
            "_fingerprint": self.spec.fingerprint,
            "_entries": prepared.entries.packed(),
            "_extra": extra,
            "_flags": prepared.entries.flags,
            "_length": prepared.entries.length,
            **{name: digests.get(name) for name in self.table.unique},
            **dict(zip((column.name for column in self.table.columns), values, strict=True)),
        }
        if len(put.slot) > DIGEST or new or not put.slot:
            held |= {"_vectors": kind(self.spec), "_slot": put.slot if len(put.slot) > DIGEST else None}
        else:
            yield Step(
                self._sql("UPDATE {table} SET _slot = NULL" + _THIS + " AND substring(_slot FOR 8) <> %s"),
                (*self._this(put.id), put.slot),
            )
        if new:
            self._records += 1
            text = "INSERT INTO {table} (_partition, {columns}) VALUES (%s, {values})"
            statement = self.table.statement(
                text + " RETURNING _slot IS NOT NULL",
                columns=self.table.list_of(list(held)),
                values=", ".join(["%s"] * len(held)),
            )
            rows = yield Step(statement, (self.partition, *held.values()))
        else:
            assigned = ", ".join(f"{identifier(name)} = %s" for name in held)
            text = "UPDATE {table} SET {assigned}" + _THIS + " RETURNING _slot IS NOT NULL"
            statement = self.table.statement(text, assigned=assigned)
            rows = yield Step(statement, (*held.values(), *self._this(put.id)))
        return bool(rows[0][0])

    def _link(self, put: Put, prepared: Prepared, row: int, *, known_before: bool) -> Script[None]:
        """The edges that a record comes with, or those that its names give it."""
        if put.kept is not None:
            yield from self._edges.join(put.id, dict(put.kept.edges))
        names = prepared.entries.entities
        yield from self._edges.name(put.id, names, row, link=put.kept is None, known=known_before)

    def _evict(self, put: Put) -> Script[int]:
        """Surplus beyond the cap goes: what is not valid any more, over longest first, then the lowest in the
        decay order; never the record just written.
        """
        surplus = min(MOST_EVICTED, self._records - put.cap) if put.cap > 0 else 0
        if surplus <= 0:
            return 0
        evicted = 0
        if self.spec.validity is not None:
            evicted = yield from self._evicted(put, _OVER, (self.now_ms,), surplus)
        if evicted < surplus:
            evicted += yield from self._evicted(put, "ORDER BY _order, _row", (), surplus - evicted)
        yield from self.count("evicted", evicted)
        return evicted

    def _evicted(self, put: Put, which: str, values: tuple[int, ...], limit: int) -> Script[int]:
        rows = yield Step(
            self.table.statement(
                "SELECT {id} FROM {table} WHERE _partition = %s AND {id} <> %s {which} LIMIT %s", which=which
            ),
            (*self._this(put.id), *values, limit),
        )
        yield from self._erase([unescaped(id) for (id,) in rows], seal=True)
        return len(rows)

    def _erase(self, ids: Sequence[str], *, seal: bool = False) -> Script[None]:
        """`seal`: they go by themselves, not by a user's will; see `versions`."""
        if not ids:
            return
        keys = [escaped(id) for id in ids]
        gone = yield Step(
            self._sql(
                "DELETE FROM {table} WHERE _partition = %s AND {id} = ANY(%s) RETURNING _chain, _place"
            ),
            (self.partition, keys),
        )
        yield from self._versions.leave([one for one in gone if one[0] is not None], seal=seal)
        if self.spec.graph:
            yield from self._edges.remove(ids)
        self._records -= len(ids)
        self._op = self._op or "erase"
        for id in ids:
            self._rows.pop(id, None)
            self._states.pop(id, None)
            self._versions.changed.pop(id, None)
            self._erased[id] = None

    def _note_row(self, id: str, known: Known, entries: Entries, body: bytes, slot: bytes) -> None:
        self._states.pop(id, None)
        if id in self._erased:  # the store takes it for another version of the record, whose edges it keeps
            del self._erased[id]
            self._edges.changed.add(id)
        self._rows.pop(id, None)  # it comes after what was written before it, as its row does
        self._rows[id] = state_of(self.spec, id, known, entries, body, slot)
        self._op = self._op or "put"

    def _store_state(self, id: str, known: Known) -> Script[None]:
        yield Step(
            self._sql(
                "UPDATE {table} SET _alpha = %s, _beta = %s, _up = %s, _down = %s,"
                " _accesses = %s, _accessed = %s, _order = %s" + _THIS
            ),
            (
                *(known.alpha, known.beta, known.up, known.down),
                *(known.accesses, known.accessed_ms, known.order),
                *self._this(id),
            ),
        )
        state = state_of(self.spec, id, known, _NO_ENTRIES, b"")
        written = self._rows.get(id)
        if written is None:
            self._states[id] = state
        else:
            self._rows[id] = replace(
                written, statistics=state.statistics, confidence=state.confidence, order=state.order
            )


_THIS = " WHERE _partition = %s AND {id} = %s"
_OVER = "AND _valid_to <= %s ORDER BY _valid_to, _row"


def _ids_of(changes: Changes) -> list[str]:
    """The records that an outbox entry names."""
    written = [row.id for row in (*changes.rows, *changes.states)]
    return [escaped(id) for id in dict.fromkeys([*written, *dict(changes.spans), *changes.erased])]


_NO_ENTRIES = Entries((), 0, 0, b"")
