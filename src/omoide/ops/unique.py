"""Uniqueness digests: one per rule of a model, equal exactly when the rule's values are equal.

    digest = blake2b-128(for each field of the rule: length:name length:canonical text)

A rule with a None among its values holds for nothing, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from omoide.model.instance import Instance, spec_of
from omoide.model.schema import ModelSpec


def unique_digest(spec: ModelSpec, rule: tuple[str, ...], values: Mapping[str, Any]) -> bytes | None:
    """16 bytes for one rule; None when a value is None."""
    digest = blake2b(digest_size=16)
    for name in rule:
        value = values.get(name)
        if value is None:
            return None
        for text in (name, spec.fields[name].to_exact(value)):
            data = text.encode()
            digest.update(b"%d:" % len(data) + data)
    return digest.digest()


def unique_digests(instance: Instance) -> tuple[bytes, ...]:
    """The digests of every rule that applies to a record."""
    spec = spec_of(type(instance))
    if not spec.unique:
        return ()
    values = {name: getattr(instance, name, None) for rule in spec.unique for name in rule}
    digests = (unique_digest(spec, rule, values) for rule in spec.unique)
    return tuple(digest for digest in digests if digest is not None)
