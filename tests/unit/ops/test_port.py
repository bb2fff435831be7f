from __future__ import annotations

import asyncio
import time

import pytest
from notes import OpsNote
from recording import RecordingConnection

from omoide.errors import StoreUnavailableError
from omoide.ops import port


@pytest.fixture(autouse=True)
def _unbound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_default", None)
    monkeypatch.setattr(port, "opener", None)


def test_without_a_connection_a_call_says_so() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        OpsNote.count(agent_id="a")
    assert "connect" in caught.value.hint


def test_the_opener_is_called_once_and_only_when_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[RecordingConnection] = []

    def opener() -> RecordingConnection:
        opened.append(RecordingConnection())
        return opened[-1]

    monkeypatch.setattr(port, "opener", opener)
    note = OpsNote(agent_id="a")
    assert opened == []
    note.save()
    OpsNote.count(agent_id="a")
    assert len(opened) == 1


async def test_a_scoped_connection_holds_in_its_task_only() -> None:
    outer, inner = RecordingConnection(), RecordingConnection()
    port.bind(outer)

    async def scoped() -> None:
        with port.using(inner):
            await asyncio.sleep(0)
            await OpsNote(agent_id="a").asave()

    async def plain() -> None:
        await asyncio.sleep(0)
        await OpsNote(agent_id="a").asave()

    await asyncio.gather(scoped(), plain())
    assert (len(outer.store.asked), len(inner.store.asked)) == (1, 1)
    assert port.current() is outer


def test_deadlines_nest_and_the_earlier_one_holds() -> None:
    assert port.remaining() is None
    with port.deadline(10):
        with port.deadline(60):
            assert 9 < (port.remaining() or 0) <= 10
        with port.deadline(None):
            assert 9 < (port.remaining() or 0) <= 10
        with port.deadline(0.01):
            time.sleep(0.02)
            assert port.remaining() == 0.0
        assert (port.remaining() or 0) > 9
    assert port.remaining() is None
