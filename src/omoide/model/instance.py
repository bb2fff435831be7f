"""One record in memory: values by field name, and what the store said of it.

class ──__init_subclass__──▶ ModelSpec        (once, when a class is defined)
keywords ──__init__──▶ instance ──draft()──▶ Draft ──▶ a write
stored record ──from_record()──▶ instance     (values are converted when first read)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Any, ClassVar, Protocol, Self

from omoide.errors import FieldError, ModelError
from omoide.model import registry
from omoide.model.build import build_spec, gates_of
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.meta import read_options
from omoide.model.naming import unknown_field
from omoide.model.partition import scope_of_values
from omoide.model.schema import ModelSpec, Scope
from omoide.types import Milliseconds, Stored

EXACT_BYTES = 512
"""Longest value, in UTF-8 bytes, that an equality index holds."""

_FLOAT32_MAX = 3.4e38
_SINGLE = Struct("<f")


class StoredRecord(Protocol):
    """What a store tells of a record (`omoide.ops.request.Record`)."""

    @property
    def id(self) -> str: ...
    @property
    def values(self) -> dict[str, Any]: ...
    @property
    def version(self) -> int: ...
    @property
    def time_ms(self) -> Milliseconds: ...
    @property
    def importance(self) -> float: ...
    @property
    def confidence(self) -> float: ...
    @property
    def corroborations(self) -> int: ...
    @property
    def contradictions(self) -> int: ...
    @property
    def access_count(self) -> int: ...
    @property
    def accessed_ms(self) -> Milliseconds: ...
    @property
    def relevance(self) -> float | None: ...
    @property
    def expires_ms(self) -> Milliseconds: ...
    @property
    def valid_from_ms(self) -> Milliseconds | None: ...
    @property
    def valid_to_ms(self) -> Milliseconds | None: ...


@dataclass(slots=True)
class State:
    """What an instance knows of its stored record.

    `raw`: stored forms of all fields as last loaded or saved; an attribute that is set may differ from it.
    `extra`: stored values no field of this class names. `record` is None until the instance was loaded.
    `fresh_id`: its id was generated and no request has named it yet. `interval`: its validity as last told.
    """

    stored: bool = False
    version: int = 0
    raw: Mapping[str, Stored] = field(default_factory=dict)
    extra: dict[str, Stored] = field(default_factory=dict)
    record: StoredRecord | None = None
    confidence: float | None = None
    generated_id: bool = False
    fresh_id: bool = False
    interval: tuple[Milliseconds, Milliseconds | None] | None = None


class Instance:
    """Declarative base without I/O; `omoide.Model` adds the store."""

    __omoide_spec__: ClassVar[ModelSpec | None] = None
    __omoide_defaults__: ClassVar[Defaults] = Defaults()
    __omoide_gates__: ClassVar[tuple[Any, ...]] = ()
    max_records_per_partition: ClassVar[int | None] = None
    cap_is_default: ClassVar[bool] = False
    _omoide: State

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        meta = read_options(cls)
        cls.__omoide_defaults__ = meta.defaults
        cls.__omoide_gates__ = gates_of(cls)
        if meta.abstract:
            cls.__omoide_spec__ = None
            return
        spec = build_spec(cls, meta)
        registry.register(spec.name, cls)
        cls.__omoide_spec__ = spec

    def __init__(self, **values: Any) -> None:
        spec = spec_of(type(self))
        self.__dict__["_omoide"] = State()
        for name, attribute in spec.fields.items():
            if name in values:
                attribute.__set__(self, values.pop(name))
            else:
                attribute.prime(self)
        if values:
            raise unknown_field(spec.name, next(iter(values)), spec.fields)

    @classmethod
    def from_record(cls, record: StoredRecord) -> Self:
        """An instance of a stored record. Cost: no I/O; values are converted when first read."""
        instance = cls.__new__(cls)
        instance.__dict__["_omoide"] = loaded_state(spec_of(cls), record)
        return instance

    def absorb(self, record: StoredRecord) -> None:
        """Take over a stored record; values set on the instance are forgotten."""
        state = loaded_state(spec_of(type(self)), record)
        self.__dict__.clear()
        self.__dict__["_omoide"] = state

    def __copy__(self) -> Self:
        """An instance with the same values, that is changed and saved on its own from here on."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied.__dict__["_omoide"] = copied_state(self._omoide)
        return copied

    def __omoide_associations__(self) -> Any:
        """The association graph of this record; needs a store."""
        raise ModelError(f"{type(self).__name__} has no store")

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise unknown_field(type(self).__name__, name, spec_of(type(self)).fields)
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        mine = identity(self)
        return None not in mine and mine == identity(other)

    def __hash__(self) -> int:
        return hash((type(self), identity(self)))

    def __repr__(self) -> str:
        spec = spec_of(type(self))
        names = (*spec.partition_by, spec.id_field)
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(names, identity(self), strict=True))
        return f"<{type(self).__name__} {shown}>"


def loaded_state(spec: ModelSpec, record: StoredRecord) -> State:
    """What an instance knows of a record that was just loaded."""
    raw = record.values
    if spec.aliases or raw.get(spec.id_field) != record.id:
        raw = _as_named_now(spec, record)
    known = raw.keys() <= spec.fields.keys()
    extra = {} if known else {name: value for name, value in raw.items() if name not in spec.fields}
    start = record.valid_from_ms
    interval = None if start is None else (start, record.valid_to_ms)
    return State(True, record.version, raw, extra, record, interval=interval)


def _as_named_now(spec: ModelSpec, record: StoredRecord) -> dict[str, Stored]:
    """The values of a record under the names its fields have now, its id among them."""
    raw = dict(record.values)
    for old, new in spec.aliases.items():
        if old in raw:
            renamed = raw.pop(old)
            raw.setdefault(new, renamed)
    raw[spec.id_field] = record.id
    return raw


def copied_state(state: State) -> State:
    """The same knowledge for another instance."""
    return replace(state, extra=dict(state.extra))


def spec_of(cls: type[Instance]) -> ModelSpec:
    """The spec of a concrete model.

    Raises:
        ModelError: the class is abstract, or no model.
    """
    try:
        spec = cls.__omoide_spec__
    except AttributeError:
        what = cls.__name__ if isinstance(cls, type) else f"a {type(cls).__name__}"
        raise ModelError(f"a model is a subclass of Model, not {what}") from None
    if spec is None:
        raise ModelError(f"{cls.__name__} is abstract", hint="define a subclass of it")
    return spec


def identity(instance: Instance) -> tuple[Any, ...]:
    """Partition values and id; None for what has no value yet."""
    spec = spec_of(type(instance))
    return tuple(getattr(instance, name, None) for name in (*spec.partition_by, spec.id_field))


def id_of(instance: Instance) -> str:
    """The id of a record.

    Raises:
        FieldError: it has none.
    """
    spec = spec_of(type(instance))
    value = getattr(instance, spec.id_field, None)
    spec.fields[spec.id_field].verify(value, spec.name)
    return str(value)


def scope_of(instance: Instance) -> Scope:
    """The partition an instance belongs to.

    Raises:
        FieldError: a partition value is missing or cannot be one.
    """
    spec = spec_of(type(instance))
    return scope_of_values(spec, {name: getattr(instance, name, None) for name in spec.partition_by})


def stored_values(instance: Instance) -> dict[str, Stored]:
    """Every stored value of the record, checked, sorted by name; unknown stored ones included.

    Raises:
        FieldError: a value breaks a rule of its field.
    """
    spec = spec_of(type(instance))
    held = instance.__dict__
    state = instance._omoide
    values: dict[str, Stored] = dict(state.extra)
    for name, attribute in spec.fields.items():
        if not attribute.stored:
            continue
        if name not in held and name in state.raw:
            values[name] = state.raw[name]
            continue
        value = getattr(instance, name, None)
        attribute.verify(value, spec.name)
        values[name] = None if value is None else attribute.to_stored(value)
    return dict(sorted(values.items()))


def add_entries(instance: Instance, draft: Draft) -> None:
    """Fill a draft with the index entries of every field, and with what the model's roles say.

    Raises:
        FieldError: a value is too long, or a number too large, for its index.
    """
    spec = spec_of(type(instance))
    add_equality(instance, draft)
    draft.session = _role(instance, spec.session)
    draft.author = _role(instance, spec.author)
    draft.time_ms = _time(instance, spec)
    for attribute in spec.fields.values():
        attribute.entries(draft, instance)


def add_equality(instance: Instance, draft: Draft) -> None:
    """Fill in the entries that a value may be too long or too large for: importance and equality.

    Raises:
        FieldError: one is.
    """
    spec = spec_of(type(instance))
    draft.importance = _importance(instance, spec)
    for name in spec.exact:
        attribute = spec.fields[name]
        value = getattr(instance, name, None)
        for text in () if value is None else attribute.exact_texts(value):
            if len(text.encode()) > EXACT_BYTES:
                raise attribute.error(spec.name, f"an indexed value is at most {EXACT_BYTES} bytes of UTF-8")
            draft.exact.append((name, text))


def _importance(instance: Instance, spec: ModelSpec) -> float:
    value = None if spec.importance is None else getattr(instance, spec.importance, None)
    if value is None:
        return 1.0
    if abs(value) > _FLOAT32_MAX:
        raise FieldError(spec.name, spec.importance or "", "must be within +-3.4e38")
    return single(float(value))


def single(value: float) -> float:
    """The value in single precision, which is what the importance index holds. Monotone."""
    rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
    return rounded


def _role(instance: Instance, name: str | None) -> str | None:
    value = None if name is None else getattr(instance, name, None)
    return value or None


def _time(instance: Instance, spec: ModelSpec) -> Milliseconds | None:
    """When it happened; failing that, when it was created; None leaves it to the server's clock."""
    for name in (spec.time, "created_at"):
        attribute = spec.fields.get(name) if name else None
        value = None if attribute is None else getattr(instance, attribute.name, None)
        milliseconds = None if attribute is None or value is None else attribute.instant_ms(value)
        if milliseconds is not None:
            return milliseconds
    return None
