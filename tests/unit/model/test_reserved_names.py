"""A partition field can be named in every call that takes a partition by keywords."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import omoide
from omoide.context import ContextAssembler
from omoide.errors import ModelError
from omoide.fields import AutoKeyField, KeyField
from omoide.model.build import RESERVED
from omoide.model.instance import Instance, spec_of
from omoide.ops.model import Model
from omoide.ops.query import Query
from omoide.recipes import SubconsciousMemory

SHARED = {"session_id", "author"}
"""Options of a SubconsciousMemory that are taken for the partition where they are part of it."""


def calls() -> Iterator[Callable[..., Any]]:
    for owner in (Model, Query, ContextAssembler, omoide):
        for name, value in vars(owner).items():
            function = getattr(value, "__func__", value)
            if inspect.isfunction(function) and not name.startswith("_"):
                yield function
    yield from (getattr(omoide, name) for name in omoide.__all__ if inspect.isfunction(getattr(omoide, name)))
    yield SubconsciousMemory.__init__


def test_every_option_beside_a_partition_is_reserved() -> None:
    found: set[str] = set()
    for call in calls():
        parameters = inspect.signature(call).parameters.values()
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            taken = [one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.POSITIONAL_ONLY)]
            found |= {one.name for one in taken}
    assert {"scan", "ids", "query", "model", "extractor"} <= found
    assert found - SHARED <= RESERVED


@pytest.mark.parametrize("name", sorted(RESERVED - {"query", "cls"}))
def test_a_partition_field_of_such_a_name_is_refused(name: str) -> None:
    body = {"note_id": AutoKeyField(), name: KeyField(), "__module__": __name__}
    with pytest.raises(ModelError):
        type(f"Reserved{name}", (Instance,), body)


def test_it_is_a_name_like_any_other_elsewhere() -> None:
    class ReservedElsewhere(Instance):
        note_id = AutoKeyField()
        agent_id = KeyField()
        position = KeyField()

        class Meta:
            partition_by = "agent_id"

    assert spec_of(ReservedElsewhere).exact == ("position",)


def test_session_and_author_may_be_the_partition() -> None:
    class ReservedTalk(Model):
        note_id = AutoKeyField()
        session_id = KeyField()
        author = KeyField()

        class Meta:
            partition_by = ("session_id", "author")

    memory = SubconsciousMemory(model=ReservedTalk, session_id="s", author="ann")
    assert memory.scope.values == ("s", "ann")
