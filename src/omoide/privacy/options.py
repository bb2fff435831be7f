"""What one scan is asked to do; a module of its own so that a policy costs nothing to import."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from omoide.privacy.verdict import Finding


class Options(NamedTuple):
    """What a scan is asked to do."""

    personal: bool = True
    disabled: frozenset[str] = frozenset()
    most_views: int = 400_000
    """Characters of all decoded views of one text together."""
    extra: tuple[Callable[[str, str], Iterator[Finding]], ...] = ()
    """Rules of the user: (text, lower-cased text) -> findings."""
    allows: Callable[[str], bool] | None = None
    """Whether an exact value is on the allow-list."""
