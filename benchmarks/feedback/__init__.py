"""Feedback: whether outcomes reported for some questions help other questions, or the same again."""

from benchmarks.feedback.suite import main

__all__ = ["main"]
