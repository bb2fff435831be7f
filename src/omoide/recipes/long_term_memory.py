"""What a resource (an agent, a user, a project) keeps across sessions: facts and episodes.

    retain(content, key=)        a fact; with a key the current value of that key
    retain_turn(user, assistant) an episode: one finished turn, immutable
    recall(query)                the best eight, as labelled lines for a prompt
    edit, forget                 change a fact; erase a fact or an episode

Rows in PostgreSQL are the truth, the index in Redis answers: a save is in PostgreSQL before it returns
and Redis catches up; a recall is answered by Redis, by PostgreSQL when Redis is out of reach, and says
by which. Everything is bound to the resource the object was made for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from omoide.context import AssemblyResult, ContextAssembler
from omoide.errors import FieldError, QueryError
from omoide.model.instance import spec_of
from omoide.model.partition import check_ids, scope_of_call, text_rule
from omoide.ops import delete as deletes
from omoide.ops import load, port
from omoide.ops.run import Plan, arun, run
from omoide.ops.save import SaveOutcome
from omoide.recipes.longterm import bodies, switches, turns, writes
from omoide.recipes.longterm.record import EPISODE, FACT, LongTermRecord
from omoide.recipes.longterm.resource import checked_resource
from omoide.recipes.longterm.switches import LongTermSettings
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.ops.query import Query

R = TypeVar("R")

BUDGET_CHARS = 24_000
INCOMPLETE = "incomplete"
SWITCHED_OFF = "switched_off"


class LongTermMemory:
    """The long-term memory of one resource.

    Args:
        resource_id: Whose it is; at most 512 bytes. Every call is bound to it.
        session_id: Where what is stored comes from, unless a call says otherwise.
        model: The record; a subclass of `LongTermRecord` has tables and keys of its own.
        budget: Most characters of a recalled block.
        deadline: Seconds a call may take; None: the connection's timeout.
    Raises:
        QueryError: a resource id that is no text, blank or too long, or another argument that cannot be.
    """

    def __init__(
        self,
        resource_id: str,
        *,
        session_id: str | None = None,
        model: type[LongTermRecord] = LongTermRecord,
        budget: int = BUDGET_CHARS,
        deadline: Seconds | None = None,
    ) -> None:
        partition = {"resource_id": checked_resource(resource_id, type(self).__name__)}
        if session_id is not None and not isinstance(session_id, str):
            raise QueryError(f"{type(self).__name__}: session_id must be a string")
        self.scope = scope_of_call(spec_of(model), partition, type(self).__name__)
        self._settings = scope_of_call(spec_of(LongTermSettings), partition, type(self).__name__)
        self.resource_id = self.scope.values[0]
        self.session_id = session_id
        self.model = model
        self.deadline = deadline
        self._assembler = ContextAssembler(
            model, max_tokens=budget, token_counter=len, format="labelled", deadline=deadline
        )

    # ---- writing -----------------------------------------------------------------------------

    def retain(
        self,
        content: str,
        *,
        key: str | None = None,
        importance: float = bodies.IMPORTANCE,
        session_id: str | None = None,
        author: str | None = None,
        occurred_at: datetime | None = None,
        operation_id: str | None = None,
    ) -> SaveOutcome:
        """Store a fact.

        Args:
            content: 1 to 2,000 characters.
            key: What it is the current value of, such as `ui.theme`, at most 128 characters: an
                earlier fact of the key is replaced. Without one, the same content is stored once.
            importance: In [0, 1].
            session_id, author, occurred_at: Where, by whom and when it was said, where known.
            operation_id: As for `Model.save`.
        Returns:
            An outcome, truthy when stored; `duplicate` and `duplicate_of` when it is there already, or
            a reason of the firewall.
        Raises:
            FieldError: a bound is broken; nothing was written.
            StoreUnavailableError, StoreTimeoutError: PostgreSQL does not answer; nothing was written.
        Cost: one round trip, with a key two.
        """
        body = {"content": content, "key": key, "importance": importance}
        origin = self._origin(session_id, author, occurred_at)
        return self._run(writes.retain(self._fact(body, origin), self.scope, operation_id))

    async def aretain(
        self,
        content: str,
        *,
        key: str | None = None,
        importance: float = bodies.IMPORTANCE,
        session_id: str | None = None,
        author: str | None = None,
        occurred_at: datetime | None = None,
        operation_id: str | None = None,
    ) -> SaveOutcome:
        """Async twin of `retain`."""
        body = {"content": content, "key": key, "importance": importance}
        origin = self._origin(session_id, author, occurred_at)
        return await self._arun(writes.retain(self._fact(body, origin), self.scope, operation_id))

    def retain_turn(
        self,
        user: str,
        assistant: str,
        *,
        session_id: str | None = None,
        occurred_at: datetime | None = None,
        execution: str = "chat",
        operation_id: str | None = None,
    ) -> SaveOutcome:
        """Store a finished turn as one episode.

        Args:
            user: What was asked; its first 4,000 characters are kept, the mark of a cut included.
            assistant: What was answered; its first 8,000 characters.
            execution: `chat`, `task`, `schedule` or `self-update`; see `change_settings`.
        Returns:
            An outcome, truthy when stored; else `incomplete` (one of the texts is blank),
            `switched_off`, `duplicate`, or a reason of the firewall.
        Raises:
            As `retain`.
        Cost: one round trip; one more for a task or a schedule.
        """
        return self._run(self._turn(user, assistant, session_id, occurred_at, execution, operation_id))

    async def aretain_turn(
        self,
        user: str,
        assistant: str,
        *,
        session_id: str | None = None,
        occurred_at: datetime | None = None,
        execution: str = "chat",
        operation_id: str | None = None,
    ) -> SaveOutcome:
        """Async twin of `retain_turn`."""
        return await self._arun(self._turn(user, assistant, session_id, occurred_at, execution, operation_id))

    def edit(
        self, memory_id: str, *, content: str | None = None, importance: float | None = None
    ) -> SaveOutcome:
        """Change a fact; its key stays.

        Returns:
            An outcome, truthy when stored; else `deleted` (no such memory), `not_a_fact` (episodes are
            immutable), `duplicate` (another fact says that), or a reason of the firewall.
        Raises:
            FieldError: a bound is broken, or there is nothing to change.
        Cost: two round trips.
        """
        return self._run(self._edit(memory_id, content, importance))

    async def aedit(
        self, memory_id: str, *, content: str | None = None, importance: float | None = None
    ) -> SaveOutcome:
        """Async twin of `edit`."""
        return await self._arun(self._edit(memory_id, content, importance))

    def forget(self, memory_id: str) -> bool:
        """Erase a fact or an episode with every trace; False when it was not there. One round trip."""
        return self._run(self._forget(memory_id))

    async def aforget(self, memory_id: str) -> bool:
        """Async twin of `forget`."""
        return await self._arun(self._forget(memory_id))

    # ---- reading -----------------------------------------------------------------------------

    def recall(
        self, query: str, *, limit: int = bodies.RECALLED, kind: str | None = None, execution: str = "chat"
    ) -> AssemblyResult:
        """The memories that answer a query best.

        Args:
            query: In plain words.
            limit: Most memories.
            kind: Only `fact` or `episode`.
            execution: As for `retain_turn`.
        Returns:
            `records` (`LongTermRecord`), best first, and `formatted`: a header that says what they are,
            then `- [fact] …` and `- [episode] …`, within the budget. `metadata["store"]` is `redis` or
            `postgres`: which of them answered. `metadata["switched_off"]` when the execution may not.
        Raises:
            QueryError: as `ContextAssembler.assemble`.
            StoreUnavailableError, StoreTimeoutError: neither answers.
        Cost: as `ContextAssembler.assemble`; one round trip more for a task or a schedule.
        """
        if not self._run(self._may_recall(execution)):
            return _switched_off(execution)
        return self._assembler.assemble(query, max_items=limit, **self._where(kind))

    async def arecall(
        self, query: str, *, limit: int = bodies.RECALLED, kind: str | None = None, execution: str = "chat"
    ) -> AssemblyResult:
        """Async twin of `recall`."""
        if not await self._arun(
            switches.allows(self._settings, switches.checked(execution), switches.RECALL)
        ):
            return _switched_off(execution)
        return await self._assembler.aassemble(query, max_items=limit, **self._where(kind))

    def get(self, memory_id: str) -> LongTermRecord | None:
        """A memory by its id. One round trip."""
        return self._run(load.one(self.model, self.scope, self._id(memory_id)))

    async def aget(self, memory_id: str) -> LongTermRecord | None:
        """Async twin of `get`."""
        return await self._arun(load.one(self.model, self.scope, self._id(memory_id)))

    def records(self, kind: str | None = None) -> Query[LongTermRecord]:
        """A query over all memories, newest first; `.all()`, `.limit(20)`, `.count()` and so on read it."""
        return self.model.query.filter(**self._where(kind))

    # ---- settings ----------------------------------------------------------------------------

    def settings(self) -> LongTermSettings:
        """What tasks and schedules of the resource may do with memory. One round trip."""
        return self._run(switches.read(self._settings))

    async def asettings(self) -> LongTermSettings:
        """Async twin of `settings`."""
        return await self._arun(switches.read(self._settings))

    def change_settings(self, **changes: bool) -> LongTermSettings:
        """Switch `task_recall`, `task_retention`, `schedule_recall` or `schedule_retention` on or off.

        A chat is never affected, and a self-update never has either.
        Raises:
            FieldError: no such switch, or neither True nor False.
        Cost: two round trips.
        """
        return self._run(switches.change(self._settings, dict(changes)))

    async def achange_settings(self, **changes: bool) -> LongTermSettings:
        """Async twin of `change_settings`."""
        return await self._arun(switches.change(self._settings, dict(changes)))

    # ---- shared ------------------------------------------------------------------------------

    def _run(self, plan: Plan[R]) -> R:
        with port.deadline(self.deadline):
            return run(plan, port.current().store)

    async def _arun(self, plan: Plan[R]) -> R:
        with port.deadline(self.deadline):
            return await arun(plan, port.current().astore)

    def _may_recall(self, execution: str) -> Plan[bool]:
        return switches.allows(self._settings, switches.checked(execution), switches.RECALL)

    def _origin(
        self, session_id: str | None, author: str | None, occurred_at: datetime | None
    ) -> dict[str, Any]:
        return {
            "session_id": session_id or self.session_id,
            "author": author,
            "occurred_at": occurred_at,
        }

    def _fact(self, body: Mapping[str, Any], origin: Mapping[str, Any]) -> LongTermRecord:
        told = bodies.RETAIN.read(body)
        values = {**origin, "importance": told["importance"]}
        return writes.record_with(self.model, self.scope, FACT, told["content"], told["key"], values)

    def _turn(
        self,
        user: str,
        assistant: str,
        session_id: str | None,
        occurred_at: datetime | None,
        execution: str,
        operation_id: str | None,
    ) -> Plan[SaveOutcome]:
        for name, text in (("user", user), ("assistant", assistant)):
            rule = text_rule(text)
            if rule is not None:
                raise FieldError("retain_turn", name, rule)
        allowed = yield from switches.allows(self._settings, switches.checked(execution), switches.RETENTION)
        if not allowed:
            return SaveOutcome(False, SWITCHED_OFF)
        content = turns.episode_of(user, assistant)
        if content is None:
            return SaveOutcome(False, INCOMPLETE)
        origin = self._origin(session_id, None, occurred_at)
        record = writes.record_with(self.model, self.scope, EPISODE, content, None, origin)
        return (yield from writes.retain(record, self.scope, operation_id))

    def _edit(self, memory_id: str, content: str | None, importance: float | None) -> Plan[SaveOutcome]:
        told = bodies.EDIT.read(
            {"memory_id": memory_id, "action": "update", "content": content, "importance": importance}
        )
        changes = {name: told[name] for name in ("content", "importance") if told[name] is not None}
        if not changes:
            raise FieldError("edit_memory", "content", "say what to change: content or importance")
        return writes.edit(self.model, self.scope, self._id(memory_id), changes)

    def _forget(self, memory_id: str) -> Plan[bool]:
        return (yield from deletes.delete_many(self.scope, (self._id(memory_id),))) == 1

    def _id(self, memory_id: str) -> str:
        return check_ids(self.scope.spec, (memory_id,))[0]

    def _where(self, kind: str | None) -> dict[str, Any]:
        if kind not in (None, FACT, EPISODE):
            raise FieldError("LongTermMemory", "kind", f"must be {FACT} or {EPISODE}")
        return {"resource_id": self.resource_id} | ({} if kind is None else {"kind": kind})


def _switched_off(execution: str) -> AssemblyResult:
    return AssemblyResult(metadata={"matched": 0, SWITCHED_OFF: execution})


__all__ = ["LongTermMemory"]
