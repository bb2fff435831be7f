"""How far a memory is to be trusted: the mean of a Beta distribution that outcomes move.

The store owns the evidence; an update of the record keeps it. An instance shows the mean as it was
when the record was loaded.
"""

from __future__ import annotations

from typing import ClassVar

from omoide.errors import ModelError
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.field import Field, is_number
from omoide.model.instance import Instance, spec_of
from omoide.model.schema import Certainty


class ConfidenceField(Field[float]):
    """Certainty in (0, 1).

    Args:
        initial: Prior mean, in (0, 1); default .5.
        prior_weight: Weight of the prior in observations; default 2.
        cap: Most evidence that counts, prior included; the mean is exact up to it, older evidence
            is forgotten exponentially beyond. Default 20.

    Assigning a value before the first save sets the prior mean of that record; afterwards it is a
    FieldError, since only outcomes move it.
    """

    stored: ClassVar[bool] = False
    role: ClassVar[str] = "certainty"

    def __init__(
        self, *, initial: float | None = None, prior_weight: float | None = None, cap: float | None = None
    ) -> None:
        super().__init__(default=0.5)
        if initial is not None and not (is_number(initial) and 0.0 < initial < 1.0):
            raise ModelError("initial must lie between 0 and 1, both excluded")
        if prior_weight is not None and not (is_number(prior_weight) and 0.0 < prior_weight < 1e6):
            raise ModelError("prior_weight must be a positive number of observations")
        if cap is not None and not (is_number(cap) and (prior_weight or 0.0) <= cap < 1e6):
            raise ModelError("cap must be a number of observations, at least prior_weight")
        self.mean = initial
        self.prior_weight = prior_weight
        self.cap = cap

    def __set__(self, instance: object, value: float) -> None:
        model = type(instance).__name__
        if not isinstance(instance, Instance) or instance._omoide.stored:
            raise self.error(model, "moves by outcomes only, once the record is stored")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
            raise self.error(model, "must be a number between 0 and 1, both excluded")
        instance._omoide.confidence = float(value)

    def absent(self, instance: Instance) -> float:
        state = instance._omoide
        if state.record is not None:
            return state.record.confidence
        if state.confidence is not None:
            return state.confidence
        certainty = spec_of(type(instance)).certainty
        return 0.5 if certainty is None else certainty.initial

    def describe(self, model: str, defaults: Defaults) -> Certainty:
        return Certainty(
            name=self.name,
            initial=self.mean or defaults.confidence_initial,
            prior_weight=self.prior_weight or defaults.confidence_prior,
            cap=self.cap or defaults.confidence_cap,
        )

    def entries(self, draft: Draft, instance: Instance) -> None:
        draft.confidence = instance._omoide.confidence
