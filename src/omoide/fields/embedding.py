"""The vector of what a memory means, beside the record in the store; what is embedded is "author: text".

    class Note(DefaultMemory):
        meaning = EmbeddingField(source="content", provider=FastEmbedProvider())

A provider is called with texts and returns a vector for each:

    provider(texts: list[str]) -> array [n, dimensions], or something that is awaited for one

It may have a `name`, which says what its vectors are: those of one name are comparable. What came of another
name is never compared with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from omoide.errors import ModelError
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.field import Field, is_number, names_of
from omoide.model.instance import Instance, spec_of
from omoide.model.schema import EmbeddingIndex, Provider
from omoide.settings import MOST_SECONDS

_LONGEST_NAME = 200


class EmbeddingField(Field[str]):
    """The meaning of one or more text fields; on an instance, the text that is embedded.

    Args:
        source: A text field, or several whose texts are joined in this order.
        provider: Makes vectors of texts; see above, and `omoide.providers` for three.
        name: What its vectors are called, in place of the provider's own `name` (or, of a function, of where
            it is defined). Vectors of another name have to be made anew: `omoide embed`.
        timeout: Most seconds for embedding a query. A deadline of the call leaves it half of what remains.
        least: Cosine below which a memory gets nothing for its meaning. The default, -1, lets all through.

    With one, `mode="auto"` recalls hybrid. A memory whose provider fails is stored without a vector, and its
    outcome says so; `omoide embed --missing` makes up for it. Text that did not change is not embedded again.
    At most 8,000 characters of a memory are embedded.
    """

    stored: ClassVar[bool] = False
    role: ClassVar[str] = "embedding"

    def __init__(
        self,
        *,
        source: str | tuple[str, ...],
        provider: Provider,
        name: str | None = None,
        timeout: float = 5.0,
        least: float = -1.0,
    ) -> None:
        super().__init__(default="")
        if not callable(provider):
            raise ModelError("EmbeddingField needs a provider that can be called with a list of texts")
        if not is_number(timeout) or not 0 < timeout <= MOST_SECONDS:
            raise ModelError(f"EmbeddingField needs a timeout above 0, at most {MOST_SECONDS:,} seconds")
        if not is_number(least) or not -1 <= least <= 1:
            raise ModelError("EmbeddingField needs least within -1..1")
        self.source = names_of("source of an EmbeddingField", source)
        self.provider, self.timeout, self.least = provider, float(timeout), float(least)
        self.provider_name = name or name_of(provider)

    def __set__(self, instance: object, value: str) -> None:
        raise self.error(type(instance).__name__, f"is derived from {' and '.join(self.source)}")

    def absent(self, instance: Instance) -> str:
        index = spec_of(type(instance)).embedding
        return "" if index is None else index.passage(self._values(instance))

    def settle(self, model: str, fields: Mapping[str, Field[Any]], partition: tuple[str, ...]) -> None:
        if not self.source:
            raise ModelError(f"{model}.{self.name}: source names no field")
        for name in self.source:
            if name not in fields or not fields[name].textual:
                raise ModelError(f"{model}.{self.name}: source must name a text field, {name!r} is none")
        if not 0 < len(self.provider_name) <= _LONGEST_NAME:
            raise ModelError(
                f"{model}.{self.name}: the name of a provider has 1 to {_LONGEST_NAME} characters"
            )

    def describe(self, model: str, defaults: Defaults) -> EmbeddingIndex:
        return EmbeddingIndex(
            self.name, self.source, self.provider, self.provider_name, None, self.timeout, self.least
        )

    def entries(self, draft: Draft, instance: Instance) -> None:
        draft.passage = self.absent(instance)

    def _values(self, instance: Instance) -> dict[str, Any]:
        author = spec_of(type(instance)).author
        names = self.source if author is None else (author, *self.source)
        return {name: getattr(instance, name, None) for name in names}


def name_of(provider: Provider) -> str:
    """The name a provider gives itself, else where its code is defined."""
    given = getattr(provider, "name", None)
    if isinstance(given, str) and given:
        return given
    code = provider if hasattr(provider, "__qualname__") else type(provider)
    return f"{code.__module__}.{code.__qualname__}"


__all__ = ["EmbeddingField"]
