"""Memories into a store: from an export, or from what other programs write.

    source ──▶ Reader ──▶ every record checked ──▶ room and shape of each partition ──▶ nothing written so far
           └─▶ Reader ──▶ gates ──▶ Batch of Put, 256 at a time ──▶ what became of each

The source is read twice, so that one that is wrong changes nothing and memory stays bounded. A record
goes the way of every save: the gates of its class, then one atomic write with all its indexes, its state
and its links. What is there already is left as it is, so that an import can be repeated, or taken up after
it was cut short. Nothing is evicted: a partition without room is refused beforehand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from omoide.errors import CorruptRecordError, ModelError, StoreError, TransferError
from omoide.mixins.never_record import STORED_ANYWAY
from omoide.model.instance import Instance, id_of, spec_of
from omoide.model.partition import MADE
from omoide.model.schema import ModelSpec, Scope
from omoide.ops.embedding import with_vectors
from omoide.ops.prepare import Prepared, effective_cap, prepare
from omoide.ops.request import (
    Batch,
    Get,
    Observe,
    Partitions,
    PartitionStatus,
    Put,
    PutReply,
    ReadCounters,
    Record,
)
from omoide.ops.run import Plan
from omoide.ops.save import gate_counters, warn_of_lost_counters
from omoide.ops.transfer.incoming import Incoming, Item, Opening, Reader, checked

AT_ONCE = 256
MOST_BYTES = 1_048_576
"""Text of the records that are sent together; a single one may have more."""

Progress = Callable[[int, int], None]
"""Told (records done, records in all) after every round trip that writes."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the records of a source.

    Attributes:
        records: How many the source has.
        stored: Written by this import.
        present: There already, and left as they were.
        expired: Whose time was over; not stored.
        duplicates: Whose unique values another record holds; not stored.
        refused: Kept out by the gates of the class, by reason (`credential`, `below_threshold`, ...).
        redacted: Of `stored`, those whose blocked parts were taken out.
        partitions: How many the records belong to.
        counters_refused: Counters left out: the firewall blocks their name, or that of their partition.
        ignored: Names in the source without a place in the model -> how many records had a value there; names
            that the firewall blocks are one.
    """

    model: str
    records: int = 0
    stored: int = 0
    present: int = 0
    expired: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    redacted: int = 0
    partitions: int = 0
    counters_refused: int = 0
    ignored: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Need:
    """What a partition is to hold: where it is named first, and its records."""

    scope: Scope
    place: str
    records: int = 0


def imported(
    model: type[Instance], reader: Reader, *, lift_cap: bool = False, progress: Progress | None = None
) -> Plan[Imported]:
    """The plan of every import.

    Raises:
        TransferError: the source is wrong, or a partition has no room; nothing was written.
        ModelError: a partition has other indexes than the class; nothing was written.
        StoreError: writing ended; doing it again goes on.
    """
    spec = spec_of(model)
    needs = _survey(reader())
    yield from _check_partitions(spec, needs, reader, lift_cap)
    done = _Done(sum(need.records for need in needs.values()), progress)
    waiting: list[tuple[Incoming, Prepared]] = []
    size = 0
    for item in reader():
        if isinstance(item, Opening):
            yield from _send(done, waiting)
            waiting, size = [], 0
            yield from _restore_counters(done, item)
            continue
        one = _prepared(item)
        waiting.append((item, one))
        size += 0 if one.put is None else sum(len(v) for v in one.put.values.values() if isinstance(v, str))
        if len(waiting) == AT_ONCE or size >= MOST_BYTES:
            yield from _send(done, waiting)
            waiting, size = [], 0
    yield from _send(done, waiting)
    if done.records != done.total:
        raise TransferError("the source changed while it was imported; what was stored so far stays")
    return done.told(spec.name, len(needs))


# ---- before anything is written --------------------------------------------------------------------


def _survey(items: Iterable[Item]) -> dict[tuple[str, ...], _Need]:
    """Check every record; what each partition is to hold."""
    needs: dict[tuple[str, ...], _Need] = {}
    for item in items:
        scope = item.scope if isinstance(item, Opening) else checked(item)
        need = needs.setdefault(scope.values, _Need(scope, item.place))
        need.records += isinstance(item, Incoming)
        if isinstance(item, Incoming) and item.kept and item.kept.expires_ms and scope.spec.ttl is None:
            raise TransferError(
                f"{scope.spec.name}: a record that expires, of a model without Meta.ttl", place=item.place
            )
    return needs


def _check_partitions(
    spec: ModelSpec, needs: dict[tuple[str, ...], _Need], reader: Reader, lift_cap: bool
) -> Plan[None]:
    statuses: tuple[PartitionStatus, ...] = yield Partitions(spec.name)
    there = {status.values: status for status in statuses}
    for values in needs.keys() & there.keys():
        if there[values].damaged:
            raise CorruptRecordError(
                f"{spec.name}: a partition of the import is damaged; nothing was stored", hint="omoide doctor"
            )
        if there[values].fingerprint not in ("", spec.fingerprint):
            raise ModelError(
                f"{spec.name}: a partition of the import has other indexes than the class",
                hint="run `omoide reindex module:Class` first",
            )
    cap = effective_cap(spec)
    if not cap or lift_cap:
        return
    live = {values: there[values].live if values in there else 0 for values in needs}
    full = [need for values, need in needs.items() if live[values] + need.records > cap]
    for need in full:
        held = live[need.scope.values]
        new = yield from _count_new(need.scope, reader) if held else _nothing(need.records)
        if held + new > cap:
            raise TransferError(
                f"{spec.name}: the partition holds {held} records and would hold {held + new}, "
                f"more than its cap of {cap}",
                place=need.place,
                hint="raise max_records_per_partition, or lift the cap for this import; "
                "the next save evicts what is beyond it",
            )


def _nothing(number: int) -> Plan[int]:
    """A number that needs no request."""
    return number
    yield


def _count_new(scope: Scope, reader: Reader) -> Plan[int]:
    """How many records of a partition are not there yet. Cost: reads those that are."""
    new = 0
    for ids in _ids(scope, reader()):
        records: tuple[Record | None, ...] = yield Get(scope, ids)
        new += sum(record is None for record in records)
    return new


def _ids(scope: Scope, items: Iterable[Item]) -> Iterator[tuple[str, ...]]:
    """Ids of the records of a partition, so many at a time."""
    ids: list[str] = []
    for item in items:
        if isinstance(item, Incoming) and checked(item).values == scope.values:
            ids.append(id_of(item.instance))
            if len(ids) == AT_ONCE:
                yield tuple(ids)
                ids = []
    if ids:
        yield tuple(ids)


# ---- writing ---------------------------------------------------------------------------------------


def _prepared(item: Incoming) -> Prepared:
    """A record ready to be sent, or refused: as a save makes it, with its state."""
    instance, kept = item.instance, item.kept
    state = instance._omoide
    state.stored, state.version, state.record = False, 0, None
    state.generated_id = MADE.fullmatch(id_of(instance).lower()) is not None
    one = prepare(instance, mode="create")
    state.generated_id = False  # it may be there already, under a vector
    if one.put is None:
        return one
    put = replace(one.put, cap=0)
    if kept is not None:
        if one.scope.spec.graph is None:
            kept = replace(kept, edges=(), entities=())
        put = replace(
            put,
            kept=kept,
            entities=one.put.entities if kept.entities is None else kept.entities,
            time_ms=kept.time_ms if put.time_ms is None else put.time_ms,
            ttl_ms=None,
        )
    return replace(one, put=put)


class _Done:
    """Counts what became of records."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total = total
        self.records = 0
        self.counts: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self._progress = progress

    def note(self, item: Incoming, one: Prepared, reply: PutReply | None) -> None:
        """Note the reply to a record, None for one that a gate refused."""
        self.records += 1
        self.ignored.update(item.ignored)
        if reply is None:
            self.refused[one.refusal.reason if one.refusal is not None else "error"] += 1
            return
        self.counts[reply.status] += 1
        if reply.status == "stored":
            self.counts["redacted"] += any(name == "never_record:redacted" for name, _ in one.counters)

    def tell(self) -> None:
        if self._progress is not None:
            self._progress(self.records, max(self.records, self.total))

    def told(self, model: str, partitions: int) -> Imported:
        return Imported(
            model,
            self.records,
            self.counts["stored"],
            self.counts["exists"],
            self.counts["expired"],
            self.counts["duplicate"],
            dict(sorted(self.refused.items())),
            self.counts["redacted"],
            partitions,
            self.counts["counters refused"],
            dict(sorted(self.ignored.items())),
        )


def _send(done: _Done, waiting: list[tuple[Incoming, Prepared]]) -> Plan[None]:
    """Write records, and count what the gates decided about those that were stored or refused.

    What a record means is embedded first, but for texts that are stored with their vectors already.
    """
    if not waiting:
        return
    ready: list[Prepared] = yield from with_vectors([one for _, one in waiting])
    waiting = [(item, one) for (item, _), one in zip(waiting, ready, strict=True)]
    puts: tuple[Put, ...] = tuple(one.put for _, one in waiting if one.put is not None)
    replies: tuple[PutReply | StoreError, ...] = (yield Batch(puts)) if puts else ()
    for answer in replies:
        if isinstance(answer, StoreError):
            raise answer
    left = iter(answer for answer in replies if isinstance(answer, PutReply))
    decided = []
    for item, one in waiting:
        reply = None if one.put is None else next(left)
        done.note(item, one, reply)
        if reply is None or reply.status == "stored":
            decided.append(_counted(item, one))
    counters = gate_counters(decided)
    if counters:
        warn_of_lost_counters((yield Batch(tuple(counters))))
    done.tell()


def _counted(item: Incoming, one: Prepared) -> Prepared:
    """What is counted about a record: of one that was exported, not again what its counters tell already."""
    if not item.counted or one.put is None:
        return one
    told = {f"never_record:{reason}" for reason in STORED_ANYWAY - {"redacted"}}
    return replace(one, counters=tuple(pair for pair in one.counters if pair[0] not in told))


def _restore_counters(done: _Done, item: Opening) -> Plan[None]:
    """Set the counters of a partition that it does not have, and whose names the firewall lets pass."""
    allowed = _allowed(item)
    done.counts["counters refused"] += len(item.counters) - len(allowed)
    if not allowed:
        return
    held: dict[str, int] = yield ReadCounters(item.scope)
    missing = tuple((name, count) for name, count in allowed.items() if name not in held)
    if missing:
        yield Observe(item.scope, (), counters=missing)


def _allowed(item: Opening) -> dict[str, int]:
    spec, counters = item.scope.spec, dict(item.counters)
    if spec.judge is None or not counters:
        return counters
    if spec.judge(dict(zip(spec.partition_by, item.scope.values, strict=True))):
        return {}
    judge = spec.judge
    return {name: count for name, count in counters.items() if not judge({"counter": name})}


__all__ = ["Imported", "Progress", "imported"]
