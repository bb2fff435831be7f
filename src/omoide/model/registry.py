"""Which live class owns a model name: two of them would share a keyspace.

A class defined again at the same place (a notebook cell, a reloaded module) replaces the first.
"""

from __future__ import annotations

import gc
from weakref import WeakValueDictionary

from omoide.errors import ModelError

_classes: WeakValueDictionary[str, type] = WeakValueDictionary()


def register(name: str, cls: type) -> None:
    """Give a model name to a class.

    Raises:
        ModelError: another live class has it.
    """
    if _clashes(name, cls):
        gc.collect()  # a class is a reference cycle: an abandoned one lives until a collection
        if _clashes(name, cls):
            other = _classes[name]
            raise ModelError(
                f"{cls.__module__}.{cls.__qualname__} and {other.__module__}.{other.__qualname__} "
                f"would share the model name {name!r}",
                hint="set a different Meta.name on one of them",
            )
    _classes[name] = cls


def find(name: str) -> type | None:
    """The live class of a model name."""
    return _classes.get(name)


def _clashes(name: str, cls: type) -> bool:
    other = _classes.get(name)
    if other is None:
        return False
    return (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__)
