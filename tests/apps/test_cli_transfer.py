"""export and import from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.apps.conftest import Cli

from omoide.privacy.samples import Maker
from omoide.testing import ValkeyServer

TOKEN = "gh" + "p_" + Maker(23).body("an", 36)


def _retained(cli: Cli, *texts: str, agent: str = "ada") -> None:
    for text in texts:
        assert cli("retain", text, "--agent", agent).code == 0


def test_out_and_in_again(cli: Cli, tmp_path: Path) -> None:
    _retained(cli, "one", "two")
    _retained(cli, "three", agent="bob")
    told = cli("export", "first.jsonl", "--json")
    assert (told.code, told.data["records"], told.data["partitions"]) == (0, 3, 2)
    for agent in ("ada", "bob"):
        cli("forget", "--everything", "--agent", agent)
    told = cli("import", "first.jsonl", "--json")
    assert (told.code, told.data["stored"], told.data["present"]) == (0, 3, 0)
    assert (
        cli("import", "first.jsonl").out == "imported 3 memories of 2 partitions: 0 stored, 3 there already\n"
    )
    assert cli("export", "second.jsonl").code == 0
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()


def test_through_a_pipe(cli: Cli) -> None:
    _retained(cli, "one", "昨日")
    out = cli("export", "-", "--agent", "ada")
    assert out.out.count("\n") == 5
    assert "exported 2 memories" in out.err
    cli("forget", "--everything", "--agent", "ada")
    told = cli("import", "-", stdin=out.out)
    assert (told.code, told.out) == (0, "imported 2 memories of 1 partitions: 2 stored\n")
    assert cli("list", "--agent", "ada", "--json").data["total"] == 2
    assert cli("export", "-", "--json").code == 2


def test_a_wrong_file_is_one_line_and_code_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("not an export\n")
    told = cli("import", "wrong", "--json")
    assert told.code == 2
    assert told.data["error"]["type"] == "TransferError"
    assert told.err.count("\n") == 1
    assert cli("import", "nothing-there").code == 2
    assert cli("import", "wrong", "--from", "xml").code == 2


def test_a_refusal_is_code_1_and_says_why(cli: Cli, tmp_path: Path) -> None:
    lines = [{"content": f"the token is {TOKEN}"}, {"content": "fine"}]
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = cli("import", "lines", "--from", "jsonl", "--agent", "ada")
    assert told.code == 1
    assert told.out == "imported 2 memories of 1 partitions: 1 stored, 1 refused\n"
    assert told.err == "omoide: 1 not stored: credential\n"
    assert TOKEN not in told.out + told.err


def test_fields_are_mapped(cli: Cli, tmp_path: Path) -> None:
    memory = {"id": "m1", "memory": "from mem0", "user_id": "ada", "metadata": {"topic": "x"}}
    (tmp_path / "mem0.json").write_text(json.dumps({"results": [memory]}))
    options = ("--from", "mem0", "--field", "user_id=agent_id")
    told = cli("import", "mem0.json", *options)
    assert told.out == "imported 1 memories of 1 partitions: 1 stored\n"
    assert told.err == "left out: metadata of 1 memories\n"
    assert cli("import", "mem0.json", *options, "--field", "metadata.topic=tags").code == 0
    assert cli("import", "mem0.json", *options, "--field", "nonsense").code == 2


def test_the_cap_is_lifted_on_request(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(json.dumps({"content": f"note {number}"}) + "\n" for number in range(4))
    (tmp_path / "lines").write_text(lines)
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "3")
    told = cli("import", "lines", "--from", "jsonl", "--agent", "ada")
    assert told.code == 2
    assert "holds 0 records and would hold 4, more than its cap of 3" in told.err
    assert cli("import", "lines", "--from", "jsonl", "--agent", "ada", "--lift-cap").code == 0
    assert cli("list", "--agent", "ada", "--json").data["total"] == 4


def test_a_popoto_keyspace_is_named_by_its_url(cli: Cli, store_url: str, valkey_server: ValkeyServer) -> None:
    assert valkey_server.socket_path  # popoto keeps its records on one server
    told = cli("import", store_url, "--from", "popoto", "--json")
    assert told.code == 2
    assert "popoto has no records of 'DefaultMemory' there" in told.data["error"]["message"]
    import redis

    client = redis.Redis(unix_socket_path=str(valkey_server.socket_path))
    key = "DefaultMemory:ada:1"
    client.sadd("$Class:DefaultMemory", key)
    client.hset(key, mapping={"memory_id": b"\xa11", "agent_id": b"\xa3ada", "content": b"\xa2hi"})
    client.close()
    told = cli("import", store_url, "--from", "popoto")
    assert told.out == "imported 1 memories of 1 partitions: 1 stored\n"
    assert cli("list", "--agent", "ada").out == "1  hi\n"


def test_an_export_of_nothing_leaves_the_backup(cli: Cli, tmp_path: Path) -> None:
    _retained(cli, "one")
    assert cli("export", "backup", "--agent", "ada").code == 0
    backup = (tmp_path / "backup").read_bytes()
    told = cli("export", "backup", "--agent", "adda", "--json")
    assert (told.code, told.data["error"]["type"]) == (2, "NotFoundError")
    assert told.data["error"]["message"] == "nothing of DefaultMemory is stored under agent_id 'adda'"
    assert cli("export", "backup", "--namespace", "elsewhere").code == 2
    assert (tmp_path / "backup").read_bytes() == backup
    assert [path.name for path in tmp_path.glob("backup*")] == ["backup"]
    stream = cli("export", "-", "--agent", "adda")
    assert (stream.code, stream.out) == (2, "")
    assert TOKEN not in cli("export", "backup", "--agent", TOKEN).err


@pytest.mark.parametrize("verb", [("scan",), ("reindex", "omoide.recipes:DefaultMemory")])
def test_upkeep_of_a_partition_that_is_not_there_is_refused(cli: Cli, verb: tuple[str, ...]) -> None:
    _retained(cli, "one")
    told = cli(*verb, "--agent", "adda")
    assert (told.code, told.out) == (2, "")
    assert "nothing of DefaultMemory is stored under agent_id 'adda'" in told.err
    assert cli(*verb, "--agent", "ada").code == 0


def test_forgetting_nobody_is_told(cli: Cli) -> None:
    told = cli("forget", "--everything", "--agent", "adda")
    assert (told.code, told.err) == (1, "omoide: nothing was stored there\n")
    assert cli("forget", "--everything", "--certify", "--agent", "adda").code == 0
