"""A store whose mirrored models have their truth in PostgreSQL.

    request ──▶ of a model without a mirror ──▶ the Redis store, as it is
            └─▶ of a mirrored one           ──▶ a plan of `stores.postgres.mirror`, carried by this driver

Nothing of PostgreSQL is imported before the first request about a mirrored model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from omoide.ops import port
from omoide.ops import request as ask
from omoide.ops.request import Request
from omoide.ops.run import AsyncStore, Store, acarry, carry

if TYPE_CHECKING:
    from omoide.stores.postgres.mirror import Mirror, MirrorPlan
    from omoide.stores.postgres.session import Database

__all__ = ["AsyncMirroredStore", "MirroredStore", "is_mirrored"]

R = TypeVar("R")


def is_mirrored(request: Request[Any]) -> bool:
    """Whether a request is about a mirrored model."""
    if isinstance(request, ask.Batch):
        return any(write.scope.spec.mirror is not None for write in request.writes)
    scope = getattr(request, "scope", None)
    return scope is not None and scope.spec.mirror is not None


def _plan(mirror: Mirror, request: Request[R]) -> MirrorPlan[R]:
    if isinstance(request, ask.Batch):
        return mirror.batch(request)  # type: ignore[return-value]
    return mirror.plan(request)


class MirroredStore:
    """The blocking face. `engine` gives the database and the mirror at their first use."""

    def __init__(self, store: Store, engine: Callable[[], tuple[Database, Mirror]]) -> None:
        self.store = store
        self._engine = engine

    def execute(self, request: Request[R], /) -> R:
        """Answer a request. Raises: StoreError and what the request names."""
        if not is_mirrored(request):
            return self.store.execute(request)
        return self.drive(_plan(self._engine()[1], request))

    def drive(self, plan: MirrorPlan[R]) -> R:
        """Carry a plan to its end."""
        database, _ = self._engine()
        return carry(plan, lambda step: self._answer(step, database))

    def _answer(self, step: Any, database: Database) -> Any:
        from omoide.stores.postgres import tables
        from omoide.stores.postgres.mirror import Prepare, Transaction, Within

        if isinstance(step, Transaction):
            return database.run(step.script, *step.args)
        if isinstance(step, Prepare):
            return tables.prepare(database, step.spec)
        if isinstance(step, Within):
            with port.deadline(step.seconds):
                return self.store.execute(step.request)
        return self.store.execute(step)


class AsyncMirroredStore:
    """The async face."""

    def __init__(self, store: AsyncStore, engine: Callable[[], tuple[Database, Mirror]]) -> None:
        self.store = store
        self._engine = engine

    async def execute(self, request: Request[R], /) -> R:
        """Answer a request. Raises: StoreError and what the request names."""
        if not is_mirrored(request):
            return await self.store.execute(request)
        return await self.drive(_plan(self._engine()[1], request))

    async def drive(self, plan: MirrorPlan[R]) -> R:
        """Carry a plan to its end."""
        database, _ = self._engine()
        return await acarry(plan, lambda step: self._answer(step, database))

    async def _answer(self, step: Any, database: Database) -> Any:
        from omoide.stores.postgres import tables
        from omoide.stores.postgres.mirror import Prepare, Transaction, Within

        if isinstance(step, Transaction):
            return await database.arun(step.script, *step.args)
        if isinstance(step, Prepare):
            return await tables.aprepare(database, step.spec)
        if isinstance(step, Within):
            with port.deadline(step.seconds):
                return await self.store.execute(step.request)
        return await self.store.execute(step)
