"""Writes at the worst moment: between the plan of a recall and its reply."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from histories import SPEC, Story, put_of

from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops import request as ask

HERE = Scope(SPEC, ("a",))
TERMS = {"walrus": 1.0}


@pytest.fixture
def pair(store_url: str) -> Iterator[tuple[Connection, Connection]]:
    """A client reader, and another process' connection."""
    with (
        contextlib.closing(Connection(store_url, reader="client")) as reader,
        contextlib.closing(Connection(store_url, reader="server")) as other,
    ):
        yield reader, other


def save(connection: Connection, name: str, content: str = "walrus", *, ttl_ms: int = 3_600_000) -> None:
    story = Story(story_id=name, agent_id="a", content=content, occurred_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert connection.store.execute(replace(put_of(story), ttl_ms=ttl_ms)).status == "stored"


def erase(connection: Connection, name: str) -> None:
    assert connection.store.execute(ask.Erase(HERE, (name,))) == (True,)


def answer(connection: Connection, request: Any, between: Callable[[int], None]) -> Any:
    """The reply to a request, with something happening before each of its round trips."""
    store: Any = connection.store
    handler = store.binding.handle(request)
    commands, trip = next(handler), 0
    try:
        while True:
            between(trip)
            commands = handler.send(store.wire.call(commands))
            trip += 1
    except StopIteration as stop:
        return stop.value


def found(reply: ask.SearchReply) -> list[str]:
    return [hit.record.id for hit in reply.hits]


def test_a_record_saved_here_and_erased_elsewhere_before_the_reply(
    pair: tuple[Connection, Connection],
) -> None:
    reader, other = pair
    save(reader, "first")
    assert found(reader.store.execute(ask.Search(HERE, TERMS))) == ["first"]

    def between(trip: int) -> None:
        if trip == 0:
            save(reader, "second")
            erase(other, "second")
            save(other, "third")

    assert found(answer(reader, ask.Search(HERE, TERMS), between)) == ["first", "third"]
    assert reader.store.execute(ask.Count(HERE, ask.Match(importance=(0.0, None)))) == 2
    assert len(reader.store.execute(ask.Find(HERE, limit=2))) == 2


def test_a_record_saved_and_judged_here_before_the_reply(pair: tuple[Connection, Connection]) -> None:
    reader, other = pair
    save(reader, "first")
    reader.store.execute(ask.Search(HERE, TERMS))

    def between(trip: int) -> None:
        if trip == 0:
            save(reader, "second")
            other.store.execute(ask.Observe(HERE, (ask.Evidence("second", 0.0, 9.0),)))

    reply = answer(reader, ask.Search(HERE, TERMS), between)
    assert found(reply) == ["first", "second"]
    assert [hit.score for hit in reply.hits] == [
        hit.score for hit in other.store.execute(ask.Search(HERE, TERMS)).hits
    ]


def test_a_prediction_is_not_kept_over_a_write_of_this_process(pair: tuple[Connection, Connection]) -> None:
    reader, _ = pair
    save(reader, "first")
    reader.store.execute(ask.Search(HERE, TERMS))

    def between(trip: int) -> None:
        if trip == 0:
            save(reader, "second", "walrus walrus walrus")

    assert found(answer(reader, ask.Search(HERE, TERMS), between)) == ["second", "first"]


def test_a_rebuild_before_the_reply(pair: tuple[Connection, Connection]) -> None:
    from omoide.ops.reindex import rebuild
    from omoide.ops.run import run

    reader, other = pair
    for number in range(30):
        save(reader, f"{number:02}")
        if number % 2:
            erase(reader, f"{number - 1:02}")
    reader.store.execute(ask.Search(HERE, TERMS))

    def between(trip: int) -> None:
        if trip == 0:
            assert run(rebuild(Story, HERE), other.store) == 15

    assert found(answer(reader, ask.Search(HERE, TERMS), between)) == [f"{n:02}" for n in range(1, 21, 2)]


def test_a_partition_that_changes_at_every_trip_is_still_answered(
    pair: tuple[Connection, Connection],
) -> None:
    reader, other = pair
    save(reader, "first")
    reader.store.execute(ask.Search(HERE, TERMS))

    def between(trip: int) -> None:
        save(other, f"new-{trip}", "walrus " * (trip + 2))

    reply = answer(reader, ask.Search(HERE, TERMS, 1), between)
    assert found(reply) == [f"new-{reply.round_trips - 1}"]
    assert reply.round_trips <= 5


def test_everything_expires_before_the_reply(pair: tuple[Connection, Connection]) -> None:
    reader, other = pair
    save(reader, "first", ttl_ms=60_000)
    reader.store.execute(ask.Search(HERE, TERMS))
    erase(other, "first")
    save(other, "second", ttl_ms=30)
    assert found(reader.store.execute(ask.Search(HERE, TERMS))) == ["second"]

    def between(trip: int) -> None:
        while other.store.execute(ask.Count(HERE)):
            pass

    assert found(answer(reader, ask.Search(HERE, TERMS), between)) == []
    save(other, "third")
    assert found(reader.store.execute(ask.Search(HERE, TERMS))) == ["third"]


def test_a_rebuild_with_records_that_are_due(pair: tuple[Connection, Connection]) -> None:
    from omoide.ops.reindex import rebuild
    from omoide.ops.run import run

    reader, other = pair
    save(other, "stays")
    for number in range(70):
        save(other, f"due-{number}", ttl_ms=40)
    while other.store.execute(ask.Count(HERE)) > 1:
        pass
    assert run(rebuild(Story, HERE), other.store) == 1
    assert other.store.execute(ask.Check(HERE)).findings == ()
    assert found(reader.store.execute(ask.Search(HERE, TERMS))) == ["stays"]
