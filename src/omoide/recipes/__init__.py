"""Ready-made models and the memory loop around them."""

from __future__ import annotations

from omoide.recipes.default_memory import DefaultMemory
from omoide.recipes.extractors import Extractor, raw_turn, statements
from omoide.recipes.reports import OutcomeReport
from omoide.recipes.subconscious_memory import SubconsciousMemory
from omoide.recipes.thread_memory import Thread, ThreadMemory

__all__ = [
    "DefaultMemory",
    "Extractor",
    "OutcomeReport",
    "SubconsciousMemory",
    "Thread",
    "ThreadMemory",
    "raw_turn",
    "statements",
]
