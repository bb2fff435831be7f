"""What is visible changes while nobody writes: a warm reader notices, and asks for no more until then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from histories import SPEC as STORY
from histories import Story, put_of
from versions import DatedStory

from omoide.connection import Connection
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask
from omoide.ops.prepare import prepare

SPEC = spec_of(DatedStory)
TERMS = {"walrus": 1.0}
SOON = timedelta(milliseconds=250)


@pytest.fixture
def reader(store_url: str) -> Iterator[Connection]:
    with contextlib.closing(Connection(store_url, reader="client")) as reader:
        yield reader


def dated(name: str, start: datetime, end: datetime | None = None) -> ask.Put:
    story = DatedStory(
        story_id=name,
        agent_id="a",
        content="walrus",
        topic=None if end else "home",
        valid_from=start,
        valid_to=end,
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    put = prepare(story).put
    assert put is not None
    return put


def answer(connection: Connection, request: Any) -> tuple[Any, list[list[Any]]]:
    """The reply to a request, and the replies of the server to each of its round trips."""
    store: Any = connection.store
    handler = store.binding.handle(request)
    commands, replies = next(handler), []
    try:
        while True:
            reply = store.wire.call(commands)
            replies.append(reply)
            commands = handler.send(reply)
    except StopIteration as stop:
        return stop.value, replies


def short(replies: list[list[Any]]) -> bool:
    """Whether one round trip was taken, and answered that nothing is new."""
    return len(replies) == 1 and len(replies[0][0]) == 5


def ids(reply: Any) -> list[str]:
    hits = reply.hits if isinstance(reply, ask.SearchReply) else reply
    return sorted(one.record.id if isinstance(one, ask.Hit) else one.id for one in hits)


@pytest.mark.parametrize(
    "request_", [ask.Search(Scope(SPEC, ("a",)), TERMS), ask.Find(Scope(SPEC, ("a",)), limit=5)]
)
def test_a_version_starts_and_another_ends(reader: Connection, request_: Any) -> None:
    now = datetime.now(UTC)
    reader.store.execute(dated("old", now - SOON))
    reader.store.execute(dated("new", now + SOON))
    reader.store.execute(dated("ends", now - SOON, now + SOON))
    for _ in range(3):
        reply, replies = answer(reader, request_)
    assert ids(reply) == ["ends", "old"]
    assert short(replies)
    time.sleep(0.3)
    reply, _ = answer(reader, request_)
    assert ids(reply) == ["new"]
    reply, replies = answer(reader, request_)
    assert ids(reply) == ["new"]
    assert short(replies)
    then = ask.Match(as_of=int((now.timestamp() - 0.1) * 1000))
    for _ in range(2):
        reply, replies = answer(reader, replace(request_, match=then))
    assert ids(reply) == ["ends", "old"]
    assert short(replies)


def test_a_clock_that_is_wrong_is_found_out(reader: Connection) -> None:
    """The server's clock counts: a reader that believes in another instant is told the right one."""
    now = datetime.now(UTC)
    reader.store.execute(dated("old", now - timedelta(days=2)))
    reader.store.execute(dated("new", now - timedelta(days=1)))
    search = ask.Search(Scope(SPEC, ("a",)), TERMS)
    assert ids(reader.store.execute(search)) == ["new"]
    store: Any = reader.store
    partition = store.binding.cache.open(store.binding.keys.head(search.scope))
    for wrong in (-1.5, 1.5, -3.0):
        partition.clock_offset += int(wrong * 86_400_000)
        assert ids(reader.store.execute(search)) == ["new"]


def test_a_record_expires_under_a_warm_reader(reader: Connection) -> None:
    for name, ttl_ms in (("stays", 60_000), ("goes", 300)):
        story = Story(
            story_id=name, agent_id="a", content="walrus", occurred_at=datetime(2026, 1, 1, tzinfo=UTC)
        )
        reader.store.execute(put_of(story, ttl_ms=ttl_ms))
    search = ask.Search(Scope(STORY, ("a",)), TERMS)
    for _ in range(3):
        reply, replies = answer(reader, search)
    assert ids(reply) == ["goes", "stays"]
    assert short(replies)
    time.sleep(0.35)
    assert ids(answer(reader, search)[0]) == ["stays"]
    reply, replies = answer(reader, search)
    assert ids(reply) == ["stays"]
    assert short(replies)
