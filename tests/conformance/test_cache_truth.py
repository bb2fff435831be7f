"""The client cache under what servers and processes do: lost writes, forks, budgets, deletions."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

import omoide
from omoide import AutoKeyField, BM25Field, ContextAssembler, KeyField, Model, StringField
from omoide.connection import Connection
from omoide.testing.servers import ValkeyServer


class Memo(Model):
    memo_id = AutoKeyField()
    agent_id = KeyField()
    text = StringField(default="")
    words = BM25Field(source="text")


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as server:
        yield server


def ids(query: str, agent: str = "a") -> tuple[str, ...]:
    return tuple(ContextAssembler(Memo, track=False).assemble(query, agent_id=agent).ids)


def partition(connection: Connection) -> object:
    cache = connection.store.binding.cache  # type: ignore[attr-defined]
    (only,) = cache._partitions.values()
    return only


def test_a_server_that_lost_writes_is_believed_at_once(server: ValkeyServer) -> None:
    with omoide.connect(server.unix_url, reader="client"):
        Memo(memo_id="old", agent_id="a", text="shared alpha").save()
        server.command("SAVE")
        for name in ("lost1", "lost2"):
            Memo(memo_id=name, agent_id="a", text="secretlost words").save()
        assert set(ids("secretlost")) == {"lost1", "lost2"}
        server.kill9()
        server.start()
        assert [memo.memo_id for memo in Memo.query.filter(agent_id="a").all()] == ["old"]
        assert ids("secretlost") == ()
        Memo(memo_id="new1", agent_id="a", text="cats").save()
        Memo(memo_id="new2", agent_id="a", text="dogs").save()
        assert ids("secretlost") == ()
        assert ids("cats") == ("new1",)


def test_a_child_of_a_process_that_recalls_does_not_hang(server: ValkeyServer) -> None:
    with omoide.connect(server.unix_url, reader="client") as connection:
        Memo.save_many([Memo(agent_id="a", text=f"common word{number}") for number in range(500)])
        stop = threading.Event()

        def recall() -> None:
            with connection.use():
                while not stop.is_set():
                    ids("common word7")

        assert ids("common")  # what is imported at first use is imported before anyone forks
        thread = threading.Thread(target=recall)
        thread.start()
        try:
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    signal.alarm(10)
                    with connection.use():
                        stored = bool(Memo(agent_id="a", text="of a child").save()) and bool(ids("child"))
                    os._exit(0 if stored else 1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
                time.sleep(0.01)
        finally:
            stop.set()
            thread.join()


def test_a_deletion_touches_the_lists_of_its_own_words_only(server: ValkeyServer) -> None:
    with omoide.connect(server.unix_url, reader="client") as connection:
        memos = [Memo(agent_id="a", text=f"common w{number}a w{number}b") for number in range(50)]
        Memo.save_many(memos)
        assert len(ids("common")) == 8
        before = dict(partition(connection).terms)  # type: ignore[attr-defined]
        assert memos[7].delete()
        after = partition(connection).terms  # type: ignore[attr-defined]
        assert {name.lstrip("=") for name in set(before) - set(after)} == {"w7a", "w7b"}
        assert after["common"].df == 49
        trips = connection.round_trips
        assert len(ids("common w3a")) == 8
        assert connection.round_trips - trips == 1


def test_a_cache_stays_within_its_budget_whatever_fills_it(server: ValkeyServer) -> None:
    budget = 300_000
    with omoide.connect(server.unix_url, reader="client", cache_bytes=budget) as connection:
        cache = connection.store.binding.cache  # type: ignore[attr-defined]
        Memo(agent_id="a", text="first").save()
        ids("first")
        for number in range(60):
            Memo.save_many([Memo(agent_id="a", text=f"w{number} v{n} u{number}x{n}") for n in range(50)])
            assert cache.nbytes <= budget
        for number in range(400):
            assert ids("anything", agent=f"nobody-{number}") == ()
        assert cache.stats()["partitions"] <= 1
    with omoide.connect(server.unix_url, cache_bytes=budget) as connection:
        for number in range(40):
            Memo(agent_id=f"agent-{number}", text="gramophone record").save()
            ids("gramofone", agent=f"agent-{number}")
        assert 0 < connection.store.binding.cache.nbytes <= budget  # type: ignore[attr-defined]
