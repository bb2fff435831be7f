"""A connection to a real server, emptied."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omoide.connection import Connection


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    """Bound for the test, and its round trips counted from 0 warm."""
    with Connection(store_url, reader="client") as opened, opened.use():
        yield opened
