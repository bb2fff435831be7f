"""What is compared. Every system keeps the same texts for the same resources.

omoide      LongTermMemory: rows and index; recall from the index, and from the rows
sql         the rows alone, by hand: the same table, the same statement of ranking, bare psycopg
popoto      its DefaultMemory and ContextAssembler over its own PostgreSQL backend
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from typing import Any, Protocol
from uuid import uuid4

from benchmarks.rivals import MissingSystemError

RECALLED = 8
BATCH = 1_000


class System(Protocol):
    """One system under test. `operations`: what of it is measured; each takes a resource and a text."""

    operations: tuple[str, ...]

    def open(self, redis: str, postgres: str) -> None:
        """Connect to empty servers."""

    def load(self, resource: str, texts: Sequence[str]) -> None:
        """Store all texts for a resource, the fastest way there is."""

    def copy(self, source: str, resource: str) -> None:
        """Give another resource the same memories."""

    def retain(self, resource: str, text: str) -> None:
        """Store one text."""

    def recall(self, resource: str, query: str) -> int:
        """Recall eight for a prompt; how many came."""

    def close(self) -> None:
        """Let go of connections."""


class Omoide:
    operations = ("recall", "recall_rows", "retain")

    def open(self, redis: str, postgres: str) -> None:
        import omoide

        self._connection: Any = omoide.connect(redis, postgres=postgres)
        self._memories: dict[str, Any] = {}

    def memory(self, resource: str) -> Any:
        from omoide.recipes import LongTermMemory

        if resource not in self._memories:
            self._memories[resource] = LongTermMemory(resource)
        return self._memories[resource]

    def load(self, resource: str, texts: Sequence[str]) -> None:
        from omoide.recipes import LongTermRecord
        from omoide.recipes.longterm.record import digest_of, identity_of

        for start in range(0, len(texts), BATCH):
            digests = [(text, digest_of(text)) for text in texts[start : start + BATCH]]
            LongTermRecord.save_many(
                LongTermRecord(
                    resource_id=resource,
                    content=text,
                    content_sha256=digest,
                    identity=identity_of("fact", None, digest),
                )
                for text, digest in digests
            )

    def copy(self, source: str, resource: str) -> None:
        """In the rows; then the index is built from them."""
        import omoide
        from omoide.recipes import LongTermRecord
        from omoide.stores.postgres.script import Step

        def script() -> Any:
            for table, values in (
                ("popagent_memories", {"_partition", "resource_id"}),
                ("omoide_partitions", {"partition"}),
            ):
                rows = yield Step(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
                    " AND is_generated = 'NEVER' AND table_schema = current_schema()",
                    (table,),
                )
                names = [name for (name,) in rows]
                taken = ", ".join("%(new)s" if name in values else f'"{name}"' for name in names)
                listed = ", ".join(f'"{name}"' for name in names)
                (key,) = values - {"resource_id"}
                yield Step(
                    f"INSERT INTO {table} ({listed}) SELECT {taken} FROM {table} WHERE {key} = %(old)s",
                    {"new": resource, "old": source},
                )

        self._connection.database.run(script)
        omoide.reindex(LongTermRecord, resource_id=resource)

    def retain(self, resource: str, text: str) -> None:
        if not self.memory(resource).retain(text):
            raise RuntimeError("nothing was stored")

    def recall(self, resource: str, query: str) -> int:
        return self._recalled(resource, query, "redis")

    def recall_rows(self, resource: str, query: str) -> int:
        """As while Redis is away."""
        self._connection.mirror.away_until = float("inf")
        found = self._recalled(resource, query, "postgres")
        self._connection.mirror.away_until = 0.0
        return found

    def _recalled(self, resource: str, query: str, store: str) -> int:
        found = self.memory(resource).recall(query, limit=RECALLED)
        if found.metadata["store"] != store:
            raise RuntimeError(f"{found.metadata['store']} answered")
        return len(found.records)

    def close(self) -> None:
        self._connection.close()


class Sql:
    """The same table without the mirror's columns, and the same statement."""

    operations = ("recall", "retain")

    def open(self, redis: str, postgres: str) -> None:
        import psycopg

        from omoide.model.instance import spec_of
        from omoide.recipes import LongTermRecord
        from omoide.stores.postgres import recall
        from omoide.stores.postgres.migrate import migrate
        from omoide.stores.postgres.session import Database

        self._spec = spec_of(LongTermRecord)
        database = Database(postgres)
        migrate(database, recall.LINE)
        database.close()
        self._connection = psycopg.connect(postgres, autocommit=True)
        self._connection.execute("SET enable_nestloop = off")
        self._connection.execute(
            "CREATE TABLE popagent_memories (memory_id text, _partition text, session_id text, author text,"
            " kind text, content text, content_sha256 text, importance float8, _time bigint, _expires bigint,"
            " _flags integer, _length integer, _alpha float8, _beta float8, _prior integer,"
            " PRIMARY KEY (_partition, memory_id))"
        )
        self._connection.execute(
            "CREATE UNIQUE INDEX ON popagent_memories (_partition, kind, content_sha256)"
        )
        for statement in recall.words_ddl(self._spec):
            self._connection.execute(statement.encode())

    def load(self, resource: str, texts: Sequence[str]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_INSERT, [_row(resource, text) for text in texts])

    def copy(self, source: str, resource: str) -> None:
        self._connection.execute(
            "INSERT INTO popagent_memories (memory_id, _partition, kind, content, content_sha256,"
            " importance, _time, _flags, _length, _prior)"
            " SELECT memory_id, %s, kind, content, content_sha256, importance, _time, _flags, _length, _prior"
            " FROM popagent_memories WHERE _partition = %s",
            (resource, source),
        )

    def retain(self, resource: str, text: str) -> None:
        self._connection.execute(_INSERT, _row(resource, text))

    def recall(self, resource: str, query: str) -> int:
        from omoide.model.schema import Scope
        from omoide.ops import search
        from omoide.ops.request import Search
        from omoide.stores.postgres import recall

        question = search.screen(query, self._spec, max_chars=4096, max_terms=64)
        terms = dict.fromkeys(question.terms, 1.0)
        asked = Search(Scope(self._spec, (resource,)), terms, RECALLED, names=question.names)
        *_, step = steps(recall.rank(asked, resource))
        ids = [row[0] for row in self._connection.execute(str(step.query).encode(), step.parameters)]
        found = self._connection.execute(
            "SELECT * FROM popagent_memories WHERE _partition = %s AND memory_id = ANY (%s)", (resource, ids)
        )
        return len(found.fetchall())

    def close(self) -> None:
        self._connection.close()


class Popoto:
    """As its guide says for PostgreSQL; the cap of 1,000 records lifted by its variable."""

    operations = ("recall", "retain")

    def open(self, redis: str, postgres: str) -> None:
        os.environ["POPOTO_BACKEND"] = "postgres"
        os.environ["POPOTO_POSTGRES_URL"] = postgres
        os.environ["REDIS_URL"] = redis
        os.environ["POPOTO_DEFAULT_MEMORY_MAX_RECORDS"] = "0"
        try:
            recipes = import_module("popoto.recipes")
        except ImportError as error:
            raise MissingSystemError(f"popoto needs a package that is not installed: {error}") from error
        logging.disable(logging.ERROR)
        self._model = recipes.DefaultMemory
        self._assembler = recipes.ContextAssembler(
            model_class=self._model, score_weights={"relevance": 1.0}, max_items=RECALLED, max_tokens=6_000
        )

    def load(self, resource: str, texts: Sequence[str]) -> None:
        for text in texts:
            self.retain(resource, text)

    def copy(self, source: str, resource: str) -> None:
        raise MissingSystemError("popoto is measured with one resource: sizes up to 5,000")

    def retain(self, resource: str, text: str) -> None:
        self._model(agent_id=resource, content=text, importance=0.5).save()

    def recall(self, resource: str, query: str) -> int:
        return len(self._assembler.assemble(query_cues={"topic": query}, agent_id=resource).records)

    def close(self) -> None:
        """Its pool is the process's and ends with it."""


def steps(script: Any) -> list[Any]:
    """The statements of a script that asks whatever it is told."""
    found = []
    step = next(script)
    try:
        while True:
            found.append(step)
            step = script.send([])
    except StopIteration:
        return found


_INSERT = (
    "INSERT INTO popagent_memories (memory_id, _partition, kind, content, content_sha256, importance, _time,"
    " _flags, _length, _prior) VALUES (%s, %s, 'fact', %s, %s, 0.5,"
    " (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, %s, 32768) ON CONFLICT DO NOTHING"
)


def _row(resource: str, text: str) -> tuple[Any, ...]:
    digest = sha256(text.encode()).hexdigest()
    return uuid4().hex, resource, text, digest, len(text.split())


SYSTEMS: dict[str, type[System]] = {
    "omoide": Omoide,
    "sql": Sql,
    "popoto": Popoto,
}
