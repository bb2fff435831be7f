"""Recall for a prompt: rank, fetch, fit into a budget, render as fallible context."""

from __future__ import annotations

from omoide.context.assembler import ContextAssembler
from omoide.context.missing import Missing
from omoide.context.result import AssemblyResult, Item

__all__ = ["AssemblyResult", "ContextAssembler", "Item", "Missing"]
