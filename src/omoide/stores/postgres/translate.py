"""Errors of the PostgreSQL client become omoide's, in this one place.

A message names the kind of failure and its SQLSTATE, and nothing the server said: details and
contexts of a server quote values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from omoide.errors import CapabilityError, ModelError, StoreError, StoreTimeoutError, StoreUnavailableError

__all__ = ["Clash", "translated", "translating"]

HINT = "is PostgreSQL up, and the URL right?"
_TIMEOUT = (
    errors.QueryCanceled,
    errors.LockNotAvailable,
    errors.IdleInTransactionSessionTimeout,
    errors.ConnectionTimeout,
)
_UNAVAILABLE = (
    "08",  # connection
    "28",  # authorisation
    "3D",  # no such database
    "53",  # out of resources
    "57",  # operator intervention: shutdown, starting up
    "58",  # system
)
_SCHEMA = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.DatatypeMismatch,
    errors.UndefinedObject,
    errors.InvalidSchemaName,
)


class Clash(StoreError):
    """A unique index refused a row; `constraint` is its name."""

    def __init__(self, constraint: str) -> None:
        super().__init__("a unique row is there already")
        self.constraint = constraint


def translated(error: psycopg.Error) -> StoreError | ModelError:
    """omoide's error for one of the client's."""
    if isinstance(error, _TIMEOUT):
        return StoreTimeoutError(f"PostgreSQL gave no answer in time ({type(error).__name__})")
    if isinstance(error, errors.UniqueViolation | errors.ExclusionViolation):
        return Clash(error.diag.constraint_name or "")
    state = error.sqlstate or ""
    if isinstance(error, _SCHEMA):
        return ModelError(f"a table is not what omoide made ({state})", hint="omoide doctor")
    if isinstance(error, errors.FeatureNotSupported | errors.UndefinedFile):
        return CapabilityError(
            "this PostgreSQL lacks something omoide needs",
            hint="the extensions pg_trgm and unaccent, of contrib",
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return CapabilityError("the PostgreSQL user lacks a right that omoide needs")
    if state[:2] in _UNAVAILABLE or (isinstance(error, psycopg.OperationalError) and not state):
        return StoreUnavailableError(f"PostgreSQL does not answer{f' ({state})' if state else ''}", hint=HINT)
    if isinstance(error, psycopg.InterfaceError):
        return StoreUnavailableError("the connection to PostgreSQL is closed", hint=HINT)
    return StoreError(f"PostgreSQL refused a statement ({type(error).__name__} {state}".rstrip() + ")")


@contextmanager
def translating() -> Iterator[None]:
    """Raise omoide's errors instead of the client's, without their texts."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from None
