"""`import_memories`: which file, in which format, into which model."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from io import TextIOBase
from pathlib import Path
from typing import Any, BinaryIO

from omoide.errors import QueryError, TransferError
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import scope_of_call
from omoide.ops import batch as batches
from omoide.ops import port
from omoide.ops.run import Plan, arun, run
from omoide.ops.transfer.foreign import destination, read_jsonl, read_mem0
from omoide.ops.transfer.importing import Imported, Progress, imported
from omoide.ops.transfer.incoming import Reader
from omoide.ops.transfer.own import Source, read_export

FORMATS = ("export", "mem0", "jsonl")

File = str | Path | BinaryIO


def import_memories(
    model: type[Instance],
    source: File,
    /,
    *,
    file_format: str = "export",
    field_map: Mapping[str, str] | None = None,
    saved_as: str | None = None,
    lift_cap: bool = False,
    progress: Progress | None = None,
    **partition: Any,
) -> Imported:
    """Store the memories of a file; what is there already is left as it is.

    The whole file is checked before anything is written. Every record passes the gates of its class, the
    never-record firewall among them, and is stored with its state and its links in one atomic step.

    Args:
        source: A path, or an open binary file.
        file_format: `export` (of `export_memories`), `mem0` (what `get_all` or an export of mem0 gives), or
            `jsonl` (an object a line).
        field_map: For `mem0` and `jsonl`: name in the file -> field of the model, "" to leave it out; a dot
            leads into an object (`metadata.topic`).
        saved_as: For `export`: the name of the model that was exported, where it is another one.
        lift_cap: Take more records than `max_records_per_partition`; the next save evicts what is beyond it.
        partition: For `export`: only this partition of it. Else: where records go that name none.
    Raises:
        TransferError: a file that is wrong, foreign, changed or cut short, or a partition that would pass
            its cap; nothing was written. It names the line.
        ModelError: a partition has other indexes than the class; nothing was written.
        QueryError: an option that cannot be meant, a file opened as text, or inside a batch.
        StoreError: writing ended; importing again goes on where it stopped.
    Cost: reads the file twice; one round trip per 256 records or 1 MiB; in memory those, and the names of
        the partitions.
    """
    with _opened(source) as opened:
        plan = _plan(model, opened, file_format, field_map, saved_as, lift_cap, progress, partition)
        return run(plan, port.current().store)


async def aimport_memories(
    model: type[Instance],
    source: File,
    /,
    *,
    file_format: str = "export",
    field_map: Mapping[str, str] | None = None,
    saved_as: str | None = None,
    lift_cap: bool = False,
    progress: Progress | None = None,
    **partition: Any,
) -> Imported:
    """Store the memories of a file; see `import_memories`.

    The file is read and checked in the event loop.
    """
    with _opened(source) as opened:
        plan = _plan(model, opened, file_format, field_map, saved_as, lift_cap, progress, partition)
        return await arun(plan, port.current().astore)


def _plan(
    model: type[Instance],
    source: Source,
    file_format: str,
    field_map: Mapping[str, str] | None,
    saved_as: str | None,
    lift_cap: bool,
    progress: Progress | None,
    partition: dict[str, Any],
) -> Plan[Imported]:
    if file_format not in FORMATS:
        raise QueryError(f"file_format is one of {', '.join(FORMATS)}")
    spec = spec_of(model)
    reader: Reader
    if file_format == "export":
        if field_map is not None:
            raise QueryError("field_map is for mem0 and jsonl: an export names the fields of its model")
        wanted = scope_of_call(spec, partition, "import_memories") if partition else None
        reader = partial(read_export, model, source, saved_as=saved_as, wanted=wanted)
    else:
        if saved_as is not None:
            raise QueryError("saved_as is for exports of omoide")
        read = read_mem0 if file_format == "mem0" else read_jsonl
        reader = partial(read, destination(model, file_format, field_map, partition), source)
    return imported(model, reader, lift_cap=lift_cap, progress=progress)


@contextmanager
def _opened(source: File) -> Iterator[Source]:
    """How to open a source at its start, again and again; one that cannot go back is copied to disk."""
    batches.refuse("import_memories()")
    if isinstance(source, TextIOBase):
        raise QueryError("an import reads bytes", hint="open the file with mode 'rb'")
    if isinstance(source, str | Path):
        place = Path(source)
        yield lambda: _path(place)
    elif not callable(getattr(source, "read", None)):
        raise QueryError("an import comes from a path, or an open binary file")
    elif source.seekable():
        start = source.tell()
        yield lambda: _rewound(source, start)
    else:
        with tempfile.TemporaryFile() as copied:
            shutil.copyfileobj(source, copied)
            yield lambda: _rewound(copied, 0)


@contextmanager
def _path(place: Path) -> Iterator[BinaryIO]:
    try:
        file = place.open("rb")
    except OSError as error:
        raise TransferError(f"cannot read {place}: {error.strerror or type(error).__name__}") from None
    with file:
        yield file


@contextmanager
def _rewound(file: Any, start: int) -> Iterator[BinaryIO]:
    file.seek(start)
    yield file


__all__ = ["FORMATS", "File", "aimport_memories", "import_memories"]
