"""Lists and dicts of JSON values.

Inside them: None, bool, whole numbers of 64 bits, finite floats, strings, lists, and dicts with string
keys; nothing that would come back as another type. Nested at most 32 deep.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any, ClassVar, Literal, Self, TypeVar, overload

from omoide.fields.values import bounded, byte_bound, text_size
from omoide.model.defaults import DEFAULTS, Defaults
from omoide.model.field import UNSET, Field
from omoide.types import Stored

V = TypeVar("V")

DEEPEST = 32
_NUMBER_BYTES = 9
_DEEPEST_COPIED = 4 * DEEPEST


class _Document(Field[V]):
    """A JSON value of one outer type, at most `max_bytes` (strings in UTF-8, 9 for any other item)."""

    scanned: ClassVar[bool] = True
    outer: ClassVar[type] = object

    def __init__(
        self,
        *,
        default: Any = UNSET,
        default_factory: Callable[[], Any] | None = None,
        null: bool = False,
        max_bytes: int | None = None,
    ) -> None:
        super().__init__(default=default, default_factory=default_factory, null=null)
        self.max_bytes = byte_bound(max_bytes)

    def adapted(self, defaults: Defaults) -> Self:
        return bounded(self, self.max_bytes, defaults)

    def check(self, value: Any, model: str) -> None:
        if type(value) is not self.outer:
            raise self.error(model, f"must be a {self.outer.__name__}")
        rule = broken_rule(value, self.max_bytes or DEFAULTS.string_bytes)
        if rule is not None:
            raise self.error(model, rule)

    def to_stored(self, value: Any) -> Stored:
        return _copied(value)

    def from_stored(self, raw: Stored) -> Any:
        return _copied(raw)

    def to_exact(self, value: Any) -> str:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class ListField(_Document[V]):
    """A list of JSON values, at most `max_bytes` (strings in UTF-8, 9 for any other item)."""

    outer: ClassVar[type] = list
    raw_types: ClassVar[tuple[type, ...]] = (list,)

    @overload
    def __init__(
        self: ListField[list[Any]],
        *,
        default: list[Any] = ...,
        default_factory: Callable[[], list[Any]] | None = ...,
        null: Literal[False] = ...,
        max_bytes: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ListField[list[Any] | None],
        *,
        default: list[Any] | None = ...,
        default_factory: Callable[[], list[Any] | None] | None = ...,
        null: Literal[True],
        max_bytes: int = ...,
    ) -> None: ...
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


class DictField(_Document[V]):
    """A dict of JSON values with string keys; `max_bytes` counts as in ListField."""

    outer: ClassVar[type] = dict
    raw_types: ClassVar[tuple[type, ...]] = (dict,)

    @overload
    def __init__(
        self: DictField[dict[str, Any]],
        *,
        default: dict[str, Any] = ...,
        default_factory: Callable[[], dict[str, Any]] | None = ...,
        null: Literal[False] = ...,
        max_bytes: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: DictField[dict[str, Any] | None],
        *,
        default: dict[str, Any] | None = ...,
        default_factory: Callable[[], dict[str, Any] | None] | None = ...,
        null: Literal[True],
        max_bytes: int = ...,
    ) -> None: ...
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)


def broken_rule(value: object, max_bytes: int) -> str | None:
    """The rule a nested value breaks, or None. Cost: linear, and stops once `max_bytes` is passed."""
    size = 0
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        kind = type(item)
        if kind is dict or kind is list:
            if depth > DEEPEST:
                return f"must be nested at most {DEEPEST} deep"
            waiting.extend((part, depth + 1) for part in _parts(item))
            size += 1
        elif kind is str:
            length = text_size(str(item))
            if length < 0:
                return "must not hold a lone surrogate"
            size += length
        elif kind is float or kind is int:
            rule = _number_rule(item)
            if rule is not None:
                return rule
            size += _NUMBER_BYTES
        elif item is None or kind is bool:
            size += _NUMBER_BYTES
        elif kind is _BadKey:
            return "keys must be strings"
        else:
            return "must hold only None, bool, int, float, str, list and dict"
        if size > max_bytes:
            return f"must be at most {max_bytes} bytes"
    return None


def _copied(value: Any, depth: int = 1) -> Any:
    """A value that changing the other in place does not change.

    Raises:
        ValueError: nested deeper than anything a field writes.
    """
    if depth > _DEEPEST_COPIED:
        raise ValueError("nested too deep")
    if isinstance(value, dict):
        return {key: _copied(part, depth + 1) for key, part in value.items()}
    return [_copied(part, depth + 1) for part in value] if isinstance(value, list) else value


class _BadKey:
    """Stands for a key that is not a string."""


def _parts(item: object) -> list[object]:
    if isinstance(item, dict):
        keys: list[object] = [part if type(part) is str else _BadKey() for part in item]
        return keys + list(item.values())
    return list(item) if isinstance(item, list) else []


def _number_rule(item: object) -> str | None:
    if isinstance(item, float):
        return None if isfinite(item) else "numbers must be finite"
    return None if isinstance(item, int) and -(2**63) <= item < 2**63 else "whole numbers must fit in 64 bits"
