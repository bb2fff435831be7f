"""Schema changes: numbered SQL files, each applied once, in order, by one process at a time.

    0001_mirror.sql, 0002_...        of one *line* (a folder), recorded with their SHA-256 in

    omoide_migrations(line, number, name, sha256, applied)

Every file is one transaction together with its record, under an advisory lock, so two processes that
start at once apply it once. A file that changed after it was applied, or a number that is missing, is an
error: the schema would not be what the files say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from omoide.errors import ModelError
from omoide.stores.postgres.script import Script, Step

if TYPE_CHECKING:
    from omoide.stores.postgres.session import Database

__all__ = ["LOCK", "Migration", "aensure", "amigrate", "ensure", "migrate", "migrations_of"]

LOCK = 0x6F6D_6F69_6465
"""Advisory lock of every schema change of omoide in a database."""

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_TABLE = """
CREATE TABLE IF NOT EXISTS omoide_migrations (
    line text NOT NULL,
    number integer NOT NULL,
    name text NOT NULL,
    sha256 text NOT NULL,
    applied timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (line, number)
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()


def migrations_of(folder: Traversable) -> tuple[Migration, ...]:
    """The files of a folder, in order.

    Raises:
        ModelError: a number is missing or twice there, or a file is not named so.
    """
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".sql"):
            continue
        match = _NAME.fullmatch(entry.name)
        if match is None:
            raise ModelError(f"{entry.name} is no migration", hint="name it 0001_what_it_does.sql")
        found.append(Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    numbers = [one.number for one in found]
    if numbers != list(range(1, len(found) + 1)):
        raise ModelError(f"migrations are not numbered 1, 2, 3, ...: {numbers}")
    return tuple(found)


def migrate(database: Database, line: str, folder: Traversable | None = None) -> int:
    """Apply what is missing of a line; how many files were applied.

    Args:
        line: Name of the line; by default its files are in `migrations/<line>/` of this package.
    Raises:
        ModelError: what was applied is not what the files say, or a newer omoide applied more.
    Cost: one query when nothing is missing.
    """
    wanted = migrations_of(folder or files("omoide.stores.postgres") / "migrations" / line)
    if database.run(_is_current, line, wanted):
        return 0
    return database.run(_apply, line, wanted)


async def amigrate(database: Database, line: str, folder: Traversable | None = None) -> int:
    """`migrate`, async."""
    wanted = migrations_of(folder or files("omoide.stores.postgres") / "migrations" / line)
    if await database.arun(_is_current, line, wanted):
        return 0
    return await database.arun(_apply, line, wanted)


def ensure(database: Database, *lines: str) -> Database:
    """Bring lines up to date, once a process and database; the database. Cost: nothing from then on."""
    for line in lines:
        if line not in database.ready:
            migrate(database, line)
            database.ready.add(line)
    return database


async def aensure(database: Database, *lines: str) -> Database:
    """`ensure`, async."""
    for line in lines:
        if line not in database.ready:
            await amigrate(database, line)
            database.ready.add(line)
    return database


def _is_current(line: str, wanted: tuple[Migration, ...]) -> Script[bool]:
    rows = yield Step("SELECT to_regclass('omoide_migrations') IS NOT NULL")
    if not rows[0][0]:
        return False
    applied = yield _applied(line)
    return _check(line, applied, wanted) == len(wanted)


def _apply(line: str, wanted: tuple[Migration, ...]) -> Script[int]:
    yield Step("SELECT pg_advisory_xact_lock(%s)", (LOCK,), patient=True)
    yield Step(_TABLE)
    applied = yield _applied(line)
    done = _check(line, applied, wanted)
    for migration in wanted[done:]:
        yield Step(migration.text)
        yield Step(
            "INSERT INTO omoide_migrations (line, number, name, sha256) VALUES (%s, %s, %s, %s)",
            (line, migration.number, migration.name, migration.digest),
        )
    return len(wanted) - done


def _applied(line: str) -> Step:
    return Step("SELECT number, sha256 FROM omoide_migrations WHERE line = %s ORDER BY number", (line,))


def _check(line: str, applied: list[tuple[int, str]], wanted: tuple[Migration, ...]) -> int:
    """How many of the files are applied, once it is sure that they are the first ones."""
    if [number for number, _ in applied] != list(range(1, len(applied) + 1)):
        raise ModelError(f"the migrations applied of {line!r} have a gap", hint="restore omoide_migrations")
    if len(applied) > len(wanted):
        raise ModelError(f"a newer omoide has changed the tables of {line!r}", hint="update omoide")
    for (number, digest), migration in zip(applied, wanted, strict=False):
        if digest != migration.digest:
            raise ModelError(f"migration {number} of {line!r} is not the one that was applied")
    return len(applied)
