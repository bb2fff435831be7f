"""The text index of a model: which fields feed it, how they become terms, how terms are weighed.

    w(term, memory) = (k1 + 1) tf / (tf + k1 ((1 - b) + b max(length, pivot) / pivot))

The pivot is absolute: nothing depends on the average length, so nothing drifts as a partition grows.
Constants apply when a query runs; changing them leaves what is stored valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from omoide.core.arms.weights import DEFAULT_WEIGHTS, RankWeights
from omoide.errors import ModelError
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.field import Field, is_number, names_of
from omoide.model.instance import Instance, spec_of
from omoide.model.schema import TextIndex

if TYPE_CHECKING:
    from omoide.core.text import Analyzer


class BM25Field(Field[str]):
    """Full text search over one or more text fields; on an instance, the text that is indexed.

    Args:
        source: A text field, or several whose texts are joined in this order.
        session, author, time: Fields that say which conversation a memory belongs to, who said it
            and when. Default: `session_id`, `author`, and `occurred_at` or `created_at`, where the
            model has them.
        language, stop_words, stem: Options of the analyzer (`omoide.core.text.Analyzer`).
        k1, b, pivot: Constants of the weight; `pivot=None` normalises by the live average length.
        ranking: What each arm of the ranking adds (`omoide.core.arms.RankWeights`).

    At most `Defaults.text_terms` (2,048) distinct terms of a memory are indexed; an outcome says how
    many were left out. The author's name is indexed as more terms of the memory, and filed whole and by its
    first word, so that a query that names the author is told from one that says the word.
    """

    stored: ClassVar[bool] = False
    role: ClassVar[str] = "text"

    def __init__(
        self,
        *,
        source: str | tuple[str, ...],
        session: str | None = None,
        author: str | None = None,
        time: str | None = None,
        language: str = "english",
        stop_words: frozenset[str] | None = None,
        stem: bool = True,
        k1: float = 1.2,
        b: float = 0.9,
        pivot: int | None = 32,
        ranking: RankWeights = DEFAULT_WEIGHTS,
    ) -> None:
        super().__init__(default="")
        numbers = (k1, b) if pivot is None else (k1, b, pivot)
        if not all(map(is_number, numbers)) or not (
            0.0 <= k1 <= 100.0 and 0.0 <= b <= 1.0 and (pivot is None or pivot >= 1)
        ):
            raise ModelError("BM25Field needs 0 <= k1 <= 100, 0 <= b <= 1, and pivot None or at least 1")
        self.source = names_of("source of a BM25Field", source)
        self.session, self.author, self.time = session, author, time
        self.language, self.stop_words, self.stem = language, stop_words, stem
        self.k1, self.b, self.pivot = k1, b, pivot
        if not isinstance(ranking, RankWeights):
            raise ModelError(f"BM25Field: ranking is a RankWeights, not {type(ranking).__name__}")
        self.ranking = ranking

    def __set__(self, instance: object, value: str) -> None:
        raise self.error(type(instance).__name__, f"is derived from {' and '.join(self.source)}")

    def absent(self, instance: Instance) -> str:
        texts = (getattr(instance, name, None) for name in self.source)
        return "\n".join(text for text in texts if text)

    def settle(self, model: str, fields: Mapping[str, Field[Any]], partition: tuple[str, ...]) -> None:
        if not self.source:
            raise ModelError(f"{model}.{self.name}: source names no field")
        for role, names in (
            ("source", self.source),
            ("session", (self.session,)),
            ("author", (self.author,)),
        ):
            for name in names:
                if name is not None and (name not in fields or not fields[name].textual):
                    raise ModelError(f"{model}.{self.name}: {role} must name a text field, {name!r} is none")
        if self.time is not None and (self.time not in fields or not fields[self.time].timed):
            raise ModelError(f"{model}.{self.name}: time must name a DatetimeField, {self.time!r} is none")

    def describe(self, model: str, defaults: Defaults) -> TextIndex:
        return TextIndex(
            self.name, self.source, self._analyzer(model), self.k1, self.b, self.pivot, self.ranking
        )

    def entries(self, draft: Draft, instance: Instance) -> None:
        from omoide.core.arms import authors
        from omoide.core.arms.questions import asks, mostly_asks
        from omoide.core.text.cues import cues_of

        spec = spec_of(type(instance))
        if spec.text is None:
            return
        text = self.absent(instance)
        analyzer = spec.text.analyzer
        named = analyzer.terms(draft.author) if draft.author else []
        limit = type(instance).__omoide_defaults__.text_terms
        counts = analyzer.count(text, max(0, limit - len(set(named))))
        draft.terms = dict(counts.tf)
        for term in named:
            draft.terms[term] = draft.terms.get(term, 0) + 1
        draft.length = counts.length
        draft.left_out = counts.left_out
        draft.cues = cues_of(text)
        draft.asks = asks(text)
        draft.asking = mostly_asks(text)
        if draft.author:
            draft.exact += ((authors.FIELD, name) for name in authors.called(draft.author))

    def _analyzer(self, model: str) -> Analyzer:
        from omoide.core.text import Analyzer, default_analyzer

        if (self.language, self.stop_words, self.stem) == ("english", None, True):
            return default_analyzer()
        try:
            return Analyzer(language=self.language, stop_words=self.stop_words, stem=self.stem)
        except ValueError as error:
            raise ModelError(f"{model}.{self.name}: {error}") from None
