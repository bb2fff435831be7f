"""The embedded server: who starts it, who stops it, and what a kill at any moment leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omoide.errors import CapabilityError, StoreUnavailableError
from omoide.stores import embedded
from omoide.stores.embedded import EmbeddedServer, default_folder, socket_path_for, stop
from omoide.stores.redis.awire import AsyncWire
from omoide.stores.redis.wire import Command, SyncWire

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no embedded server for Windows")

PROLOGUE = """
import os, signal, sys, time
from pathlib import Path
from omoide.stores.embedded import EmbeddedServer, stop
from omoide.stores.redis.wire import Command, SyncWire

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

def ask(server, *args):
    wire = SyncWire(f"unix://{server.socket_path}")
    try:
        return wire.call([Command(args, b"")])[0]
    finally:
        wire.close()

def say(*values):
    print(*values, flush=True)

folder = Path(sys.argv[1])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "store"
    stop(tmp_path / "store")


class Process:
    """A Python process that runs a script and talks over its pipes."""

    def __init__(self, script: str, folder: Path, **options: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + script, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return str(self.process.stdout.readline().strip())

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self, *, code: int | None = 0) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        ended = self.process.wait(20)
        assert code is None or ended == code


def alive(folder: Path) -> bool:
    return (folder / "server.lock").exists() and embedded._ask(
        socket_path_for(folder), b"PING"
    ) == b"+PONG\r\n"


def call(server: EmbeddedServer, *args: bytes | str | int | float) -> object:
    with contextlib.closing(SyncWire(f"unix://{server.socket_path}")) as wire:
        return wire.call([Command(args, b"")])[0]


HOLD = """
server = EmbeddedServer.acquire(folder)
say(server.pid)
sys.stdin.readline()
"""


def test_what_is_written_survives_the_end_of_the_last_user(folder: Path) -> None:
    server = EmbeddedServer.acquire(folder)
    assert call(server, "SET", "k", "v") == b"OK"
    server.release()
    assert not alive(folder)
    server = EmbeddedServer.acquire(folder)
    assert call(server, "GET", "k") == b"v"
    server.release()


def test_folder_socket_and_settings_are_as_promised(folder: Path) -> None:
    server = EmbeddedServer.acquire(folder)
    try:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(server.socket_path.stat().st_mode) == 0o700
        assert len(os.fsencode(server.socket_path)) <= 100
        for name, value in {
            "port": b"0",
            "appendonly": b"yes",
            "appendfsync": b"everysec",
            "save": b"",
            "slowlog-log-slower-than": b"-1",
            "maxmemory-policy": b"noeviction",
        }.items():
            assert call(server, "CONFIG", "GET", name) == [name.encode(), value]
        assert os.getsid(server.pid) != os.getsid(0)
        for path in folder.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    finally:
        server.release()


def test_calls_in_one_process_share_and_count(folder: Path) -> None:
    first, second = EmbeddedServer.acquire(folder), EmbeddedServer.acquire(folder)
    assert first is second
    first.release()
    assert alive(folder)
    second.release()
    second.release()
    assert not alive(folder)


def test_a_long_folder_gets_a_short_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 60) / ("y" * 60)
    server = EmbeddedServer.acquire(folder)
    try:
        assert server.socket_path.parent != folder
        assert len(os.fsencode(server.socket_path)) <= 100
        assert stat.S_IMODE(server.socket_path.parent.stat().st_mode) == 0o700
        assert call(server, "PING") == b"PONG"
    finally:
        server.release()


def test_awkward_folder_names(tmp_path: Path) -> None:
    folder = tmp_path / "a b\n'\"\\é%"
    server = EmbeddedServer.acquire(folder)
    call(server, "SET", "k", "v")
    server.release()
    assert (folder / "appendonlydir").is_dir()


def test_the_default_folder_is_the_users_or_the_configured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMOIDE_DATA_DIR", "/some/where")
    assert default_folder() == Path("/some/where")
    monkeypatch.delenv("OMOIDE_DATA_DIR")
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
        assert default_folder() == Path("/xdg/omoide")


def test_the_starter_may_exit_first(folder: Path) -> None:
    starter = Process(HOLD, folder)
    pid = starter.line()
    other = Process(HOLD, folder)
    assert other.line() == pid
    starter.go_on()
    starter.end()
    assert alive(folder)
    other.go_on()
    other.end()
    assert not alive(folder)


def test_many_simultaneous_starts_make_one_server(folder: Path) -> None:
    processes = [Process(HOLD, folder) for _ in range(6)]
    assert len({process.line() for process in processes}) == 1
    for process in processes:
        process.go_on()
    for process in processes:
        process.end()
    assert not alive(folder)


def test_a_killed_user_leaves_the_server_to_the_next(folder: Path) -> None:
    process = Process(
        'server = EmbeddedServer.acquire(folder); ask(server, "SET", "k", "v"); say(server.pid)' + HOLD,
        folder,
    )
    pid = process.line()
    process.process.kill()
    process.end(code=-signal.SIGKILL)
    assert alive(folder)
    server = EmbeddedServer.acquire(folder)
    assert server.pid == int(pid)
    assert call(server, "GET", "k") == b"v"
    server.release()
    assert not alive(folder)


def test_ctrl_c_ends_the_program_not_the_server_of_others(folder: Path) -> None:
    script = """
server = EmbeddedServer.acquire(folder)
try:
    say(server.pid)
    time.sleep(30)
except KeyboardInterrupt:
    say(ask(server, "PING").decode())
sys.stdin.readline()
"""
    process = Process(script, folder, start_new_session=True)
    pid = process.line()
    os.killpg(process.process.pid, signal.SIGINT)
    assert process.line() == "PONG"
    other = Process(HOLD, folder)
    assert other.line() == pid
    process.go_on()
    process.end()
    assert alive(folder)
    other.go_on()
    other.end()
    assert not alive(folder)


FORK = """
server = EmbeddedServer.acquire(folder)
say(server.pid)
child = os.fork()
if child == 0:
    sys.stdin.readline()
    say(ask(server, "PING").decode())
    sys.exit(0)
{parent}
"""


def test_a_forked_child_keeps_the_server_when_the_parent_exits(folder: Path) -> None:
    process = Process(FORK.format(parent="sys.exit(0)"), folder)
    process.line()
    process.process.wait(20)
    assert alive(folder)
    process.go_on()
    assert process.line() == "PONG"
    process.end()
    deadline = time.monotonic() + 60
    while alive(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(folder)


def test_a_forked_child_that_exits_leaves_the_server_to_the_parent(folder: Path) -> None:
    parent = 'os.waitpid(child, 0); say(ask(server, "PING").decode())'
    process = Process(FORK.format(parent=parent), folder)
    process.line()
    process.go_on()
    assert [process.line(), process.line()] == ["PONG", "PONG"]
    process.end()
    assert not alive(folder)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.02, 0.03, 0.05, 0.1])
def test_a_user_killed_while_starting_does_not_lead_to_two_servers(folder: Path, delay: float) -> None:
    process = Process(
        "say('go')\nserver = EmbeddedServer.acquire(folder)\nsay(server.pid)\ntime.sleep(30)", folder
    )
    process.line()
    time.sleep(delay)
    process.process.kill()
    process.end(code=-signal.SIGKILL)
    server = EmbeddedServer.acquire(folder)
    try:
        pid = server.pid
        assert call(server, "SET", "k", "v") == b"OK"
        time.sleep(0.05)
        assert server.pid == pid
        assert call(server, "GET", "k") == b"v"
    finally:
        server.release()
    assert not alive(folder)


def test_a_killed_server_is_started_again_and_loses_at_most_what_was_not_synced(folder: Path) -> None:
    server = EmbeddedServer.acquire(folder)
    call(server, "SET", "k", "v")
    call(server, "CONFIG", "SET", "appendfsync", "always")
    call(server, "SET", "l", "w")
    old = server.pid
    os.kill(old, signal.SIGKILL)
    again = EmbeddedServer.acquire(folder)
    try:
        assert again.pid != old
        assert call(again, "MGET", "k", "l") == [b"v", b"w"]
    finally:
        again.release()
        server.release()
    assert not alive(folder)


def test_a_wire_brings_a_server_back_that_was_stopped_under_it(folder: Path) -> None:
    server = EmbeddedServer.acquire(folder)
    with contextlib.closing(SyncWire(f"unix://{server.socket_path}", revive=server.ensure_running)) as wire:
        assert wire.call([Command(("INCR", "n"), b"")]) == [1]
        assert stop(folder)
        assert wire.call([Command(("INCR", "n"), b"")]) == [2]
        os.kill(server.pid, signal.SIGKILL)
        while alive(folder):
            time.sleep(0.01)
        awire = AsyncWire(wire)
        assert isinstance(asyncio.run(awire.call([Command(("INCR", "n"), b"")]))[0], int)
    server.release()
    assert not alive(folder)


def test_starting_while_the_last_user_stops_it(folder: Path) -> None:
    script = "server = EmbeddedServer.acquire(folder); ask(server, 'INCR', 'n'); server.release()\n"
    processes = [Process(script * 15, folder) for _ in range(3)]
    for process in processes:
        process.end()
    assert not alive(folder)
    server = EmbeddedServer.acquire(folder)
    assert call(server, "GET", "n") == b"45"
    server.release()


def test_stop_ends_it_under_its_users_and_says_whether_there_was_one(folder: Path) -> None:
    assert stop(folder) is False
    process = Process(HOLD, folder)
    process.line()
    assert stop(folder) is True
    assert stop(folder) is False
    assert not alive(folder)
    process.go_on()
    process.end()


def test_a_server_that_cannot_start_says_where_its_log_is(folder: Path) -> None:
    server = EmbeddedServer.acquire(folder)
    call(server, "SET", "k", "v")
    server.release()
    (log,) = (folder / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"*1\r\n$x\r\ngarbage" * 10)
    with pytest.raises(StoreUnavailableError) as caught:
        EmbeddedServer.acquire(folder)
    assert str(folder / "server.log") in caught.value.hint


def test_no_binary_is_a_missing_capability(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(embedded.sys, "platform", "win32")
    with pytest.raises(CapabilityError) as caught:
        EmbeddedServer.acquire(folder)
    assert "redis://" in caught.value.hint
    monkeypatch.undo()
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CapabilityError):
        EmbeddedServer.acquire(folder)


def test_a_server_never_starts_with_half_a_configuration(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[bytes] = []
    real = subprocess.run

    def run(*args: Any, **options: Any) -> Any:
        state = os.fstat(options["stdin"].fileno())
        assert stat.S_ISREG(state.st_mode)
        given.append(os.pread(options["stdin"].fileno(), state.st_size, 0))
        return real(*args, **options)

    monkeypatch.setattr("omoide.stores.embedded.subprocess.run", run)
    EmbeddedServer.acquire(folder).release()
    assert b"port" in given[0]
    assert b"unixsocket" in given[0]


def test_a_process_without_standard_streams_keeps_the_lock_of_its_server(folder: Path) -> None:
    code = (
        "import os, sys\n"
        "os.close(0); os.close(1); os.close(2)\n"
        "from pathlib import Path\n"
        "from omoide.stores.embedded import EmbeddedServer\n"
        f"EmbeddedServer.acquire(Path({str(folder)!r}))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert alive(folder)
    assert stop(folder)
    assert not alive(folder)
