"""Relevance that halves with time since the last touch.

    relevance = base score x 2^(-age / half_life)

The store keeps the order by ln(base) + rate x touch, which time does not change: top-n is
O(log N + n), nothing is rescored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar

from omoide.errors import ModelError
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.field import Field, is_number
from omoide.model.instance import Instance, spec_of
from omoide.model.schema import DecayIndex
from omoide.types import Seconds


class DecayingSortedField(Field[float]):
    """The decay order of a model; on an instance, its relevance when it was loaded (read only).

    Args:
        base_score_field: A numeric field; without one (or where it is None) the base score is 1.0.
        partition_by: May name the partition, which is implied; anything else is a ModelError.
        half_life: timedelta or seconds; default 30 days. Fixed per partition.
        exponent: Forget by a power law of this exponent (0.5 is usual) that halves in the first half-life:
            base score x (1 + (2^(1/exponent) - 1) age / half_life)^-exponent.

    Cost of the first n: O(log N + n), the order is static. A power law has none: it is read newest first
    until no older record can enter, which is the more records the closer their base scores are.
    A base score <= 0 ranks below every positive one, by last touch, with relevance 0.0.
    """

    stored: ClassVar[bool] = False
    role: ClassVar[str] = "decay"

    def __init__(
        self,
        *,
        base_score_field: str | None = None,
        partition_by: str | tuple[str, ...] | None = None,
        half_life: timedelta | Seconds | None = None,
        exponent: float | None = None,
    ) -> None:
        super().__init__(default=0.0)
        self.base_score_field = base_score_field
        self.partition_by = (partition_by,) if isinstance(partition_by, str) else partition_by
        seconds = half_life.total_seconds() if isinstance(half_life, timedelta) else half_life
        if seconds is not None and not (is_number(seconds) and seconds > 0):
            raise ModelError("half_life must be a positive timedelta or number of seconds")
        if exponent is not None and not (is_number(exponent) and 0.01 <= exponent <= 100):
            raise ModelError("exponent must be a number from 0.01 to 100")
        self.half_life = seconds
        self.exponent = exponent

    def __set__(self, instance: object, value: float) -> None:
        raise self.error(type(instance).__name__, "is computed by the store and cannot be set")

    def absent(self, instance: Instance) -> float:
        record = instance._omoide.record
        if record is not None and record.relevance is not None:
            return record.relevance
        return max(0.0, self._base(instance))

    def settle(self, model: str, fields: Mapping[str, Field[Any]], partition: tuple[str, ...]) -> None:
        if self.partition_by is not None and tuple(self.partition_by) != partition:
            raise ModelError(f"{model}.{self.name}: partition_by can only name the partition of the model")
        base = self.base_score_field
        if base is not None and (base not in fields or not fields[base].numeric):
            raise ModelError(f"{model}.{self.name}: base_score_field must name a FloatField or an IntField")

    def describe(self, model: str, defaults: Defaults) -> DecayIndex:
        return DecayIndex(
            name=self.name,
            base_score_field=self.base_score_field,
            base_default=defaults.base_score,
            half_life=float(self.half_life or defaults.half_life),
            exponent=self.exponent,
        )

    def entries(self, draft: Draft, instance: Instance) -> None:
        draft.base = self._base(instance)

    def _base(self, instance: Instance) -> float:
        value = None if self.base_score_field is None else getattr(instance, self.base_score_field, None)
        if value is not None:
            return float(value)
        decay = spec_of(type(instance)).decay
        return 1.0 if decay is None else decay.base_default
