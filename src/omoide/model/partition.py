"""Partitions and ids as text: what names a record, checked the same way for calls and instances.

What a call names becomes part of keys and commands, so the firewall of the model judges it as well.
Calls that look after what is stored already, or erase it, are let through: a name that should never
have been stored has to be erasable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from omoide.errors import FieldError, NotFoundError, PolicyError, QueryError
from omoide.model.naming import shown_name
from omoide.model.schema import ModelSpec, Scope
from omoide.settings import MOST_SECONDS
from omoide.types import Seconds

PARTITION_BYTES = 512
ID_BYTES = 128
UPKEEP = frozenset(
    (
        *("delete_many", "delete_partition", "scan_memories", "quarantined", "restore", "erase_quarantined"),
        *("reindex", "export_memories", "forget"),
    )
)
"""Calls that look after what is stored, whatever its name."""
MADE = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""An id as omoide makes them, or popoto: it holds no words of a person."""


def refuse(spec: ModelSpec, call: str, named: Mapping[str, object]) -> None:
    """Raise PolicyError for the first name of a call that the firewall of the model keeps out.

    The error tells which one it is and the reason, not what it says. Cost: no I/O, some microseconds.
    """
    if spec.judge is None or not spec.judge(named):
        return
    for name, value in named.items():
        reason = spec.judge({name: value})
        if reason:
            raise _kept_out(spec, call, name, reason)
    raise _kept_out(spec, call, " and ".join(named), spec.judge(named))


def _kept_out(spec: ModelSpec, call: str, name: str, reason: str) -> PolicyError:
    return PolicyError(
        f"{spec.name}.{call}: {name} is kept out by the firewall: {reason}",
        reason=reason,
        hint="nothing was sent; use a name that holds no secret",
    )


def refuse_ids(spec: ModelSpec, call: str, ids: Iterable[str]) -> None:
    """`refuse` for ids; those that omoide makes are never judged."""
    own = [one for one in ids if not MADE.fullmatch(one)]
    if own:
        refuse(spec, call, {spec.id_field: own})


def text_rule(value: object) -> str | None:
    """The rule of every text that a value breaks, or None."""
    if not isinstance(value, str):
        return "must be a string"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "must not hold a lone surrogate"
    return None


def key_rule(value: object, limit: int) -> str | None:
    """The rule a key text breaks, or None."""
    rule = text_rule(value)
    if rule is not None:
        return rule
    size = len(str(value).encode())
    if not size:
        return "must not be empty"
    return f"must be at most {limit} bytes of UTF-8" if size > limit else None


def scope_of_call(spec: ModelSpec, partition: Mapping[str, Any], call: str) -> Scope:
    """The partition a call names by its fields.

    Raises:
        QueryError: a partition field is missing, empty or None, or a name is not one.
        PolicyError: the firewall of the model keeps a value out of keys.
    """
    unknown = [name for name in partition if name not in spec.partition_by]
    if unknown:
        raise QueryError(f"{spec.name}.{call} takes {_wanted(spec)}, not {shown_name(unknown[0])!r}")
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
    if call not in UPKEEP:
        refuse(spec, call, dict(zip(spec.partition_by, values, strict=True)))
    return Scope(spec, tuple(values))


def not_stored(spec: ModelSpec, values: tuple[str, ...] = ()) -> NotFoundError:
    """The error for a partition, or with no values a model, of which nothing is stored.

    A name that the firewall of the model keeps out is not told.
    """
    named = dict(zip(spec.partition_by, values, strict=False))
    hidden = spec.judge is not None and bool(spec.judge(named))
    told = ", ".join(f"this {name}" if hidden else f"{name} {value!r}" for name, value in named.items())
    return NotFoundError(
        f"nothing of {spec.name} is stored" + (f" under {told}" if told else ""),
        hint="`omoide status` lists what is",
    )


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


def ids_of(ids: object, argument: str = "ids") -> tuple[Any, ...]:
    """Several ids of a call, given as `argument`; one text is not taken for a list of its letters.

    Raises:
        QueryError: one text, or nothing that holds several.
    """
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise QueryError(f"{argument} is a list of strings, not {type(ids).__name__}")
    return tuple(ids)


def checked_seconds(name: str, value: object, *, zero: bool = False) -> Seconds:
    """A time that a call may take; `zero`: it may take none.

    Raises:
        QueryError: no such number of seconds.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= MOST_SECONDS
        or (value == 0 and not zero)
    ):
        least = "from 0" if zero else "above 0"
        raise QueryError(f"{name} is a number of seconds {least}, at most {MOST_SECONDS:,}")
    return value


def check_ids(
    spec: ModelSpec, ids: tuple[Any, ...], call: str = "query", *, what: str = "an id"
) -> tuple[str, ...]:
    """Ids as text, in the order given. `call`: one of `UPKEEP` is let through the firewall.

    Raises:
        QueryError: one is not a non-empty string of at most 128 bytes.
        PolicyError: the firewall of the model keeps one out of commands.
    """
    field = spec.fields[spec.id_field]
    texts = tuple(field.coerce(value) for value in ids)
    for text in texts:
        rule = key_rule(text, ID_BYTES)
        if rule is not None:
            raise QueryError(f"{spec.name}: {what} {rule}")
    if call not in UPKEEP:
        refuse_ids(spec, call, texts)
    return texts


def _wanted(spec: ModelSpec) -> str:
    return (
        "only " + ", ".join(f"{name}=" for name in spec.partition_by) if spec.partition_by else "no partition"
    )
