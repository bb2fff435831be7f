"""Every call that reaches the store has an `a` twin of the same signature over the same plan."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from notes import OpsGuarded, OpsNote
from recording import RecordingStore

from omoide.ops.counters import Counters
from omoide.ops.graph import Associations
from omoide.ops.model import Model
from omoide.ops.query import Query

_TWINLESS = {"filter", "exclude", "order_by", "limit", "offset", "scan", "history", "counters", "defaults"}
_TWINLESS |= {"from_record", "absorb", "query"}


def _public(owner: type) -> set[str]:
    return {
        name
        for name in dir(owner)
        if not name.startswith("_")
        and callable(getattr(owner, name))
        and not isinstance(getattr(owner, name), Query)
    } - {"Meta"}


def _pairs(owner: type) -> list[tuple[str, str]]:
    names = _public(owner) - _TWINLESS
    sync = {name for name in names if not (name.startswith("a") and name[1:] in names)}
    return sorted((name, "a" + name) for name in sync)


@pytest.mark.parametrize("owner", [Model, Query, Counters, Associations])
def test_every_call_has_a_twin_of_the_same_signature(owner: type) -> None:
    pairs = _pairs(owner)
    assert pairs
    for name, twin in pairs:
        assert hasattr(owner, twin), f"{owner.__name__}.{name} has no twin"
        first, second = inspect.signature(getattr(owner, name)), inspect.signature(getattr(owner, twin))
        assert list(first.parameters.values()) == list(second.parameters.values()), f"{owner.__name__}.{name}"


async def _both(store: RecordingStore, sync: Any, twin: Any) -> tuple[list[Any], list[Any]]:
    store.asked.clear()
    sync()
    first = list(store.asked)
    store.asked.clear()
    await twin()
    return first, list(store.asked)


async def test_twins_ask_the_same(store: RecordingStore) -> None:
    note = OpsNote(agent_id="a", content="x")
    note.save()
    key: dict[str, Any] = {"agent_id": "a", "note_id": note.note_id}
    query = OpsNote.query.filter(agent_id="a")
    counters = OpsNote.counters(agent_id="a")
    pairs = [
        (lambda: note.save(operation_id="s"), lambda: note.asave(operation_id="s")),
        (note.refresh, note.arefresh),
        (note.touch, note.atouch),
        (note.evidence, note.aevidence),
        (lambda: OpsNote.query.get(**key), lambda: OpsNote.query.aget(**key)),
        (lambda: query.get_many(["x"]), lambda: query.aget_many(["x"])),
        (query.all, query.aall),
        (query.first, query.afirst),
        (query.ids, query.aids),
        (query.count, query.acount),
        (query.top_by_decay, query.atop_by_decay),
        (lambda: OpsNote.count(agent_id="a"), lambda: OpsNote.acount(agent_id="a")),
        (lambda: counters.read("x"), lambda: counters.aread("x")),
        (counters.all, counters.aall),
        (lambda: counters.increment("x"), lambda: counters.aincrement("x")),
        (lambda: note.associations.link("o"), lambda: note.associations.alink("o")),
        (lambda: note.associations.strengthen("o"), lambda: note.associations.astrengthen("o")),
        (lambda: note.associations.weaken("o"), lambda: note.associations.aweaken("o")),
        (note.associations.neighbours, note.associations.aneighbours),
        (note.associations.propagate, note.associations.apropagate),
        (
            lambda: OpsGuarded.never_record_counts(agent_id="a"),
            lambda: OpsGuarded.anever_record_counts(agent_id="a"),
        ),
        (lambda: OpsNote.delete_many(["x"], agent_id="a"), lambda: OpsNote.adelete_many(["x"], agent_id="a")),
        (lambda: query.filter(tags="none").delete(), lambda: query.filter(tags="none").adelete()),
        (lambda: OpsNote.delete_partition(agent_id="z"), lambda: OpsNote.adelete_partition(agent_id="z")),
        (note.delete, note.adelete),
    ]
    for sync, twin in pairs:
        first, second = await _both(store, sync, twin)
        assert first == second
        assert first


async def test_async_writes_and_iteration(store: RecordingStore) -> None:
    made = await OpsNote.acreate(agent_id="a", content="x")
    assert (await made.aupdate(content="y")).version == 2
    assert all(await OpsNote.asave_many([OpsNote(agent_id="a") for _ in range(3)]))
    seen = [note async for note in OpsNote.query.filter(agent_id="a").aiterate(page=2)]
    assert len(seen) == 4
    results = await asyncio.gather(*(OpsNote(agent_id="a").asave() for _ in range(5)))
    assert all(results)
