"""Ranges are exact where indexes are coarser than what they index; what cannot be compared is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notes import OpsNote
from recording import RecordingStore, recording

from omoide.core.columns import stored_confidence
from omoide.errors import QueryError
from omoide.fields import (
    AutoKeyField,
    BytesField,
    DateField,
    DecimalField,
    DictField,
    EnumField,
    IntField,
    KeyField,
    ListField,
    StringField,
    TagField,
)
from omoide.model.field import Field
from omoide.model.instance import single
from omoide.ops.bounds import bound, meet
from omoide.ops.model import Model
from omoide.ops.request import Count, Find

START = datetime(2024, 1, 1, tzinfo=UTC)
MICROSECONDS = st.integers(-2_500, 2_500)


def at(microseconds: int) -> datetime:
    return START + timedelta(microseconds=microseconds)


@given(held=st.lists(MICROSECONDS, max_size=8), low=MICROSECONDS, high=MICROSECONDS, n=st.integers(0, 8))
def test_times_compare_to_the_microsecond(held: list[int], low: int, high: int, n: int) -> None:
    with recording():
        OpsNote.save_many([OpsNote(agent_id="a", occurred_at=at(one), content=str(one)) for one in held])
        query = OpsNote.query.filter(agent_id="a", occurred_at__gte=at(low), occurred_at__lt=at(high))
        expected = sorted(one for one in held if low <= one < high)
        assert query.count() == len(expected)
        assert sorted(int(one.content) for one in query.all()) == expected
        assert len(query.limit(n).ids()) == len(expected[:n])
        assert len(query.offset(n).all()) == len(expected[n:])
        assert len(list(query.iterate())) == len(query.top_by_decay(n=20)) == len(expected)


NUMBERS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, -0.0, 0.1, 0.1 + 1e-10, 0.3, 1e-50, 1.0])


@given(held=NUMBERS, value=NUMBERS)
def test_an_importance_is_compared_exactly_but_for_a_bound_of_single_precision(
    held: float, value: float
) -> None:
    with recording():
        OpsNote(agent_id="a", importance=held).save()
        query = OpsNote.query.filter(agent_id="a")
        below = query.filter(importance__lt=value).count() == 1
        assert below != (query.filter(importance__gte=value).count() == 1)
        assert below == bool(query.filter(importance__lt=value).all())
        if single(held) != single(value) or value == 0.1 + 1e-10:
            assert below == (held < value)


def test_what_was_saved_with_a_short_number_is_found_by_it(store: RecordingStore) -> None:
    for number in (0.1, 0.3, 0.7, 0.9):
        OpsNote(agent_id="a", importance=number).save()
        query = OpsNote.query.filter(agent_id="a")
        assert query.filter(importance__gte=number).filter(importance__lt=number + 1e-10).count() == 1
        store.asked.clear()
        assert query.filter(importance__lt=number, importance__gte=number).count() == 0
        assert [type(request) for request in store.asked] == [Count]


@given(confidence=st.floats(0.0, 1.0), value=st.floats(-0.5, 1.5))
def test_a_confidence_bound_lets_through_all_and_tests_its_step(confidence: float, value: float) -> None:
    for operator in ("gte", "lt"):
        rounded, edge = bound("confidence", operator, value)
        low, held = stored_confidence(float(rounded)), stored_confidence(confidence)
        passes = held >= low if operator == "gte" else held < low
        exact = confidence >= value if operator == "gte" else confidence < value
        assert passes or not exact
        if edge is None or stored_confidence(edge.step[0]) != held:
            assert passes == exact


def test_a_bound_that_begins_a_step_costs_one_request(store: RecordingStore) -> None:
    OpsNote(agent_id="a", occurred_at=at(0)).save()
    store.asked.clear()
    query = OpsNote.query.filter(agent_id="a")
    assert query.filter(time__gte=at(0), time__lt=at(1_000)).count() == 1
    assert query.filter(confidence__gte=0.5).count() == 1
    assert [type(request) for request in store.asked] == [Count, Count]
    assert query.filter(time__lt=at(1_500), time__gte=at(200)).limit(1).all() == []
    assert [request.limit for request in store.asked[2:] if isinstance(request, Find)] == [17]


def test_more_is_read_while_what_is_beside_a_bound_fails(store: RecordingStore) -> None:
    OpsNote.save_many([OpsNote(agent_id="a", occurred_at=at(one)) for one in range(100)])
    query = OpsNote.query.filter(agent_id="a", occurred_at__lt=at(7)).order_by("-time")
    store.asked.clear()
    assert len(query.limit(3).all()) == 3
    assert [request.limit for request in store.asked] == [19, 38, 76, 152]
    assert query.count() == 7
    assert query.offset(5).limit(5).delete() == 2


def test_ranges_meet() -> None:
    assert meet(None, (1, 2)) == (1, 2)
    assert meet((None, 5), (4, 6)) == (4, 5)
    assert meet((6, None), (4, 6)) is None


class OpsColour(Enum):
    RED = 1
    BLUE = 2


class OpsOwn(Field[Any]):
    """A field of one's own, whose values nothing is known of."""


class OpsMixed(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    i = IntField(default=1)
    d = DictField(default={"k": 1})
    s = StringField(default="text")
    b = BytesField(default=b"xyz")
    day = DateField(null=True)
    price = DecimalField(null=True)
    colour = EnumField(OpsColour, default=OpsColour.RED)
    items = ListField(default=[1, {"k": 2}])
    tags = TagField(default={"t"})
    own = OpsOwn(null=True)


@pytest.mark.parametrize(
    "lookups",
    [
        {"i__in": 5},
        {"i__in": "12"},
        {"s__in": "text"},
        {"id__in": 5},
        {"id__in": "abc"},
        {"note_id__in": None},
        {"i__contains": 5},
        {"s__contains": 5},
        {"s__contains": None},
        {"tags__contains": []},
        {"d__contains": []},
        {"b__contains": "x"},
        {"day__contains": "2024"},
        {"price__contains": "1"},
        {"colour__contains": "R"},
        {"d__gt": {}},
        {"items__lt": [2]},
        {"tags__gte": {"t"}},
        {"colour__lt": OpsColour.BLUE},
        {"importance__gte": 10**400},
    ],
)
def test_what_cannot_be_compared_is_refused_at_once(store: RecordingStore, lookups: dict[str, Any]) -> None:
    with pytest.raises(QueryError):
        OpsMixed.query.filter(agent_id="a", scan=True, **lookups)


def test_what_can_be_compared_is(store: RecordingStore) -> None:
    OpsMixed(agent_id="a", own=[1]).save()
    query = OpsMixed.query.filter(agent_id="a").scan()
    for lookups in (
        {"i__in": [1, 2]},
        {"i__in": {1: "x"}},
        {"s__contains": "ex"},
        {"b__contains": b"y"},
        {"items__contains": {"k": 2}},
        {"tags__contains": "t"},
        {"d__contains": "k"},
        {"own__contains": 1},
        {"d__in": [{"k": 1}]},
    ):
        assert query.filter(**lookups).count() == 1, lookups
    for lookups in ({"own__contains": 1}, {"own__gt": 5}):
        OpsMixed(agent_id="b", own="text").save()
        with pytest.raises(QueryError, match="compared"):
            OpsMixed.query.filter(agent_id="b").scan().filter(**lookups).all()


@pytest.mark.parametrize("name", ["d", "items", "tags", "colour"])
def test_what_has_no_order_is_refused(store: RecordingStore, name: str) -> None:
    with pytest.raises(QueryError, match="order"):
        OpsMixed.query.scan().order_by(name)


def test_values_of_ones_own_that_have_no_order_are_refused(store: RecordingStore) -> None:
    OpsMixed.save_many([OpsMixed(agent_id="a", own=value) for value in ("x", 1)])
    with pytest.raises(QueryError, match="compared"):
        OpsMixed.query.filter(agent_id="a").scan().order_by("own").all()


def test_a_count_leaves_out_thousands_of_ids(store: RecordingStore) -> None:
    notes = [OpsNote(agent_id="a", project="p" if one % 2 else "q") for one in range(1_200)]
    OpsNote.save_many(notes)
    query = OpsNote.query.filter(agent_id="a", project="p")
    out = [note.note_id for note in notes[:1_100]]
    store.asked.clear()
    assert query.exclude([*out, *out, *(f"gone {one}" for one in range(8_000))]).count() == 50
    assert all(len(request.match.exclude) <= 500 for request in store.asked if isinstance(request, Count))


@pytest.mark.parametrize("call", ["limit", "offset"])
def test_numbers_beyond_all_records_are_refused(store: RecordingStore, call: str) -> None:
    for number in (2**70, -1, True, 1.5):
        with pytest.raises(QueryError):
            getattr(OpsNote.query, call)(number)
    assert getattr(OpsNote.query, call)(2**53)
