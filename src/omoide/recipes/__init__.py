"""Ready-made models and the memory loop around them."""

from __future__ import annotations

from omoide.recipes.default_memory import DefaultMemory
from omoide.recipes.extractors import Extractor, raw_turn, statements
from omoide.recipes.long_term_memory import LongTermMemory
from omoide.recipes.longterm.maintenance import Maintained, aledger, amaintain, ledger, maintain
from omoide.recipes.longterm.record import LongTermRecord
from omoide.recipes.longterm.switches import LongTermSettings
from omoide.recipes.longterm.tools import Tool, Toolset, tools_of
from omoide.recipes.reports import OutcomeReport
from omoide.recipes.subconscious_memory import SubconsciousMemory
from omoide.recipes.thread_memory import Thread, ThreadMemory
from omoide.recipes.thread_screening import ascan_threads, scan_threads

__all__ = [
    "DefaultMemory",
    "Extractor",
    "LongTermMemory",
    "LongTermRecord",
    "LongTermSettings",
    "Maintained",
    "OutcomeReport",
    "SubconsciousMemory",
    "Thread",
    "ThreadMemory",
    "Tool",
    "Toolset",
    "aledger",
    "amaintain",
    "ascan_threads",
    "ledger",
    "maintain",
    "raw_turn",
    "scan_threads",
    "statements",
    "tools_of",
]
