"""Verbs about mirrored models: rebuild the store from the rows, compare both, keep the store up to date."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, Answer, Meter, say
from omoide.apps.cli.target import partition_of
from omoide.errors import QueryError

if TYPE_CHECKING:
    from omoide.connection import Connection
    from omoide.ops.model import Model
    from omoide.ops.upkeep import Health
    from omoide.stores.postgres.compare import Comparison


def rebuild(models: Sequence[type[Model]], agent: str | None) -> Answer:
    """Rebuild every partition of some mirrored models, or one of each."""
    from omoide.model.instance import spec_of
    from omoide.stores.postgres.upkeep import rebuild as from_rows

    done: list[dict[str, Any]] = []
    began = time.monotonic()
    for model in models:
        where = {} if agent is None else partition_of(model, agent)
        name = spec_of(model).name
        meter = Meter(name)
        try:
            found = from_rows(model, progress=meter, **where)
        finally:
            meter.close()
        done += [
            {"model": name, "partition": list(values), "records": records}
            for values, records in found.items()
        ]
    records = sum(one["records"] for one in done)
    seconds = time.monotonic() - began
    text = f"rebuilt {len(done)} partitions, {records:,} records in {seconds:.1f} s"
    return Answer({"rebuilt": done, "seconds": round(seconds, 3)}, text)


def compared(models: Sequence[type[Model]], *, repair: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """(what programs are told, lines for people) of a comparison of mirrored models with their rows."""
    from omoide.model.instance import spec_of
    from omoide.stores.postgres.upkeep import compare

    told: list[dict[str, Any]] = []
    lines: list[str] = []
    for model in models:
        name = spec_of(model).name
        meter = Meter(f"compared {name}")
        found = compare(model, repair=repair, progress=meter)
        meter.close()
        for values, one in found.items():
            told.append(_told(name, values, one))
            if not one.equal:
                lines.append(f"{'/'.join((name, *values))}: {_difference(one)}")
        wrong = sum(not one.equal for one in found.values())
        repaired = sum(one.repaired for one in found.values())
        end = f", {repaired} of them repaired from the rows" if repair and wrong else ""
        lines.append(f"{name}: {len(found)} partitions compared with their rows, {wrong} differ{end}")
    return told, lines


def uncompared(found: Sequence[Health], mirrored: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """(`model/partition` that have rows and are not among the compared ones, models of no known class).

    The store does not tell which models have rows: only a class does.
    """
    import omoide.ops.quarantine
    import omoide.recipes  # noqa: F401 - the classes of both are known then
    from omoide.model import registry
    from omoide.model.instance import Instance, spec_of

    compared = {(one["model"], *one["partition"]) for one in mirrored}
    left, unknown = [], set()
    for one in found:
        known = registry.find(one.model)
        if known is None or not issubclass(known, Instance):
            unknown.add(one.model)
        elif spec_of(known).mirror is not None and (one.model, *one.values) not in compared:
            left.append("/".join((one.model, *one.values)))
    return left, sorted(unknown)


def _told(model: str, values: tuple[str, ...], one: Comparison) -> dict[str, Any]:
    return {
        "model": model,
        "partition": list(values),
        "equal": one.equal,
        "rows": one.rows,
        "records": one.records,
        "rows_sum": one.rows_sum,
        "records_sum": one.records_sum,
        "behind": one.behind,
        "counters_equal": one.counters,
        "findings": dict(one.findings),
        "damaged": one.damaged,
        "repaired": one.repaired,
    }


def _difference(one: Comparison) -> str:
    if one.damaged:
        return f"{one.rows:,} rows, and what the store has of them is damaged"
    if one.behind < 0:
        return f"{one.rows:,} rows, and the store has lost the partition"
    parts = [f"{one.rows:,} rows, {one.records:,} records in the store"]
    if one.behind:
        parts.append(f"{one.behind} commits behind")
    if one.rows_sum != one.records_sum:
        parts.append("checksums differ")
    if not one.counters:
        parts.append("counters differ")
    if one.findings:
        parts.append("indexes diverge")
    return ", ".join(parts)


def run(connection: Connection, models: Sequence[type[Model]], *, once: bool) -> Answer:
    """Show the store what is left behind, until told to stop; with `once`, what there is now.

    Only partitions of the models named (and imported by them) can be shown: others are told of.
    """
    from omoide.stores.postgres.projector import Projector, Swept

    if not models:
        raise QueryError("mirror run takes models", hint="a model is written module:Class")
    for model in models:
        connection.mirrored.drive(connection.mirror.table(_mirrored_spec(model)))
    projector = Projector(connection.mirrored, connection.database, connection.mirror)
    totals = {"caught_up": 0, "rebuilt": 0}
    unknown: set[str] = set()

    def after(swept: Swept) -> None:
        totals["caught_up"] += swept.caught_up
        totals["rebuilt"] += swept.rebuilt
        for name in set(swept.unknown) - unknown:
            say(f"omoide: partitions of {name} wait, and its class is not named here")
        unknown.update(swept.unknown)

    if once:
        swept = projector.once()
        after(swept)
        text = f"caught up {swept.caught_up} partitions, rebuilt {swept.rebuilt}, left {swept.left}"
        data = {**totals, "left": swept.left, "unknown": sorted(unknown)}
        return Answer(data, text, FAILED if swept.left or unknown else 0)
    with _stopping(projector):
        projector.run(after)
    text = f"caught up {totals['caught_up']} partitions, rebuilt {totals['rebuilt']}"
    return Answer({**totals, "unknown": sorted(unknown)}, text)


def _mirrored_spec(model: type[Model]) -> Any:
    from omoide.model.instance import spec_of

    spec = spec_of(model)
    if spec.mirror is None:
        raise QueryError(f"{spec.name} has no mirror", hint="Meta.mirror = PostgresMirror()")
    return spec


@contextlib.contextmanager
def _stopping(projector: Any) -> Any:
    """SIGTERM and SIGINT end the work between two sweeps."""
    before = {
        number: signal.signal(number, lambda *_: projector.stop(0))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
