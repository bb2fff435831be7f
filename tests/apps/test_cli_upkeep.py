"""status, doctor, reindex, prune, stop, bench: the store as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.apps.conftest import Cli

from omoide.stores.embedded import EmbeddedServer

BEFORE = """
from omoide import AutoKeyField, BM25Field, KeyField, Model, StringField

class UpkeepNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    text = StringField(default="")
    kind = StringField(default="idea"{indexed})
    search = BM25Field(source="text")
"""


def _raw(cli: Cli, *command: str) -> object:
    """A command of our own to the store, past the library."""
    import redis

    server = EmbeddedServer.acquire(Path(cli.url.removeprefix("embedded://")))
    client = redis.Redis(unix_socket_path=str(server.socket_path))
    try:
        return client.execute_command(*command)
    finally:
        client.close()
        server.release()


def test_status_of_an_empty_store_creates_nothing(cli: Cli) -> None:
    data = cli("status", "--json").data
    assert data["partitions"] == []
    assert data["url"] == cli.url
    assert cli("doctor", "--json").data["sound"] is True
    assert cli("list", "--agent", "nobody", "--json").data["total"] == 0
    assert _raw(cli, "DBSIZE") == 0


def test_status_lists_partitions(cli: Cli) -> None:
    cli("retain", "a note", "--agent", "ada")
    text = cli("status").out
    assert "DefaultMemory" in text
    assert "ada" in text
    assert len(cli("status", "--model", "DefaultMemory", "--json").data["partitions"]) == 1
    assert len(cli("status", "--model", "omoide.recipes:DefaultMemory", "--json").data["partitions"]) == 1


@pytest.mark.parametrize("verb", ["status", "doctor", "prune"])
def test_a_name_of_which_nothing_is_stored_is_a_misuse(cli: Cli, verb: str) -> None:
    cli("retain", "a note", "--agent", "ada")
    told = cli(verb, "--model", "Nope")
    assert (told.code, told.out) == (2, "")
    assert "no partition of a model 'Nope' is stored" in told.err
    assert told.err.count("\n") == 1
    Path(cli.folder, "notes.py").write_text(BEFORE.format(indexed=""))
    assert cli(verb, "--model", "notes:UpkeepNote").code == 0


def test_doctor_finds_what_was_broken_and_changes_nothing(cli: Cli) -> None:
    cli("retain", "a heron by the river", "--agent", "ada")
    sound = cli("doctor")
    assert sound.code == 0
    assert cli.url.removeprefix("embedded://") in sound.out
    assert "noeviction" in sound.out

    _raw(cli, "HDEL", "omoide:{DefaultMemory/ada}:t", "heron")
    before = _raw(cli, "DUMP", "omoide:{DefaultMemory/ada}:t")
    found = cli("doctor", "--json")
    assert found.code == 1
    (part,) = found.data["partitions"]
    assert part["findings"] == {"missing postings": 1}
    assert _raw(cli, "DUMP", "omoide:{DefaultMemory/ada}:t") == before


def test_reindex_mends_it(cli: Cli) -> None:
    cli("retain", "a heron by the river", "--agent", "ada")
    _raw(cli, "HDEL", "omoide:{DefaultMemory/ada}:t", "heron")
    assert cli("recall", "heron", "--agent", "ada", "--json").data["memories"] == []
    done = cli("reindex", "--all", "--json")
    assert done.data["reindexed"] == [{"model": "DefaultMemory", "partition": ["ada"], "records": 1}]
    assert cli("doctor").code == 0
    assert len(cli("recall", "heron", "--agent", "ada", "--json").data["memories"]) == 1


def test_a_changed_model_is_named_refused_and_reindexed(cli: Cli) -> None:
    source = Path(cli.folder, "notes.py")
    source.write_text(BEFORE.format(indexed=""))
    here = ("--model", "notes:UpkeepNote", "--agent", "ada")
    assert cli("retain", "a heron", *here).code == 0

    source.write_text(BEFORE.format(indexed=", index=True"))
    refused = cli("retain", "an egret", *here)
    assert refused.code == 2
    assert "omoide reindex" in refused.err
    assert len(cli("recall", "heron", *here, "--json").data["memories"]) == 1

    assert cli("reindex", "notes:UpkeepNote", "--agent", "bob").code == 2
    assert cli("reindex", "notes:UpkeepNote").out == "reindexed 1 partitions, 1 records\n"
    assert cli("retain", "an egret", *here).code == 0
    assert cli("list", *here, "--json").data["total"] == 2


def test_reindex_all_says_which_models_it_does_not_know(cli: Cli) -> None:
    Path(cli.folder, "notes.py").write_text(BEFORE.format(indexed=""))
    cli("retain", "a heron", "--model", "notes:UpkeepNote", "--agent", "ada")
    done = cli("reindex", "--all", "--json")
    assert done.code == 1
    assert done.data["unknown"] == ["UpkeepNote"]
    assert "module:Class" in done.err


def test_prune_counts_first(cli: Cli) -> None:
    cli("retain", "a note", "--agent", "ada")
    assert cli("prune", "--dry-run", "--json").data == {"pruned": 0, "dry_run": True}
    assert cli("prune", "--json").data == {"pruned": 0, "dry_run": False}


def test_stop_ends_a_server_that_was_left_behind(tmp_path: Path, cli: Cli) -> None:
    folder = cli.url.removeprefix("embedded://")
    cli("retain", "a note", "--agent", "ada")
    assert cli("stop", "--folder", folder, "--json").data == {"stopped": True, "folder": folder}
    assert cli("stop", "--folder", folder, "--json").data["stopped"] is False
    assert cli("list", "--agent", "ada", "--json").data["total"] == 1


def test_bench_passes_its_arguments_on(cli: Cli) -> None:
    suite = Path(cli.folder, "benchmarks", "echo")
    suite.mkdir(parents=True)
    Path(cli.folder, "benchmarks", "__init__.py").touch()
    Path(suite, "__init__.py").write_text("def main(argv):\n    print(argv)\n    return 3\n")
    ran = cli("bench", "echo", "--sizes", "1,2", "--json", "--help")
    assert (ran.code, ran.out) == (3, "['--sizes', '1,2', '--json', '--help']\n")


def test_bench_says_where_the_suites_are(cli: Cli) -> None:
    ran = cli("bench", "nosuchsuite")
    assert ran.code == 2
    assert "checkout" in ran.err
