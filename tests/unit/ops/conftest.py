from __future__ import annotations

from collections.abc import Iterator

import pytest
from recording import RecordingConnection, RecordingStore

from omoide.ops import port


@pytest.fixture
def store() -> Iterator[RecordingStore]:
    connection = RecordingConnection()
    before = port.bind(connection)
    yield connection.store
    port.bind(before)
