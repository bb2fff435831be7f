from __future__ import annotations

import pytest
from notes import OpsNote
from recording import RecordingStore

from omoide.errors import FieldError, QueryError
from omoide.ops.request import Spread


def test_counters(store: RecordingStore) -> None:
    counters = OpsNote.counters(agent_id="a")
    assert counters.increment("seen") == 1
    assert counters.increment("seen", 4) == 5
    assert counters.increment("seen", -2) == 3
    assert counters.read("seen") == 3
    assert counters.read("unseen") == 0
    assert counters.all() == {"seen": 3}
    assert OpsNote.counters(agent_id="b").all() == {}
    for name in ("", "x" * 129, "\ud800"):
        with pytest.raises(QueryError):
            counters.increment(name)
    with pytest.raises(QueryError):
        counters.increment("seen", 1.5)  # type: ignore[arg-type]


def test_edges(store: RecordingStore) -> None:
    one, two, three = (OpsNote(agent_id="a", note_id=name) for name in ("one", "two", "three"))
    assert one.associations.link(two) == 1.0
    assert one.associations.strengthen(two, by=2.0) == 3.0
    assert one.associations.weaken(two) == 2.5
    assert one.associations.link("three", weight=0.5) == 0.5
    assert one.associations.neighbours() == [("two", 2.5 / 3.5), ("three", 0.5 / 1.5)]
    one.associations.propagate(hops=3, fan_out=4, decay=0.25, limit=5)
    assert store.asked[-1] == Spread(store.asked[-1].scope, {"one": 1.0}, 3, 4, 0.25, 5)
    for call in (
        lambda: one.associations.link(one),
        lambda: one.associations.link(OpsNote(agent_id="b")),
        lambda: one.associations.link(two, weight=0.0),
        lambda: one.associations.link(two, weight=float("nan")),
        lambda: one.associations.propagate(hops=9),
        lambda: one.associations.propagate(decay=0.0),
        lambda: three.associations.neighbours(limit=0),
    ):
        with pytest.raises(QueryError):
            call()
    with pytest.raises(FieldError):
        one.associations = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "name", ["evicted", "filtered", "query_redacted", "never_record:credential", "never_record_rule:x"]
)
def test_what_the_library_counts_cannot_be_forged(store: RecordingStore, name: str) -> None:
    counters = OpsNote.counters(agent_id="a")
    with pytest.raises(QueryError, match="library"):
        counters.increment(name, -5)
    assert counters.read(name) == 0
    assert counters.increment(f"my {name}") == 1
    with pytest.raises(QueryError):
        counters.increment("mine", 2**70)


def test_every_counter_of_the_library_is_reserved() -> None:
    from omoide.mixins import never_record, write_filter
    from omoide.ops import counters, search

    assert {write_filter.COUNTER, search.QUERY_REDACTED} <= set(counters.OURS)
    assert {never_record._REASON_COUNTER, never_record._RULE_COUNTER} == set(counters.OUR_PREFIXES)
