"""Memories out of a store: one partition of a model, or all of them, as a file of lines.

    Partitions ──▶ ReadCounters, then Dump page after page ──▶ a line a record ──▶ end line

Records come in the order of storage, partitions in the order of their names, so that what has not
changed gives the same bytes. What is written while an export runs may be in it or not; what was there
throughout is in it once. A record that cannot be read ends the export with an error, since a backup
that lacks something must not look whole; a file is put in its place only when it is.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from io import TextIOBase
from pathlib import Path
from typing import Any, BinaryIO

from omoide.errors import CorruptRecordError, QueryError, StoreError, TransferError
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import not_stored, scope_of_call
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import port
from omoide.ops.request import Count, Dump, Dumped, DumpReply, Partitions, PartitionStatus, ReadCounters
from omoide.ops.run import Plan, arun, run
from omoide.ops.transfer.lines import (
    EndLine,
    Header,
    Line,
    PartitionLine,
    Totals,
    header_of,
    record_line,
    write_line,
)

PAGE = 128

Target = str | Path | BinaryIO
Progress = Callable[[int, int], None]
"""Told (records done, records in all) after every page."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds. `sha256` is over all lines but the last."""

    model: str
    partitions: int
    records: int
    edges: int
    bytes: int
    sha256: str


def export_memories(
    model: type[Instance], target: Target, /, *, progress: Progress | None = None, **partition: Any
) -> Exported:
    """Write memories with all that is kept of them to a file, for `import_memories`.

    Values, versions, times, statistics, decay order, deadlines, links and counters; not the turns of the
    last day, and nothing that is computed from the rest (indexes). See docs/reference/export-format.md.

    Args:
        target: A path, which is replaced when the export is whole, or an open binary file.
        partition: All partition fields; none of them for every partition.
    Raises:
        QueryError: some partition fields but not all, or a file opened as text.
        NotFoundError: nothing is stored there; nothing was written.
        CorruptRecordError: a record cannot be read; `omoide doctor` says more.
        StoreUnavailableError: no server, or the partition was rebuilt meanwhile.
        TransferError: the file cannot be written.
    Cost: one round trip per 128 records or 1 MiB, one more a partition; in memory a page, and 8 bytes a
        record of the largest partition.
    """
    with _written(target) as file:
        return run(exported(model, file.write, progress, partition), port.current().store)


async def aexport_memories(
    model: type[Instance], target: Target, /, *, progress: Progress | None = None, **partition: Any
) -> Exported:
    """Write memories with all that is kept of them to a file; see `export_memories`.

    The file is written in the event loop, a page at a time.
    """
    with _written(target) as file:
        return await arun(exported(model, file.write, progress, partition), port.current().astore)


@contextmanager
def _written(target: Target) -> Iterator[BinaryIO]:
    """An open file; one that is named is put in its place when the block has ended well."""
    if isinstance(target, TextIOBase):
        raise QueryError("an export is bytes", hint="open the file with mode 'wb'")
    if not isinstance(target, str | Path):
        if not callable(getattr(target, "write", None)):
            raise QueryError("an export goes to a path, or to an open binary file")
        yield target
        return
    place = Path(target)
    if not place.name:
        raise TransferError(f"cannot write {place}: it names no file")
    part = place.with_name(place.name + ".part")
    try:
        part.touch(0o600)  # it says what the store says, whose folder is the user's alone
        with part.open("wb") as file:
            yield file
        part.replace(place)
    except OSError as error:
        if isinstance(error, StoreError):  # an outage is an outage, not a file
            raise
        raise TransferError(f"cannot write {place}: {error.strerror or type(error).__name__}") from None
    finally:
        with suppress(OSError):  # a name that cannot be, or the folder is gone
            part.unlink(missing_ok=True)


class _Sink:
    """Writes lines and counts them."""

    def __init__(self, write: Callable[[bytes], Any], header: Header) -> None:
        self._write = write
        self._header = header
        self._hash = hashlib.sha256()
        self.bytes = self.partitions = self.records = self.edges = 0

    def put(self, *lines: Line) -> None:
        data = b"".join(map(write_line, lines))
        self._hash.update(data)
        self._write(data)
        self.bytes += len(data)

    def begin(self, partition: PartitionLine) -> None:
        """Begin a partition, and with the first one the file: of nothing there is none."""
        self.put(*([] if self.partitions else [self._header]), partition)
        self.partitions += 1

    def totals(self) -> Totals:
        return Totals(self.partitions, self.records, self.edges, self._hash.hexdigest())


def exported(
    model: type[Instance],
    write: Callable[[bytes], Any],
    progress: Progress | None,
    partition: dict[str, Any],
) -> Plan[Exported]:
    """The plan of `export_memories`."""
    spec = spec_of(model)
    scopes, total = yield from _scopes(spec, partition)
    sink = _Sink(write, header_of(spec))
    for scope in scopes:
        yield from _export_one(scope, sink, progress, total)
    if not sink.partitions:
        raise not_stored(spec, scopes[0].values if partition else ())
    totals = sink.totals()
    sink.put(EndLine(totals))
    return Exported(spec.name, totals.partitions, totals.records, totals.edges, sink.bytes, totals.sha256)


def _scopes(spec: ModelSpec, partition: dict[str, Any]) -> Plan[tuple[list[Scope], int]]:
    """Partitions in the order of their names, and the records of all of them."""
    if partition or not spec.partition_by:
        scope = scope_of_call(spec, partition, "export_memories")
        total: int = yield Count(scope)
        return [scope], total
    statuses: tuple[PartitionStatus, ...] = yield Partitions(spec.name)
    scopes = sorted((Scope(spec, status.values) for status in statuses), key=lambda scope: scope.values)
    return scopes, sum(status.live for status in statuses)


def _export_one(scope: Scope, sink: _Sink, progress: Progress | None, total: int) -> Plan[None]:
    """A partition that holds something: its line, and those of its records."""
    counters: dict[str, int] = yield ReadCounters(scope)
    given, before, opened = _Given(), sink.records, False
    begun: tuple[int, int] | None = None
    cursor = ""
    while True:
        reply: DumpReply = yield Dump(scope, cursor, PAGE)
        records = [one for one in reply.records if given.is_new(one, reply.next)]
        if not opened and (counters or records):
            sink.begin(PartitionLine(scope.values, dict(sorted(counters.items()))))
            opened = True
        lines = [record_line(one, scope.spec.id_field) for one in records]
        sink.put(*lines)
        sink.records += len(lines)
        sink.edges += sum(len(line.edges) for line in lines)
        if progress is not None:
            progress(sink.records, max(sink.records, total))
        begun = begun or (reply.version, reply.live)
        cursor = reply.cursor
        if not cursor:
            break
    found = sink.records - before
    if begun == (reply.version, reply.live) and found != reply.live:
        raise CorruptRecordError(
            f"{scope.spec.name}: a partition holds {reply.live} records, of which {found} can be found",
            hint="omoide doctor",
        )


class _Given:
    """Which records were given already: one that is updated meanwhile comes again, in a new row."""

    def __init__(self) -> None:
        self._digests = array("Q")
        self._late: set[int] | None = None
        self._begun = 0

    def is_new(self, record: Dumped, next_row: int) -> bool:
        """Whether the record has not come before; `next_row` as the first reply has it counts."""
        self._begun = self._begun or next_row
        digest = int.from_bytes(blake2b(record.id.encode(), digest_size=8).digest(), "little")
        if record.row >= self._begun and self._late is None:
            self._late = set(self._digests)
        if self._late is None:
            self._digests.append(digest)
            return True
        seen = digest in self._late
        self._late.add(digest)
        return not seen


__all__ = ["Exported", "Progress", "Target", "aexport_memories", "export_memories", "exported"]
