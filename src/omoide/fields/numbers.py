"""Numbers: whole, floating, decimal, and truth values. NaN and infinities are refused everywhere."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import Any, ClassVar, Literal, TypeVar, overload

from omoide.model.field import UNSET, Field
from omoide.types import Stored

V = TypeVar("V")

_INT_BOUND = 2**63
_EXACT_FLOAT = 2**53
_DECIMAL_BYTES = 256


class IntField(Field[V]):
    """A whole number of 64 bits."""

    numeric: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (int,)

    @overload
    def __init__(
        self: IntField[int],
        *,
        default: int = ...,
        default_factory: Callable[[], int] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: IntField[int | None],
        *,
        default: int | None = ...,
        default_factory: Callable[[], int | None] | None = ...,
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
        return int(value) if isinstance(value, int) and type(value) not in (int, bool) else value

    def check(self, value: Any, model: str) -> None:
        if type(value) is not int:
            raise self.error(model, "must be a whole number")
        if not -_INT_BOUND <= value < _INT_BOUND:
            raise self.error(model, "must fit in 64 bits")


class FloatField(Field[V]):
    """A finite float; a whole number that a float holds exactly is taken as one."""

    numeric: ClassVar[bool] = True
    raw_types: ClassVar[tuple[type, ...]] = (float, int)

    @overload
    def __init__(
        self: FloatField[float],
        *,
        default: float = ...,
        default_factory: Callable[[], float] | None = ...,
        null: Literal[False] = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: FloatField[float | None],
        *,
        default: float | None = ...,
        default_factory: Callable[[], float | None] | None = ...,
        null: Literal[True],
    ) -> None: ...
    def __init__(
        self, *, default: Any = UNSET, default_factory: Callable[[], Any] | None = None, null: bool = False
    ) -> None:
        super().__init__(default=default, default_factory=default_factory, null=null)
        if type(self.default) is int:
            self.default = float(self.default)

    def coerce(self, value: Any) -> Any:
        exact = type(value) is int and abs(value) <= _EXACT_FLOAT
        return float(value) if exact or isinstance(value, float) else value

    def check(self, value: Any, model: str) -> None:
        if type(value) is not float:
            raise self.error(model, "must be a float")
        if not isfinite(value):
            raise self.error(model, "must be finite")

    def from_stored(self, raw: Stored) -> Any:
        return float(raw)

    def to_exact(self, value: Any) -> str:
        return repr(value if value else 0.0)


class DecimalField(Field[V]):
    """A finite `decimal.Decimal`, exact, exponent and sign of zero included."""

    raw_types: ClassVar[tuple[type, ...]] = (str,)

    @overload
    def __init__(
        self: DecimalField[Decimal],
        *,
        default: Decimal = ...,
        default_factory: Callable[[], Decimal] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: DecimalField[Decimal | None],
        *,
        default: Decimal | None = ...,
        default_factory: Callable[[], Decimal | None] | None = ...,
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
        if type(value) is not Decimal:
            raise self.error(model, "must be a decimal.Decimal")
        if not value.is_finite():
            raise self.error(model, "must be finite")
        if len(str(value)) > _DECIMAL_BYTES:
            raise self.error(model, f"must be at most {_DECIMAL_BYTES} characters long")

    def to_stored(self, value: Any) -> Stored:
        return str(value)

    def from_stored(self, raw: Stored) -> Any:
        return Decimal(raw)

    def to_exact(self, value: Any) -> str:
        sign, digits, exponent = value.as_tuple()
        text = "".join(map(str, digits)).lstrip("0")
        kept = text.rstrip("0")
        if not kept:
            return "0"
        return f"{'-' if sign else ''}{kept}e{int(exponent) + len(text) - len(kept)}"


class BoolField(Field[V]):
    """True or False."""

    raw_types: ClassVar[tuple[type, ...]] = (bool,)

    @overload
    def __init__(
        self: BoolField[bool],
        *,
        default: bool = ...,
        default_factory: Callable[[], bool] | None = ...,
        null: Literal[False] = ...,
        index: bool = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: BoolField[bool | None],
        *,
        default: bool | None = ...,
        default_factory: Callable[[], bool | None] | None = ...,
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
        if type(value) is not bool:
            raise self.error(model, "must be True or False")

    def to_exact(self, value: Any) -> str:
        return "true" if value else "false"
