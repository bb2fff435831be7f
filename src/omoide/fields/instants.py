"""Instants and days.

An instant is aware and is kept in UTC, to the microsecond: a naive datetime names no instant and is
refused. A day has no time zone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Literal, TypeVar, overload

from omoide.model.field import UNSET, Field
from omoide.types import Milliseconds, Stored

V = TypeVar("V")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(instant: datetime) -> int:
    """Microseconds since the epoch of an aware datetime, exact."""
    return (instant - _EPOCH) // _MICROSECOND


def to_milliseconds(instant: datetime) -> Milliseconds:
    """Milliseconds since the epoch of an aware datetime, rounded down."""
    return to_microseconds(instant) // 1_000


def from_milliseconds(instant: Milliseconds) -> datetime:
    """An instant in UTC."""
    return _EPOCH + timedelta(milliseconds=instant)


class DatetimeField(Field[V]):
    """An aware datetime; it is the same instant in UTC from the moment it is assigned."""

    timed: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (int,)

    @overload
    def __init__(
        self: DatetimeField[datetime],
        *,
        default: datetime = ...,
        default_factory: Callable[[], datetime] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: DatetimeField[datetime | None],
        *,
        default: datetime | None = ...,
        default_factory: Callable[[], datetime | None] | None = ...,
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

    def coerce(self, value: Any) -> Any:
        if not isinstance(value, datetime) or value.utcoffset() is None:
            return value
        try:
            return _EPOCH + (value - _EPOCH)
        except OverflowError:
            return value

    def check(self, value: Any, model: str) -> None:
        if not isinstance(value, datetime):
            raise self.error(model, "must be a datetime")
        if value.utcoffset() is None:
            raise self.error(model, "must be aware: a naive datetime names no instant")
        if value.tzinfo is not UTC:
            raise self.error(model, "must be an instant of the years 1 to 9999 in UTC")

    def to_stored(self, value: Any) -> Stored:
        return to_microseconds(value)

    def from_stored(self, raw: Stored) -> Any:
        return _EPOCH + timedelta(microseconds=raw)

    def to_exact(self, value: Any) -> str:
        return str(self.to_stored(value))

    def instant_ms(self, value: Any) -> Milliseconds | None:
        return to_milliseconds(value)


class DateField(Field[V]):
    """A calendar day."""

    raw_types: ClassVar[tuple[type, ...]] = (str,)

    @overload
    def __init__(
        self: DateField[date],
        *,
        default: date = ...,
        default_factory: Callable[[], date] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: DateField[date | None],
        *,
        default: date | None = ...,
        default_factory: Callable[[], date | None] | None = ...,
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
        if type(value) is not date:
            raise self.error(model, "must be a date, not a datetime")

    def to_stored(self, value: Any) -> Stored:
        return value.isoformat()

    def from_stored(self, raw: Stored) -> Any:
        return date.fromisoformat(raw)

    def to_exact(self, value: Any) -> str:
        return str(self.to_stored(value))
