"""Writes whose budget a short text goes beyond, and clients that die before they sweep."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from omoide.lua import Script
from omoide.lua import load as original
from omoide.stores.redis import calls, mirrored, staging, sweeping, upkeep, writes

BUDGET = 6
_PLACE = f"local budget = {sweeping.AT_ONCE}"
_COPIED = f"local MOST_COPIED = {staging.AT_ONCE}"


def frugal(name: str) -> Script:
    """The verb of that name, with a budget of few postings, and few that a write puts into a rebuild too."""
    script = original(name)
    assert name != "save" or _COPIED in script.source
    assert script.read_only or "budget" not in script.source or _PLACE in script.source
    source = script.source.replace(_PLACE, f"local budget = {BUDGET}")
    return rewritten(script, source.replace(_COPIED, f"local MOST_COPIED = {2 * BUDGET}"))


def rewritten(script: Script, source: str) -> Script:
    """The script with another source."""
    return replace(script, source=source, sha=hashlib.sha1(source.encode()).hexdigest().encode())


def unswept(left: Mapping[bytes, int]) -> Generator[Any, Any, dict[bytes, Any]]:
    """In the place of `swept`: nothing is taken out."""
    yield from ()
    return {}


def use_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts with the small budget from here on."""
    monkeypatch.setattr(calls, "load", frugal)
    monkeypatch.setattr(staging, "AT_ONCE", 4)


def die_before_sweeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sweeps from here on."""
    for module in (writes, upkeep, mirrored):
        monkeypatch.setattr(module, "swept", unswept)
