"""Changing some fields of a record and no others.

    instance ──what is stored + changes──▶ draft ──written──▶ the instance takes over what came of it

The draft is another instance, made of the stored forms the first was loaded from or saved as. What was
set on the first and not saved is not part of it, is not written, and stays set. When nothing is
stored, the instance is as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from omoide.errors import FieldError
from omoide.model.instance import Instance, State, copied_state, spec_of
from omoide.model.naming import unknown_field
from omoide.types import Stored

M = TypeVar("M", bound=Instance)

MISSING: Any = object()
"""Stands for an attribute that is not set."""


def check_names(instance: Instance, changes: Mapping[str, Any]) -> None:
    """Raise FieldError unless every name is a field."""
    spec = spec_of(type(instance))
    for name in changes:
        if name not in spec.fields:
            raise unknown_field(spec.name, name, spec.fields)


def changed(instance: M, changes: Mapping[str, Any], state: State | None = None) -> M:
    """A draft of the stored record with these changes; `state` as the store has it now, if that is newer.

    Raises:
        FieldError: an unknown field, or a change that is never possible.
    """
    check_names(instance, changes)
    fields = spec_of(type(instance)).fields
    draft = type(instance).__new__(type(instance))
    draft.__dict__.update((name, value) for name, value in instance.__dict__.items() if name not in fields)
    draft.__dict__["_omoide"] = copied_state(instance._omoide) if state is None else state
    for name, value in changes.items():
        setattr(draft, name, value)
    return draft


def adopt(instance: Instance, draft: Instance, changes: Mapping[str, Any]) -> None:
    """Let an instance take over a draft that was stored: the changes, and what other writers did.

    A value set and not saved stays; one that was only read is read anew where the store has another.
    """
    spec = spec_of(type(instance))
    old, new = instance._omoide.raw, draft._omoide.raw
    known = instance._omoide.stored
    for name in [name for name in instance.__dict__ if name in spec.fields and name not in changes]:
        if (not known or old.get(name) != new.get(name)) and not _is_set(instance, name, old, known):
            del instance.__dict__[name]
    for name in changes:
        if name in draft.__dict__:
            instance.__dict__[name] = draft.__dict__[name]
    instance.__dict__["_omoide"] = draft._omoide


def _is_set(instance: Instance, name: str, old: Mapping[str, Stored], known: bool) -> bool:
    """Whether an attribute is something other than what was stored, or than the default if nothing was."""
    spec = spec_of(type(instance))
    attribute, value = spec.fields[name], instance.__dict__[name]
    if name in old or known:
        base = old.get(name)
    elif attribute.required or attribute.default is None:
        base = None
    else:
        base = attribute.to_stored(attribute.initial())
    try:
        attribute.verify(value, spec.name)
    except FieldError:
        return value is not None or base is not None
    return bool((None if value is None else attribute.to_stored(value)) != base)


__all__ = ["MISSING", "adopt", "changed", "check_names"]
