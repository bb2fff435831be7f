"""Keys: the id of a record and the partition it lives in, both plain text."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Literal, TypeVar, overload
from uuid import UUID

from omoide.model.field import UNSET, Field
from omoide.model.instance import Instance, State
from omoide.model.partition import ID_BYTES, PARTITION_BYTES, key_rule

V = TypeVar("V")


def _text(value: Any) -> Any:
    """Text of a key: whole numbers, UUIDs and members of an Enum with such values become text."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, UUID) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    return value


class AutoKeyField(Field[str]):
    """The id of a record: a time-ordered UUIDv7, or the caller's own non-empty text of <= 128 bytes.

    It cannot change once the record is stored.
    """

    role: ClassVar[str] = "id"
    scanned: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (str,)

    def __init__(self) -> None:
        super().__init__()

    def prime(self, instance: Instance) -> None:
        from uuid_utils import uuid7

        instance.__dict__[self.name] = str(uuid7())
        instance._omoide.generated_id = instance._omoide.fresh_id = True

    def __set__(self, instance: object, value: str) -> None:
        _set_key(self, instance, value)
        state: State = instance._omoide  # type: ignore[attr-defined]
        state.generated_id = state.fresh_id = False

    def coerce(self, value: Any) -> Any:
        return _text(value)

    def check(self, value: str, model: str) -> None:
        rule = key_rule(value, ID_BYTES)
        if rule is not None:
            raise self.error(model, rule)


class KeyField(Field[V]):
    """A key: the partition of a record, or one more indexed value when `Meta.partition_by` names others.

    Text of 1..512 bytes in any script; whole numbers and UUIDs become text. A partition cannot
    change once the record is stored.
    """

    role: ClassVar[str] = "key"
    textual: ClassVar[bool] = True
    scanned: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (str,)

    @overload
    def __init__(
        self: KeyField[str],
        *,
        default: str = ...,
        default_factory: Callable[[], str] | None = ...,
        null: Literal[False] = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: KeyField[str | None],
        *,
        default: str | None = ...,
        default_factory: Callable[[], str | None] | None = ...,
        null: Literal[True],
    ) -> None: ...
    def __init__(
        self, *, default: Any = UNSET, default_factory: Callable[[], Any] | None = None, null: bool = False
    ) -> None:
        super().__init__(default=default, default_factory=default_factory, null=null, index=True)

    def __set__(self, instance: object, value: V) -> None:
        _set_key(self, instance, value)

    def coerce(self, value: Any) -> Any:
        return _text(value)

    def check(self, value: Any, model: str) -> None:
        rule = key_rule(value, PARTITION_BYTES)
        if rule is not None:
            raise self.error(model, rule)


def _set_key(key: Field[Any], instance: Any, value: Any) -> None:
    """Assign a key, unless that would move a stored record."""
    text = None if value is None else key.coerce(value)
    spec = type(instance).__omoide_spec__
    if instance._omoide.stored and key.name in (spec.id_field, *spec.partition_by):
        if text == key.__get__(instance):
            return
        raise key.error(spec.name, "cannot change once the record is stored")
    instance.__dict__[key.name] = text
