"""What a record becomes on its way to the store: stored values and index entries, as plain data.

    instance ──values──▶ Draft ──gates──▶ each field adds its entries ──▶ one write request

A field owns its entries (`Field.entries`), so that nothing above knows a class of field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omoide.types import Milliseconds, Stored


@dataclass(slots=True)
class Draft:
    """One record about to be written.

    `values`: stored form by field name. `terms`: text term -> frequency. `length`: all text terms.
    `left_out`: distinct terms that are stored but not indexed. `exact`: (field, value) pairs.
    `passage`: the text to embed. `counters`: what a gate counts about a record that it lets through.
    `chain`: what the versions of its semantic key have in common.
    """

    values: Mapping[str, Stored]
    terms: dict[str, int] = field(default_factory=dict)
    length: int = 0
    left_out: int = 0
    exact: list[tuple[str, str]] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    importance: float = 1.0
    base: float | None = None
    confidence: float | None = None
    time_ms: Milliseconds | None = None
    session: str | None = None
    author: str | None = None
    cues: int = 0
    asks: bool = False
    asking: bool = False
    suspect: bool = False
    passage: str = ""
    counters: list[tuple[str, int]] = field(default_factory=list)
    valid_from_ms: Milliseconds | None = None
    valid_to_ms: Milliseconds | None = None
    chain: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a gate keeps a record out: a `reason` for the outcome, and counters to add to."""

    reason: str
    counters: tuple[tuple[str, int], ...] = ()
