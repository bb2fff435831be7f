"""The class users subclass: a declarative record with its store.

Every method that reaches the store is one line over a plan (`omoide.ops.save` and its neighbours),
and has an `a` twin of the same signature over the same plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from omoide.errors import NotFoundError
from omoide.model.defaults import Defaults
from omoide.model.instance import Instance, id_of, scope_of, spec_of
from omoide.model.partition import check_ids, ids_of, scope_of_call
from omoide.model.schema import Scope
from omoide.ops import batch as batches
from omoide.ops import delete as deletes
from omoide.ops import load, port, touch
from omoide.ops import save as saves
from omoide.ops.counters import Counters
from omoide.ops.graph import Associations
from omoide.ops.query import QueryEntry
from omoide.ops.run import arun, run
from omoide.ops.save import SaveOutcome


class Standing(NamedTuple):
    """How far a record is trusted: the mean, and how many outcomes spoke for and against it."""

    confidence: float
    corroborations: int
    contradictions: int


class Model(Instance):
    """One kind of memory: a class body of fields.

        class Note(Model):
            note_id = AutoKeyField()
            agent_id = KeyField()
            text = StringField(default="")

    `class Meta` may state `name`, `partition_by`, `ttl` (timedelta or seconds), `unique_together`,
    `aliases` (stored name -> field), `abstract` and `defaults`. `max_records_per_partition` caps a
    partition: a save erases up to 16 records beyond it, lowest in the decay order, for good.
    """

    if TYPE_CHECKING:
        Meta: ClassVar[Any]
    else:

        class Meta:
            abstract = True

    query = QueryEntry()

    # ---- writing -------------------------------------------------------------------------------

    def save(
        self,
        *,
        operation_id: str | None = None,
        expect_version: int | None = None,
        resurrect: bool = False,
        supersedes: str | None = None,
    ) -> SaveOutcome:
        """Store the whole record.

        Args:
            operation_id: Names this write, so that it can be repeated when its reply was lost: a repeat
                returns the first outcome and changes nothing, as long as it is among the last 5 writes
                of the record and the record is still there. A generated id is then made of model,
                partition and operation id, so that another process repeats it with an instance of its
                own. Default: random.
            expect_version: Store only over this version.
            resurrect: A record that was stored and is gone is written anew, instead of the outcome
                `deleted`.
            supersedes: Id of the version that this record follows, of a model with a ValidityField: it ends
                where this one starts, in the same step. The one that starts later stands.
        Raises:
            FieldError: a value breaks a rule of its field; nothing was sent.
            QueryError: an empty operation id, a version that is no whole number, or a model without validity.
            ConflictError: `expect_version` is not the version stored, or the version to supersede is not
                there (`missing`), has an end (`closed`) or another key (`other_key`); nothing changed.
        Cost: one round trip, O(distinct terms) on the server; a refused save one as well.
        """
        options = _save_options(operation_id, expect_version, resurrect, supersedes)
        current = batches.active()
        if current is not None:
            return current.add_save(self, **options)
        return run(saves.save(self, **options), port.current().store)

    async def asave(
        self,
        *,
        operation_id: str | None = None,
        expect_version: int | None = None,
        resurrect: bool = False,
        supersedes: str | None = None,
    ) -> SaveOutcome:
        """Store the whole record; see `save`."""
        options = _save_options(operation_id, expect_version, resurrect, supersedes)
        current = batches.active()
        if current is not None:
            return current.add_save(self, **options)
        return await arun(saves.save(self, **options), port.current().astore)

    @classmethod
    def create(cls, **values: Any) -> Self:
        """Store a new record whose id is free.

        Raises:
            ConflictError: the id or a unique value is taken.
            PolicyError: the firewall or a write filter refused the record.
        Cost: as `save`.
        """
        instance = cls(**values)
        current = batches.active()
        if current is not None:
            current.add_save(instance, mode="create")
        else:
            run(saves.create(instance), port.current().store)
        return instance

    @classmethod
    async def acreate(cls, **values: Any) -> Self:
        """Store a new record whose id is free; see `create`."""
        instance = cls(**values)
        current = batches.active()
        if current is not None:
            current.add_save(instance, mode="create")
        else:
            await arun(saves.create(instance), port.current().astore)
        return instance

    def update(self, **changes: Any) -> SaveOutcome:
        """Change these fields and no others, whatever other writers did since the record was loaded.

        What was set on the instance and not saved is not written, and stays set. When nothing is
        stored, the instance is as it was; a record that is not there, or no longer, gives a falsy
        outcome with reason `deleted`.

        Raises:
            FieldError: an unknown field or a bad value; nothing was sent.
            ConflictError: 16 other writers came first.
        Cost: one round trip; two more for each writer that came first, and one more for an instance
            that was neither loaded nor saved.
        """
        current = batches.active()
        if current is not None:
            return current.add_update(self, changes)
        return run(saves.update(self, changes), port.current().store)

    async def aupdate(self, **changes: Any) -> SaveOutcome:
        """Change these fields and no others; see `update`."""
        current = batches.active()
        if current is not None:
            return current.add_update(self, changes)
        return await arun(saves.update(self, changes), port.current().astore)

    def delete(self) -> bool:
        """Erase the record with every trace of it; False when it was not there. Cost: one round trip."""
        current = batches.active()
        if current is not None:
            return current.add_delete(self)
        return run(deletes.delete(self), port.current().store)

    async def adelete(self) -> bool:
        """Erase the record with every trace of it; False when it was not there. Cost: one round trip."""
        current = batches.active()
        if current is not None:
            return current.add_delete(self)
        return await arun(deletes.delete(self), port.current().astore)

    @classmethod
    def save_many(cls, instances: Iterable[Self]) -> list[SaveOutcome]:
        """Store records of any partitions; all are checked and screened before the first byte.

        Each record is atomic, the group is not: the outcomes say, in order, what was stored. Inside a
        batch they go out with it.

        Raises:
            FieldError: a value breaks a rule of its field; nothing was sent.
            StoreError: nothing at all could be written.
        Cost: one round trip per 256 records and node.
        """
        current = batches.active()
        if current is not None:
            return [current.add_save(instance) for instance in saves.records_of(instances)]
        return run(saves.save_many(instances), port.current().store)

    @classmethod
    async def asave_many(cls, instances: Iterable[Self]) -> list[SaveOutcome]:
        """Store records of any partitions; see `save_many`."""
        current = batches.active()
        if current is not None:
            return [current.add_save(instance) for instance in saves.records_of(instances)]
        return await arun(saves.save_many(instances), port.current().astore)

    @classmethod
    def delete_many(cls, ids: Sequence[str], **partition: Any) -> int:
        """Erase records by id; how many were there. Cost: one round trip per 250.

        Raises:
            QueryError: inside a batch.
        """
        batches.refuse("delete_many()")
        scope = cls._scope(partition, "delete_many")
        return run(
            deletes.delete_many(scope, check_ids(scope.spec, ids_of(ids), "delete_many")),
            port.current().store,
        )

    @classmethod
    async def adelete_many(cls, ids: Sequence[str], **partition: Any) -> int:
        """Erase records by id; how many were there. Cost: one round trip per 250.

        Raises:
            QueryError: inside a batch.
        """
        batches.refuse("delete_many()")
        scope = cls._scope(partition, "delete_many")
        return await arun(
            deletes.delete_many(scope, check_ids(scope.spec, ids_of(ids), "delete_many")),
            port.current().astore,
        )

    @classmethod
    def delete_partition(cls, **partition: Any) -> int:
        """Erase everything of a partition, counters and graph included; the records it held.

        Raises:
            QueryError: inside a batch.
        Cost: one round trip; the memory is freed in the background.
        """
        batches.refuse("delete_partition()")
        return run(deletes.drop(cls._scope(partition, "delete_partition")), port.current().store)

    @classmethod
    async def adelete_partition(cls, **partition: Any) -> int:
        """Erase everything of a partition, counters and graph included; the records it held.

        Raises:
            QueryError: inside a batch.
        Cost: one round trip; the memory is freed in the background.
        """
        batches.refuse("delete_partition()")
        return await arun(deletes.drop(cls._scope(partition, "delete_partition")), port.current().astore)

    # ---- reading -------------------------------------------------------------------------------

    def refresh(self) -> Self:
        """Load the record anew; values set and not saved are forgotten.

        Raises:
            NotFoundError: it is gone.
        Cost: one round trip.
        """
        run(saves.refresh(self), port.current().store)
        return self

    async def arefresh(self) -> Self:
        """Load the record anew; see `refresh`."""
        await arun(saves.refresh(self), port.current().astore)
        return self

    def touch(self) -> bool:
        """Renew the decay of the record, as if it were new; False when it is gone. Cost: one round trip."""
        return run(touch.touch(self), port.current().store)

    async def atouch(self) -> bool:
        """Renew the decay of the record, as if it were new; False when it is gone. Cost: one round trip."""
        return await arun(touch.touch(self), port.current().astore)

    def evidence(self) -> Standing:
        """What outcomes said of the record, as stored now.

        Raises:
            NotFoundError: the record is gone.
        Cost: one round trip.
        """
        return _standing(run(load.one(type(self), *_address(self)), port.current().store))

    async def aevidence(self) -> Standing:
        """What outcomes said of the record, as stored now; see `evidence`."""
        return _standing(await arun(load.one(type(self), *_address(self)), port.current().astore))

    @classmethod
    def count(cls, **partition: Any) -> int:
        """How many records a partition holds, versions that are over included.

        Cost: one round trip, O(1) on the server.
        """
        selection = load.Selection(cls._scope(partition, "count"), load.EVER)
        return run(load.count(cls, selection), port.current().store)

    @classmethod
    async def acount(cls, **partition: Any) -> int:
        """How many records a partition holds, versions that are over included.

        Cost: one round trip, O(1) on the server.
        """
        selection = load.Selection(cls._scope(partition, "count"), load.EVER)
        return await arun(load.count(cls, selection), port.current().astore)

    @classmethod
    def counters(cls, **partition: Any) -> Counters:
        """The named counters of a partition. Cost: none until they are used."""
        return Counters(cls._scope(partition, "counters"))

    @classmethod
    def defaults(cls) -> Defaults:
        """The numeric defaults of this model."""
        return cls.__omoide_defaults__

    @property
    def _version(self) -> int:
        """The version stored when this instance was loaded or saved; 0 before."""
        return self._omoide.version

    @classmethod
    def _scope(cls, partition: dict[str, Any], call: str) -> Scope:
        return scope_of_call(spec_of(cls), partition, call)

    def __omoide_associations__(self) -> Associations:
        return Associations(self)


def _save_options(
    operation_id: str | None, expect_version: int | None, resurrect: bool, supersedes: str | None
) -> dict[str, Any]:
    return {
        "mode": "upsert" if resurrect else None,
        "operation_id": operation_id,
        "expect_version": expect_version,
        "supersedes": supersedes,
    }


def _address(instance: Instance) -> tuple[Scope, str]:
    return scope_of(instance), id_of(instance)


def _standing(found: Instance | None) -> Standing:
    if found is None:
        raise NotFoundError("no such record in the partition")
    record = load.record_of(found)
    return Standing(record.confidence, record.corroborations, record.contradictions)


__all__ = ["Model", "SaveOutcome", "Standing"]
