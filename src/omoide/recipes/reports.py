"""What an outcome report came to, and how a failure of memory is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omoide.errors import StoreError, StoreTimeoutError

FAILED = "failed"
TIMEOUT = "timeout"
UNAVAILABLE = "unavailable"
UNKNOWN_TURN = "unknown_turn"


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """`states`: id -> `applied`, `missing` (no such record) or `repeated` (told before in this turn).

    `error` is `unavailable`, `timeout` or `failed` when the report did not get through, `unknown_turn`
    when there is no such turn. True when it did.
    """

    states: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None

    def __bool__(self) -> bool:
        return self.error is None


def name_failure(error: BaseException) -> str:
    """`timeout` for a blown deadline, `unavailable` for a store out of reach, else `failed`."""
    if isinstance(error, StoreTimeoutError | TimeoutError):
        return TIMEOUT
    if isinstance(error, StoreError | OSError):
        return UNAVAILABLE
    return FAILED


__all__ = ["FAILED", "TIMEOUT", "UNAVAILABLE", "UNKNOWN_TURN", "OutcomeReport", "name_failure"]
