"""Every numeric default of omoide, in one frozen value.

A model overrides some with `Meta.defaults = Defaults(half_life=...)` or
`dataclasses.replace(Base.defaults(), ...)`; calls that take the same number override it once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from sys import float_info
from types import MappingProxyType

from omoide.errors import ModelError
from omoide.settings import MOST_SECONDS
from omoide.types import Seconds

OUTCOMES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "acted": (1.0, 0.0),
        "used": (0.5, 0.0),
        "dismissed": (0.0, 0.25),
        "deferred": (0.0, 0.0),
        "contradicted": (0.0, 2.0),
    }
)
"""Outcome -> (evidence for, evidence against), in observations."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Numbers that a model may override.

    Decay: `half_life` seconds, `base_score`. Confidence: `confidence_initial` in (0, 1),
    `confidence_prior` and `confidence_cap` in observations, `outcomes`, `echo_support`. Graph:
    `link_weight` per use together, `weaken_weight`, `link_hops`, `link_fan_out`, `link_decay`.
    Text: `string_bytes` and `text_terms` (distinct terms indexed) of one memory, `query_chars`,
    `query_terms`, `echo_cover` in (0, 1]. Context: `max_items`, `max_tokens`, `turn_ttl` seconds,
    `deadline` seconds. `max_records` is the cap of a partition where a model asks for the default.
    """

    half_life: Seconds = 30 * 86_400.0
    base_score: float = 1.0
    confidence_initial: float = 0.5
    confidence_prior: float = 2.0
    confidence_cap: float = 20.0
    outcomes: Mapping[str, tuple[float, float]] = field(default_factory=lambda: OUTCOMES)
    echo_support: float = 0.5
    link_weight: float = 1.0
    weaken_weight: float = 0.5
    link_hops: int = 2
    link_fan_out: int = 16
    link_decay: float = 0.5
    max_items: int = 8
    max_tokens: int = 800
    string_bytes: int = 65_536
    text_terms: int = 2_048
    query_chars: int = 4_096
    query_terms: int = 64
    echo_cover: float = 0.8
    turn_ttl: Seconds = 86_400.0
    max_records: int = 1_000
    deadline: Seconds = 1.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, int | float) and not 0 < value <= float_info.max:
                raise ModelError(f"Defaults.{each.name} must be a positive number")
        if self.deadline > MOST_SECONDS:
            raise ModelError(f"Defaults.deadline is at most {MOST_SECONDS:,} seconds")
        if self.confidence_initial >= 1 or self.link_decay > 1 or self.echo_cover > 1:
            raise ModelError("Defaults.confidence_initial, link_decay and echo_cover are shares of 1")
        if self.confidence_cap < self.confidence_prior or self.string_bytes > 1_048_576:
            raise ModelError(
                "Defaults.confidence_cap is at least confidence_prior, string_bytes at most 1 MiB"
            )


DEFAULTS = Defaults()
