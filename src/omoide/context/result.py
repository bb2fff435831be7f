"""What an assembly hands back, and its JSON form for another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from omoide.errors import QueryError


class Item(NamedTuple):
    """One delivered memory: its id, final score and whole text (also where the block cuts it)."""

    id: str
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class AssemblyResult:
    """What was recalled for one prompt.

    `records`: model instances, best first. `formatted`: the block for the prompt, "" when empty.
    `items`: the same memories as plain data. `turn_id`: names this delivery in the store for 24 h;
    None when nothing was delivered or tracking is off. `metadata`: mode, reader, round_trips,
    matched, live, considered, cut, dropped, tokens, terms, timings (milliseconds), and whatever
    went otherwise than asked (`error`, `query_redacted`, `query_cut`, `fallback_used`, ...).

    Equality and JSON leave `records` out: they are read again by id where they are wanted.
    """

    records: list[Any] = field(default_factory=list, compare=False)
    formatted: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    turn_id: str | None = None
    items: tuple[Item, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the delivered memories, best first."""
        return tuple(item.id for item in self.items)

    @property
    def error(self) -> str | None:
        """`unavailable`, `timeout` or `failed` when this is an outage and not an empty memory."""
        error: str | None = self.metadata.get("error")
        return error

    def __bool__(self) -> bool:
        return bool(self.items)

    def to_json(self) -> str:
        """All but the record objects, as one JSON object."""
        return json.dumps(
            {
                "turn_id": self.turn_id,
                "formatted": self.formatted,
                "items": [[item.id, item.score, item.text] for item in self.items],
                "metadata": dict(self.metadata),
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> AssemblyResult:
        """The result that `to_json` wrote; its `records` are empty.

        Raises:
            QueryError: not the JSON of a result.
        """
        try:
            data = json.loads(text)
            items = tuple(Item(str(id), float(score), str(body)) for id, score, body in data["items"])
            metadata = dict(data["metadata"])
            turn, formatted = data["turn_id"], data["formatted"]
        except (ValueError, KeyError, TypeError):
            raise QueryError("not the JSON of an AssemblyResult") from None
        if not isinstance(formatted, str) or not (turn is None or isinstance(turn, str)):
            raise QueryError("not the JSON of an AssemblyResult")
        return cls([], formatted, metadata, turn, items)


__all__ = ["AssemblyResult", "Item"]
