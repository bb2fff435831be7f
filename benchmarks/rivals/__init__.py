"""The systems that can be measured, by the name the command line uses."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.rivals.system import MissingSystemError, Ranker, Store, Turn

NAMES = (
    "omoide",
    "omoide-core",
    "omoide-rows",
    "omoide-hybrid",
    "popoto",
    "rank-bm25",
    "bm25s",
    "postgres",
)

__all__ = ["NAMES", "MissingSystemError", "Ranker", "Store", "Turn", "ranker", "store"]


def store(name: str) -> Store:
    """Return the system as something that saves and recalls.

    Raises:
        MissingSystemError: the package is not installed, or the system has no such side.
    """
    made: Store = _build(name, "store")
    return made


def ranker(name: str) -> Ranker:
    """Return the system as something that ranks the turns of a conversation.

    Raises:
        MissingSystemError: as `store`.
    """
    made: Ranker = _build(name, "ranker")
    return made


def _build(name: str, side: str) -> Any:
    if name not in NAMES:
        raise MissingSystemError(f"no system named {name!r}; there are {', '.join(NAMES)}")
    try:
        module = import_module(f"benchmarks.rivals.{name.replace('-', '_')}")
        build = getattr(module, side, None)
        if build is None:
            raise MissingSystemError(f"{name} is not measured as a {side}")
        return build()
    except ImportError as error:
        raise MissingSystemError(
            f"{name} needs a package that is not installed ({error.name}): pip install '.[bench]'"
        ) from error
