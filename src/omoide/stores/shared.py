"""A server of our own: one per folder, shared by processes, ended by the last of them.

                         users.lock                       server.lock
    process A  ── shared ──┐                               ▲ exclusive, inherited
    process B  ── shared ──┼─ last one out: exclusive,     │ by the server and held
    process C  ── shared ──┘  then it ends the server      server ── its files, its socket

Both are `flock` locks on files in the folder, so the kernel drops them with their holder.

* `server.lock` is locked before the server is started and its descriptor handed down to it.
  Whoever gets that lock therefore knows that no server runs on the folder, however the
  previous one ended; two simultaneous starts cannot both get it. Being able to lock it is
  also how the end of a server is told: no process ids, which zombies and reuse make lie.
* `users.lock` is held shared by every process that uses the folder. On the way out a process
  tries to make its lock exclusive: that works for the last one only, which stops the server.
  A newcomer waits for its shared lock until that is done, then starts a fresh server. A killed
  process stops nothing: the server stays, and is there for the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
import threading
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Self

from omoide.errors import CapabilityError, StoreError, StoreTimeoutError, StoreUnavailableError

__all__ = ["Answer", "SharedServer", "private_folder"]

START_SECONDS = 15.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.005


class Answer(Enum):
    """What a server says when it is asked whether it is there."""

    NOTHING = "nothing"
    LOADING = "loading"
    READY = "ready"


class SharedServer:
    """The server of a folder, as one process holds it.

    Processes share the server, and calls in one process share this object: `acquire` counts,
    `release` counts down, and the exit of the process releases what is left.

    Attributes: `folder`.
    """

    title = "the embedded server"
    _held: dict[tuple[type[SharedServer], Path], SharedServer] = {}
    _guard = threading.RLock()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._uses = 0
        self._users: int | None = None
        self._for_child: int | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self.folder)!r}>"

    # ---- what a kind of server has to know

    @classmethod
    def default_folder(cls) -> Path:
        """Its folder when none is given."""
        raise NotImplementedError

    @classmethod
    def check(cls) -> None:
        """Raise CapabilityError when this machine has no such server."""
        raise NotImplementedError

    @property
    def log(self) -> Path:
        """Where it tells why it did not start."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Make folders it needs beside its own."""

    def ask(self) -> Answer:
        """Whether it answers now."""
        raise NotImplementedError

    def spawn(self, lock: int) -> None:
        """Start it in the background; it inherits `lock` and keeps it as long as it lives."""
        raise NotImplementedError

    def ask_to_end(self) -> None:
        """Tell it to write what it has to and end; not waiting for that. May be called again."""
        raise NotImplementedError

    # ---- using it

    @classmethod
    def acquire(cls, folder: Path | None = None, *, timeout: float = START_SECONDS) -> Self:
        """Start the server of `folder` (default: this user's) or join the one that runs.

        Raises:
            CapabilityError: this platform has no embedded server.
            StoreUnavailableError: the server ended while starting; the hint names its log.
            StoreTimeoutError: not there within `timeout` seconds.
        """
        cls.check()
        folder = cls._resolved(folder)
        with cls._guard:
            held = cls._held.get((cls, folder))
            if not isinstance(held, cls):
                held = cls(folder)
                held._join(time.monotonic() + timeout)
                cls._held[cls, folder] = held
            else:
                held._ensure_running(time.monotonic() + timeout)
            held._uses += 1
            return held

    @classmethod
    def end(cls, folder: Path | None = None, *, timeout: float = STOP_SECONDS) -> bool:
        """End the server of a folder, whoever uses it; everything stored is on disk then.

        Returns:
            bool: whether one was running.
        Raises:
            StoreTimeoutError: it is still running after `timeout` seconds.
        """
        folder = cls._resolved(folder)
        if not (folder / "server.lock").exists():
            return False
        return cls(folder)._stop(time.monotonic() + timeout)

    @classmethod
    def _resolved(cls, folder: Path | None) -> Path:
        return (folder or cls.default_folder()).expanduser().resolve()

    def ensure_running(self, timeout: float = START_SECONDS) -> None:
        """Start the server again if it is gone, for example after `end`. Raises as `acquire` does."""
        with self._guard:
            self._ensure_running(time.monotonic() + timeout)

    def release(self) -> None:
        """Give one use back; the last process to give its last one back stops the server."""
        with self._guard:
            if self._uses == 0:
                return
            self._uses -= 1
            if self._uses == 0:
                self._held.pop((type(self), self.folder), None)
                self._leave()

    def _join(self, deadline: float) -> None:
        private_folder(self.folder)
        self.prepare()
        users = os.open(self.folder / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _lock(users, exclusive=False):
                _pause(deadline, f"{self.title} is being stopped by another process")
            self._ensure_running(deadline)
        except BaseException:
            os.close(users)
            raise
        self._users = users

    def _ensure_running(self, deadline: float) -> None:
        """Start a server unless one answers; return when it has loaded its data.

        One that still loads when time is up counts as running: who calls it waits for it as well.
        """
        spawned = False
        while (answer := self.ask()) is not Answer.READY:
            if answer is Answer.LOADING and time.monotonic() >= deadline:
                return
            with _server_lock(self.folder) as lock:
                if lock is not None:
                    if spawned:
                        raise StoreUnavailableError(
                            f"{self.title} ended while starting", hint=f"see {self.log}"
                        )
                    self.spawn(lock)
                    spawned = True
            _pause(deadline, f"{self.title} did not start in time")

    def _leave(self) -> None:
        users, self._users = self._users, None
        if users is None:
            return
        try:
            if _lock(users, exclusive=True):
                self._stop(time.monotonic() + STOP_SECONDS)
        finally:
            os.close(users)

    def _stop(self, deadline: float) -> bool:
        """Ask it to end until it has let go of its lock; False when none ran."""
        running = False
        while True:
            with _server_lock(self.folder) as lock:
                if lock is not None:
                    return running
            running = True
            self.ask_to_end()
            _pause(deadline, f"{self.title} did not stop in time")


def _release_all() -> None:
    with SharedServer._guard:
        for server in list(SharedServer._held.values()):
            server._uses = 1
            with contextlib.suppress(StoreError):
                server.release()


def _before_fork() -> None:
    """Take the child's own shared lock while the parent certainly still holds one.

    A forked descriptor shares its lock with the parent, so the child needs a lock of its own,
    and needs it before the parent can leave.
    """
    SharedServer._guard.acquire()
    for server in SharedServer._held.values():
        try:
            users = os.open(server.folder / "users.lock", os.O_RDWR)
        except OSError:
            continue
        if _lock(users, exclusive=False):
            server._for_child = users
        else:
            os.close(users)


def _after_fork_in_parent() -> None:
    for server in SharedServer._held.values():
        if server._for_child is not None:
            os.close(server._for_child)
            server._for_child = None
    SharedServer._guard.release()


def _after_fork_in_child() -> None:
    SharedServer._guard = threading.RLock()
    for server in SharedServer._held.values():
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


def private_folder(folder: Path) -> None:
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


def _pause(deadline: float, message: str) -> None:
    if time.monotonic() >= deadline:
        raise StoreTimeoutError(message)
    time.sleep(_POLL_SECONDS)
