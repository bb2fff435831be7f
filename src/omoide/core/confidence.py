"""Certainty of a memory as a Beta distribution over "it is right".

    prior     alpha = initial * weight,  beta = (1 - initial) * weight
    evidence  alpha += support,          beta += against
    cap       if alpha + beta > cap: both *= cap / (alpha + beta)
    mean      alpha / (alpha + beta)

Up to the cap the mean is exact. Beyond it scaling keeps the mean of that moment and lets every
later piece of evidence weigh the same: old evidence fades exponentially, by cap / (cap + weight)
an outcome, so a memory that was right a hundred times can still be unlearnt.

The Lua scripts compute the same; if you change a rule here, change it there.
"""

from __future__ import annotations

from typing import NamedTuple


class Beta(NamedTuple):
    """Evidence for (`alpha`) and against (`beta`), the prior included."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        """The confidence, in (0, 1)."""
        return self.alpha / (self.alpha + self.beta)


def prior(initial: float, weight: float) -> Beta:
    """The state before any outcome: mean `initial` in (0, 1), worth `weight` > 0 observations."""
    return Beta(initial * weight, (1.0 - initial) * weight)


def update(state: Beta, support: float, against: float, cap: float) -> Beta:
    """Add evidence (both >= 0) and scale back to at most `cap` in total."""
    alpha, beta = state.alpha + support, state.beta + against
    total = alpha + beta
    if total > cap:
        alpha, beta = alpha * (cap / total), beta * (cap / total)
    return Beta(alpha, beta)


__all__ = ["Beta", "prior", "update"]
