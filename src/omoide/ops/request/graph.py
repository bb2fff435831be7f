"""Requests about the links between records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omoide.model.schema import Scope
from omoide.ops.request.question import Request


@dataclass(frozen=True, slots=True)
class Link(Request[float]):
    """Add `delta` (may be negative) to the edge between two records; the new weight (0: no edge)."""

    scope: Scope
    first: str
    second: str
    delta: float


@dataclass(frozen=True, slots=True)
class Spread(Request["tuple[tuple[str, float], ...]"]):
    """Best-path propagation from `seeds` (id -> score): at most `hops` hops, `fan_out` edges a node.

    A path's score is the seed's times decay x weight / (1 + weight) per hop. Neighbours are hops=1.
    Strongest first, ties by id; seeds themselves are left out.
    """

    scope: Scope
    seeds: Mapping[str, float]
    hops: int = 1
    fan_out: int = 16
    decay: float = 0.5
    limit: int = 64
