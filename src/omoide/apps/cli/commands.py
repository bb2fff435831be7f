"""Every verb of `omoide`: its options and its help. What it does is imported when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omoide.apps.cli.output import give
from omoide.apps.cli.target import (
    DEFAULT_MODEL,
    Narrowing,
    given_partition,
    model_at,
    named,
    opened,
    partition_of,
    reader_for,
)
from omoide.errors import QueryError

app = typer.Typer(
    name="omoide",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Store: redis://, rediss://, unix://, embedded:///folder."),
]
Namespace = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help="First part of every key.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Postgres = Annotated[
    str | None,
    typer.Option(
        "--postgres", metavar="URL", help="PostgreSQL: postgresql://, embedded; else OMOIDE_POSTGRES."
    ),
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Whose memories: value of the partition field.")
]
Partition = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="NAME=VALUE", help="A partition field, where there are several."),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only with this tag; repeatable.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only what happened then or later; ISO 8601.")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Only what happened before; ISO 8601.")
]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Only what was valid then; ISO 8601.")
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="ID", help="Leave out this memory; repeatable.")
]
_MODEL = "The model, module:Class; status, doctor and prune take the name it is stored under as well."
ModelPath = Annotated[str, typer.Option("--model", metavar="MODEL", help=_MODEL)]
ModelName = Annotated[str | None, typer.Option("--model", metavar="MODEL", help=_MODEL)]


def _version(wanted: bool) -> None:
    if wanted:
        from omoide.__about__ import __version__

        print(f"omoide {__version__}")
        raise typer.Exit


@app.callback()
def omoide(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Memory for agents on Redis or Valkey."""


@app.command()
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="FOLDER", help="Folder of the demo's store; new, empty or of a demo before."
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the folder at the end.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show what omoide does, on a conversation that comes with it."""
    from omoide.apps.cli.demo import demo as run

    return give(run(folder, keep=keep), as_json=as_json)


@app.command()
def status(
    model: ModelName = None, url: Url = None, namespace: Namespace = None, as_json: AsJson = False
) -> int:
    """Show the server, and every partition with its counters."""
    from omoide.apps.cli import upkeep

    with opened(url, namespace) as connection:
        return give(upkeep.status(connection, named(model)), as_json=as_json)


@app.command()
def doctor(
    model: ModelName = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild mirrored partitions that differ from their rows.")
    ] = False,
    url: Url = None,
    postgres: Postgres = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Compare every index with its records, and a mirrored model with its rows.

    Changes nothing without --repair. Exit code 1 when they diverge. For rows, name the class: module:Class.
    """
    from omoide.apps.cli import upkeep

    with opened(url, namespace, postgres=postgres) as connection:
        return give(upkeep.doctor(connection, named(model), repair=repair), as_json=as_json)


@app.command()
def rebuild(
    models: Annotated[list[str], typer.Argument(metavar="MODULE:CLASS", help="Mirrored models to rebuild.")],
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this partition.")] = None,
    url: Url = None,
    postgres: Postgres = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Rebuild mirrored models in the store from their rows in PostgreSQL.

    Readers are not disturbed, and no write is lost.
    """
    from omoide.apps.cli import mirror as verbs

    classes = [model_at(path) for path in dict.fromkeys(models)]
    with opened(url, namespace, postgres=postgres):
        return give(verbs.rebuild(classes, agent), as_json=as_json)


@app.command()
def mirror(
    action: Annotated[str, typer.Argument(metavar="run", help="What to do: run.")],
    models: Annotated[
        list[str], typer.Argument(metavar="MODULE:CLASS", help="Mirrored models to look after.")
    ],
    once: Annotated[bool, typer.Option("--once", help="Show what waits now, and end.")] = False,
    url: Url = None,
    postgres: Postgres = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Show the store what writers left behind, until stopped.

    Several may run at once.
    """
    from omoide.apps.cli import mirror as verbs

    if action != "run":
        raise QueryError(f"mirror does not know {action!r}", hint="omoide mirror run module:Class")
    classes = [model_at(path) for path in dict.fromkeys(models)]
    with opened(url, namespace, postgres=postgres) as connection:
        return give(verbs.run(connection, classes, once=once), as_json=as_json)


@app.command()
def reindex(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODULE:CLASS", help="Models to rebuild.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All partitions: DefaultMemory and the models named.")
    ] = False,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this partition.")] = None,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Rebuild indexes from records, after a model changed.

    Readers are not disturbed; what was cut short is taken up.
    """
    from omoide.apps.cli import upkeep

    paths = [*(models or []), *([DEFAULT_MODEL] if everything else [])]
    classes = [model_at(path) for path in dict.fromkeys(paths)]
    with opened(url, namespace):
        return give(upkeep.reindex(classes, agent, everything=everything), as_json=as_json)


@app.command()
def embed(
    model: Annotated[str, typer.Argument(metavar="MODULE:CLASS", help="A model with an EmbeddingField.")],
    missing: Annotated[
        bool, typer.Option("--missing/--all", help="Those without a vector, or all of them anew.")
    ] = True,
    agent: Agent = None,
    partition: Partition = None,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Make the vectors that memories lack, of all partitions of the model or of one.

    They lack one when the provider failed, was changed, or came later. What was cut short is taken up.
    Exit code 1 when some could not be embedded.
    """
    from omoide.apps.cli.embed import embed as run

    kind = model_at(model)
    where = given_partition(kind, agent, partition)
    with opened(url, namespace):
        return give(run(kind, where, again=not missing), as_json=as_json)


@app.command()
def prune(
    model: ModelName = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them and erase nothing.")] = False,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Erase every record whose time to live is over."""
    from omoide.apps.cli import upkeep

    with opened(url, namespace):
        return give(upkeep.prune(named(model), dry_run=dry_run), as_json=as_json)


@app.command()
def maintain(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count them and erase nothing.")] = False,
    days: Annotated[
        float, typer.Option("--days", metavar="N", min=0, help="Episodes older than this go.")
    ] = 90,
    per_resource: Annotated[
        int, typer.Option("--per-resource", metavar="N", min=0, help="The newest so many of each stay.")
    ] = 5_000,
    in_all: Annotated[
        int | None,
        typer.Option("--in-all", metavar="N", min=0, help="The newest so many of all together stay."),
    ] = None,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Erase the episodes of long-term memory that have had their time; facts stay.

    For a scheduler, once a day. It needs the PostgreSQL that OMOIDE_POSTGRES names.
    """
    from omoide.apps.cli import retention

    with opened(url, namespace):
        answer = retention.maintain(dry_run=dry_run, days=days, per_resource=per_resource, in_all=in_all)
        return give(answer, as_json=as_json)


@app.command()
def scan(
    model: ModelPath = DEFAULT_MODEL,
    agent: Agent = None,
    partition: Partition = None,
    action: Annotated[
        str,
        typer.Option("--action", metavar="ACTION", help="What is blocked: report, quarantine or erase it."),
    ] = "report",
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="CURSOR", help="Go on where a run that was cut short had got to."),
    ] = None,
    threads: Annotated[
        bool, typer.Option("--threads", help="The messages of threads, of all resources or of --agent.")
    ] = False,
    url: Url = None,
    postgres: Postgres = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Run the never-record firewall over stored memories.

    All partitions of the model, or one. Exit code 1 when something blocked is still there.
    """
    from omoide.apps.cli.scan import scan as run
    from omoide.apps.cli.scan import scan_threads

    if threads:
        if partition or model != DEFAULT_MODEL:
            raise QueryError("threads belong to no model: --threads goes with --agent alone")
        with opened(url, namespace, postgres=postgres):
            return give(scan_threads(agent, action=action, resume=resume), as_json=as_json)
    kind = model_at(model)
    where = given_partition(kind, agent, partition)
    with opened(url, namespace, postgres=postgres):
        return give(run(kind, where, action=action, resume=resume), as_json=as_json)


@app.command()
def recall(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="What to recall for, in any script.")
    ] = None,
    agent: Agent = None,
    partition: Partition = None,
    order: Annotated[
        str | None,
        typer.Option("--order", metavar="ORDER", help="Without a query: recent, important or relevant."),
    ] = None,
    tags: Tags = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    exclude: Exclude = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Most memories.")] = 8,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", metavar="N", min=0, help="Most tokens of the block.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Print the block for a prompt: content, labelled, structured, xml or natural.",
        ),
    ] = None,
    fallback: Annotated[
        str | None,
        typer.Option("--fallback", metavar="NAME", help="recent: the newest memories when none matches."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of every score.")] = False,
    deliver: Annotated[
        bool, typer.Option("--deliver", help="Count it as given to a prompt, under a turn id.")
    ] = False,
    model: ModelPath = DEFAULT_MODEL,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Find the memories that answer a query, best first; or the first in an order."""
    from omoide.apps.cli import memories

    kind = model_at(model)
    where = partition_of(kind, agent, partition or ())
    with opened(url, namespace, reader=reader_for(kind)):
        answer = memories.recall(
            kind,
            query,
            where,
            limit=limit,
            max_tokens=max_tokens,
            format=format,
            fallback=fallback,
            explain=explain,
            deliver=deliver,
            order=order,
            narrowing=Narrowing(tags or (), since, until, as_of, exclude or ()),
        )
        return give(answer, as_json=as_json)


@app.command()
def retain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads stdin.")],
    agent: Agent = None,
    partition: Partition = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A further field; repeatable.")
    ] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; repeatable.")] = None,
    supersedes: Annotated[
        str | None,
        typer.Option("--supersedes", metavar="ID", help="The version that this one follows and ends."),
    ] = None,
    model: ModelPath = DEFAULT_MODEL,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Store a memory and print its id.

    Exit code 1 when it was refused.
    """
    from omoide.apps.cli import memories

    kind = model_at(model)
    where = partition_of(kind, agent, partition or ())
    with opened(url, namespace):
        answer = memories.retain(
            kind, text, where, values=values or (), tags=tags or (), supersedes=supersedes
        )
        return give(answer, as_json=as_json)


@app.command()
def forget(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Memories to erase.")] = None,
    agent: Agent = None,
    partition: Partition = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="The whole partition, counters and quarantine included.")
    ] = False,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify", help="Wait until the store's files hold nothing of it, and list what may still do."
        ),
    ] = False,
    model: ModelPath = DEFAULT_MODEL,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Erase memories for good, with every trace.

    Exit code 1 when one was not there, or nothing of a partition that is not to be certified.
    """
    from omoide.apps.cli import memories

    kind = model_at(model)
    where = partition_of(kind, agent, partition or ())
    with opened(url, namespace):
        answer = memories.forget(kind, ids or (), where, everything=everything, certify=certify)
        return give(answer, as_json=as_json)


@app.command("list")
def list_memories(
    agent: Agent = None,
    partition: Partition = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Most memories.")] = 20,
    offset: Annotated[
        int, typer.Option("--offset", metavar="N", min=0, help="Leave out the first ones.")
    ] = 0,
    order: Annotated[
        str,
        typer.Option(
            "--order",
            metavar="ORDER",
            help="time, importance, confidence, valid_from; a leading - descends.",
        ),
    ] = "-time",
    tags: Tags = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    exclude: Exclude = None,
    history: Annotated[
        bool, typer.Option("--history", help="Every version, what is not valid now included.")
    ] = False,
    model: ModelPath = DEFAULT_MODEL,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """List memories with their ids, newest first."""
    from omoide.apps.cli import memories

    kind = model_at(model)
    where = partition_of(kind, agent, partition or ())
    with opened(url, namespace):
        narrowing = Narrowing(tags or (), since, until, as_of, exclude or ())
        answer = memories.listed(
            kind, where, limit=limit, offset=offset, order=order, narrowing=narrowing, history=history
        )
        return give(answer, as_json=as_json)


@app.command("export")
def export_memories(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to write; - is stdout.")],
    model: ModelPath = DEFAULT_MODEL,
    agent: Agent = None,
    partition: Partition = None,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Write memories with all that is kept of them to a file, one a line.

    All partitions of the model, or one.
    """
    from omoide.apps.cli import transfer

    kind = model_at(model)
    where = given_partition(kind, agent, partition)
    with opened(url, namespace):
        return give(transfer.export(kind, file, where, as_json=as_json), as_json=as_json)


@app.command("import")
def import_memories(
    source: Annotated[
        str,
        typer.Argument(metavar="FILE", help="File to read; - is stdin; for popoto the URL of its store."),
    ],
    file_format: Annotated[
        str,
        typer.Option("--from", metavar="FORMAT", help="Who wrote it: omoide, mem0, jsonl or popoto."),
    ] = "omoide",
    model: ModelPath = DEFAULT_MODEL,
    agent: Agent = None,
    partition: Partition = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="NAME=FIELD",
            help="Which field a name of mem0 or jsonl is; NAME= leaves it out; repeatable.",
        ),
    ] = None,
    saved_as: Annotated[
        str | None,
        typer.Option("--saved-as", metavar="NAME", help="Name of the model there, where it is another."),
    ] = None,
    lift_cap: Annotated[
        bool, typer.Option("--lift-cap", help="Take more records than a partition may hold.")
    ] = False,
    url: Url = None,
    namespace: Namespace = None,
    as_json: AsJson = False,
) -> int:
    """Store the memories of a file; what is there already stays as it is.

    Everything is checked before anything is written. Exit code 1 when a memory was refused.
    """
    from omoide.apps.cli import transfer

    kind = model_at(model)
    with opened(url, namespace):
        answer = transfer.take_in(
            kind,
            source,
            file_format,
            given_partition(kind, agent, partition),
            fields=fields or (),
            saved_as=saved_as,
            lift_cap=lift_cap,
        )
        return give(answer, as_json=as_json)


@app.command()
def stop(
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="FOLDER", help="Folder of the store; default: this user's."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Stop the embedded server; what is stored stays on disk."""
    from omoide.apps.cli import upkeep

    return give(upkeep.stop(folder), as_json=as_json)


@app.command(
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
)
def bench(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="Name of the suite: speed, retrieval, ...")],
) -> int:
    """Run a benchmark suite of a checkout.

    What follows its name goes to the suite.
    """
    from omoide.apps.cli.bench import bench as run

    return run(suite, context.args)
