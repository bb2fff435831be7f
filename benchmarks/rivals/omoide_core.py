"""omoide with every arm but the words of the query switched off: what BM25 alone gives."""

from __future__ import annotations

from typing import Any

from benchmarks.rivals.omoide import OmoideRanker, memory_model


def ranker() -> OmoideCoreRanker:
    memory_model()
    return OmoideCoreRanker()


class OmoideCoreRanker(OmoideRanker):
    def ranking(self) -> Any:
        from omoide import RankWeights

        return RankWeights(
            near=0, far=0, answer=0, asking=1, author=1, date=0, cue=1, importance=0, confidence=0
        )
