"""The rule files: TOML data inside the package, read once, at the first scan and never at import."""

from __future__ import annotations

from functools import cache
from typing import Any

RULE_FILES = ("tokens", "shapes", "names", "speech", "offrecord", "placeholders")


@cache
def read(name: str) -> dict[str, Any]:
    """Parse `rules/<name>.toml`."""
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files("omoide.privacy").joinpath("rules", f"{name}.toml").read_text("utf-8"))


def words(block: str) -> tuple[str, ...]:
    """Split a block of words, in the order of the file, each once."""
    return tuple(dict.fromkeys(block.split()))
