"""Long-term memory: what keeping and recalling costs when rows in PostgreSQL are the truth."""

from benchmarks.longterm.suite import main

__all__ = ["main"]
