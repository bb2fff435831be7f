"""Requests about the vectors of records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omoide.model.schema import EmbeddingIndex, Scope
from omoide.ops.request.question import Request
from omoide.ops.request.record import Record


@dataclass(frozen=True, slots=True)
class Embed(Request[Any]):
    """float32[texts, dimensions], each of length 1: what the provider of a model makes of some texts.

    The store's driver answers it by calling the provider; an async one is awaited, any other one called
    in a thread. `query`: it is the text of a recall, and bounded by the timeout of the index; a deadline in
    force leaves any call half of what remains.

    Raises EmbeddingError in the plan.
    """

    index: EmbeddingIndex
    texts: tuple[str, ...]
    query: bool = False


@dataclass(frozen=True, slots=True)
class Digests(Request["tuple[bytes, ...]"]):
    """Of which text the vector of each record is: 8 bytes, empty where there is none of the model's kind."""

    scope: Scope
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unembedded(Request["UnembeddedReply"]):
    """The next `size` live records in storage order that have no vector of the model's kind.

    A cursor of rows that were renumbered begins anew.
    """

    scope: Scope
    cursor: str = ""
    size: int = 64


@dataclass(frozen=True, slots=True)
class UnembeddedReply:
    """`gen` names the row numbers, empty for no partition; `looked`: live records passed.

    `slot_bytes`: what a vector of the model's kind takes there, 0 where there is none.
    """

    records: tuple[Record, ...]
    cursor: str
    gen: str
    looked: int
    slot_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PutVectors(Request["tuple[bool, ...] | None"]):
    """Store vectors of rows of a numbering; True where it was taken, None when the rows were renumbered.

    Vectors of another `kind` in the partition are dropped first.
    """

    scope: Scope
    kind: str
    gen: str
    rows: tuple[int, ...]
    slots: tuple[bytes, ...]
