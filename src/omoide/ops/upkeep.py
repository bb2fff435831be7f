"""Looking after a store: compare indexes with records, erase what has expired. Both go over all partitions.

    Partitions ──▶ Check, one partition after the other ──▶ Health
               └─▶ Prune until nothing is due           ──▶ how many went

Neither needs the classes: a partition is addressed by the name of its model and its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from omoide.errors import QueryError
from omoide.model import registry
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import text_rule
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import port
from omoide.ops.request import Check, CheckReply, Partitions, PartitionStatus, Prune
from omoide.ops.run import Plan, arun, run

MOST_ROWS = 4_177_919
"""Rows of one generation of a partition; a reindex begins a new one."""

NEARLY_FULL = 0.8
PRUNED_AT_ONCE = 64

Progress = Callable[[int, int], None]
"""Told (partitions done, partitions in all)."""

Named: TypeAlias = type[Instance] | str | None
"""A model by its class or its name; None for every model."""


@dataclass(frozen=True, slots=True)
class Health:
    """What a check found in one partition.

    Attributes:
        findings: (kind of divergence between an index and the records, how many of it).
        outdated: The class, where this process has it loaded, indexes otherwise than what is stored.
        rows: Rows used up since the last reindex; the most there can be is 4,177,919.
        counters: By name; `evicted` and `never_record:<reason>` among them.
    """

    model: str
    values: tuple[str, ...]
    records: int
    findings: tuple[tuple[str, int], ...]
    outdated: bool
    rows: int
    counters: Mapping[str, int]

    @property
    def sound(self) -> bool:
        """Every index says what the records say, and the class agrees."""
        return not self.findings and not self.outdated

    @property
    def nearly_full(self) -> bool:
        """More than 80 % of the rows are used up."""
        return self.rows > NEARLY_FULL * MOST_ROWS


def name_of(model: Named) -> str | None:
    """The name that partitions of a model are stored under; None for every model.

    Raises:
        QueryError: neither a model nor a name.
        ModelError: the class is abstract.
    """
    if model is None:
        return None
    if isinstance(model, str) and model and text_rule(model) is None:
        return model
    if isinstance(model, type) and issubclass(model, Instance):
        return spec_of(model).name
    raise QueryError("model is a model class or the name of one")


def doctor(model: Named = None, *, progress: Progress | None = None) -> tuple[Health, ...]:
    """Compare the indexes of every partition with its records. Read only.

    Args:
        model: Only partitions of this model: its class, or its name, for which no class is needed.
    Cost: all bytes of all partitions, one partition at a time. Writes in between look like
        divergences: for quiet partitions.
    """
    return run(examine(name_of(model), progress), port.current().store)


async def adoctor(model: Named = None, *, progress: Progress | None = None) -> tuple[Health, ...]:
    """Compare the indexes of every partition with its records; see `doctor`."""
    return await arun(examine(name_of(model), progress), port.current().astore)


def examine(model: str | None = None, progress: Progress | None = None) -> Plan[tuple[Health, ...]]:
    """The plan of `doctor`."""
    statuses: tuple[PartitionStatus, ...] = yield Partitions(model)
    found = []
    for number, status in enumerate(statuses, 1):
        reply: CheckReply = yield Check(scope_named(status))
        found.append(
            Health(
                status.model,
                status.values,
                reply.records,
                reply.findings,
                _outdated(status),
                status.rows,
                dict(sorted(status.counters.items())),
            )
        )
        if progress is not None:
            progress(number, len(statuses))
    return tuple(found)


def prune(model: Named = None, *, dry_run: bool = False, progress: Progress | None = None) -> int:
    """Erase every expired record of every partition; how many went, or would go.

    Args:
        model: Only partitions of this model: its class, or its name, for which no class is needed.
        dry_run: Count them and erase nothing.
    Cost: a round trip per 64 expired records; a dry run one per 256 partitions.
    """
    return run(prune_all(name_of(model), dry_run, progress), port.current().store)


async def aprune(model: Named = None, *, dry_run: bool = False, progress: Progress | None = None) -> int:
    """Erase every expired record of every partition; see `prune`."""
    return await arun(prune_all(name_of(model), dry_run, progress), port.current().astore)


def prune_all(model: str | None, dry_run: bool, progress: Progress | None = None) -> Plan[int]:
    """The plan of `prune`."""
    statuses: tuple[PartitionStatus, ...] = yield Partitions(model)
    gone = 0
    for number, status in enumerate(statuses, 1):
        gone += _due(status) if dry_run else (yield from _prune_one(scope_named(status)))
        if progress is not None:
            progress(number, len(statuses))
    return gone


def _due(status: PartitionStatus) -> int:
    """A row is dead (erased), live, or expired and still to be erased."""
    return status.rows - status.dead - status.live


def _prune_one(scope: Scope) -> Plan[int]:
    gone = 0
    while number := (yield Prune(scope, PRUNED_AT_ONCE)):
        gone += number
    return gone


def scope_named(status: PartitionStatus) -> Scope:
    """The partition a status speaks of, whether or not its class is loaded."""
    return Scope(spec_named(status), status.values)


def spec_named(status: PartitionStatus) -> ModelSpec:
    """The spec of the loaded class of that name, else one that only says how the partition is named."""
    cls = registry.find(status.model)
    spec = cls.__omoide_spec__ if cls is not None and issubclass(cls, Instance) else None
    return spec or ModelSpec(status.model, {}, "", (), status.fingerprint)


def _outdated(status: PartitionStatus) -> bool:
    return bool(status.fingerprint) and spec_named(status).fingerprint != status.fingerprint


__all__ = [
    "Health",
    "Named",
    "adoctor",
    "aprune",
    "doctor",
    "examine",
    "name_of",
    "prune",
    "prune_all",
    "scope_named",
]
