"""Where the parts meet: a URL becomes a connection with a sync and an async store.

    redis://  rediss://  unix://             one server; one that reports cluster mode is used as a cluster
    redis+cluster://h:p,h:p                  a cluster
    redis+sentinel://h:p,h:p/name            the primary that sentinels name
    embedded://  embedded:///some/folder     a server of our own, with its data in a folder

Beside it a PostgreSQL, for what it keeps the truth of: postgresql://..., or `embedded`.

Importing this module imports no client; `connect` does.
"""

from __future__ import annotations

import logging
import os
import threading
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from omoide import settings
from omoide.errors import (
    CapabilityError,
    OmoideError,
    QueryError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from omoide.model.partition import checked_seconds, text_rule
from omoide.ops import port
from omoide.ops.request import Partitions, ServerStatus

if TYPE_CHECKING:
    from omoide.ops.run import AsyncStore, Store
    from omoide.ops.upkeep import Named
    from omoide.stores.embedded import EmbeddedServer
    from omoide.stores.mirrored import AsyncMirroredStore, MirroredStore
    from omoide.stores.postgres.mirror import Mirror
    from omoide.stores.postgres.projector import Projector
    from omoide.stores.postgres.server import EmbeddedPostgres
    from omoide.stores.postgres.session import Database
    from omoide.stores.redis.astore import AsyncRedisStore
    from omoide.stores.redis.capabilities import Capabilities

_log = logging.getLogger("omoide")
POSTGRES = ("postgresql://", "postgres://")
_opening = threading.Lock()
_opening_database = threading.Lock()


def _after_fork() -> None:
    """A lock that another thread held at the fork would stay locked for ever in the child."""
    global _opening, _opening_database
    _opening, _opening_database = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Connection:
    """A store behind one URL, for any number of threads and event loops.

    Use it as the default (`omoide.connect` does that), or for a block: `with connection.use(): ...`.
    As a context manager it closes itself.

    Attributes:
        url: Where it leads, without credentials.
        namespace: What all its keys start with.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        reader: str = "auto",
        timeout: float | None = None,
        cache_bytes: int | None = None,
        postgres: str | None = None,
    ) -> None:
        _check_options(url, namespace, timeout, cache_bytes)
        self._postgres_url = _checked_postgres(postgres or settings.postgres_url())
        self._timeout = timeout
        self._database: Database | None = None
        self._mirror: Mirror | None = None
        self._projector: Projector | None = None
        self._postgres: EmbeddedPostgres | None = None
        from urllib.parse import quote

        from omoide.stores.redis.keys import Keys
        from omoide.stores.redis.store import Binding, RedisStore
        from omoide.stores.redis.url import parse_url
        from omoide.stores.redis.wire import SyncWire

        binding = Binding(Keys(namespace or settings.namespace()), reader=reader, cache_bytes=cache_bytes)
        target = parse_url(url or settings.store_url() or "embedded://")
        self.namespace = binding.keys.namespace
        self.url = target.safe_url
        self._server: EmbeddedServer | None = None
        if target.kind == "embedded":
            from omoide.stores.embedded import EmbeddedServer

            self._server = EmbeddedServer.acquire(target.folder)
            self.url = f"embedded://{self._server.folder}"
            target = parse_url(f"unix://{quote(str(self._server.socket_path))}")
        revive = None if self._server is None else self._server.ensure_running
        wire = SyncWire(target, timeout=timeout, revive=revive)
        self._store = RedisStore(wire, binding)
        self._mirrored: MirroredStore | None = None
        if self._postgres_url is not None:
            from omoide.stores.mirrored import MirroredStore

            self._mirrored = MirroredStore(self._store, self._engine)
        self._astore: AsyncRedisStore | None = None
        try:
            wire.capabilities()
            self._store.load_scripts()
        except (StoreUnavailableError, StoreTimeoutError) as error:
            if self._mirrored is None:
                self.close()
                raise
            _log.warning("the store is away; mirrored models are saved all the same: %s", error)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Connection {self.url} {self.namespace}>"

    @property
    def capabilities(self) -> Capabilities:
        """What the server is."""
        return self._store.wire.capabilities()

    @property
    def store(self) -> Store:
        """The blocking store."""
        return self._store if self._mirrored is None else self._mirrored

    @property
    def astore(self) -> AsyncStore:
        """The async store, made at its first use: asyncio is not imported before."""
        return self._aredis() if self._mirrored is None else self.amirrored

    def _aredis(self) -> AsyncRedisStore:
        if self._astore is None:
            from omoide.stores.redis.astore import AsyncRedisStore
            from omoide.stores.redis.awire import AsyncWire

            self._astore = AsyncRedisStore(AsyncWire(self._store.wire), self._store.binding)
        return self._astore

    @property
    def mirrored(self) -> MirroredStore:
        """The blocking store of mirrored models. Raises as `database` does."""
        if self._mirrored is None:
            self._open_database()
        assert self._mirrored is not None
        return self._mirrored

    @property
    def amirrored(self) -> AsyncMirroredStore:
        """The async store of mirrored models."""
        from omoide.stores.mirrored import AsyncMirroredStore

        return AsyncMirroredStore(self._aredis(), self._engine)

    @property
    def mirror(self) -> Mirror:
        """What this process knows of mirrored partitions. Raises as `database` does."""
        return self._engine()[1]

    @property
    def projector(self) -> Projector:
        """The projector of this process; it starts by itself when a write is left behind.

        Raises as `database` does.
        """
        database, mirror = self._engine()
        with _opening_database:
            if self._projector is None:
                from omoide.stores.postgres.projector import Projector

                assert self._mirrored is not None
                self._projector = Projector(self._mirrored, database, mirror, idle=0.0)
            return self._projector

    async def project(self) -> None:
        """Be a projector in this task, until it is cancelled; see `omoide mirror run`."""
        from omoide.stores.postgres.projector import arun

        database, mirror = self._engine()
        await arun(self.amirrored, database, mirror)

    def _engine(self) -> tuple[Database, Mirror]:
        """The database and the mirror, made at their first use."""
        database = self.database
        with _opening_database:
            if self._mirror is None:
                from omoide.stores.postgres.mirror import Mirror

                self._mirror = Mirror(self.namespace, lambda: self.projector.start())
            return database, self._mirror

    @property
    def owns_server(self) -> bool:
        """Whether the store is the embedded one, whose files are ours."""
        return self._server is not None

    @property
    def has_postgres(self) -> bool:
        """Whether a PostgreSQL is configured."""
        return self._postgres_url is not None

    @property
    def database(self) -> Database:
        """The PostgreSQL beside the store, opened (and an embedded one started) at its first use.

        Raises:
            StoreUnavailableError: none is configured.
            CapabilityError: the extra is not installed.
        """
        with _opening_database:
            if self._database is None:
                self._database = self._open_database()
            return self._database

    def _open_database(self) -> Database:
        url = self._postgres_url
        if url is None:
            raise StoreUnavailableError(
                "no PostgreSQL is configured",
                hint="connect(postgres='postgresql://...' or 'embedded'), or OMOIDE_POSTGRES",
            )
        if find_spec("psycopg") is None:
            raise CapabilityError("psycopg is not installed", hint="pip install 'omoide[postgres]'")
        from omoide.stores.postgres.server import EmbeddedPostgres
        from omoide.stores.postgres.session import Database

        if url.startswith("embedded"):
            folder = url.removeprefix("embedded").removeprefix("://")
            self._postgres = EmbeddedPostgres.acquire(Path(folder) if folder else None)
            url = self._postgres.url
        return Database(url, timeout=self._timeout)

    @property
    def round_trips(self) -> int:
        """Round trips so far, one per node and call."""
        return self._store.wire.round_trips

    def use(self) -> Any:
        """Context manager: this connection within a block, in this thread or task."""
        return port.using(self)

    def close(self) -> None:
        """Close idle connections and give up the embedded server; a default connection is unbound.

        Deliveries of mirrored models that are not in their rows yet are written first.
        """
        self._finish_mirror()
        self._store.close()
        self._unbind()
        self._release()

    async def aclose(self) -> None:
        """`close`, the running loop's connections included; what takes time is waited for in a thread."""
        import asyncio

        if self._astore is not None:
            await self._astore.close()
        try:
            await asyncio.to_thread(self._finish_mirror)
        finally:
            self._store.close()
            self._unbind()
            await asyncio.to_thread(self._release)

    def _finish_mirror(self) -> None:
        """Write what waits. A projector that was stopped stays so, and goes with its mirror at the end."""
        if self._projector is not None:
            self._projector.stop()
        mirror = self._mirror
        try:
            if mirror is not None and self._mirrored is not None and mirror.accesses.waiting:
                self._mirrored.drive(mirror.flush())
        except OmoideError as error:
            _log.warning("some deliveries could not be counted: %s", type(error).__name__)
        finally:
            if self._projector is not None:
                self._projector.stop()
            self._projector = self._mirror = None

    def _unbind(self) -> None:
        if port.bound() is self:
            port.bind(None)
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _release(self) -> None:
        """Give up the servers that are ours; the last process to do so waits until they have ended."""
        (server, self._server), (postgres, self._postgres) = (self._server, None), (self._postgres, None)
        if server is not None:
            server.release()
        if postgres is not None:
            postgres.release()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    url: str | None = None,
    *,
    namespace: str | None = None,
    reader: str = "auto",
    timeout: float | None = None,
    cache_bytes: int | None = None,
    postgres: str | None = None,
) -> Connection:
    """Connect now, and make this the default of the process.

    Importing omoide connects to nothing. A program that never calls this has it called, without
    arguments, by its first call that needs a store; the same goes for a call after `close`.

    Args:
        url: See above. None: `OMOIDE_URL`, else the embedded server with its data in the user's data folder.
        namespace: First part of every key. None: `OMOIDE_NAMESPACE`, else `omoide`.
        reader: Who ranks: `client` (from a validated cache), `server` (in Lua), or `auto`: the server for a
            partition's first recall in this process, then the client.
        timeout: Seconds a call may take, connecting included; > 0, at most 2,147,483. None: `timeout=` of
            the URL, else `OMOIDE_TIMEOUT`, else 5.
        cache_bytes: Budget of the client cache, >= 0, by default 256 MiB.
        postgres: PostgreSQL 15 or newer: `postgresql://...` as libpq reads it, or `embedded` (or
            `embedded:///folder`). None: `OMOIDE_POSTGRES`, else none. Opened at its first use.
    Raises:
        QueryError: an argument that cannot be meant; the message names it.
        StoreError: a URL that cannot be read.
        StoreUnavailableError: no server answers. With PostgreSQL that is a warning: mirrored models can be
            saved all the same.
        CapabilityError: older than Redis 7.0 or Valkey 7.2, or no embedded server for this platform.
    Cost: two round trips, a third where the server lacks the scripts; starting the embedded server
        about 0.1 s.
    """
    connection = Connection(
        url,
        namespace=namespace,
        reader=reader,
        timeout=timeout,
        cache_bytes=cache_bytes,
        postgres=postgres,
    )
    port.bind(connection)
    return connection


def _check_options(url: object, namespace: object, timeout: object, cache_bytes: object) -> None:
    """Refuse arguments of `connect` that cannot be meant, before anything is opened."""
    for name, value in (("url", url), ("namespace", namespace)):
        rule = None if value is None else text_rule(value)
        if rule is not None:
            raise QueryError(f"{name} {rule}")
    if namespace == "":
        raise QueryError("namespace is empty", hint="leave it out for the default")
    if timeout is not None:
        checked_seconds("timeout", timeout)
    if cache_bytes is not None and (
        isinstance(cache_bytes, bool) or not isinstance(cache_bytes, int) or cache_bytes < 0
    ):
        raise QueryError("cache_bytes is a whole number of bytes, at least 0", hint="None is the default")


def _checked_postgres(url: object) -> str | None:
    """The URL of a PostgreSQL, or None."""
    if url is None or (
        isinstance(url, str)
        and text_rule(url) is None
        and (url in ("embedded", "embedded://") or url.startswith(("embedded:///", *POSTGRES)))
    ):
        return url
    raise QueryError("postgres is a URL postgresql://..., or 'embedded'")


def open_default() -> Connection:
    """The connection of a program that never called `connect`; opened once."""
    with _opening:
        bound = port.bound()
        return bound if isinstance(bound, Connection) else connect()


def status(model: Named = None) -> dict[str, Any]:
    """What is stored: the server, every partition with its live records and counters, the client cache.

    Args:
        model: Only partitions of this model: its class, or its name, for which no class is needed.
    Returns:
        dict with `url`, `namespace`, `server`, `partitions` (list of dict, sorted), and `never_record`:
        whether the firewall is `disabled` for this deployment, `models` (name -> reason -> records, the
        sum of the durable counters) and `process` (the same, counted in this process).
    Cost: scans the keys of every primary; one round trip per 256 partitions.
    """
    from omoide.ops.upkeep import name_of

    wanted = Partitions(name_of(model))
    connection = port.current()
    facts = connection.store.execute(ServerStatus())
    return _status(connection, facts, connection.store.execute(wanted))


async def astatus(model: Named = None) -> dict[str, Any]:
    """`status`, async."""
    from omoide.ops.upkeep import name_of

    wanted = Partitions(name_of(model))
    connection = port.current()
    facts = await connection.astore.execute(ServerStatus())
    return _status(connection, facts, await connection.astore.execute(wanted))


def _status(connection: Any, facts: dict[str, Any], partitions: Any) -> dict[str, Any]:
    from omoide.mixins.never_record import by_reason, process_counts, totals

    return {
        "url": getattr(connection, "url", ""),
        "namespace": getattr(connection, "namespace", ""),
        "server": facts,
        "partitions": [
            {
                "model": part.model,
                "partition": list(part.values),
                "live": part.live,
                "dead_rows": part.dead,
                "rows": part.rows,
                "version": part.version,
                "damaged": part.damaged,
                "counters": dict(sorted(part.counters.items())),
                "never_record": by_reason(part.counters),
            }
            for part in partitions
        ],
        "never_record": {
            "disabled": settings.never_record_disabled(),
            "models": totals((part.model, part.counters) for part in partitions),
            "process": process_counts(),
        },
    }
