"""Verbs on the whole store.

status    omoide.status    reindex   omoide.reindex
doctor    omoide.doctor    prune     omoide.prune
stop      omoide.stores.embedded.stop

A name of which nothing is stored is a slip of the pen, and an error here: "all sound" or "0 erased" would
hide it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, Answer, Meter, table
from omoide.apps.cli.target import check_found, partition_of
from omoide.errors import QueryError
from omoide.mixins.never_record import STORED_ANYWAY, by_reason, kept_out, totals
from omoide.model.instance import spec_of

if TYPE_CHECKING:
    from omoide.connection import Connection
    from omoide.ops.model import Model
    from omoide.ops.upkeep import Health, Named

EMBEDDED = "embedded://"
SAFE_POLICY = "noeviction"


def status(connection: Connection, model: Named) -> Answer:
    """What is stored. Cost: scans the keys of every primary."""
    from omoide.connection import status as read

    data = read(model)
    _check_stored(model, data["partitions"])
    server = data["server"]
    lines = [
        f"{data['url']}  namespace {data['namespace']}",
        f"{_server_line(server)}  {server['memory_bytes'] / 2**20:.1f} MiB",
    ]
    rows: list[tuple[str, ...]] = [("model", "partition", "records", "evicted", "never recorded")]
    for part in data["partitions"]:
        rows.append(
            (
                part["model"],
                "/".join(part["partition"]),
                f"{part['live']:,}",
                str(part["counters"].get("evicted", 0)),
                str(kept_out(part["counters"])),
            )
        )
    lines.append(table(rows) if len(rows) > 1 else "no partitions")
    firewall = data["never_record"]
    for name, reasons in firewall["models"].items():
        lines.append(f"never recorded, {name}: {_counted(reasons)}")
    if firewall["disabled"]:
        lines.append("warning: the never-record firewall is switched off (OMOIDE_NEVER_RECORD_DISABLE)")
    return Answer(data, "\n".join(lines))


def doctor(connection: Connection, model: Named, *, repair: bool = False) -> Answer:
    """Compare every index with its records; exit code 1 when one says something else.

    A mirrored class is compared with its rows as well and, with `repair`, rebuilt where it differs.
    Without that nothing is changed. Mirrored partitions whose rows were out of reach are named.

    Cost: all bytes of all partitions, one partition at a time; for quiet partitions.
    """
    from omoide.ops.request import ServerStatus
    from omoide.ops.upkeep import doctor as examine

    server = connection.store.execute(ServerStatus())
    mirrored, lines = _mirrored(connection, model, repair=repair)
    meter = Meter("checked")
    found = examine(model, progress=meter)
    meter.close()
    if not mirrored:
        _check_stored(model, found)
    from omoide.apps.cli.mirror import uncompared

    left, unknown = uncompared(found, mirrored)
    lines += [f"not compared with its rows: {name}" for name in left]
    lines += [f"not compared with rows, if it has any: {name}" for name in unknown]
    if left or unknown:
        lines.append("to compare them: --model module:Class, and its PostgreSQL")
    warnings = _warnings(server, found)
    data = {
        "sound": all(one.sound for one in found) and all(one["equal"] or one["repaired"] for one in mirrored),
        "server": server["server"],
        "version": server["version"],
        "maxmemory_policy": server["maxmemory_policy"],
        "embedded_folder": folder_of(connection.url),
        "warnings": warnings,
        "partitions": [
            {
                "model": one.model,
                "partition": list(one.values),
                "records": one.records,
                "sound": one.sound,
                "outdated": one.outdated,
                "findings": dict(one.findings),
                "evicted": one.counters.get("evicted", 0),
                "never_record": by_reason(one.counters),
            }
            for one in found
        ],
        "never_record": totals((one.model, one.counters) for one in found),
        "mirrored": mirrored,
        "not_compared": left,
        "unknown": unknown,
    }
    text = "\n".join((_report(connection, server, found, warnings), *lines))
    return Answer(data, text, 0 if data["sound"] else FAILED)


def _mirrored(
    connection: Connection, model: Named, *, repair: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """A comparison with rows, where a mirrored class is named and there is a PostgreSQL."""
    mirrored = isinstance(model, type) and spec_of(model).mirror is not None
    if not mirrored or not connection.has_postgres:
        if repair:
            raise QueryError(
                "there is nothing to repair from",
                hint="name a mirrored class, module:Class, and its PostgreSQL",
            )
        return [], []
    from omoide.apps.cli.mirror import compared

    return compared([model], repair=repair)  # type: ignore[list-item]


def _report(
    connection: Connection, server: Mapping[str, Any], found: Sequence[Health], warnings: Sequence[str]
) -> str:
    lines = [_server_line(server)]
    if folder := folder_of(connection.url):
        lines.append(f"embedded in {folder}")
    lines += [f"warning: {warning}" for warning in warnings]
    for one in found:
        name = "/".join((one.model, *one.values))
        counted = f"{one.records:,} records, {one.counters.get('evicted', 0)} evicted"
        if reasons := by_reason(one.counters):
            counted += f", never recorded: {_counted(reasons)}"
        lines.append(f"{name}: {counted}")
        lines += [f"  {kind}: {number}" for kind, number in one.findings]
        if one.outdated:
            lines.append("  indexed by an older version of its class: omoide reindex")
    for name, reasons in totals((one.model, one.counters) for one in found).items():
        lines.append(f"never recorded, {name}: {_counted(reasons)}")
    wrong = sum(not one.sound for one in found)
    lines.append(
        f"{wrong} of {len(found)} partitions diverge"
        if wrong
        else f"{len(found)} partitions, the indexes of all are sound"
    )
    return "\n".join(lines)


def _warnings(server: Mapping[str, Any], found: Sequence[Health]) -> list[str]:
    policy = server["maxmemory_policy"]
    warnings = []
    if policy and policy != SAFE_POLICY:
        warnings.append(f"maxmemory-policy is {policy}: an evicted key tears a partition; use {SAFE_POLICY}")
    warnings += [
        f"{'/'.join((one.model, *one.values))} has used up {one.rows:,} rows: omoide reindex"
        for one in found
        if one.nearly_full
    ]
    return warnings


def reindex(models: Sequence[type[Model]], agent: str | None, *, everything: bool) -> Answer:
    """Rebuild the indexes of every partition of some models, or of all that are loaded.

    Readers see the old indexes until the new ones are whole; what was cut short is taken up.

    Raises:
        QueryError: neither models nor `everything`.
    Cost: two round trips per 256 records.
    """
    from omoide.ops import port
    from omoide.ops.quarantine import QuarantinedMemory
    from omoide.ops.reindex import rebuild
    from omoide.ops.request import Partitions
    from omoide.ops.run import run
    from omoide.ops.upkeep import scope_named

    if not models and not everything:
        raise QueryError("reindex takes models, or --all", hint="a model is written module:Class")
    always = (QuarantinedMemory,) if everything else ()
    known = {spec_of(model).name: model for model in (*always, *models)}
    store = port.current().store
    done: list[dict[str, Any]] = []
    unknown: list[str] = []
    for part in store.execute(Partitions(None)):
        model = known.get(part.model)
        if model is None:
            if everything:
                unknown.append(part.model)
            continue
        if agent is not None and part.values != (agent,):
            continue
        meter = Meter("/".join((part.model, *part.values)))
        records = run(rebuild(model, scope_named(part), meter), store)
        meter.close()
        done.append({"model": part.model, "partition": list(part.values), "records": records})
    for model in models if agent is not None and not done else ():
        check_found(model, partition_of(model, agent), 0)
    left = sorted(set(unknown))
    notes = tuple(f"omoide: no class of {name} is known: name it as module:Class" for name in left)
    text = f"reindexed {len(done)} partitions, {sum(one['records'] for one in done):,} records"
    return Answer({"reindexed": done, "unknown": left}, text, FAILED if left else 0, notes)


def prune(model: Named, *, dry_run: bool) -> Answer:
    """Erase every expired record. Cost: a round trip per 64 of them."""
    from omoide.ops import port
    from omoide.ops.request import Partitions
    from omoide.ops.upkeep import name_of
    from omoide.ops.upkeep import prune as erase

    if isinstance(model, str):
        _check_stored(model, port.current().store.execute(Partitions(name_of(model))))
    meter = Meter("pruned")
    gone = erase(model, dry_run=dry_run, progress=meter)
    meter.close()
    text = f"{gone} expired records" + (" would go" if dry_run else " erased")
    return Answer({"pruned": gone, "dry_run": dry_run}, text)


def _check_stored(model: Named, found: Sequence[object]) -> None:
    """Refuse a name that no stored partition has; of a class there may be nothing yet."""
    if isinstance(model, str) and not found:
        raise QueryError(f"no partition of a model {model!r} is stored", hint="`omoide status` lists them")


def stop(folder: Path | None) -> Answer:
    """End the embedded server of a folder; everything stored is on disk then."""
    from omoide.stores.embedded import default_folder
    from omoide.stores.embedded import stop as end

    where = (folder or default_folder()).expanduser()
    stopped = end(where)
    return Answer(
        {"stopped": stopped, "folder": str(where)}, "stopped" if stopped else "no server was running"
    )


def _counted(reasons: Mapping[str, int]) -> str:
    """`3 credential, 1 redacted (stored)`: what the firewall counted."""
    return ", ".join(
        f"{number} {reason}" + (" (stored)" if reason in STORED_ANYWAY else "")
        for reason, number in reasons.items()
    )


def folder_of(url: str) -> str | None:
    """The folder of an embedded store."""
    return url.removeprefix(EMBEDDED) if url.startswith(EMBEDDED) else None


def _server_line(server: Mapping[str, Any]) -> str:
    primaries = f", {server['primaries']} primaries" if server["primaries"] > 1 else ""
    return f"{server['server']} {server['version']}{primaries}, maxmemory-policy {server['maxmemory_policy']}"
