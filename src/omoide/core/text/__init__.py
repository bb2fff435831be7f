"""Text to terms: the analyzer, and what a text says about time."""

from __future__ import annotations

from omoide.core.text.analyzer import Analyzer, TermCounts, default_analyzer

__all__ = ["Analyzer", "TermCounts", "default_analyzer"]
