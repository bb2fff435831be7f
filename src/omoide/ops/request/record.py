"""A record as a store gives it, and what is kept of it beside its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Record:
    """A stored record as it is now. Not to be changed; it is not frozen because that doubles what one costs.

    `values` are stored forms by field name (unknown names included). `confidence` is in (0, 1).
    `relevance` is the decayed base score at the time of the reply (None without a decay field), `order`
    the score of the decay order: the greater the earlier, at any time (by a power law: the last touch).
    Instants are milliseconds since the epoch, UTC; 0 is never. `read_ms`: the time of the reply. It is valid
    from `valid_from_ms` until before `valid_to_ms` (None: no end); both are None without validity.
    """

    id: str
    row: int
    values: dict[str, Any]
    version: int
    time_ms: int
    importance: float
    confidence: float
    corroborations: int = 0
    contradictions: int = 0
    access_count: int = 0
    accessed_ms: int = 0
    relevance: float | None = None
    expires_ms: int = 0
    order: float = 0.0
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None
    read_ms: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """What outcomes and deliveries left of a record: Beta evidence with its counts, and its accesses."""

    alpha: float
    beta: float
    corroborations: int = 0
    contradictions: int = 0
    access_count: int = 0
    accessed_ms: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store keeps of a record beside its values; an export tells it, a write may set it.

    `statistics` None: the prior of the model stands. `order`: score of the decay order, None for a touch
    now. `expires_ms` 0: never. `edges`: (id, weight) of links to records that were stored before this one,
    strongest first, at most 64; the others have the same links. `entities`: names that it is filed under,
    None for those that its text names.
    `validity`: start and own end (ms; None: no end) of a record that has any. `chain`: of the versions of
    one that was superseded without a key.
    """

    version: int = 1
    time_ms: int | None = None
    statistics: Statistics | None = None
    order: float | None = None
    expires_ms: int = 0
    edges: tuple[tuple[str, float], ...] = ()
    entities: tuple[str, ...] | None = None
    validity: tuple[int, int | None] | None = None
    chain: str | None = None
