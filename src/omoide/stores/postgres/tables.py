"""The table of a mirrored model: made from its fields, and brought up to date with them.

    | _partition | fields of the model, by name ... | system columns: `_` and a name |   key (_partition, id)

`_partition`: the partition's values, percent-encoded, joined by `/` (see migrations/mirror). `_row`: order of
writes. `_entries`: what the text index needs of a record, so that indexes can be rebuilt without tokenizing
anew, valid for the schema `_fingerprint`. `_unique_<n>`: digest of the n-th rule of `unique_together`, with a
partial unique index. `_valid_from`, `_valid_to`, `_own_end`, `_chain`, `_place`: see `versions`. The rest is
what the store keeps of a record: operations, evidence, accesses, order.

A new field is a new column. A field that became another type is a ModelError: rows are never guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from omoide.errors import ModelError
from omoide.model.schema import ModelSpec, Scope
from omoide.stores.postgres.columns import Column, Misfit, columns_of
from omoide.stores.postgres.migrate import LOCK, amigrate, migrate
from omoide.stores.postgres.recall import LINE as TEXT_LINE
from omoide.stores.postgres.recall import WORDS, words_ddl
from omoide.stores.postgres.script import Script, Step, identifier
from omoide.stores.postgres.session import Database

__all__ = ["Table", "partition_name", "table_of", "values_of"]

SYSTEM = (
    ("_row", "bigint NOT NULL"),
    ("_version", "bigint NOT NULL"),
    ("_operations", "bytea NOT NULL"),
    ("_time", "bigint NOT NULL"),
    ("_base", "double precision NOT NULL"),
    ("_order", "double precision NOT NULL"),
    ("_prior", "integer NOT NULL"),
    ("_alpha", "double precision"),
    ("_beta", "double precision"),
    ("_up", "bigint NOT NULL DEFAULT 0"),
    ("_down", "bigint NOT NULL DEFAULT 0"),
    ("_accesses", "bigint NOT NULL DEFAULT 0"),
    ("_accessed", "bigint NOT NULL DEFAULT 0"),
    ("_expires", "bigint"),
    ("_valid_from", "bigint"),
    ("_valid_to", "bigint"),
    ("_own_end", "bigint"),
    ("_chain", "text"),
    ("_place", "bytea"),
    ("_fingerprint", "text NOT NULL"),
    ("_entries", "bytea NOT NULL"),
    ("_extra", "bytea"),
    ("_flags", "integer NOT NULL DEFAULT 0"),
    ("_length", "integer NOT NULL DEFAULT 0"),
    ("_vectors", "text"),
    ("_slot", "bytea"),
)
"""System columns. `_prior`: confidence without evidence, as the store holds it. Instants: ms, UTC."""

_NAMES = {
    "bigint": "int8",
    "double precision": "float8",
    "boolean": "bool",
    "text[]": "_text",
    "integer": "int4",
}
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder().decode


def partition_name(scope: Scope, namespace: str) -> str:
    """The partition as one text."""
    name = "/".join(quote(value, safe="") for value in scope.values)
    return name if namespace == "omoide" else f"{quote(namespace, safe='')}:{name}"


@dataclass(frozen=True)
class Table:
    """The table of one model, and the statements that read and write it."""

    spec: ModelSpec
    columns: tuple[Column, ...]
    name: str

    @property
    def id(self) -> str:
        """The column of the id, as SQL has it."""
        return identifier(self.spec.id_field)

    @property
    def unique(self) -> tuple[str, ...]:
        """Columns of the uniqueness digests."""
        return tuple(f"_unique_{number}" for number in range(1, len(self.spec.unique) + 1))

    def statement(self, text: str, **parts: str) -> str:
        """A statement with the names of the table put in: `{table}`, `{id}`, and `parts`, which are SQL."""
        return text.format(table=self.name, id=self.id, **parts)

    def list_of(self, names: Sequence[str]) -> str:
        """Column names, separated by commas."""
        return ", ".join(map(identifier, names))


def row_values(table: Table, values: Mapping[str, Any]) -> tuple[list[Any], bytes | None]:
    """Parameters of the field columns, and what has no place in them."""
    found: list[Any] = []
    extra = {name: value for name, value in values.items() if name not in table.spec.fields}
    for column in table.columns:
        value = values.get(column.name)
        if value is not None:
            try:
                value = column.to_sql(value)
            except Misfit:
                extra[column.name], value = value, None
        found.append(value)
    return found, _pack(extra) if extra else None


def values_of(table: Table, columns: Sequence[Any], extra: bytes | None) -> dict[str, Any]:
    """The stored forms of a row, sorted by name."""
    values = {
        column.name: None if value is None else column.from_sql(value)
        for column, value in zip(table.columns, columns, strict=True)
    }
    if extra is not None:
        values.update(_unpack(bytes(extra)))
    return dict(sorted(values.items()))


# ---- making it


def table_of(spec: ModelSpec) -> Table:
    """The description of a model's table; nothing is looked at."""
    assert spec.mirror is not None
    assert spec.mirror.table is not None
    return Table(spec, columns_of(spec), identifier(spec.mirror.table))


def prepare(database: Database, spec: ModelSpec) -> Table:
    """The table of a model, made or brought up to date.

    Raises:
        ModelError: it cannot be brought up to date, or belongs to another model.
    Cost: three queries when nothing is to be done.
    """
    table = table_of(spec)
    migrate(database, "mirror")
    migrate(database, TEXT_LINE)
    database.run(_make, table)
    assert spec.mirror is not None
    if spec.mirror.line is not None:
        migrate(database, spec.mirror.line)
    return table


async def aprepare(database: Database, spec: ModelSpec) -> Table:
    """`prepare`, async."""
    table = table_of(spec)
    await amigrate(database, "mirror")
    await amigrate(database, TEXT_LINE)
    await database.arun(_make, table)
    assert spec.mirror is not None
    if spec.mirror.line is not None:
        await amigrate(database, spec.mirror.line)
    return table


def _make(table: Table) -> Script[None]:
    spec = table.spec
    assert spec.mirror is not None
    found = yield from _found(table)
    owner = yield Step("SELECT model FROM omoide_mirrors WHERE table_name = %s", (spec.mirror.table,))
    if found and owner == [(spec.name,)] and _is_made(table, found):
        return
    yield Step("SELECT pg_advisory_xact_lock(%s)", (LOCK,), patient=True)
    yield Step(
        "INSERT INTO omoide_mirrors (model, table_name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
        (spec.name, spec.mirror.table),
    )
    rows = yield Step("SELECT table_name FROM omoide_mirrors WHERE model = %s", (spec.name,))
    if rows != [(spec.mirror.table,)]:
        raise ModelError(
            f"{spec.name}: the table {spec.mirror.table} is that of another model, or its rows are elsewhere",
            hint="give each model a table of its own: Meta.mirror = PostgresMirror(table=...)",
        )
    yield Step(_create(table))
    found = yield from _found(table)
    yield from _rename(table, found)
    found = yield from _found(table)
    for name, kind in _missing(table, found):
        yield Step(
            table.statement("ALTER TABLE {table} ADD COLUMN {column} ", column=identifier(name)) + kind
        )
    for index in _indexes(table):
        yield Step(index)
    for statement in words_ddl(spec):
        yield Step(statement)


def _found(table: Table) -> Script[dict[str, str]]:
    assert table.spec.mirror is not None
    rows = yield Step(
        "SELECT column_name::text, udt_name::text FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name = %s",
        (table.spec.mirror.table,),
    )
    return dict(rows)


def _wanted(table: Table) -> dict[str, str]:
    wanted = {"_partition": "text NOT NULL"}
    wanted |= {column.name: column.type for column in table.columns}
    return wanted | dict(SYSTEM) | dict.fromkeys(table.unique, "bytea")


def _is_made(table: Table, found: Mapping[str, str]) -> bool:
    """Whether a table has all its columns, the generated one included."""
    has_words = WORDS in found or table.spec.text is None
    return has_words and not _missing(table, found)


def _missing(table: Table, found: Mapping[str, str]) -> list[tuple[str, str]]:
    """Columns to add. Raises ModelError when one is there with another type."""
    missing = []
    for name, kind in _wanted(table).items():
        short = kind.split(" NOT NULL", 1)[0]
        short = _NAMES.get(short, short)
        if name not in found:
            missing.append((name, kind))
        elif found[name] != short:
            raise ModelError(
                f"{table.spec.name}.{name}: its column holds {found[name]}, the field needs {short}",
                hint="give the field another name, or export the model, drop its table and import it",
            )
    return missing


def _rename(table: Table, found: Mapping[str, str]) -> Script[None]:
    """A column whose field was renamed by an alias follows it."""
    for old, new in table.spec.aliases.items():
        if old in found and new not in found:
            yield Step(
                table.statement(
                    "ALTER TABLE {table} RENAME COLUMN {old} TO {new}",
                    old=identifier(old),
                    new=identifier(new),
                )
            )


def _create(table: Table) -> str:
    wanted = _wanted(table)
    wanted[table.spec.id_field] = "text NOT NULL"
    lines = [f"{identifier(name)} {kind}" for name, kind in wanted.items()]
    lines.append(f"PRIMARY KEY (_partition, {table.id})")
    return table.statement("CREATE TABLE IF NOT EXISTS {table} ({columns})", columns=", ".join(lines))


def _indexes(table: Table) -> list[str]:
    assert table.spec.mirror is not None
    prefix = (table.spec.mirror.table or "")[:50]
    wanted = [
        ("row", "(_partition, _row)", False),
        ("order", "(_partition, _order)", False),
        ("expires", "(_partition, _expires) WHERE _expires IS NOT NULL", False),
        ("chain", "(_partition, _chain, _place) WHERE _chain IS NOT NULL", False),
        ("valid_to", "(_partition, _valid_to) WHERE _valid_to IS NOT NULL", False),
        *((name[1:], f"(_partition, {name}) WHERE {name} IS NOT NULL", True) for name in table.unique),
    ]
    return [
        table.statement(
            f"CREATE {'UNIQUE ' if unique else ''}INDEX IF NOT EXISTS {{name}} ON {{table}} {what}",
            name=identifier(f"{prefix}_{short}"),
        )
        for short, what, unique in wanted
    ]
