"""What a model is, as frozen data: everything the lower layers need and no class of the user's.

A `ModelSpec` is built once, when a class is defined. Requests carry it, so that plans and stores
never see a model class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from omoide.core.arms.weights import DEFAULT_WEIGHTS, RankWeights
from omoide.model.mirror import PostgresMirror

if TYPE_CHECKING:
    from omoide.core.text import Analyzer
    from omoide.model.field import Field


Judge = Callable[[Mapping[str, object]], str]


@dataclass(frozen=True, slots=True)
class TextIndex:
    """The BM25 index of a model: which fields feed it and the constants of the weight.

    `pivot` is the length, in terms, at which length normalisation starts (None: the live average).
    `ranking` weighs the arms. Neither shapes what is stored.
    """

    name: str
    source: tuple[str, ...]
    analyzer: Analyzer
    k1: float = 1.2
    b: float = 0.9
    pivot: int | None = 32
    ranking: RankWeights = DEFAULT_WEIGHTS


@dataclass(frozen=True, slots=True)
class DecayIndex:
    """The decay order: `base_score_field` halves every `half_life` seconds since the last touch.

    With an `exponent` it follows a power law instead, which halves in the first `half_life`.
    """

    name: str
    base_score_field: str | None
    base_default: float
    half_life: float
    exponent: float | None = None

    @property
    def rate(self) -> float | None:
        """ln 2 / half-life, per second; None for a power law, which has no rate."""
        return None if self.exponent is not None else 0.6931471805599453 / self.half_life


@dataclass(frozen=True, slots=True)
class Certainty:
    """The confidence of a model: the prior mean, its weight in observations, and the evidence cap."""

    name: str
    initial: float = 0.5
    prior_weight: float = 2.0
    cap: float = 20.0


Provider: TypeAlias = Callable[[list[str]], Any]
"""Texts -> array [n, dimensions] or rows of numbers, or something that is awaited for that."""

MOST_EMBEDDED = 8_000
"""Characters of a memory that are embedded."""


@dataclass(frozen=True, slots=True)
class EmbeddingIndex:
    """The vectors of a model: which fields feed them, and who makes them.

    `provider_name` names what vectors of `provider` are. `author`: the field whose value goes before the
    text. `timeout` (seconds) and `least` (cosine) apply to queries and shape nothing that is stored.
    """

    name: str
    source: tuple[str, ...]
    provider: Provider
    provider_name: str
    author: str | None = None
    timeout: float = 5.0
    least: float = -1.0

    @property
    def kind(self) -> str:
        """What two vectors have to agree in to be compared."""
        return f"{self.provider_name} of {'+'.join((self.author or '', *self.source))}"

    def passage(self, values: Mapping[str, Any]) -> str:
        """The text to embed: "author: text", of values or stored forms; "" for none."""
        texts = (values.get(name) for name in self.source)
        text = "\n".join(text for text in texts if text and isinstance(text, str)).strip()
        author = values.get(self.author) if self.author else None
        return (f"{author}: {text}" if text and author else text)[:MOST_EMBEDDED]


@dataclass(frozen=True, slots=True)
class ValidityIndex:
    """The valid time of a model: which fields say from when and until when, and what makes versions.

    `start`, `end`: DatetimeFields, None for none. `key`: fields; empty: only supersession makes versions.
    """

    name: str
    key: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One model. `fields` is in definition order, inherited fields first.

    `partition_by` is empty when the model has one partition. `exact` names the fields that can be
    filtered by equality (tags, `index=True`, further keys, session, author). `fingerprint` covers
    all that shapes stored index entries: format, analyzer, sources, exact fields, uniqueness,
    half-life, expiry, validity. Vectors have a name of their own (`EmbeddingIndex.kind`).
    """

    name: str
    fields: Mapping[str, Field[Any]]
    id_field: str
    partition_by: tuple[str, ...]
    fingerprint: str
    text: TextIndex | None = None
    decay: DecayIndex | None = None
    certainty: Certainty | None = None
    validity: ValidityIndex | None = None
    graph: str | None = None
    embedding: EmbeddingIndex | None = None
    exact: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    importance: str | None = None
    time: str | None = None
    session: str | None = None
    author: str | None = None
    ttl: float | None = None
    cap: int = 0
    cap_is_default: bool = False
    tracks_access: bool = False
    never_record: bool = False
    judge: Judge | None = field(default=None, compare=False)
    """The firewall of the model over what a call names: the reason to refuse it, "" when there is none."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    mirror: PostgresMirror | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """One partition of one model: the only thing a request can address.

    `values` are the partition fields' values as text, in the order of `spec.partition_by`.
    """

    spec: ModelSpec
    values: tuple[str, ...]
