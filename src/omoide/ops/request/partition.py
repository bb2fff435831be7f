"""Requests about a partition as a whole, and about the whole store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omoide.model.schema import Scope
from omoide.ops.request.question import Request


@dataclass(frozen=True, slots=True)
class Increment(Request[int]):
    """Add to a named counter of the partition; its new value."""

    scope: Scope
    name: str
    delta: int = 1


@dataclass(frozen=True, slots=True)
class ReadCounters(Request["dict[str, int]"]):
    """All counters of the partition."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Partitions(Request["tuple[PartitionStatus, ...]"]):
    """Every partition of a model (of all models when None), found by scanning the primaries."""

    model: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    model: str
    values: tuple[str, ...]
    live: int
    dead: int
    rows: int
    version: int
    fingerprint: str
    counters: Mapping[str, int]
    damaged: bool = False


@dataclass(frozen=True, slots=True)
class ServerStatus(Request[dict[str, Any]]):
    """Server kind, version, memory, policy, number of primaries, round trips of this process."""


@dataclass(frozen=True, slots=True)
class KeysLeft(Request[int]):
    """How many keys of the partition there are, whatever they hold."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Persistence(Request["tuple[Persisted, ...]"]):
    """What every primary keeps beside its memory."""


@dataclass(frozen=True, slots=True)
class Persisted:
    """One primary: whether it keeps an append-only file, whether that is being rewritten (or about to be) and
    the last rewrite succeeded, and how many replicas follow it."""

    append_only: bool
    rewriting: bool
    rewrite_succeeded: bool
    replicas: int


@dataclass(frozen=True, slots=True)
class RewriteLog(Request[bool]):
    """Begin to rewrite the append-only file of every primary; False where one is under way already."""


@dataclass(frozen=True, slots=True)
class Pause(Request[None]):
    """Wait so many seconds."""

    seconds: float
