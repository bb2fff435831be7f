"""The connection that plans run over, and the deadline they run under.

    using(connection)   this context (task or thread) only
    bind(connection)    default of the process
    opener              called when neither is set; `omoide` installs it at import

Nothing here opens a connection by itself: the opener does, at the first call that needs one. It is
loaded with the package, so it imports nothing that costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

from omoide.errors import StoreUnavailableError
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.ops.run import AsyncStore, Store


class Connection(Protocol):
    """A store with both faces."""

    @property
    def store(self) -> Store: ...

    @property
    def astore(self) -> AsyncStore: ...

    @property
    def owns_server(self) -> bool:
        """The server is our own, with its files, and nobody else's."""
        ...


opener: Callable[[], Connection] | None = None
"""Makes the default connection; its result is bound."""

_default: Connection | None = None
_scoped: ContextVar[Connection | None] = ContextVar("omoide_connection", default=None)
_end: ContextVar[Seconds | None] = ContextVar("omoide_deadline", default=None)


def bind(connection: Connection | None) -> Connection | None:
    """Make a connection the default of the process; the one it replaces, which stays open."""
    global _default
    previous, _default = _default, connection
    return previous


@contextmanager
def using(connection: Connection) -> Iterator[Connection]:
    """Use a connection within this block, in this thread or task and the tasks it starts."""
    token = _scoped.set(connection)
    try:
        yield connection
    finally:
        _scoped.reset(token)


def bound() -> Connection | None:
    """The connection in force, without opening one."""
    return _scoped.get() or _default


def current() -> Connection:
    """The connection in force; opens the default one when there is none.

    Raises:
        StoreUnavailableError: nothing is bound and nothing can open one.
    """
    connection = bound()
    if connection is not None:
        return connection
    if opener is None:
        raise StoreUnavailableError("no connection", hint="call omoide.connect(url) first")
    connection = opener()
    bind(connection)
    return connection


@contextmanager
def deadline(seconds: Seconds | None) -> Iterator[None]:
    """Bound all requests inside the block, together, by `seconds` from now; None adds no bound.

    A store passes `remaining()` as the timeout of a call and raises StoreTimeoutError once it is
    spent. The bound follows the context into tasks started inside; of nested ones the earlier holds.
    """
    before = _end.get()
    end = before if seconds is None else time.monotonic() + seconds
    token = _end.set(end if before is None or end is None else min(before, end))
    try:
        yield
    finally:
        _end.reset(token)


def remaining() -> Seconds | None:
    """Seconds left, 0.0 when spent, None without a deadline."""
    end = _end.get()
    return None if end is None else max(0.0, end - time.monotonic())


__all__ = ["Connection", "bind", "bound", "current", "deadline", "opener", "remaining", "using"]
