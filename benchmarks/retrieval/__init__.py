"""Retrieval: whether the memories that answer a question come back, and how far up."""

from benchmarks.retrieval.suite import main

__all__ = ["main"]
