"""Memories to a file and from one.

export    omoide.export_memories        import    omoide.import_memories, omoide.import_popoto
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, Answer, Meter, silenced
from omoide.apps.cli.target import split_pair
from omoide.errors import QueryError

if TYPE_CHECKING:
    from omoide.ops.model import Model
    from omoide.ops.transfer.importing import Imported

STREAM = "-"
FORMATS = {"omoide": "export", "mem0": "mem0", "jsonl": "jsonl", "popoto": "popoto"}


def export(model: type[Model], file: str, partition: dict[str, Any], *, as_json: bool) -> Answer:
    """Write the memories of a model, or of one partition, to a file or to stdout.

    Raises:
        NotFoundError: nothing is stored there; a file of that name stays as it is.
    Cost: one round trip per 128 memories.
    """
    from omoide.ops.transfer.export import export_memories

    if file == STREAM and as_json:
        raise QueryError("--json and the export cannot both go to stdout", hint="name a file")
    meter = Meter("exported")
    target = sys.stdout.buffer if file == STREAM else file
    try:
        done = export_memories(model, target, progress=meter, **partition)
    finally:
        meter.close()
    text = f"exported {done.records:,} memories of {done.partitions:,} partitions, {done.bytes:,} bytes"
    if file == STREAM:
        return Answer({}, notes=(text,))
    return Answer({"file": file, **asdict(done)}, text)


def take_in(
    model: type[Model],
    source: str,
    file_format: str,
    partition: dict[str, Any],
    *,
    fields: Sequence[str],
    saved_as: str | None,
    lift_cap: bool,
) -> Answer:
    """Store the memories of a file, of stdin, or of a popoto keyspace.

    Code 1 when the firewall or another gate refused one.
    Cost: one round trip per 256 memories.
    """
    if file_format not in FORMATS:
        raise QueryError(f"--from is one of {', '.join(FORMATS)}")
    meter = Meter("imported")
    try:
        with silenced("omoide.never_record"):
            done = _import(model, source, file_format, partition, fields, saved_as, lift_cap, meter)
    finally:
        meter.close()
    return Answer(asdict(done), _report(done), FAILED if done.refused else 0, _notes(done))


def _import(
    model: type[Model],
    source: str,
    file_format: str,
    partition: dict[str, Any],
    fields: Sequence[str],
    saved_as: str | None,
    lift_cap: bool,
    meter: Meter,
) -> Imported:
    from omoide.ops.transfer.intake import import_memories

    field_map = dict(split_pair(pair, "--field") for pair in fields) or None
    if file_format == "popoto":
        from omoide.stores.popoto import import_popoto

        return import_popoto(
            model,
            source,
            field_map=field_map,
            saved_as=saved_as,
            lift_cap=lift_cap,
            progress=meter,
            **partition,
        )
    return import_memories(
        model,
        sys.stdin.buffer if source == STREAM else source,
        file_format=FORMATS[file_format],
        field_map=field_map,
        saved_as=saved_as,
        lift_cap=lift_cap,
        progress=meter,
        **partition,
    )


def _report(done: Imported) -> str:
    parts = [f"{done.stored:,} stored"]
    for number, what in (
        (done.present, "there already"),
        (done.duplicates, "duplicates of others"),
        (done.expired, "expired"),
        (sum(done.refused.values()), "refused"),
    ):
        if number:
            parts.append(f"{number:,} {what}")
    return f"imported {done.records:,} memories of {done.partitions:,} partitions: {', '.join(parts)}"


def _notes(done: Imported) -> tuple[str, ...]:
    notes = [f"omoide: {number} not stored: {reason}" for reason, number in done.refused.items()]
    if done.redacted:
        notes.append(f"{done.redacted} were stored without their blocked parts")
    if done.counters_refused:
        notes.append(f"omoide: {done.counters_refused} counters not stored: their name, or the partition's")
    notes += [f"left out: {name} of {number} memories" for name, number in done.ignored.items()]
    return tuple(notes)


__all__ = ["export", "take_in"]
