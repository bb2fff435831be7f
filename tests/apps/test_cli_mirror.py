"""`omoide rebuild`, `omoide mirror run` and `omoide doctor --repair` over a real PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.processes import Python

import omoide
from omoide import PostgresMirror
from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.recipes import DefaultMemory
from omoide.stores.postgres.session import Script, Step
from omoide.testing import ValkeyServer

MODULE = """
from omoide import PostgresMirror
from omoide.recipes import DefaultMemory

class ShownMemory(DefaultMemory):
    class Meta:
        mirror = PostgresMirror(table="shown")
"""


class ShownMemory(DefaultMemory):
    class Meta:
        mirror = PostgresMirror(table="shown")


@pytest.fixture
def connection(store_url: str, postgres_url: str) -> Iterator[Connection]:
    with omoide.connect(store_url, postgres=postgres_url) as connection:
        for agent in ("ada", "bob"):
            for number in range(3):
                ShownMemory(agent_id=agent, content=f"fact {number}").save()
        yield connection
        for agent in ("ada", "bob"):
            ShownMemory.delete_partition(agent_id=agent)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shown_model.py").write_text(MODULE)
    return tmp_path


class Caller:
    def __init__(self, folder: Path, store: str, postgres: str, python: Python) -> None:
        self.folder, self.python = folder, python
        self.options = ["--url", store, "--postgres", postgres]
        self.environment = {**os.environ, "OMOIDE_DATA_DIR": str(folder / "data")}

    def command(self, *words: str) -> list[str]:
        return ["-m", "omoide.apps.cli.main", *words, *self.options]

    def __call__(self, *words: str) -> tuple[int, Any, str]:
        done = self.python(*self.command(*words, "--json"), cwd=self.folder, env=self.environment)
        return done.returncode, json.loads(done.stdout), done.stderr


@pytest.fixture
def call(folder: Path, valkey_server: ValkeyServer, postgres_url: str, python: Python) -> Caller:
    return Caller(folder, valkey_server.url, postgres_url, python)


def test_rebuild_brings_back_what_was_flushed(
    connection: Connection, valkey_server: ValkeyServer, call: Caller
) -> None:
    valkey_server.flush()
    code, answer, _ = call("rebuild", "shown_model:ShownMemory")
    assert code == 0
    assert [(one["partition"], one["records"]) for one in answer["rebuilt"]] == [(["ada"], 3), (["bob"], 3)]
    assert ShownMemory.count(agent_id="ada") == 3
    code, answer, _ = call("rebuild", "shown_model:ShownMemory", "--agent", "bob")
    assert [one["partition"] for one in answer["rebuilt"]] == [["bob"]]
    code, answer, _ = call("rebuild", "shown_model:ShownMemory", "--agent", "nobody")
    assert (code, answer["error"]["type"]) == (2, "NotFoundError")
    assert "nothing of ShownMemory is stored under agent_id 'nobody'" in answer["error"]["message"]


def test_doctor_compares_and_repairs(
    connection: Connection, valkey_server: ValkeyServer, call: Caller
) -> None:
    model = ("--model", "shown_model:ShownMemory")
    assert call("doctor", *model)[0] == 0
    scope = Scope(ShownMemory.__omoide_spec__, ("ada",))  # type: ignore[arg-type]
    (record, *_) = connection.store.execute(ask.Find(scope))
    shown = connection.store.execute(ask.Applied(scope))
    assert shown is not None
    gone = ask.Apply(scope, shown + 1, shown + 1, ask.Changes(erased=(record.id,)))
    assert connection._store.execute(gone) == shown + 1
    code, answer, _ = call("doctor", *model)
    assert (code, answer["not_compared"]) == (1, [])
    (differs,) = [one for one in answer["mirrored"] if not one["equal"]]
    assert (differs["partition"], differs["rows"], differs["records"]) == (["ada"], 3, 2)
    code, answer, _ = call("doctor", *model, "--repair")
    assert code == 0
    assert ShownMemory.count(agent_id="ada") == 3
    assert call("doctor", *model)[0] == 0


def test_doctor_names_what_it_could_not_compare(connection: Connection, call: Caller) -> None:
    assert DefaultMemory(agent_id="ada", content="of no mirror").save()
    named = ["ShownMemory/ada", "ShownMemory/bob"]
    code, answer, _ = call("doctor")
    assert (code, answer["not_compared"], answer["unknown"]) == (0, [], ["ShownMemory"])
    call.options = call.options[:2]
    code, answer, _ = call("doctor", "--model", "shown_model:ShownMemory")
    assert (code, answer["mirrored"], answer["not_compared"]) == (0, [], named)
    words = call.command("doctor", "--model", "shown_model:ShownMemory")
    told = call.python(*words, cwd=call.folder, env=call.environment).stdout
    assert "2 partitions, the indexes of all are sound" in told
    assert [line for line in told.splitlines() if "not compared" in line] == [
        f"not compared with its rows: {name}" for name in named
    ]


def test_doctor_has_nothing_to_repair_from_without_rows(connection: Connection, call: Caller) -> None:
    code, answer, _ = call("doctor", "--repair")
    assert code == 2
    assert answer["error"]["type"] == "QueryError"


def test_a_projector_runs_until_it_is_told_to_stop(
    connection: Connection, valkey_server: ValkeyServer, call: Caller
) -> None:
    valkey_server.flush()
    code, answer, _ = call("mirror", "run", "shown_model:ShownMemory", "--once")
    assert (code, answer["left"]) == (0, 0)
    worker = subprocess.Popen(
        [sys.executable, *call.command("mirror", "run", "shown_model:ShownMemory", "--json")],
        cwd=call.folder,
        env=call.environment,
        stdout=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 30
        while not _listening(connection) and time.monotonic() < deadline:
            time.sleep(0.05)
        valkey_server.flush()
        ShownMemory(agent_id="ada", content="another").save()
        while time.monotonic() < deadline:
            if connection._store.execute(ask.Applied(_scope("ada"))) is not None:
                break
            time.sleep(0.05)
        assert ShownMemory.count(agent_id="ada") == 4
        worker.send_signal(signal.SIGTERM)
        told, _ = worker.communicate(timeout=30)
        assert worker.returncode == 0
        assert set(json.loads(told)) == {"caught_up", "rebuilt", "unknown"}
    finally:
        worker.kill()
        worker.communicate()


def _listening(connection: Connection) -> bool:
    def script() -> Script[bool]:
        rows = yield Step("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        return bool(rows[0][0])

    return connection.database.run(script)


def _scope(agent: str) -> Scope:
    spec = ShownMemory.__omoide_spec__
    assert spec is not None
    return Scope(spec, (agent,))


def test_a_model_without_a_mirror_is_refused(connection: Connection, call: Caller) -> None:
    for words in (
        ("rebuild", "omoide.recipes:DefaultMemory"),
        ("mirror", "run", "omoide.recipes:DefaultMemory"),
    ):
        code, answer, _ = call(*words)
        assert code == 2
        assert "no mirror" in answer["error"]["message"]
