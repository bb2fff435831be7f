"""The resource that long-term memory and threads are bound to: a name that somebody chose."""

from __future__ import annotations

from omoide.errors import QueryError
from omoide.model.partition import PARTITION_BYTES, key_rule


def checked_resource(value: object, call: str) -> str:
    """The id of a resource, as it is: 5 is not "5".

    Raises:
        QueryError: no string, empty or blank, or more than 512 bytes.
    """
    rule = key_rule(value, PARTITION_BYTES)
    if rule is None and not str(value).strip():
        rule = "must not be blank"
    if rule is not None:
        raise QueryError(f"{call}: resource_id {rule}")
    return str(value)


def checked_bound(value: object, name: str, call: str) -> int:
    """A whole number, at least 0.

    Raises:
        QueryError: it is none, or 2**62 or more.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise QueryError(f"{call}: {name} is a whole number, at least 0")
    return value


__all__ = ["checked_bound", "checked_resource"]
