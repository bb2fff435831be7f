"""Erasing records with every trace of them: postings, tags, edges, unique values, counters of a partition."""

from __future__ import annotations

from collections.abc import Sequence

from omoide.model.instance import Instance, id_of, scope_of
from omoide.model.schema import Scope
from omoide.ops import load
from omoide.ops.load import Selection
from omoide.ops.request import Drop, Erase
from omoide.ops.run import Plan

CHUNK = 250
"""Records erased by one request; each on its own is atomic."""


def delete(instance: Instance) -> Plan[bool]:
    """Erase a record; False when it was not there. One round trip."""
    erased: tuple[bool, ...] = yield Erase(scope_of(instance), (id_of(instance),))
    return erased[0]


def delete_many(scope: Scope, ids: Sequence[str]) -> Plan[int]:
    """Erase records by id; how many were there. A round trip per 250."""
    total = 0
    for start in range(0, len(ids), CHUNK):
        erased: tuple[bool, ...] = yield Erase(scope, tuple(ids[start : start + CHUNK]))
        total += sum(erased)
    return total


def delete_selected(model: type[Instance], selection: Selection) -> Plan[int]:
    """Erase every record that is selected; how many were. Finding them, then a round trip per 250."""
    ids: list[str] = yield from selected_ids(model, selection)
    total: int = yield from delete_many(selection.scope, ids)
    return total


def selected_ids(model: type[Instance], selection: Selection) -> Plan[list[str]]:
    """The ids of a selection, in its order."""
    found: list[Instance] = yield from load.select(model, selection)
    return [load.record_of(one).id for one in found]


def drop(scope: Scope) -> Plan[int]:
    """Erase a whole partition, counters, turns and graph included; how many records it held."""
    total: int = yield Drop(scope)
    return total
