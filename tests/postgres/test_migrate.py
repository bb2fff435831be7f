"""Numbered SQL files: each applied once, whole, in order, by one process at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from omoide.errors import ModelError, StoreError
from omoide.stores.postgres.migrate import amigrate, migrate, migrations_of
from omoide.stores.postgres.session import Database, Script, Step


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    found = Database(postgres_url, timeout=10)
    found.run(_clear)
    yield found
    found.close()


def _clear() -> Script[None]:
    yield Step("DROP TABLE IF EXISTS omoide_migrations, one, two, three")


def tables() -> Script[set[str]]:
    rows = yield Step("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")
    return {name for (name,) in rows}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "0001_one.sql").write_text("CREATE TABLE one (a text);\nCREATE INDEX ON one (a);\n")
    (tmp_path / "0002_two.sql").write_text("CREATE TABLE two (a text);\n")
    return tmp_path


def test_files_are_applied_once_and_new_ones_after(database: Database, folder: Path) -> None:
    assert migrate(database, "test", folder) == 2
    assert migrate(database, "test", folder) == 0
    (folder / "0003_three.sql").write_text("CREATE TABLE three (a text)")
    assert migrate(database, "test", folder) == 1
    assert database.run(tables) >= {"one", "two", "three"}


async def test_the_async_face_does_the_same(database: Database, folder: Path) -> None:
    assert await amigrate(database, "test", folder) == 2
    assert await amigrate(database, "test", folder) == 0


def test_a_file_that_fails_leaves_nothing(database: Database, folder: Path) -> None:
    (folder / "0003_three.sql").write_text("CREATE TABLE three (a text); SELECT nonsense")
    with pytest.raises((StoreError, ModelError)):
        migrate(database, "test", folder)
    assert not database.run(tables) & {"one", "two", "three"}


def test_processes_that_start_at_once_apply_them_once(
    database: Database, folder: Path, postgres_url: str
) -> None:
    done: list[int] = []

    def work() -> None:
        own = Database(postgres_url, timeout=10)
        done.append(migrate(own, "test", folder))
        own.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0] * 7 + [2]


def test_what_was_applied_has_to_be_what_the_files_say(database: Database, folder: Path) -> None:
    migrate(database, "test", folder)
    (folder / "0002_two.sql").write_text("CREATE TABLE other (a text);\n")
    with pytest.raises(ModelError, match="migration 2"):
        migrate(database, "test", folder)
    (folder / "0002_two.sql").unlink()
    with pytest.raises(ModelError, match="newer"):
        migrate(database, "test", folder)


@pytest.mark.parametrize(
    "names", [["0002_b.sql"], ["0001_a.sql", "0003_c.sql"], ["0001_a.sql", "0001_b.sql"]]
)
def test_a_gap_is_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(ModelError, match="numbered"):
        migrations_of(tmp_path)
    (tmp_path / "first.sql").write_text("SELECT 1")
    with pytest.raises(ModelError, match="no migration"):
        migrations_of(tmp_path)


def test_a_record_that_is_missing_is_a_gap(database: Database, folder: Path) -> None:
    migrate(database, "test", folder)

    def lose() -> Script[None]:
        yield Step("DELETE FROM omoide_migrations WHERE number = 1")

    database.run(lose)
    with pytest.raises(ModelError, match="gap"):
        migrate(database, "test", folder)
