"""Partitions and ids as text: what names a record, checked the same way for calls and instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omoide.errors import FieldError, QueryError
from omoide.model.schema import ModelSpec, Scope

PARTITION_BYTES = 512
ID_BYTES = 128


def key_rule(value: object, limit: int) -> str | None:
    """The rule a key text breaks, or None."""
    if not isinstance(value, str):
        return "must be a string"
    if not value:
        return "must not be empty"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "must not hold a lone surrogate"
    return f"must be at most {limit} bytes of UTF-8" if size > limit else None


def scope_of_call(spec: ModelSpec, partition: Mapping[str, Any], call: str) -> Scope:
    """The partition a call names by its fields.

    Raises:
        QueryError: a partition field is missing, empty or None, or a name is not one.
    """
    unknown = [name for name in partition if name not in spec.partition_by]
    if unknown:
        raise QueryError(f"{spec.name}.{call} takes {_wanted(spec)}, not {unknown[0]!r}")
    values = []
    for name in spec.partition_by:
        value = partition.get(name)
        if value is None:
            raise QueryError(f"{spec.name}.{call} needs {name}=", hint="a call never spans partitions")
        text = spec.fields[name].coerce(value)
        rule = key_rule(text, PARTITION_BYTES)
        if rule is not None:
            raise QueryError(f"{spec.name}.{call}: {name} {rule}")
        values.append(text)
    return Scope(spec, tuple(values))


def scope_of_values(spec: ModelSpec, values: Mapping[str, Any]) -> Scope:
    """The partition of a record.

    Raises:
        FieldError: a partition value is missing, empty or not text.
    """
    for name in spec.partition_by:
        rule = "a value is required" if values.get(name) is None else key_rule(values[name], PARTITION_BYTES)
        if rule is not None:
            raise FieldError(spec.name, name, rule)
    return Scope(spec, tuple(values[name] for name in spec.partition_by))


def check_ids(spec: ModelSpec, ids: tuple[Any, ...]) -> tuple[str, ...]:
    """Ids as text, in the order given.

    Raises:
        QueryError: one is not a non-empty string of at most 128 bytes.
    """
    field = spec.fields[spec.id_field]
    texts = tuple(field.coerce(value) for value in ids)
    for text in texts:
        rule = key_rule(text, ID_BYTES)
        if rule is not None:
            raise QueryError(f"{spec.name}: an id {rule}")
    return texts


def _wanted(spec: ModelSpec) -> str:
    return (
        "only " + ", ".join(f"{name}=" for name in spec.partition_by) if spec.partition_by else "no partition"
    )
