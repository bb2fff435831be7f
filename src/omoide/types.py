"""Aliases that carry a unit or a shape in their name."""

from __future__ import annotations

from typing import Any, TypeAlias

Milliseconds: TypeAlias = int
"""Instant: milliseconds since 1970-01-01T00:00Z. Duration: milliseconds."""

Seconds: TypeAlias = float
"""Instant or duration in seconds."""

Stored: TypeAlias = Any
"""A value MessagePack can hold: None, bool, int64, float, str, bytes, list, dict[str, ...]."""

TermWeights: TypeAlias = dict[str, float]
"""Query term -> its weight (1.0 for a term of the query itself)."""
