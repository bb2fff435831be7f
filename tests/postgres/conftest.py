"""A store with PostgreSQL behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import omoide
from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.stores.postgres.compare import Comparison, compare
from omoide.stores.postgres.mirror import Mirror
from omoide.testing import PostgresServer


@pytest.fixture
def mirrored(store_url: str, postgres_url: str) -> Iterator[Connection]:
    """The default connection of the test: an emptied store, and the module's database."""
    with omoide.connect(store_url, postgres=postgres_url) as connection:
        yield connection


class _Away(Mirror):
    """A mirror that takes its store for away, whatever it hears of it meanwhile."""

    is_away = True  # type: ignore[assignment]


def answer_from(connection: Any, store: str) -> None:
    """Have recall answered by `redis` or by `postgres`, until told otherwise."""
    connection.mirror.__class__ = _Away if store == "postgres" else Mirror


def compared(connection: Connection, scope: Scope) -> Comparison:
    """Both sides of a partition."""
    found: Comparison = connection.store.drive(compare(connection.mirror, scope))  # type: ignore[attr-defined]
    return found


def emptied(server: PostgresServer, url: str) -> str:
    """The database of a URL without its rows: its tables, and what is noted of those, stay."""
    server.execute(
        "DO $$ DECLARE one text; BEGIN FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        " AND tablename NOT IN ('omoide_migrations', 'omoide_mirrors')"
        " LOOP EXECUTE format('DELETE FROM %I', one); END LOOP; END $$",
        url.partition("@/")[2].partition("?")[0],
    )
    return url
