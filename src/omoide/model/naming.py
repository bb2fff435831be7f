"""Names that a call or a file brings, as an error may tell them: such a name can hold a secret."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from omoide.errors import FieldError

SHOWN = 64
"""Characters of a name that an error shows."""

HIDDEN = "(a name that the firewall keeps out)"


@lru_cache(256)
def shown_name(name: object) -> str:
    """A name as it may be told: cut, escaped where it cannot be printed, hidden where it is kept out."""
    from omoide.privacy import scan

    if not isinstance(name, str):
        return f"(a name of type {type(name).__name__})"
    if scan(name).blocked:
        return HIDDEN
    cut = name[:SHOWN]
    return cut if cut.isprintable() else ascii(cut)


def unknown_field(owner: str, name: object, fields: Iterable[str]) -> FieldError:
    """The error for a name that is none of these fields."""
    return FieldError(owner, shown_name(name), "no such field", hint=f"fields: {', '.join(fields)}")


__all__ = ["HIDDEN", "SHOWN", "shown_name", "unknown_field"]
