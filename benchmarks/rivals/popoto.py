"""popoto on Redis as its guide tells a user: DefaultMemory, ContextAssembler, SubconsciousMemory.

Nothing is tuned but the cap of 1,000 records an agent, lifted by the variable it documents for that.
Its assembler takes the query as a dictionary of cues; the score weights are its own default.
For retrieval a turn is stored as "author: text", since the model has no field for an author.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.rivals.system import AGENT, OBSERVED, RECALLED, TOKENS, Turn

WEIGHTS = {"relevance": 1.0}


def store() -> PopotoStore:
    _look()
    return PopotoStore()


def ranker() -> PopotoRanker:
    _look()
    return PopotoRanker()


def _look() -> None:
    """Make sure that it is installed, without the import that reads the environment."""
    if find_spec("popoto") is None:
        raise ModuleNotFoundError("no popoto", name="popoto")


def connect(url: str) -> Any:
    """Point popoto at a server and return its recipes module.

    The variables are read at its import and at each save. A warning of an unanswerable query is silenced.
    """
    import redis

    os.environ["REDIS_URL"] = url
    os.environ["POPOTO_DEFAULT_MEMORY_MAX_RECORDS"] = "0"
    logging.getLogger("POPOTO").setLevel(logging.ERROR)
    recipes = import_module("popoto.recipes")
    for name in ("POPOTO.ContextAssembler", "POPOTO.DefaultMemory", "POPOTO.SubconsciousMemory"):
        logging.getLogger(name).setLevel(logging.ERROR)
    pool = redis.BlockingConnectionPool.from_url(url, socket_timeout=60)
    import_module("popoto.redis_db").set_REDIS_DB_settings(connection_pool=pool)
    return recipes


def assembler(recipes: Any, items: int, tokens: int | None) -> Any:
    return recipes.ContextAssembler(
        model_class=recipes.DefaultMemory, score_weights=WEIGHTS, max_items=items, max_tokens=tokens
    )


class PopotoStore:
    operations = ("save", "recall", "recall_cold", "observe", "delete", "decay_top")
    served = True

    def open(self, url: str) -> None:
        recipes = connect(url)
        self._model = recipes.DefaultMemory
        self._assembler = assembler(recipes, RECALLED, TOKENS)
        self._witness = assembler(recipes, OBSERVED, None)
        self._memory = recipes.SubconsciousMemory(agent_id=AGENT)

    def load(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.save(text)

    def crowd(self, texts: Sequence[str], neighbours: int) -> None:
        for number in range(neighbours):
            for text in texts:
                self._model(agent_id=f"neighbour-{number}", content=text, importance=0.5).save()

    def warm(self, queries: Sequence[str]) -> None:
        for query in queries[:3]:
            self.recall(query)

    def cool(self) -> None:
        """Nothing is cached on the client."""

    def save(self, text: str) -> Any:
        memory = self._model(agent_id=AGENT, content=text, importance=0.5)
        memory.save()
        return memory

    def recall(self, query: str) -> Any:
        return self._assembler.assemble(query_cues={"topic": query}, agent_id=AGENT)

    def witness(self, query: str) -> Any:
        return self._witness.assemble(query_cues={"topic": query}, agent_id=AGENT)

    def observe(self, recalled: Any) -> None:
        self._memory.report_outcomes(recalled, "acted")

    def delete(self, saved: Any) -> None:
        saved.delete()

    def decay_top(self) -> Any:
        return self._model.query.filter(agent_id=AGENT).top_by_decay(n=10)

    def used_bytes(self) -> int:
        return 0

    def close(self) -> None:
        disconnect()


class PopotoRanker:
    served = True

    def open(self, url: str) -> None:
        self._recipes = connect(url)
        self._turns: dict[str, str] = {}
        self._assemblers: dict[int, Any] = {}

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        for turn in turns:
            memory = self._recipes.DefaultMemory(agent_id=conversation, content=f"{turn.author}: {turn.text}")
            memory.save()
            self._turns[memory.memory_id] = turn.id

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        if depth not in self._assemblers:
            self._assemblers[depth] = assembler(self._recipes, depth, None)
        result = self._assemblers[depth].assemble(query_cues={"topic": question}, agent_id=conversation)
        return [self._turns[record.memory_id] for record in result.records]

    def close(self) -> None:
        disconnect()


def disconnect() -> None:
    client = import_module("popoto.redis_db").get_REDIS_DB()
    client.close()
    client.connection_pool.disconnect()
