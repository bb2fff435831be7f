"""omoide's recall from the rows in PostgreSQL, as while Redis is out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from benchmarks.rivals.omoide import BATCH, PLENTY, answered
from benchmarks.rivals.system import MissingSystemError, Turn

_models: list[Any] = []


def memory_model() -> Any:
    """BenchMemory, mirrored. Defined once: a name is one table."""
    if not _models:
        from omoide import PostgresMirror
        from omoide.recipes import DefaultMemory

        class BenchRow(DefaultMemory):
            max_records_per_partition = 0

            class Meta:
                mirror = PostgresMirror()

        _models.append(BenchRow)
    return _models[0]


def ranker() -> OmoideRowsRanker:
    import_module("psycopg")
    memory_model()
    return OmoideRowsRanker()


class OmoideRowsRanker:
    served = True

    def open(self, url: str) -> None:
        import omoide
        from omoide.errors import CapabilityError
        from omoide.testing import PostgresServer

        try:
            self._server: Any = PostgresServer()
        except CapabilityError as error:
            raise MissingSystemError(f"omoide-rows: {error}") from error
        self._server.start()
        address = self._server.url_of(self._server.create())
        self._connection: Any = omoide.connect(url, postgres=address)
        self._model = memory_model()
        self._turns: dict[str, str] = {}
        self._assembler: Any = None

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        for start in range(0, len(turns), BATCH):
            records = [self._record(conversation, turn) for turn in turns[start : start + BATCH]]
            if not all(self._model.save_many(records)):
                raise RuntimeError("a turn was not stored")

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        import omoide

        if self._assembler is None:
            self._assembler = omoide.ContextAssembler(
                self._model, max_items=depth, max_tokens=PLENTY, track=False
            )
            self._connection.mirror.away_until = float("inf")
        result = answered(self._assembler.assemble(question, agent_id=conversation))
        if result.metadata["store"] not in ("postgres", None):
            raise RuntimeError("the index answered")
        return [self._turns[record.memory_id] for record in result.records]

    def close(self) -> None:
        connection, server = getattr(self, "_connection", None), getattr(self, "_server", None)
        if connection is not None:
            connection.close()
        if server is not None:
            server.__exit__(None, None, None)

    def _record(self, conversation: str, turn: Turn) -> Any:
        record = self._model(
            agent_id=conversation,
            content=turn.text,
            session_id=turn.session,
            author=turn.author,
            occurred_at=datetime.fromisoformat(turn.time),
        )
        self._turns[record.memory_id] = turn.id
        return record
