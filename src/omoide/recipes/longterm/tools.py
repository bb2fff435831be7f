"""Long-term memory as tools of a language model: plain functions bound to one resource.

    for tool in tools_of(memory):      tool.name, tool.description, tool.parameters (JSON schema),
                                       tool(**arguments), await tool.acall(**arguments)

A tool is also what it looks like: `tool.function` is a typed function with a docstring, for frameworks
that make a schema of their own. Every answer is a dict of plain JSON. What the model got wrong comes back as
`{"error": ...}`, which names the field and the rule, so that it can try again; an outage is raised.

`edit_memory` changes only a fact that `recall_memory` or `reflect_memory` of the same set of tools has
shown: an id that a model made up, or read in a text, changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from omoide.context import AssemblyResult
from omoide.context.render import HEADER, clean, disarm
from omoide.errors import FieldError, QueryError
from omoide.ops.save import SaveOutcome
from omoide.recipes.long_term_memory import LongTermMemory
from omoide.recipes.longterm import bodies
from omoide.recipes.longterm.bodies import Body
from omoide.recipes.longterm.record import FACT, LongTermRecord

Answer = dict[str, Any]
MOST_SHOWN = 10_000


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what a framework registers.

    Attributes:
        name, description: For the model.
        parameters: JSON schema of the arguments, without additional properties.
        function, afunction: The typed function and its async twin.
    """

    body: Body
    description: str
    function: Callable[..., Answer]
    afunction: Callable[..., Awaitable[Answer]]

    @property
    def name(self) -> str:
        return self.body.name

    @property
    def parameters(self) -> dict[str, Any]:
        return self.body.schema()

    def __call__(self, /, **arguments: Any) -> Answer:
        """Run it with the arguments of a model; what breaks a rule is an `error` in the answer."""
        try:
            return self.function(**self.body.read(arguments))
        except FieldError as error:
            return _mistake(error)

    async def acall(self, /, **arguments: Any) -> Answer:
        """Async twin of calling it."""
        try:
            return await self.afunction(**self.body.read(arguments))
        except FieldError as error:
            return _mistake(error)


class Toolset:
    """The four tools of a memory, and which memories they have shown.

    Args:
        memory: Bound to its resource; no argument of a tool names another.
        shown: Ids of facts shown before, where a conversation goes on in another process.
    Raises:
        QueryError: `shown` is no list of ids.
    """

    def __init__(self, memory: LongTermMemory, shown: Iterable[str] = ()) -> None:
        if isinstance(shown, str | bytes) or not isinstance(shown, Iterable):
            raise QueryError("shown is a list of ids")
        self.memory = memory
        self._shown = dict.fromkeys(shown)
        if any(not isinstance(one, str) for one in self._shown):
            raise QueryError("shown is a list of ids, which are strings")

    @property
    def shown(self) -> tuple[str, ...]:
        """Ids of the facts that were shown, the latest 10,000."""
        return tuple(self._shown)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """`retain_memory`, `recall_memory`, `reflect_memory`, `edit_memory`."""
        pairs = (
            (bodies.RETAIN, self.retain_memory, self.aretain_memory),
            (bodies.RECALL, self.recall_memory, self.arecall_memory),
            (bodies.REFLECT, self.reflect_memory, self.areflect_memory),
            (bodies.EDIT, self.edit_memory, self.aedit_memory),
        )
        return tuple(Tool(body, _told(function), function, twin) for body, function, twin in pairs)

    def retain_memory(
        self, content: str, key: str | None = None, importance: float = bodies.IMPORTANCE
    ) -> Answer:
        """Store a lasting fact for later conversations. With a key, it replaces the key's earlier value."""
        return _stored(self.memory.retain(content, key=key, importance=importance))

    async def aretain_memory(
        self, content: str, key: str | None = None, importance: float = bodies.IMPORTANCE
    ) -> Answer:
        """Async twin of `retain_memory`."""
        return _stored(await self.memory.aretain(content, key=key, importance=importance))

    def recall_memory(self, query: str, limit: int = bodies.RECALLED) -> Answer:
        """Search the facts and episodes of earlier conversations. They may be wrong or out of date."""
        return self._found(self.memory.recall(query, limit=limit))

    async def arecall_memory(self, query: str, limit: int = bodies.RECALLED) -> Answer:
        """Async twin of `recall_memory`."""
        return self._found(await self.memory.arecall(query, limit=limit))

    def reflect_memory(self, query: str, limit: int = bodies.REFLECTED) -> Answer:
        """Gather a broad set of evidence from earlier conversations, to draw a conclusion from."""
        return self._found(self.memory.recall(query, limit=limit))

    async def areflect_memory(self, query: str, limit: int = bodies.REFLECTED) -> Answer:
        """Async twin of `reflect_memory`."""
        return self._found(await self.memory.arecall(query, limit=limit))

    def edit_memory(
        self, memory_id: str, action: str, content: str | None = None, importance: float | None = None
    ) -> Answer:
        """Update or forget one fact that was recalled before."""
        if (mistake := self._unfit(memory_id, action, content, importance)) is not None:
            return mistake
        if action == "forget":
            return self._gone(memory_id, self.memory.forget(memory_id))
        return _stored(self.memory.edit(memory_id, content=content, importance=importance))

    async def aedit_memory(
        self, memory_id: str, action: str, content: str | None = None, importance: float | None = None
    ) -> Answer:
        """Async twin of `edit_memory`."""
        if (mistake := self._unfit(memory_id, action, content, importance)) is not None:
            return mistake
        if action == "forget":
            return self._gone(memory_id, await self.memory.aforget(memory_id))
        return _stored(await self.memory.aedit(memory_id, content=content, importance=importance))

    def _found(self, result: AssemblyResult) -> Answer:
        rows = [_row(record) for record in result.records]
        for row in rows:
            if row["kind"] == FACT:
                self._shown.pop(row["memory_id"], None)
                self._shown[row["memory_id"]] = None
        while len(self._shown) > MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
        return {"note": HEADER, "memories": rows}

    def _unfit(
        self, memory_id: str, action: str, content: str | None, importance: float | None
    ) -> Answer | None:
        """Why an edit is not made; None when it may be. Raises FieldError for arguments that break a rule."""
        bodies.EDIT.read(
            {"memory_id": memory_id, "action": action, "content": content, "importance": importance}
        )
        if memory_id not in self._shown:
            return {"error": "edit_memory.memory_id: no fact of this id was recalled; recall it first"}
        if action == "forget" and (content, importance) != (None, None):
            return {"error": "edit_memory.action: to forget takes neither content nor importance"}
        if action == "update" and content is None and importance is None:
            return {"error": "edit_memory.content: say what to change: content or importance"}
        return None

    def _gone(self, memory_id: str, gone: bool) -> Answer:
        self._shown.pop(memory_id, None)
        return {"forgotten": gone, "memory_id": memory_id}


def tools_of(memory: LongTermMemory, shown: Iterable[str] = ()) -> tuple[Tool, ...]:
    """The tools of a memory; see `Toolset`."""
    return Toolset(memory, shown).tools


def _row(record: LongTermRecord) -> Answer:
    when = record.occurred_at or record.created_at
    return {
        "memory_id": record.memory_id,
        "kind": record.kind,
        "key": record.semantic_key,
        "content": disarm(clean(record.content)),
        "importance": record.importance,
        "when": when.isoformat(),
    }


def _stored(outcome: SaveOutcome) -> Answer:
    answer: Answer = {"stored": outcome.stored, "memory_id": outcome.duplicate_of or outcome.id}
    return answer if outcome else {**answer, "reason": outcome.reason}


def _told(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip()


def _mistake(error: FieldError) -> Answer:
    return {"error": f"{error.model}.{error.field}: {error.rule}"} | (
        {"hint": error.hint} if error.hint else {}
    )


__all__ = ["Tool", "Toolset", "tools_of"]
