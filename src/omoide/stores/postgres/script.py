"""Scripts: statements as data, so that what is asked of PostgreSQL needs no client to be imported.

A *script* is a generator that yields steps (a statement with its parameters) and receives their rows.
`session` runs them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from psycopg import sql

__all__ = ["Rows", "Script", "Step", "identifier"]

R = TypeVar("R")

Rows: TypeAlias = "list[tuple[Any, ...]]"


@dataclass(frozen=True, slots=True)
class Step:
    """One statement. With `many`, it runs for each of these parameter lists, sent together: no rows then.

    `patient`: from here on this transaction may take any time.
    """

    query: str | sql.Composable
    parameters: Sequence[Any] | Mapping[str, Any] = ()
    many: Sequence[Sequence[Any]] | None = None
    patient: bool = False


Script: TypeAlias = Generator[Step, Rows, R]


def identifier(name: str) -> str:
    """A name in SQL, whatever characters it has; a field's name holds no `%`."""
    return '"' + name.replace('"', '""') + '"'
