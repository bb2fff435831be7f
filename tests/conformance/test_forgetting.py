"""`forget`: nothing of a partition is left, on disk either where the disk is ours; the rest is named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import omoide
from omoide.connection import Connection
from omoide.ops import forget as forgetting
from omoide.ops import quarantine
from omoide.ops.request import Drop, KeysLeft, Pause, Persisted, Persistence, RewriteLog
from omoide.privacy.samples import Maker
from omoide.recipes import DefaultMemory
from omoide.testing.servers import ValkeyServer

WORDS = "the walrus knows the number of the vault"
TOKEN = "gh" + "p_" + Maker(3).body("an", 36)


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[tuple[Connection, Path]]:
    """An embedded store that does not pack texts in its files, so that they can be looked for."""
    folder = tmp_path / "store"
    with omoide.connect(f"embedded://{folder}") as connection:
        server = connection._server
        assert server is not None
        with redis.Redis(unix_socket_path=str(server.socket_path)) as client:
            client.config_set("rdbcompression", "no")
        yield connection, folder


def _fill() -> None:
    for agent in ("ada", "bob"):
        made = [DefaultMemory(agent_id=agent, content=f"{WORDS} {agent} {number}") for number in range(20)]
        assert all(DefaultMemory.save_many(made))
        made[0].associations.link(made[1])
        DefaultMemory.counters(agent_id=agent).increment("seen")


def _on_disk(folder: Path, text: str) -> list[str]:
    return [str(one) for one in folder.rglob("*") if one.is_file() and text.encode() in one.read_bytes()]


def test_nothing_is_left_in_the_files_of_the_embedded_store(embedded: tuple[Connection, Path]) -> None:
    _, folder = embedded
    _fill()
    assert _on_disk(folder, f"{WORDS} ada 7")
    told = omoide.forget(DefaultMemory, agent_id="ada", certify=True)
    assert (told.records, told.quarantined, told.rewritten) == (20, 0, True)
    assert any("backups" in place for place in told.out_of_reach)
    assert not _on_disk(folder, f"{WORDS} ada 7")
    assert _on_disk(folder, f"{WORDS} bob 7")
    assert DefaultMemory.count(agent_id="ada") == 0
    assert DefaultMemory.count(agent_id="bob") == 20


def test_the_rewrite_begins_without_a_certificate_too(embedded: tuple[Connection, Path]) -> None:
    connection, folder = embedded
    _fill()
    told = omoide.forget(DefaultMemory, agent_id="ada")
    assert (told.records, told.rewritten, told.out_of_reach) == (20, None, ())
    for _ in range(500):
        if not any(one.rewriting for one in connection.store.execute(Persistence())):
            break
        connection.store.execute(Pause(0.02))
    assert not _on_disk(folder, f"{WORDS} ada 7")


def test_what_was_put_in_quarantine_goes_too(embedded: tuple[Connection, Path]) -> None:
    connection, folder = embedded
    connection.store.execute(RewriteLog())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMOIDE_NEVER_RECORD_DISABLE", "1")
        assert DefaultMemory(agent_id="ada", content=f"the token is {TOKEN}").save()
    assert omoide.scan_memories(DefaultMemory, action="quarantine").removed == 1
    assert len(quarantine.quarantined(DefaultMemory, agent_id="ada")) == 1
    told = asyncio.run(omoide.aforget(DefaultMemory, agent_id="ada", certify=True))
    assert (told.records, told.quarantined, told.rewritten) == (0, 1, True)
    assert quarantine.quarantined(DefaultMemory, agent_id="ada") == []
    assert not _on_disk(folder, TOKEN)


def test_of_a_server_of_others_the_files_are_named_and_not_touched() -> None:
    with ValkeyServer(aof=True) as server, omoide.connect(server.url) as connection:
        _fill()
        before = connection.round_trips
        told = omoide.forget(DefaultMemory, agent_id="ada", certify=True)
        assert connection.round_trips - before == 5
        assert (told.records, told.rewritten) == (20, None)
        assert "append-only file" in told.out_of_reach[0]
        assert any("snapshots" in place for place in told.out_of_reach)
        (facts,) = connection.store.execute(Persistence())
        assert facts == Persisted(append_only=True, rewriting=False, rewrite_succeeded=True, replicas=0)


def test_a_call_that_cannot_be_meant(store_url: str) -> None:
    with omoide.connect(store_url):
        with pytest.raises(omoide.QueryError):
            omoide.forget(DefaultMemory)
        with omoide.batch(), pytest.raises(omoide.QueryError, match="batch"):
            omoide.forget(DefaultMemory, agent_id="ada")
        assert omoide.forget(DefaultMemory, agent_id="nobody", certify=True).records == 0


# ---- the plan, answered by hand ---------------------------------------------------------------------


def _answer(plan: Any, *answers: Any) -> Any:
    """Drive a plan with (kind of request, reply) in order; what it ends with."""
    request = next(plan)
    for kind, reply in answers:
        assert type(request) is kind
        try:
            request = plan.send(reply)
        except StopIteration as stop:
            return stop.value
    raise AssertionError(f"it goes on with {request}")


def _facts(**changes: Any) -> tuple[Persisted, ...]:
    held = {"append_only": True, "rewriting": False, "rewrite_succeeded": True, "replicas": 0, **changes}
    return (Persisted(**held),)


def _begun(patience: float = 60.0) -> Any:
    from omoide.model.instance import spec_of
    from omoide.model.schema import Scope

    scope = Scope(spec_of(DefaultMemory), ("ada",))
    return forgetting.forgotten(scope, ours=True, certify=True, patience=patience)


ERASED = ((Drop, 3), (Drop, 1), (KeysLeft, 0), (KeysLeft, 0))


def test_a_rewrite_that_was_under_way_does_not_count() -> None:
    told = _answer(
        _begun(),
        *ERASED,
        (RewriteLog, False),
        (Persistence, _facts(rewriting=True)),
        (Pause, None),
        (Persistence, _facts()),
        (RewriteLog, True),
        (Pause, None),
        (Persistence, _facts(rewriting=True)),
        (Pause, None),
        (Persistence, _facts(replicas=2)),
        (Persistence, _facts(replicas=2)),
    )
    assert told.rewritten is True
    assert "2 replicas" in told.out_of_reach[1]


def test_a_key_that_is_there_again_is_no_success() -> None:
    with pytest.raises(omoide.StoreError, match="somebody writes"):
        _answer(_begun(), (Drop, 3), (Drop, 0), (KeysLeft, 2))


def test_a_rewrite_that_takes_too_long_or_fails_is_told() -> None:
    busy = ((RewriteLog, True), (Persistence, _facts(rewriting=True)))
    with pytest.raises(omoide.StoreTimeoutError, match="everything is erased"):
        _answer(_begun(patience=0.0), *ERASED, *busy)
    with pytest.raises(omoide.StoreError, match="could not be rewritten"):
        _answer(_begun(), *ERASED, (RewriteLog, True), (Persistence, _facts(rewrite_succeeded=False)))


def test_the_embedded_server_is_ours_and_no_other(embedded: tuple[Connection, Path], store_url: str) -> None:
    assert embedded[0].owns_server
    with Connection(store_url) as other:
        assert not other.owns_server
