"""omoide through its public names only, as its README tells a user.

The cap of 1,000 memories an agent is lifted the documented way, in a subclass. For retrieval a turn's
text, author, session and time go to the fields that exist for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from benchmarks.rivals.system import AGENT, OBSERVED, RECALLED, TOKENS, Turn

BATCH = 1000
PLENTY = 1_000_000

_models: list[Any] = []


def store() -> OmoideStore:
    memory_model()
    return OmoideStore()


def ranker() -> OmoideRanker:
    memory_model()
    return OmoideRanker()


def memory_model() -> Any:
    """The model under test: DefaultMemory without a cap. Defined once: a name is one keyspace."""
    if not _models:
        from omoide.recipes import DefaultMemory

        class BenchMemory(DefaultMemory):
            max_records_per_partition = 0

        _models.append(BenchMemory)
    return _models[0]


def saved_as(model: Any, agent: str, turn: Turn) -> Any:
    """A turn as a memory of an agent, unsaved, with all that the fields can take."""
    return model(
        agent_id=agent,
        content=turn.text,
        session_id=turn.session,
        author=turn.author,
        occurred_at=datetime.fromisoformat(turn.time),
    )


def answered(result: Any) -> Any:
    """Refuse to measure an outage: an assembler reports one instead of raising.

    Raises:
        RuntimeError: the recall did not reach its store.
    """
    if result.metadata.get("error"):
        raise RuntimeError(f"the recall failed: {result.metadata['error']}")
    return result


class OmoideStore:
    operations = ("save", "recall", "recall_noted", "recall_cold", "observe", "delete", "decay_top")
    served = True

    def open(self, url: str) -> None:
        import omoide
        from omoide.recipes import SubconsciousMemory

        self._url = url
        self._model = memory_model()
        self._connection = omoide.connect(url)
        options = {"max_items": RECALLED, "max_tokens": TOKENS}
        self._assembler = omoide.ContextAssembler(self._model, track=False, **options)
        self._noting = omoide.ContextAssembler(self._model, **options)
        self._witness = omoide.ContextAssembler(self._model, max_items=OBSERVED, max_tokens=TOKENS)
        self._memory = SubconsciousMemory(agent_id=AGENT, model=self._model)

    def load(self, texts: Sequence[str]) -> None:
        self._load(AGENT, texts)

    def crowd(self, texts: Sequence[str], neighbours: int) -> None:
        for number in range(neighbours):
            self._load(f"neighbour-{number}", texts)

    def warm(self, queries: Sequence[str]) -> None:
        for query in queries:
            self.recall(query)

    def cool(self) -> None:
        import omoide

        self._connection = omoide.connect(self._url)
        omoide.status()

    def save(self, text: str) -> Any:
        memory = self._fresh(text)
        memory.save()
        return memory

    def recall(self, query: str) -> Any:
        return answered(self._assembler.assemble(query, agent_id=AGENT))

    def recall_noted(self, query: str) -> Any:
        return answered(self._noting.assemble(query, agent_id=AGENT))

    def witness(self, query: str) -> Any:
        return answered(self._witness.assemble(query, agent_id=AGENT))

    def observe(self, recalled: Any) -> None:
        if not self._memory.report_outcomes(recalled, "acted"):
            raise RuntimeError("the outcomes were not applied")

    def delete(self, saved: Any) -> None:
        saved.delete()

    def decay_top(self) -> Any:
        return self._model.query.filter(agent_id=AGENT).top_by_decay(n=10)

    def used_bytes(self) -> int:
        return 0

    def close(self) -> None:
        """The connection is the process's and ends with it."""

    def _load(self, agent: str, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), BATCH):
            batch = [self._fresh(text, agent) for text in texts[start : start + BATCH]]
            self._model.save_many(batch)

    def _fresh(self, text: str, agent: str = AGENT) -> Any:
        return self._model(agent_id=agent, content=text, importance=0.5)


class OmoideRanker:
    served = True
    model = staticmethod(memory_model)

    def open(self, url: str) -> None:
        import omoide

        omoide.connect(url)
        self._model = self.model()
        self._turns: dict[str, str] = {}
        self._assemblers: dict[int, Any] = {}

    def ranking(self) -> Any:
        """The weights of the arms; None for the default."""
        return None

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        for start in range(0, len(turns), BATCH):
            batch = [self._memory(conversation, turn) for turn in turns[start : start + BATCH]]
            self._model.save_many(batch)

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        import omoide

        if depth not in self._assemblers:
            self._assemblers[depth] = omoide.ContextAssembler(
                self._model, max_items=depth, max_tokens=PLENTY, ranking=self.ranking()
            )
        result = answered(self._assemblers[depth].assemble(question, agent_id=conversation))
        return [self._turns[record.memory_id] for record in result.records]

    def close(self) -> None:
        """The connection is the process's and ends with it."""

    def _memory(self, conversation: str, turn: Turn) -> Any:
        memory = saved_as(self._model, conversation, turn)
        self._turns[memory.memory_id] = turn.id
        return memory
