"""omoide with an `EmbeddingField`: the same calls as `omoide`, and all-MiniLM-L6-v2 (int8) as provider."""

from __future__ import annotations

from typing import Any

from benchmarks.rivals.omoide import OmoideRanker
from benchmarks.rivals.system import MissingSystemError

_models: list[Any] = []


def ranker() -> OmoideHybridRanker:
    memory_model()
    return OmoideHybridRanker()


def memory_model() -> Any:
    """DefaultMemory without a cap and with vectors. Defined once: a name is one keyspace.

    Raises:
        MissingSystemError: the wheels of the encoder are not installed.
    """
    if not _models:
        from benchmarks.minilm import provider
        from omoide import EmbeddingField
        from omoide.recipes import DefaultMemory

        try:
            encoder = provider()
        except LookupError as error:
            raise MissingSystemError(f"omoide-hybrid: {error}") from error

        class BenchHybridMemory(DefaultMemory):
            max_records_per_partition = 0
            meaning = EmbeddingField(source="content", provider=encoder)

        _models.append(BenchHybridMemory)
    return _models[0]


class OmoideHybridRanker(OmoideRanker):
    model = staticmethod(memory_model)
