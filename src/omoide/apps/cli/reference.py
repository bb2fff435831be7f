"""The reference page of the command line, made from the commands themselves.

python -m omoide.apps.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import typer

from omoide.apps.cli.commands import app

WIDTH = 88

_OPENING = """\
# Command line

`omoide VERB --help`, or `-h`, shows what is printed here; `omoide --version` prints the version.
Every verb is a thin face of the library: the right column of the table is its Python twin.

"""

_TWINS = {
    "demo": "omoide.apps.cli.demo.demo",
    "status": "omoide.status",
    "doctor": "omoide.doctor, omoide.compare",
    "rebuild": "omoide.rebuild",
    "mirror": "omoide.Connection.projector",
    "reindex": "omoide.reindex",
    "embed": "omoide.embed",
    "prune": "omoide.prune",
    "maintain": "omoide.recipes.maintain",
    "scan": "omoide.scan_memories",
    "recall": "omoide.ContextAssembler.assemble",
    "retain": "omoide.Model.save",
    "forget": "omoide.Model.delete_many, omoide.forget",
    "list": "omoide.Model.query",
    "export": "omoide.export_memories",
    "import": "omoide.import_memories, omoide.import_popoto",
    "stop": "omoide.stores.embedded.stop",
    "bench": "benchmarks.<suite>.main",
}

_CLOSING = """
## Output and exit codes

The answer is on stdout, progress and notes are on stderr. With `--json` stdout holds exactly one
JSON object, also when something went wrong: `{"error": {"type", "message", "hint"}}`.

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | the store failed, or the answer is a bad one: a divergence, a refused memory, an id that was not there |
| 2 | the call cannot be meant: unknown option, model or partition, bad URL, a value that breaks a rule |
"""


def reference() -> str:
    """The whole page, Markdown."""
    rows = [f"| [`{name}`](#{name}) | `{twin}` |" for name, twin in _TWINS.items()]
    table = "\n".join(["| verb | in Python |", "| --- | --- |", *rows])
    blocks = [f"\n## {name}\n\n```text\n{help_of(name)}\n```\n" for name in verbs()]
    return _OPENING + table + "\n" + "".join(blocks) + _CLOSING


def verbs() -> tuple[str, ...]:
    """Names of the verbs, in the order of the help."""
    command = typer.main.get_group(app)
    return tuple(command.list_commands(typer.Context(command)))


def help_of(name: str) -> str:
    """What `omoide NAME --help` prints, 88 columns wide."""
    command = typer.main.get_group(app)
    outer = typer.Context(command, info_name="omoide", **command.context_settings)
    verb = command.get_command(outer, name)
    if verb is None:
        raise LookupError(name)
    inner = typer.Context(verb, parent=outer, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    return verb.get_help(inner).rstrip()


if __name__ == "__main__":
    print(reference(), end="")
