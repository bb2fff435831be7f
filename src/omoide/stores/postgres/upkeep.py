"""Looking after mirrored models: rebuild what the store shows, compare it with the rows, repair.

The partitions are those of the rows: a store that lost everything has none to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from omoide.errors import ModelError
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import not_stored, scope_of_call
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import port
from omoide.ops.request import Partitions, PartitionStatus
from omoide.stores.postgres.compare import DAMAGE, Comparison
from omoide.stores.postgres.compare import compare as compare_one
from omoide.stores.postgres.mirror import Mirror, MirrorPlan, Transaction
from omoide.stores.postgres.outbox import LOST, drain, every_partition, scope_named
from omoide.stores.postgres.rebuild import rebuild as rebuild_one

if TYPE_CHECKING:
    from omoide.stores.mirrored import AsyncMirroredStore, MirroredStore

__all__ = ["acompare", "arebuild", "compare", "rebuild"]

Progress = Callable[[int, int], None]
"""Told (records done, records in all), or partitions."""


def rebuild(
    model: type[Instance], *, progress: Progress | None = None, **partition: Any
) -> dict[tuple[str, ...], int]:
    """Rebuild a mirrored model in the store from its rows: one partition, or without one all of them.

    Readers see the old partition until the new one is whole; writes go on, and none is lost.

    Args:
        progress: Told (records done, records in all) after every page.
    Returns:
        dict: partition values -> records it shows now.
    Raises:
        ModelError: the model has no mirror.
        NotFoundError: the partition that is named has no rows.
        StoreUnavailableError: the store or PostgreSQL is away.
    Cost: two round trips and two queries per 256 records; the memory of one such page.
    """
    connection = _connection()
    scope = _scope(model, partition, "rebuild")
    plan = _rebuild_all(connection.mirror, spec_of(model), scope, progress)
    done: dict[tuple[str, ...], int] = connection.mirrored.drive(plan)
    return done


async def arebuild(
    model: type[Instance], *, progress: Progress | None = None, **partition: Any
) -> dict[tuple[str, ...], int]:
    """Rebuild a mirrored model in the store from its rows; see `rebuild`."""
    connection = _connection()
    scope = _scope(model, partition, "arebuild")
    plan = _rebuild_all(connection.mirror, spec_of(model), scope, progress)
    done: dict[tuple[str, ...], int] = await connection.amirrored.drive(plan)
    return done


def compare(
    model: type[Instance], *, repair: bool = False, progress: Progress | None = None, **partition: Any
) -> dict[tuple[str, ...], Comparison]:
    """Compare a mirrored model in the store with its rows, by count and checksum per partition.

    A copy that is damaged, or whose indexes say otherwise than its records, differs.

    Args:
        repair: Catch up, and rebuild what differs then; the comparison is that of before, but for `repaired`.
        progress: Told (partitions done, partitions in all).
    Returns:
        dict: partition values -> `Comparison`.
    Raises:
        ModelError: the model has no mirror.
        StoreUnavailableError: the store or PostgreSQL is away.
    Cost: all bytes of the partitions on both sides, those of the store twice; what is repaired up to
        three times.
    """
    connection = _connection()
    scope = _scope(model, partition, "compare")
    plan = _compare_all(connection.mirror, spec_of(model), scope, repair, progress)
    found: dict[tuple[str, ...], Comparison] = connection.mirrored.drive(plan)
    return found


async def acompare(
    model: type[Instance], *, repair: bool = False, progress: Progress | None = None, **partition: Any
) -> dict[tuple[str, ...], Comparison]:
    """Compare a mirrored model in the store with its rows; see `compare`."""
    connection = _connection()
    scope = _scope(model, partition, "acompare")
    plan = _compare_all(connection.mirror, spec_of(model), scope, repair, progress)
    found: dict[tuple[str, ...], Comparison] = await connection.amirrored.drive(plan)
    return found


class _Connection(Protocol):
    """What is needed of a connection."""

    @property
    def mirror(self) -> Mirror: ...
    @property
    def mirrored(self) -> MirroredStore: ...
    @property
    def amirrored(self) -> AsyncMirroredStore: ...


def _connection() -> _Connection:
    connection: Any = port.current()
    found: _Connection = connection
    return found


def _scope(model: type[Instance], partition: dict[str, Any], call: str) -> Scope | None:
    spec = spec_of(model)
    if spec.mirror is None:
        raise ModelError(f"{spec.name} has no mirror", hint="Meta.mirror = PostgresMirror()")
    return scope_of_call(spec, partition, call) if partition or not spec.partition_by else None


def _scopes(mirror: Mirror, spec: ModelSpec) -> MirrorPlan[list[tuple[Scope, int]]]:
    """Every partition there are rows of, and those that only the store has; with their records."""
    yield from mirror.table(spec)
    rows: list[tuple[str, int]] = yield Transaction(every_partition, (mirror.namespace, spec.name))
    named = [(scope_named(spec.name, partition), records) for partition, records in rows]
    scopes = [(scope, records) for scope, records in named if scope is not None]
    known = {scope.values for scope, _ in scopes}
    statuses: tuple[PartitionStatus, ...] = yield Partitions(spec.name)
    strays = [Scope(spec, status.values) for status in statuses if status.values not in known]
    return [*scopes, *((stray, 0) for stray in strays)]


def _rebuild_all(
    mirror: Mirror, spec: ModelSpec, scope: Scope | None, progress: Progress | None
) -> MirrorPlan[dict[tuple[str, ...], int]]:
    if scope is not None:
        live = yield from rebuild_one(mirror, scope, progress)
        if live is None:
            raise not_stored(spec, scope.values)
        return {scope.values: live}
    scopes = yield from _scopes(mirror, spec)
    total, before = sum(records for _, records in scopes), 0
    done: dict[tuple[str, ...], int] = {}
    for one, records in scopes:

        def told(number: int, _: int, before: int = before) -> None:
            if progress is not None:
                progress(before + number, max(total, before + number))

        done[one.values] = (yield from rebuild_one(mirror, one, told)) or 0
        before += records
    return done


def _compare_all(
    mirror: Mirror, spec: ModelSpec, scope: Scope | None, repair: bool, progress: Progress | None
) -> MirrorPlan[dict[tuple[str, ...], Comparison]]:
    scopes = [scope] if scope else [one for one, _ in (yield from _scopes(mirror, spec))]
    found: dict[tuple[str, ...], Comparison] = {}
    for number, one in enumerate(scopes, 1):
        compared = yield from compare_one(mirror, one)
        if repair and not compared.equal:
            compared = replace(compared, repaired=(yield from _repair(mirror, one)))
        found[one.values] = compared
        if progress is not None:
            progress(number, len(scopes))
    return found


def _repair(mirror: Mirror, scope: Scope) -> MirrorPlan[bool]:
    """Catch up, or else rebuild; whether both sides are equal then."""
    with suppress(*DAMAGE):  # a damaged copy takes no commits: it is rebuilt
        if (yield from drain(mirror, scope)) != LOST and (yield from compare_one(mirror, scope)).equal:
            return True
    yield from rebuild_one(mirror, scope)
    return (yield from compare_one(mirror, scope)).equal
