"""Programs in processes of their own, at the price of a fork.

    with Python() as python:
        python("-m", "omoide.apps.cli.main", "status")  # as subprocess.run([sys.executable, ...])

A fresh interpreter takes a second of processor time to import the library, to compile the rules of
the firewall and to run its self-test. A server has done so, but has connected to nothing, started
no thread and seen no setting. It forks a child for each call, which takes over the streams, folder
and environment of the call, runs the program as `__main__` and ends as any interpreter does:
threads are joined, exit handlers run, an error is a traceback and code 1.

    test                      server                         child
      request and streams  ->   forks  ------------------->    runs the program
      its id, its code     <-   waits for it  <------------    ends

What a fresh interpreter does otherwise: it has to import what it uses, and it reads variables like
PYTHONPATH anew. A test of either, and one of signals or pipes, starts a real one.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import IO, Any

IMPORTED = (
    "numpy",
    "psycopg",
    "redis",
    "Stemmer",
    "uuid_utils",
    "omoide.apps.cli.commands",
    "omoide.apps.cli.memories",
    "omoide.apps.cli.upkeep",
    "omoide.connection",
    "omoide.core.bounded",
    "omoide.core.entities",
    "omoide.ops.transfer.export",
    "omoide.ops.transfer.importing",
    "omoide.recipes",
    "omoide.stores.embedded",
    "omoide.stores.postgres.mirror",
    "omoide.stores.postgres.upkeep",
    "omoide.stores.redis.store",
)


class Python:
    """Runs programs, one at a time, as long as the `with` block lasts."""

    def __enter__(self) -> Python:
        self._socket, theirs = socket.socketpair()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("OMOIDE_")}
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._server.wait()

    def __call__(
        self,
        *arguments: str,
        stdin: str = "",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 60.0,
    ) -> subprocess.CompletedProcess[str]:
        """What `python *arguments` leaves behind.

        Args:
            arguments: `-m MODULE`, a script, or `-` for a program on stdin, and its arguments;
                `-W error` may come first.
            stdin: What it reads. The three streams are UTF-8.
            cwd: Default: the folder of this process.
            env: All its variables. Default: those of this process.
            timeout: Seconds.
        Raises:
            subprocess.TimeoutExpired: it was killed.
        """
        environment = dict(os.environ if env is None else env)
        request = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "env": environment}
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(4)]
            for file, text in zip(files, (json.dumps(request), stdin), strict=False):
                file.write(text.encode())
                file.seek(0)
            socket.send_fds(self._socket, [b"?"], [file.fileno() for file in files])
            pid = self._number(None)
            try:
                code = self._number(timeout)
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._number(None)
                raise subprocess.TimeoutExpired(arguments, timeout) from None
            return subprocess.CompletedProcess(arguments, code, *map(_content, files[2:]))

    def _number(self, timeout: float | None) -> int:
        self._socket.settimeout(timeout)
        told = self._socket.recv(4, socket.MSG_WAITALL)
        assert told, "the server of processes has ended; its error is on stderr"
        return int.from_bytes(told, signed=True)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _prepare() -> None:
    """Import what programs use, and have scripts, parser and firewall ready; a warning is an error.

    What is there is taken from the garbage collector: a child that looks through it when it ends
    copies it all.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in IMPORTED:
            importlib.import_module(name)
        from omoide.apps.cli.main import main
        from omoide.lua import loader
        from omoide.privacy import scan

        for name in loader.names():
            loader.load(name)
        assert not scan("a heron by the river").blocked
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["nosuchverb"]) == 2
    assert threading.active_count() == 1
    gc.freeze()


def _next(connection: socket.socket) -> list[int]:
    """Serve requests. A child returns with the files of its own, the server at last with none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        _, files, _, _ = socket.recv_fds(connection, 1, 4)
        pid = os.fork() if files else None
        if not pid:
            return files
        for file in files:
            os.close(file)
        connection.sendall(pid.to_bytes(4))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        connection.sendall(code.to_bytes(4, signed=True))


def _become(call: int, *streams: int) -> list[str]:
    """Take over what a request says; its arguments."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with open(call, "rb") as file:
        request: dict[str, Any] = json.load(file)
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    arguments: list[str] = request["arguments"]
    if arguments[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        sys.warnoptions.append("error")
        del arguments[:2]
    return arguments


def _program(what: str, *arguments: str) -> CodeType:
    """The code of a program, with `sys.argv` and `sys.path` as it finds them."""
    if what == "-m":
        name, *rest = arguments
        sys.path.insert(0, os.getcwd())
        found: Any = importlib.util.find_spec(name)
        sys.argv = [found.origin, *rest]
        code: CodeType = found.loader.get_code(name)
        return code
    sys.argv = [what, *arguments]
    sys.path.insert(0, "" if what == "-" else str(Path(what).resolve().parent))
    text = sys.stdin.read() if what == "-" else Path(what).read_text(encoding="utf-8")
    return compile(text, "<stdin>" if what == "-" else what, "exec", dont_inherit=True)


if __name__ == "__main__":
    _prepare()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        files = _next(requests)
    if files:
        code = _program(*_become(*files))
        sys.modules["__main__"] = main = ModuleType("__main__")
        main.__dict__["__file__"] = sys.argv[0]
        exec(code, main.__dict__)
