"""A field: one attribute of a model, typed at the class and at the instance.

    Memory.content      the Field itself
    memory.content      a value of type V

A field checks a value, converts it to and from its stored form, and adds its own index entries to
a write. A loaded instance converts a stored value when it is first read: a value that no longer
fits its field breaks that attribute only, and is written back as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from enum import Enum
from sys import float_info
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from omoide.errors import CorruptRecordError, FieldError, ModelError
from omoide.types import Milliseconds, Stored

if TYPE_CHECKING:
    from omoide.model.defaults import Defaults
    from omoide.model.draft import Draft
    from omoide.model.instance import Instance

V = TypeVar("V")


class Unset(Enum):
    """Marks a default that was not given."""

    UNSET = "unset"


UNSET = Unset.UNSET


def names_of(what: str, value: object) -> tuple[str, ...]:
    """Names of fields that an option of a field takes: one, or several.

    Raises:
        ModelError: anything else; `what` says of which option.
    """
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{what} is the name of a field, or a tuple of them")
    return tuple(names)


def is_number(value: object) -> bool:
    """Whether an option is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


class Field(Generic[V]):
    """One attribute of a model.

    Args:
        default: Value of an instance that is given none; lists, sets and dicts are copied.
        default_factory: Makes that value instead.
        null: None is a value (and, without another, the default).
        index: The field can be filtered by equality.

    Without `default`, `default_factory` and `null` a value is required.
    """

    stored: ClassVar[bool] = True
    """Its value is part of the record."""
    scanned: ClassVar[bool] = False
    """It may hold words of a person, so the firewall reads it."""
    role: ClassVar[str] = ""
    """What at most one field of a model does: `id`, `text`, `decay`, `certainty`, `validity`, `graph`,
    `embedding`.
    """
    numeric: ClassVar[bool] = False
    """Its values are finite numbers."""
    textual: ClassVar[bool] = False
    """Its values are text."""
    timed: ClassVar[bool] = False
    """Its values are instants."""
    raw_types: ClassVar[tuple[type, ...]] = ()
    """Types its stored form may have; empty for any."""

    def __init__(
        self,
        *,
        default: Any = UNSET,
        default_factory: Callable[[], Any] | None = None,
        null: bool = False,
        index: bool = False,
    ) -> None:
        if default is not UNSET and default_factory is not None:
            raise ModelError("a field takes default or default_factory, not both")
        self.name = ""
        self.null = null
        self.index = index
        self.default: Any = None if default is UNSET and null else default
        self.default_factory = default_factory

    # ---- the descriptor ----------------------------------------------------------------------

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> V: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | V:
        if instance is None:
            return self
        try:
            value: V = instance.__dict__[self.name]
        except KeyError:
            return self.absent(instance)  # type: ignore[arg-type]
        return value

    def __set__(self, instance: object, value: V) -> None:
        instance.__dict__[self.name] = None if value is None else self.coerce(value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or 'unnamed'}>"

    # ---- values ------------------------------------------------------------------------------

    @property
    def required(self) -> bool:
        """An instance must be given a value."""
        return self.default is UNSET and self.default_factory is None

    def initial(self) -> V:
        """A fresh default."""
        if self.default_factory is not None:
            made: V = self.coerce(self.default_factory())
            return made
        value: V = self.default
        return copy.deepcopy(value) if isinstance(value, list | dict | set) else value

    def prime(self, instance: Instance) -> None:
        """Give a new instance its default."""
        if self.stored and not self.required:
            instance.__dict__[self.name] = self.initial()

    def absent(self, instance: Instance) -> V:
        """The value of an instance that holds none yet: converted from what was loaded, or default."""
        raw = instance._omoide.raw.get(self.name)
        if raw is None and self.null:
            value: Any = None
        elif raw is not None:
            value = self.convert(raw, instance)
        elif self.required:
            raise AttributeError(f"{type(instance).__name__}.{self.name} has no value yet")
        else:
            value = self.initial()
        instance.__dict__[self.name] = value
        result: V = value
        return result

    def convert(self, raw: Stored, instance: Instance) -> V:
        """A value from a stored form that may be anything."""
        model = type(instance).__name__
        if self.raw_types and type(raw) not in self.raw_types:
            raise CorruptRecordError(f"{model}.{self.name}: the stored form is not what this field writes")
        try:
            value: V = self.from_stored(raw)
        except (ValueError, TypeError, LookupError, ArithmeticError):
            raise CorruptRecordError(
                f"{model}.{self.name}: the stored form is not what this field writes"
            ) from None
        return value

    def coerce(self, value: Any) -> Any:
        """Settle equal spellings of a value when it is assigned; anything else is left for `check`."""
        return value

    def verify(self, value: Any, model: str) -> None:
        """Raise FieldError unless the value may be stored."""
        if value is None:
            if not self.null:
                raise self.error(model, "a value is required")
            return
        self.check(value, model)

    def check(self, value: Any, model: str) -> None:
        """Raise FieldError unless the value, not None, keeps the rules of the field."""

    def error(self, model: str, rule: str) -> FieldError:
        """A FieldError about this field."""
        return FieldError(model, self.name, rule)

    def to_stored(self, value: Any) -> Stored:
        """Stored form of a checked value, not None."""
        return value

    def from_stored(self, raw: Stored) -> Any:
        """A value from its stored form, not None."""
        return raw

    def to_exact(self, value: Any) -> str:
        """Canonical text of a value: equal values, and only those, have equal texts."""
        return str(value)

    # ---- the model -----------------------------------------------------------------------------

    @property
    def is_exact(self) -> bool:
        """The field can be filtered by equality."""
        return self.index

    def adapted(self, defaults: Defaults) -> Self:
        """The field as a model with these defaults uses it: itself, or a copy that took them over."""
        return self

    def settle(self, model: str, fields: Mapping[str, Field[Any]], partition: tuple[str, ...]) -> None:
        """Check the field against its model, when a class is defined; ModelError when it cannot work."""

    def describe(self, model: str, defaults: Defaults) -> Any:
        """The schema entry of a field with a role that has one (`TextIndex`, `DecayIndex`, `Certainty`)."""
        return None

    def entries(self, draft: Draft, instance: Instance) -> None:
        """Add what the field indexes, beyond equality, to a write."""

    def exact_texts(self, value: Any) -> tuple[str, ...]:
        """Texts under which the equality index files a value."""
        return (self.to_exact(value),)

    def instant_ms(self, value: Any) -> Milliseconds | None:
        """The instant a value stands for; None when it is not one."""
        return None
