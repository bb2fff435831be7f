"""`class Meta` of a model, read once into frozen options.

Options are inherited along the MRO like attributes, except `name` and `abstract`, which belong to
the class that states them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any

from omoide.errors import ModelError
from omoide.model.defaults import DEFAULTS, Defaults
from omoide.model.mirror import PostgresMirror
from omoide.model.partition import key_rule
from omoide.types import Seconds

OPTIONS = frozenset(
    {"name", "partition_by", "ttl", "unique_together", "aliases", "abstract", "defaults", "mirror"}
)
NAME_BYTES = 128
_OWN = frozenset({"name", "abstract"})


class Partition(Enum):
    """`partition_by` was not stated: the only KeyField is the partition."""

    UNSTATED = "unstated"


@dataclass(frozen=True, slots=True)
class Options:
    """What `class Meta` says.

    `ttl` in seconds. `unique_together`: rules, each a tuple of field names. `aliases`: stored name
    -> field name. `partition_by`: field names, empty for one partition.
    """

    name: str
    abstract: bool = False
    partition_by: tuple[str, ...] | Partition = Partition.UNSTATED
    ttl: Seconds | None = None
    unique_together: tuple[tuple[str, ...], ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    defaults: Defaults = DEFAULTS
    mirror: PostgresMirror | None = None


def read_options(cls: type) -> Options:
    """Options of a class from its own and its bases' `Meta`.

    Raises:
        ModelError: an unknown option, or a value that cannot work.
    """
    stated: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        meta = base.__dict__.get("Meta")
        if meta is not None:
            stated.update(_stated(cls, base, meta))
    return Options(
        name=_name(cls, stated.get("name", cls.__name__)),
        abstract=bool(stated.get("abstract", False)),
        partition_by=_partition_by(cls, stated),
        ttl=_ttl(cls, stated.get("ttl")),
        unique_together=_rules(cls, stated.get("unique_together", ())),
        aliases=_aliases(cls, stated.get("aliases", {})),
        defaults=_defaults(cls, stated.get("defaults", DEFAULTS)),
        mirror=_mirror(cls, stated),
    )


def _mirror(cls: type, stated: Mapping[str, Any]) -> PostgresMirror | None:
    """The mirror of a class; a table that a parent named is that parent's alone."""
    value = stated.get("mirror")
    if value is None:
        return None
    if not isinstance(value, PostgresMirror):
        raise ModelError(f"{cls.__name__}.Meta.mirror must be a PostgresMirror")
    own = cls.__dict__.get("Meta")
    name = _name(cls, stated.get("name", cls.__name__))
    if own is not None and "mirror" in vars(own):
        return value.named(name)
    return PostgresMirror(None, value.line).named(name)


def _stated(cls: type, base: type, meta: Any) -> dict[str, Any]:
    """The options one `Meta` gives to `cls`, those it inherits from another `Meta` included."""
    if not isinstance(meta, type):
        raise ModelError(f"{base.__name__}.Meta must be a class")
    stated: dict[str, Any] = {}
    for part in reversed(meta.__mro__[:-1]):
        own = base is cls and part is meta
        for option, value in vars(part).items():
            if option.startswith("__"):
                continue
            if option not in OPTIONS:
                raise ModelError(
                    f"{base.__name__}.Meta has no option {option!r}",
                    hint=f"options: {', '.join(sorted(OPTIONS))}",
                )
            if own or option not in _OWN:
                stated[option] = value
    return stated


def _name(cls: type, name: object) -> str:
    rule = key_rule(name, NAME_BYTES)
    if rule is not None:
        raise ModelError(f"{cls.__name__}.Meta.name {rule}")
    return str(name)


def _names(cls: type, option: str, value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else None
    if names is None or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise ModelError(f"{cls.__name__}.Meta.{option} must be a field name, or a tuple of different ones")
    return names


def _partition_by(cls: type, stated: dict[str, Any]) -> tuple[str, ...] | Partition:
    if "partition_by" not in stated:
        return Partition.UNSTATED
    value = stated["partition_by"]
    return () if value is None else _names(cls, "partition_by", value)


def _ttl(cls: type, value: object) -> Seconds | None:
    if value is None:
        return None
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0.001 <= seconds < 1e11:
        raise ModelError(
            f"{cls.__name__}.Meta.ttl must be a timedelta or a number of seconds, at least 0.001"
        )
    return float(seconds)


def _rules(cls: type, value: object) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list | tuple):
        raise ModelError(
            f"{cls.__name__}.Meta.unique_together must be a tuple of field names, or of such tuples"
        )
    if value and all(isinstance(name, str) for name in value):
        value = (value,)
    rules = tuple(_names(cls, "unique_together", rule) for rule in value)
    if not all(rules) or len(set(rules)) != len(rules):
        raise ModelError(f"{cls.__name__}.Meta.unique_together has an empty or a repeated rule")
    return rules


def _aliases(cls: type, value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(n, str) for pair in value.items() for n in pair):
        raise ModelError(f"{cls.__name__}.Meta.aliases must map stored names to field names")
    return dict(value)


def _defaults(cls: type, value: object) -> Defaults:
    if not isinstance(value, Defaults):
        raise ModelError(f"{cls.__name__}.Meta.defaults must be a Defaults")
    return value
