"""What `Meta.mirror` says: where the authoritative rows of a model are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from omoide.errors import ModelError

_TABLE = re.compile(r"[a-z_][a-z0-9_]{0,62}")


@dataclass(frozen=True, slots=True)
class PostgresMirror:
    """The rows of a model in PostgreSQL are its truth; what is in Redis can be rebuilt from them.

    Args:
        table: Name of the table, made from the fields of the model at its first use; lower case letters,
            digits and `_`. None: `omoide_` and the name of the model. A table belongs to one model: a
            subclass that states no mirror of its own has a table of its own, named like that.
        line: A line of numbered SQL files (see `stores.postgres.migrate`) to apply to the table after that.
    """

    table: str | None = None
    line: str | None = None

    def __post_init__(self) -> None:
        if self.table is not None and not (isinstance(self.table, str) and _TABLE.fullmatch(self.table)):
            raise ModelError(f"{self.table!r} is no name of a table", hint="lower case letters, digits and _")

    def named(self, model: str) -> PostgresMirror:
        """The mirror of one model, with the name of its table."""
        if self.table is not None:
            return self
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", model).lower()
        return PostgresMirror(f"omoide_{re.sub(r'[^a-z0-9_]', '_', name)}"[:63], self.line)


__all__ = ["PostgresMirror"]
