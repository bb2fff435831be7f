"""Random models with random values, statistics and links: out and in again, the same bytes."""

from __future__ import annotations

import io
from datetime import UTC, timedelta
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from journeys import Marks, Shade, everything, wipe

import omoide
from omoide import (
    AutoKeyField,
    BM25Field,
    BoolField,
    BytesField,
    ConfidenceField,
    CoOccurrenceField,
    DateField,
    DatetimeField,
    DecayingSortedField,
    DecimalField,
    DictField,
    EnumField,
    FloatField,
    IntField,
    KeyField,
    ListField,
    Model,
    StringField,
    TagField,
    UUIDField,
    ValidityField,
)
from omoide.connection import Connection
from omoide.mixins import AccessTrackerMixin
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import port
from omoide.ops.request import Evidence, Observe

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
KEY = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KINDS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "text": (StringField, TEXT),
    "whole": (IntField, WHOLE),
    "share": (FloatField, FINITE),
    "price": (DecimalField, st.decimals(allow_nan=False, allow_infinity=False)),
    "open": (BoolField, st.booleans()),
    "blob": (BytesField, st.binary(max_size=30)),
    "moment": (DatetimeField, st.datetimes(timezones=st.just(UTC))),
    "day": (DateField, st.dates()),
    "shade": (lambda **options: EnumField(Shade, **options), st.sampled_from(tuple(Shade))),
    "marks": (
        lambda **options: EnumField(Marks, **options),
        st.sampled_from((Marks.NEW, Marks(3), Marks(0))),
    ),
    "code": (UUIDField, st.uuids()),
    "tags": (TagField, st.sets(KEY, max_size=3)),
    "parts": (ListField, st.lists(JSON, max_size=3)),
    "facts": (DictField, st.dictionaries(TEXT, JSON, max_size=3)),
    "session_id": (StringField, KEY),
    "author": (StringField, st.sampled_from(("Ann", "Бо")) | KEY),
    "occurred_at": (DatetimeField, st.datetimes(timezones=st.just(UTC))),
}
MEMORY: dict[str, Any] = {
    "relevance": lambda: DecayingSortedField(base_score_field="importance"),
    "power": lambda: DecayingSortedField(base_score_field="importance", exponent=0.7),
    "slow": lambda: DecayingSortedField(base_score_field="importance", half_life=timedelta(days=400_000)),
    "confidence": ConfidenceField,
    "search": lambda: BM25Field(source="content"),
    "links": CoOccurrenceField,
    "validity": lambda: ValidityField(key="author", start="moment"),
}


def drawn_model(kinds: list[str], memory: list[str], expires: bool) -> type[Model]:
    """A model of these fields; the same name each time, so that the last one stands for it."""
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": "DrawnMemory",
        "memory_id": AutoKeyField(),
        "agent_id": KeyField(),
        "content": StringField(default=""),
        "importance": FloatField(default=1.0),
        **{name: KINDS[name][0](null=True) for name in kinds},
        **{name: MEMORY[name]() for name in memory},
        "Meta": type("Meta", (), {"ttl": timedelta(days=300)} if expires else {}),
    }
    return type("DrawnMemory", (AccessTrackerMixin, Model), body)


@st.composite
def journeys(draw: st.DrawFn) -> tuple[type[Model], list[dict[str, Any]]]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), unique=True, max_size=8))
    if draw(st.booleans()):
        kinds = sorted({*kinds, "author", "moment"})
    decays = draw(st.sampled_from(([], ["relevance"], ["power"], ["slow"])))
    memory = decays + [name for name in ("confidence", "search", "links") if draw(st.booleans())]
    if {"author", "moment"} <= set(kinds):
        memory.append("validity")
    record = st.fixed_dictionaries(
        {
            "agent_id": st.sampled_from(("ada", "бо", "a/b:{c} *")),
            "content": TEXT,
            "importance": st.sampled_from((1.0, 0.0, -2.5)) | st.floats(-1e30, 1e30),
            **{name: st.none() | KINDS[name][1] for name in kinds},
        },
        optional={"memory_id": st.text("abcé🙂", min_size=1, max_size=6)},
    )
    model = drawn_model(kinds, memory, draw(st.booleans()))
    return model, draw(st.lists(record, min_size=1, max_size=8))


def live(model: type[Model], data: st.DataObject, made: list[Any]) -> None:
    """Outcomes, accesses, links, updates and deletes of what was saved."""
    store = port.current().store
    for agent in {one.agent_id for one in made}:
        mine = [one.memory_id for one in made if one.agent_id == agent]
        told = data.draw(st.lists(st.sampled_from(mine), unique=True, max_size=4))
        evidence = tuple(
            Evidence(name, data.draw(st.sampled_from((0.0, 1.0, 0.3))), 0.5, data.draw(st.booleans()), True)
            for name in told
        )
        linked = tuple(told) if spec_of(model).graph else ()
        store.execute(Observe(Scope(spec_of(model), (agent,)), evidence, linked=linked, link=0.7))
    for one in data.draw(st.lists(st.sampled_from(made), unique_by=id, max_size=2)):
        one.update(importance=0.25)
    for one in data.draw(st.lists(st.sampled_from(made), unique_by=id, max_size=1)):
        one.delete()


def exported(model: type[Model]) -> bytes:
    out = io.BytesIO()
    omoide.export_memories(model, out)
    return out.getvalue()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(drawn=journeys(), data=st.data())
def test_any_model_comes_back_to_the_last_byte(
    connection: Connection, raw: Any, drawn: tuple[type[Model], list[dict[str, Any]]], data: st.DataObject
) -> None:
    model, rows = drawn
    wipe(model)
    made = [model(**row) for row in rows]
    assert all(model.save_many(made))
    live(model, data, made)
    assume(any(model.count(agent_id=one.agent_id) for one in made))
    first = exported(model)
    wipe(model)
    done = omoide.import_memories(model, io.BytesIO(first))
    assert done.stored == done.records
    assert exported(model) == first
    before = everything(raw)
    assert omoide.import_memories(model, io.BytesIO(first)).present == done.records
    assert everything(raw) == before
    assert all(health.sound for health in omoide.doctor(model))
