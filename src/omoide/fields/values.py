"""Text, bytes, UUIDs and members of an Enum."""

from __future__ import annotations

import copy
from collections.abc import Callable
from enum import Enum, Flag
from typing import Any, ClassVar, Literal, Self, TypeVar, overload
from uuid import UUID

from omoide.errors import ModelError
from omoide.model.defaults import DEFAULTS, Defaults
from omoide.model.field import UNSET, Field
from omoide.types import Stored

V = TypeVar("V")
E = TypeVar("E", bound=Enum)
F = TypeVar("F", bound=Field[Any])

LARGEST_BYTES = 1_048_576
"""Bound of every `max_bytes`: 1 MiB."""


def byte_bound(value: int | None) -> int | None:
    """A `max_bytes` argument, checked; None takes `Defaults.string_bytes` of the model.

    Raises:
        ModelError: it is not 1..1,048,576.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LARGEST_BYTES:
        raise ModelError(f"max_bytes must be a whole number from 1 to {LARGEST_BYTES}")
    return value


def bounded(field: F, max_bytes: int | None, defaults: Defaults) -> F:
    """The field itself when it states its bound, else a copy with the bound of the model."""
    if max_bytes is not None:
        return field
    adapted = copy.copy(field)
    vars(adapted)["max_bytes"] = defaults.string_bytes
    return adapted


def text_size(text: str) -> int:
    """Bytes of the text in UTF-8, -1 when it holds a lone surrogate."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return -1


class StringField(Field[V]):
    """Text of at most `max_bytes` bytes of UTF-8 (default 65,536, at most 1 MiB).

    Every character is stored unchanged; a lone surrogate is refused. `index=True` makes values of
    up to 512 bytes filterable by equality.
    """

    scanned: ClassVar[bool] = True
    textual: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (str,)

    @overload
    def __init__(
        self: StringField[str],
        *,
        default: str = ...,
        default_factory: Callable[[], str] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
        max_bytes: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: StringField[str | None],
        *,
        default: str | None = ...,
        default_factory: Callable[[], str | None] | None = ...,
        null: Literal[True],
        index: bool = ...,
        max_bytes: int = ...,
    ) -> None: ...
    def __init__(
        self,
        *,
        default: Any = UNSET,
        default_factory: Callable[[], Any] | None = None,
        null: bool = False,
        index: bool = False,
        max_bytes: int | None = None,
    ) -> None:
        super().__init__(default=default, default_factory=default_factory, null=null, index=index)
        self.max_bytes = byte_bound(max_bytes)

    def adapted(self, defaults: Defaults) -> Self:
        return bounded(self, self.max_bytes, defaults)

    def coerce(self, value: Any) -> Any:
        return str.__str__(value) if isinstance(value, str) else value

    def check(self, value: Any, model: str) -> None:
        if type(value) is not str:
            raise self.error(model, "must be a string")
        size = text_size(value)
        if size < 0:
            raise self.error(model, "must not hold a lone surrogate")
        if size > (self.max_bytes or DEFAULTS.string_bytes):
            raise self.error(
                model, f"must be at most {self.max_bytes or DEFAULTS.string_bytes} bytes of UTF-8"
            )


class BytesField(Field[V]):
    """Bytes, at most `max_bytes` of them (default 65,536, at most 1 MiB)."""

    scanned: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (bytes,)

    @overload
    def __init__(
        self: BytesField[bytes],
        *,
        default: bytes = ...,
        default_factory: Callable[[], bytes] | None = ...,
        null: Literal[False] = ...,
        max_bytes: int = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: BytesField[bytes | None],
        *,
        default: bytes | None = ...,
        default_factory: Callable[[], bytes | None] | None = ...,
        null: Literal[True],
        max_bytes: int = ...,
    ) -> None: ...
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

    def coerce(self, value: Any) -> Any:
        return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else value

    def check(self, value: Any, model: str) -> None:
        if type(value) is not bytes:
            raise self.error(model, "must be bytes")
        if len(value) > (self.max_bytes or DEFAULTS.string_bytes):
            raise self.error(model, f"must be at most {self.max_bytes or DEFAULTS.string_bytes} bytes")

    def to_exact(self, value: Any) -> str:
        return str(value.hex())


class UUIDField(Field[V]):
    """A `uuid.UUID`."""

    raw_types: ClassVar[tuple[type, ...]] = (bytes,)

    @overload
    def __init__(
        self: UUIDField[UUID],
        *,
        default: UUID = ...,
        default_factory: Callable[[], UUID] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: UUIDField[UUID | None],
        *,
        default: UUID | None = ...,
        default_factory: Callable[[], UUID | None] | None = ...,
        null: Literal[True],
        index: bool = ...,
    ) -> None: ...
    def __init__(
        self,
        *,
        default: Any = UNSET,
        default_factory: Callable[[], Any] | None = None,
        null: bool = False,
        index: bool = False,
    ) -> None:
        super().__init__(default=default, default_factory=default_factory, null=null, index=index)

    def check(self, value: Any, model: str) -> None:
        if type(value) is not UUID:
            raise self.error(model, "must be a uuid.UUID")

    def to_stored(self, value: Any) -> Stored:
        return value.bytes

    def from_stored(self, raw: Stored) -> Any:
        return UUID(bytes=raw)


class EnumField(Field[V]):
    """A member of an Enum, stored by its name (a Flag by its number)."""

    raw_types: ClassVar[tuple[type, ...]] = (str, int)

    @overload
    def __init__(
        self: EnumField[E],
        members: type[E],
        /,
        *,
        default: E = ...,
        default_factory: Callable[[], E] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: EnumField[E | None],
        members: type[E],
        /,
        *,
        default: E | None = ...,
        default_factory: Callable[[], E | None] | None = ...,
        null: Literal[True],
        index: bool = ...,
    ) -> None: ...
    def __init__(
        self,
        members: Any,
        /,
        *,
        default: Any = UNSET,
        default_factory: Callable[[], Any] | None = None,
        null: bool = False,
        index: bool = False,
    ) -> None:
        if not (isinstance(members, type) and issubclass(members, Enum)):
            raise ModelError("EnumField needs an Enum class")
        super().__init__(default=default, default_factory=default_factory, null=null, index=index)
        self.members: type[Enum] = members

    def check(self, value: Any, model: str) -> None:
        if not isinstance(value, self.members):
            raise self.error(model, f"must be a member of {self.members.__name__}")

    def to_stored(self, value: Any) -> Stored:
        return value.value if isinstance(value, Flag) else value.name

    def from_stored(self, raw: Stored) -> Any:
        return self.members(raw) if issubclass(self.members, Flag) else self.members[raw]

    def to_exact(self, value: Any) -> str:
        return str(self.to_stored(value))
