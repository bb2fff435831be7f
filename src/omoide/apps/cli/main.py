"""From arguments to an exit code: 0 done, 1 the store failed or the answer is a bad one, 2 misuse.

Every error ends here, as one line with a hint on stderr and never as a traceback: a message of
omoide's own holds no content of a memory, and of any other error only its kind and place are said.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from omoide.apps.cli.output import FAILED, MISUSED, fail, place_of
from omoide.errors import FieldError, ModelError, NotFoundError, OmoideError, QueryError, TransferError

INTERRUPTED = 130
_MISUSES = (QueryError, FieldError, ModelError, NotFoundError, TransferError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    as_json = "--json" in arguments
    try:
        return _run(arguments, as_json)
    except OmoideError as error:
        misused = isinstance(error, _MISUSES) or type(error) is OmoideError
        code = MISUSED if misused else FAILED
        return fail(str(error), error.hint, code, as_json=as_json, kind=type(error).__name__)
    except KeyboardInterrupt:
        return fail("interrupted", "", INTERRUPTED, as_json=as_json, kind="KeyboardInterrupt")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 - the edge of the process: nothing above could report it
        return fail(
            f"internal error: {type(error).__name__} at {place_of(error)}",
            "please report it",
            FAILED,
            as_json=as_json,
            kind=type(error).__name__,
        )


def _run(arguments: list[str], as_json: bool) -> int:
    import typer

    from omoide.apps.cli.commands import app

    usage: type[Any] = typer.BadParameter.__mro__[1]
    try:
        code = typer.main.get_command(app).main(arguments, prog_name="omoide", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage as error:
        return fail(error.format_message(), "omoide --help", MISUSED, as_json=as_json, kind="UsageError")
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
