"""Tags: a set of short words, each filterable by equality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar, overload

from omoide.fields.values import text_size
from omoide.model.field import UNSET, Field
from omoide.types import Stored

V = TypeVar("V")

TAG_BYTES = 128
MOST_TAGS = 64


class TagField(Field[V]):
    """A set of at most 64 tags: non-empty strings of at most 128 bytes. Default: the empty set.

    `filter(tags="x")` finds records that carry `x`; with a set, those that carry all of it.
    """

    scanned: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (list,)

    @overload
    def __init__(
        self: TagField[set[str]],
        *,
        default: set[str] | frozenset[str] = ...,
        default_factory: Callable[[], set[str]] | None = ...,
        null: Literal[False] = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: TagField[set[str] | None],
        *,
        default: set[str] | frozenset[str] | None = ...,
        default_factory: Callable[[], set[str] | None] | None = ...,
        null: Literal[True],
    ) -> None: ...
    def __init__(
        self, *, default: Any = UNSET, default_factory: Callable[[], Any] | None = None, null: bool = False
    ) -> None:
        if default is UNSET and default_factory is None and not null:
            default_factory = set
        super().__init__(default=self.coerce(default), default_factory=default_factory, null=null, index=True)

    def coerce(self, value: Any) -> Any:
        return set(value) if isinstance(value, frozenset | list | tuple) and _hashable(value) else value

    def check(self, value: Any, model: str) -> None:
        if type(value) is not set:
            raise self.error(model, "must be a set of strings")
        if len(value) > MOST_TAGS:
            raise self.error(model, f"must hold at most {MOST_TAGS} tags")
        for tag in value:
            if type(tag) is not str:
                raise self.error(model, "must be a set of strings")
            if not 1 <= text_size(tag) <= TAG_BYTES:
                raise self.error(model, f"a tag is 1 to {TAG_BYTES} bytes of UTF-8, without lone surrogates")

    def to_stored(self, value: Any) -> Stored:
        return sorted(value)

    def from_stored(self, raw: Stored) -> Any:
        return set(raw)

    def to_exact(self, value: Any) -> str:
        """A whole set as one text, for uniqueness: each tag with its length, in order."""
        return "".join(f"{len(tag)}:{tag}" for tag in sorted(value))

    def exact_texts(self, value: Any) -> tuple[str, ...]:
        return tuple(sorted(value))


def _hashable(value: Any) -> bool:
    return all(isinstance(tag, str) for tag in value)
