"""The environment: read at call time, with defaults, and never guessed at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omoide import settings
from omoide.errors import OmoideError


def test_defaults() -> None:
    assert settings.store_url() is None
    assert settings.namespace() == "omoide"
    assert settings.call_timeout() == 5.0
    assert settings.max_records_per_partition() is None
    assert settings.never_record_disabled() is False


def test_values_are_read_when_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMOIDE_URL", " redis://h ")
    monkeypatch.setenv("OMOIDE_NAMESPACE", "mine")
    monkeypatch.setenv("OMOIDE_TIMEOUT", "0.5")
    monkeypatch.setenv("OMOIDE_MAX_RECORDS_PER_PARTITION", "0")
    monkeypatch.setenv("OMOIDE_NEVER_RECORD_DISABLE", "1")
    monkeypatch.setenv("OMOIDE_DATA_DIR", str(tmp_path))
    assert settings.store_url() == "redis://h"
    assert settings.namespace() == "mine"
    assert settings.call_timeout() == 0.5
    assert settings.max_records_per_partition() == 0
    assert settings.never_record_disabled() is True
    assert settings.data_dir() == tmp_path


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("OMOIDE_TIMEOUT", "soon", settings.call_timeout),
        ("OMOIDE_TIMEOUT", "0", settings.call_timeout),
        ("OMOIDE_TIMEOUT", "nan", settings.call_timeout),
        ("OMOIDE_MAX_RECORDS_PER_PARTITION", "-1", settings.max_records_per_partition),
        ("OMOIDE_MAX_RECORDS_PER_PARTITION", "many", settings.max_records_per_partition),
        ("OMOIDE_NEVER_RECORD_DISABLE", "maybe", settings.never_record_disabled),
    ],
)
def test_what_cannot_be_read_is_an_error(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, read: object
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(OmoideError, match=name):
        read()  # type: ignore[operator]


@pytest.mark.skipif(sys.platform == "win32", reason="no unix sockets there")
def test_the_runtime_folder_leaves_room_for_a_socket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert len(str(settings.runtime_dir())) <= 70
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/tmp")
    assert settings.runtime_dir() == Path("/tmp/omoide")


def test_a_local_wire_needs_neither_redis_py_nor_asyncio() -> None:
    script = "import sys, omoide.stores.redis.wire; print({'redis', 'asyncio', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
