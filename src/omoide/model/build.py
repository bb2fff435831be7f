"""A class body becomes a `ModelSpec`: fields gathered along the MRO, roles found, rules checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from hashlib import blake2b
from typing import Any

from omoide.errors import ModelError
from omoide.model.field import Field
from omoide.model.meta import Options, Partition
from omoide.model.schema import EmbeddingIndex, ModelSpec, ValidityIndex

RESERVED = frozenset(
    {
        "action",
        "again",
        "as_of",
        "assembler",
        "certify",
        "cls",
        "cursor",
        "deadline",
        "exclude",
        "explain",
        "extractor",
        "extractor_deadline",
        "field_map",
        "file_format",
        "ids",
        "lift_cap",
        "max_items",
        "max_tokens",
        "model",
        "order",
        "patience",
        "position",
        "progress",
        "query",
        "ranking",
        "record_id",
        "repair",
        "saved_as",
        "scan",
        "self",
    }
)
"""Options of calls that name a partition by keywords; a partition field of such a name could not be given."""

_DESCRIBED = ("text", "decay", "certainty", "validity")
"""Roles that have an entry of their own in a spec."""

FORMAT = "1"
"""Version of the index entries that fields write; part of every fingerprint."""


def gather_fields(cls: type) -> dict[str, Field[Any]]:
    """Fields of a class in definition order, inherited ones first.

    An attribute that replaces a field in a subclass removes it (`content = None`).

    Raises:
        ModelError: a name that cannot be a field, or one field object under two names.
    """
    order: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        order.update(dict.fromkeys(name for name, value in vars(base).items() if isinstance(value, Field)))
    fields: dict[str, Field[Any]] = {}
    for name in order:
        owners = [base for base in cls.__mro__ if name in vars(base)]
        value = vars(owners[0])[name]
        if not isinstance(value, Field):
            continue
        replaced = next(
            (vars(base)[name] for base in owners if not isinstance(vars(base)[name], Field)), None
        )
        if name.startswith("_") or (replaced is not None and _is_ours(owners, name)):
            raise ModelError(
                f"{cls.__name__}.{name}: the name is taken by omoide", hint="choose another field name"
            )
        if value.name != name:
            raise ModelError(f"{cls.__name__}.{name}: one field object has two names")
        fields[name] = value
    return fields


def _is_ours(owners: list[type], name: str) -> bool:
    """The attribute a field would replace is part of omoide itself."""
    return any(
        base.__module__.split(".")[0] == "omoide" and not isinstance(vars(base)[name], Field)
        for base in owners
    )


def gates_of(cls: type) -> tuple[Any, ...]:
    """The write gates a class inherits, nearest first; each says why a record is kept out, or None."""
    return tuple(vars(base)["__omoide_gate__"] for base in cls.__mro__ if "__omoide_gate__" in vars(base))


def build_spec(cls: type, meta: Options) -> ModelSpec:
    """The frozen description of a concrete model.

    Raises:
        ModelError: the class cannot work.
    """
    fields = {name: field.adapted(meta.defaults) for name, field in gather_fields(cls).items()}
    owners = {role: _only(cls, fields, role) for role in ("id", *_DESCRIBED, "graph", "embedding")}
    id_field = owners["id"]
    if id_field is None:
        raise ModelError(f"{cls.__name__} has no id", hint="add a field such as memory_id = AutoKeyField()")
    partition = _partition(cls, fields, meta)
    _check_names(cls, fields, partition, meta)
    for field in fields.values():
        field.settle(cls.__name__, fields, partition)
    roles = _roles(fields, owners)
    exact = tuple(
        name
        for name, field in fields.items()
        if name not in partition and (field.is_exact or name in (roles["session"], roles["author"]))
    )
    cap, cap_is_default = _cap(cls)
    described: dict[str, Any] = {
        role: None if name is None else fields[name].describe(cls.__name__, meta.defaults)
        for role, name in owners.items()
        if role in _DESCRIBED
    }
    described["validity"] = _validity(fields, described["validity"])
    shape = (exact, meta.unique_together, meta.ttl is not None, sorted(roles.items()), owners["graph"])
    return ModelSpec(
        name=meta.name,
        fields=fields,
        id_field=id_field,
        partition_by=partition,
        fingerprint=_fingerprint(described, shape),
        **described,
        graph=owners["graph"],
        embedding=_embedding(cls, fields.get(owners["embedding"] or ""), meta, roles["author"]),
        exact=exact,
        unique=meta.unique_together,
        **roles,
        ttl=meta.ttl,
        cap=cap,
        cap_is_default=cap_is_default,
        tracks_access=getattr(cls, "__omoide_tracks_access__", False),
        never_record=getattr(cls, "__omoide_never_record__", False),
        judge=getattr(cls, "__omoide_judge__", None),
        aliases=meta.aliases,
        mirror=meta.mirror,
    )


def _embedding(
    cls: type, field: Field[Any] | None, meta: Options, author: str | None
) -> EmbeddingIndex | None:
    return None if field is None else replace(field.describe(cls.__name__, meta.defaults), author=author)


def _only(cls: type, fields: Mapping[str, Field[Any]], role: str) -> str | None:
    """The name of the one field with a role."""
    names = [name for name, field in fields.items() if field.role == role]
    if len(names) > 1:
        kind = type(fields[names[0]]).__name__
        raise ModelError(f"{cls.__name__} has two fields of the kind {kind}: {', '.join(names)}")
    return names[0] if names else None


def _partition(cls: type, fields: Mapping[str, Field[Any]], meta: Options) -> tuple[str, ...]:
    """Names of the partition fields, as stated or as the only KeyField."""
    keys = [name for name, field in fields.items() if field.role == "key"]
    if isinstance(meta.partition_by, Partition):
        if len(keys) == 1:
            stated: tuple[str, ...] = (keys[0],)
        elif keys:
            raise ModelError(
                f"{cls.__name__} has several KeyFields",
                hint=f"name the partition: Meta.partition_by = {keys[0]!r}",
            )
        else:
            raise ModelError(
                f"{cls.__name__} has no KeyField",
                hint="add one, or say Meta.partition_by = None for a single partition",
            )
    else:
        stated = meta.partition_by
    for name in stated:
        if name not in keys:
            raise ModelError(
                f"{cls.__name__}.Meta.partition_by names {name!r}, which is not a KeyField of it"
            )
        if fields[name].null:
            raise ModelError(f"{cls.__name__}.{name}: a partition field cannot be null")
        if name in RESERVED:
            raise ModelError(
                f"{cls.__name__}.{name}: a partition field cannot have the name of an option of a call",
                hint="choose another field name",
            )
    return stated


def _check_names(
    cls: type, fields: Mapping[str, Field[Any]], partition: tuple[str, ...], meta: Options
) -> None:
    """Uniqueness rules and aliases name what they may."""
    for rule in meta.unique_together:
        for name in rule:
            if name in partition:
                raise ModelError(
                    f"{cls.__name__}.Meta.unique_together names the partition field {name!r}",
                    hint="uniqueness always holds within a partition",
                )
            if name not in fields or not fields[name].stored:
                raise ModelError(
                    f"{cls.__name__}.Meta.unique_together names {name!r}, which is not a stored field"
                )
    for old, new in meta.aliases.items():
        if old in fields or new not in fields or not fields[new].stored:
            raise ModelError(
                f"{cls.__name__}.Meta.aliases must map former stored names to fields: {old!r} -> {new!r}"
            )


def _roles(fields: Mapping[str, Field[Any]], owners: Mapping[str, str | None]) -> dict[str, Any]:
    """Which fields give importance, time, session and author: as stated, else by their usual names."""
    text = fields.get(owners["text"] or "")
    decay = fields.get(owners["decay"] or "")
    importance = getattr(decay, "base_score_field", None) or "importance"
    return {
        "importance": importance if importance in fields and fields[importance].numeric else None,
        "session": getattr(text, "session", None) or _usual(fields, "session_id", "textual"),
        "author": getattr(text, "author", None) or _usual(fields, "author", "textual"),
        "time": getattr(text, "time", None)
        or _usual(fields, "occurred_at", "timed")
        or _usual(fields, "created_at", "timed"),
    }


def _usual(fields: Mapping[str, Field[Any]], name: str, trait: str) -> str | None:
    """A field of this name, when it is of the right sort."""
    return name if name in fields and getattr(fields[name], trait) else None


def _validity(fields: Mapping[str, Field[Any]], index: ValidityIndex | None) -> ValidityIndex | None:
    """With the fields of the usual names, where others are not stated."""
    if index is None:
        return None
    return replace(
        index,
        start=index.start or _usual(fields, "valid_from", "timed"),
        end=index.end or _usual(fields, "valid_to", "timed"),
    )


def _cap(cls: type) -> tuple[int, bool]:
    """Most records a partition may hold (0: no bound), and whether that is a default of omoide's."""
    for base in cls.__mro__:
        if "max_records_per_partition" in vars(base):
            cap = vars(base)["max_records_per_partition"] or 0
            if isinstance(cap, bool) or not isinstance(cap, int) or cap < 0:
                raise ModelError(
                    f"{cls.__name__}.max_records_per_partition must be a whole number, or falsy for no cap"
                )
            return cap, bool(vars(base).get("cap_is_default", False))
    return 0, False


def _fingerprint(described: Mapping[str, Any], shape: tuple[Any, ...]) -> str:
    """16 hex digits over all that shapes stored index entries."""
    text, decay, certainty = described["text"], described["decay"], described["certainty"]
    parts: tuple[Any, ...] = (
        FORMAT,
        None if text is None else (text.source, text.analyzer.fingerprint),
        None
        if decay is None
        else (decay.base_score_field, decay.base_default, decay.half_life, decay.exponent),
        None if certainty is None else (certainty.initial, certainty.prior_weight, certainty.cap),
        shape,
    )
    if described["validity"] is not None:
        parts = (*parts, astuple(described["validity"]))
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()
