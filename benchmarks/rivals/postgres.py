"""PostgreSQL full-text search, the packaged server: English configuration, a GIN index, `ts_rank`.

`plainto_tsquery` asks for all words, which finds next to nothing for a question; joined by `|` instead it
finds what has any of them, and `ts_rank` orders those. A turn is "author: text".
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.rivals.system import MissingSystemError, Turn

_TABLE = """
CREATE TABLE turns (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation text NOT NULL,
    id text NOT NULL,
    words tsvector NOT NULL
)
"""
_INDEX = "CREATE INDEX ON turns USING gin (words)"
_ADD = "INSERT INTO turns (conversation, id, words) VALUES (%s, %s, to_tsvector('english', %s))"
_RANK = """
WITH asked AS (SELECT replace(plainto_tsquery('english', %s)::text, '&', '|')::tsquery AS query)
SELECT id FROM turns, asked
WHERE conversation = %s AND words @@ query
ORDER BY ts_rank(words, query) DESC, number
LIMIT %s
"""


def ranker() -> PostgresRanker:
    """The adapter.

    Raises:
        MissingSystemError: no packaged server for this platform.
    """
    import_module("psycopg")
    from omoide.errors import CapabilityError
    from omoide.stores.postgres.server import postgres_programs

    try:
        postgres_programs()
    except CapabilityError as error:
        raise MissingSystemError(f"postgres: {error}") from error
    return PostgresRanker()


class PostgresRanker:
    served = False

    def open(self, url: str) -> None:
        from omoide.testing.postgres import PostgresServer

        self._server: Any = PostgresServer()
        self._server.start()
        address = self._server.url_of(self._server.create())
        self._connection = import_module("psycopg").connect(address, autocommit=True)
        self._connection.execute(_TABLE)
        self._connection.execute(_INDEX)

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        rows = [(conversation, turn.id, f"{turn.author}: {turn.text}") for turn in turns]
        with self._connection.cursor() as cursor:
            cursor.executemany(_ADD, rows)
        self._connection.execute("ANALYZE turns")

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        return [row[0] for row in self._connection.execute(_RANK, (question, conversation, depth))]

    def close(self) -> None:
        connection, server = getattr(self, "_connection", None), getattr(self, "_server", None)
        if connection is not None:
            connection.close()
        if server is not None:
            server.__exit__(None, None, None)
