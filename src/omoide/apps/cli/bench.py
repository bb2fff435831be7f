"""`omoide bench`: hand the rest of the command line to a suite of the checkout."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from omoide.errors import QueryError


def bench(suite: str, arguments: Sequence[str]) -> int:
    """Run `benchmarks.<suite>.main(arguments)`; its exit code.

    The suites are not part of the installed package: the working folder is searched as well.

    Raises:
        QueryError: there is no such suite here.
    """
    if not suite.isidentifier():
        raise QueryError(f"{suite!r} is no name of a suite", hint=_names())
    here = str(Path.cwd())
    if here not in sys.path and Path("benchmarks", "__init__.py").is_file():
        sys.path.insert(0, here)
    wanted = f"benchmarks.{suite}"
    try:
        module = import_module(wanted)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{wanted}.".startswith(f"{error.name}."):
            raise QueryError(
                f"the suite {suite!r} needs {error.name!r}", hint="pip install '.[bench]'"
            ) from None
        raise QueryError(f"there is no suite {suite!r} here", hint=_names()) from None
    run = getattr(module, "main", None)
    if run is None:
        raise QueryError(f"there is no suite {suite!r} here", hint=_names())
    return int(run(list(arguments)) or 0)


def _names() -> str:
    """What can be run here, or how to get it."""
    found = sorted(path.parent.name for path in Path("benchmarks").glob("*/__main__.py"))
    if found:
        return f"suites: {', '.join(found)}"
    return "benchmarks come with a checkout of omoide: run this in its top folder"
