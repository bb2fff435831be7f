"""Keeps unimportant records out, visibly: a falsy outcome and a counter, never silence."""

from __future__ import annotations

from typing import Any, ClassVar

from omoide.model.draft import Draft, Refusal
from omoide.model.instance import Instance, spec_of

REASON = "below_threshold"
COUNTER = "filtered"


class WriteFilterMixin:
    """Refuses to store a record whose `write_score()` is below `write_threshold` (or is NaN).

    The outcome is falsy with reason `below_threshold`; the partition's counter `filtered` counts.
    """

    write_threshold: ClassVar[float] = 0.0

    def write_score(self) -> float:
        """The score to compare; by default the importance of the record."""
        importance = spec_of(type(self)).importance if isinstance(self, Instance) else None
        value: Any = None if importance is None else getattr(self, importance, None)
        return 1.0 if value is None else float(value)

    def __omoide_gate__(self, draft: Draft) -> Refusal | None:
        if self.write_score() >= self.write_threshold:
            return None
        return Refusal(REASON, ((COUNTER, 1),))
