from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from notes import OpsNote, OpsSingle, OpsUnique
from recording import RecordingStore

from omoide.errors import QueryError
from omoide.ops.request import Count, Erase, Find, Get, Page, Top


def _fill(agent: str, count: int = 5) -> list[OpsNote]:
    notes = [
        OpsNote(
            agent_id=agent,
            content=f"note {i}",
            importance=(i + 1) / 10,
            project="even" if i % 2 == 0 else "odd",
            colour="blue" if i < 2 else "red",
            tags={"all", f"t{i}"},
            occurred_at=datetime(2024, 1, 1 + i, tzinfo=UTC),
        )
        for i in range(count)
    ]
    OpsNote.save_many(notes)
    return notes


def test_get_by_id_and_partition(store: RecordingStore) -> None:
    note = _fill("a")[0]
    found = OpsNote.query.get(agent_id="a", note_id=note.note_id)
    assert found == note
    assert isinstance(store.asked[-1], Get)
    assert OpsNote.query.get(agent_id="b", note_id=note.note_id) is None
    assert OpsNote.query.filter(agent_id="a").get(note_id=note.note_id) == note
    assert OpsNote.query.get(agent_id="a", id=note.note_id) == note


@pytest.mark.parametrize("partition", [{}, {"agent_id": None}, {"agent_id": ""}, {"agent_id": True}])
def test_a_call_without_a_partition_is_refused(store: RecordingStore, partition: dict[str, object]) -> None:
    calls = [
        lambda: OpsNote.query.get(note_id="x", **partition),
        lambda: OpsNote.query.filter(**partition).all(),
        lambda: OpsNote.query.get_many(["x"], **partition),
        lambda: OpsNote.count(**partition),
        lambda: OpsNote.counters(**partition),
        lambda: OpsNote.delete_partition(**partition),
        lambda: OpsNote.delete_many(["x"], **partition),
    ]
    for call in calls:
        with pytest.raises(QueryError, match="agent_id"):
            call()
    assert store.asked == []


def test_what_is_not_indexed_needs_a_scan(store: RecordingStore) -> None:
    _fill("a")
    query = OpsNote.query.filter(agent_id="a")
    for lookups in (
        {"colour": "blue"},
        {"content__contains": "1"},
        {"project": None},
        {"tags__contains": "t1"},
    ):
        with pytest.raises(QueryError, match="no index"):
            query.filter(**lookups)
    with pytest.raises(QueryError, match="no index"):
        query.order_by("colour")
    with pytest.raises(QueryError, match="no lookup"):
        query.filter(unheard_of=1)
    with pytest.raises(QueryError, match="no lookup"):
        query.filter(colour__like="x", scan=True)
    assert {note.colour for note in query.filter(colour="blue", scan=True).all()} == {"blue"}
    assert isinstance(store.asked[-1], Page)
    assert query.scan().filter(content__contains="note 3").count() == 1
    assert query.scan().filter(colour__in=["blue"], project="odd").count() == 1
    assert query.scan().filter(project=None).count() == 0
    assert query.scan().filter(occurred_at__lte=datetime(2024, 1, 2, tzinfo=UTC)).count() == 2
    assert [n.content for n in query.scan().order_by("content").limit(2).all()] == ["note 0", "note 1"]


def test_indexed_lookups_are_one_request(store: RecordingStore) -> None:
    notes = _fill("a")
    query = OpsNote.query.filter(agent_id="a")
    store.asked.clear()
    assert {n.content for n in query.filter(project="odd").all()} == {"note 1", "note 3"}
    assert query.filter(tags="t1").ids() == [notes[1].note_id]
    assert query.filter(tags={"all", "t2"}).ids() == [notes[2].note_id]
    assert query.filter(importance__gte=0.2, importance__lt=0.4).count() == 2
    assert query.filter(time__gte=datetime(2024, 1, 3, tzinfo=UTC)).count() == 3
    assert query.filter(occurred_at__lt=datetime(2024, 1, 3, tzinfo=UTC)).count() == 2
    assert query.filter(confidence__gte=0.5).count() == 5
    assert query.exclude([notes[0].note_id]).count() == 4
    assert [type(request) for request in store.asked] == [Find, Find, Find, Count, Count, Count, Count, Count]


def test_ranges_narrow(store: RecordingStore) -> None:
    query = OpsNote.query.filter(agent_id="a", importance__gte=0.25).filter(
        importance__gte=0.1, importance__lt=0.9
    )
    assert query.filter(importance__lt=0.5).conditions.match.importance == (0.25, 0.5)


@pytest.mark.parametrize("value", [datetime(2024, 1, 1), date(2024, 1, 1), "2024", 2024, None])
def test_a_time_that_names_no_instant_is_refused(store: RecordingStore, value: object) -> None:
    with pytest.raises(QueryError, match="aware datetime"):
        OpsNote.query.filter(agent_id="a", time__gte=value)


@pytest.mark.parametrize(
    "lookups", [{"importance__gte": float("nan")}, {"importance__lt": "1"}, {"project": 3}]
)
def test_a_value_of_the_wrong_type_is_refused(store: RecordingStore, lookups: dict[str, object]) -> None:
    with pytest.raises(QueryError):
        OpsNote.query.filter(agent_id="a", **lookups)


def test_ids_combine_with_other_lookups(store: RecordingStore) -> None:
    notes = _fill("a")
    ids = [note.note_id for note in notes[:3]]
    query = OpsNote.query.filter(agent_id="a", id__in=[*ids, "gone"])
    assert {n.note_id for n in query.all()} == set(ids)
    assert query.filter(project="even").count() == 2
    assert query.filter(importance__gte=0.3).ids() == [ids[2]]
    assert query.filter(note_id=ids[0]).ids() == [ids[0]]
    assert query.filter(tags="t1").exclude(ids).all() == []
    assert OpsNote.query.get_many([ids[1], "gone", ids[0]], agent_id="a") == [notes[1], None, notes[0]]


def test_order_limit_and_offset(store: RecordingStore) -> None:
    notes = _fill("a")
    query = OpsNote.query.filter(agent_id="a")
    assert query.first() == notes[-1]
    assert query.order_by("time").first() == notes[0]
    assert query.order_by("occurred_at").limit(2).offset(1).all() == notes[1:3]
    assert query.order_by("-importance").limit(1).ids() == [notes[-1].note_id]
    assert query.limit(0).all() == []
    with pytest.raises(QueryError):
        query.limit(-1)
    assert query.top_by_decay(n=2) == [notes[4], notes[3]]
    assert isinstance(store.asked[-1], Top)
    assert query.filter(tags="t1").top_by_decay() == [notes[1]]
    for n in (0, 1001, True):
        with pytest.raises(QueryError):
            query.top_by_decay(n=n)
    with pytest.raises(QueryError, match="DecayingSortedField"):
        OpsUnique.query.filter(agent_id="a").top_by_decay()


def test_queries_are_immutable_and_stay_in_one_partition(store: RecordingStore) -> None:
    query = OpsNote.query.filter(agent_id="a")
    query.filter(project="odd").limit(1)
    assert query == OpsNote.query.filter(agent_id="a")
    with pytest.raises(QueryError, match="one partition"):
        query.filter(agent_id="b")
    with pytest.raises(QueryError, match="one partition"):
        query.get(agent_id="b", note_id="x")
    assert query.filter(agent_id="a") == query


def test_partitions_are_separate_and_the_single_partition_needs_no_name(store: RecordingStore) -> None:
    _fill("a", 3)
    _fill("b", 2)
    assert (OpsNote.count(agent_id="a"), OpsNote.count(agent_id="b"), OpsNote.count(agent_id="*")) == (
        3,
        2,
        0,
    )
    assert OpsNote.delete_partition(agent_id="a") == 3
    assert (OpsNote.count(agent_id="a"), OpsNote.count(agent_id="b")) == (0, 2)
    one = OpsSingle(content="x")
    one.save()
    assert OpsSingle.query.all() == [one]
    assert OpsSingle.query.get(note_id=one.note_id) == one
    assert OpsSingle.count() == 1
    with pytest.raises(QueryError):
        OpsSingle.count(agent_id="a")


def test_iteration_gives_each_record_once_even_when_storage_starts_over(store: RecordingStore) -> None:
    notes = _fill("a", 25)
    query = OpsNote.query.filter(agent_id="a")
    original = store.on_page
    pages = 0

    def restarting(request: Page) -> object:
        nonlocal pages
        pages += 1
        return original(Page(request.scope, "", 1000) if pages == 2 else request)

    store.on_page = restarting  # type: ignore[assignment, method-assign]
    assert list(query.iterate(page=10)) == notes
    assert list(query.filter(project="odd").limit(3).offset(1).iterate(page=10)) == notes[3:9:2]
    assert list(query.limit(0).iterate()) == []
    with pytest.raises(QueryError):
        next(query.iterate(page=0))


def test_delete_erases_all_that_match(store: RecordingStore) -> None:
    OpsNote.save_many([OpsNote(agent_id="many", project="p" if i % 2 else "q") for i in range(2500)])
    store.asked.clear()
    assert OpsNote.query.filter(agent_id="many", project="p").delete() == 1250
    assert [type(request) for request in store.asked] == [Find] + [Erase] * 5
    assert OpsNote.count(agent_id="many") == 1250
    assert OpsNote.query.filter(agent_id="many").delete() == 1250
    assert OpsNote.delete_many(["x", "y"], agent_id="many") == 0


def test_a_bad_row_breaks_only_its_own_attribute(
    store: RecordingStore, caplog: pytest.LogCaptureFixture
) -> None:
    notes = _fill("a", 3)
    (partition,) = store.partitions.values()
    partition.records[notes[1].note_id].values["colour"] = 7
    found = OpsNote.query.filter(agent_id="a").order_by("time").all()
    assert [n.content for n in found] == ["note 0", "note 1", "note 2"]
    assert OpsNote.query.filter(agent_id="a", colour="red", scan=True).count() == 1
    assert "passed over" in caplog.text


def test_relative_times_work(store: RecordingStore) -> None:
    _fill("a", 3)
    zone = datetime(2024, 1, 2, tzinfo=UTC).astimezone(tz=None)
    assert OpsNote.query.filter(agent_id="a", time__gte=zone, time__lt=zone + timedelta(days=1)).count() == 1


def test_the_conditions_of_a_query_hold_for_records_got_by_key(store: RecordingStore) -> None:
    notes = _fill("a", 2)
    odd = OpsNote.query.filter(agent_id="a", project="odd")
    assert odd.get(note_id=notes[0].note_id) is None
    assert odd.get(note_id=notes[1].note_id) == notes[1]
    assert odd.get_many([note.note_id for note in notes]) == [None, notes[1]]
    with pytest.raises(QueryError, match="needs note_id="):
        odd.get(content="note 1")
    with pytest.raises(QueryError, match="needs note_id="):
        odd.get()


def test_a_scan_keeps_the_order_asked_for(store: RecordingStore) -> None:
    notes = _fill("a")
    query = OpsNote.query.filter(agent_id="a", colour__ne="green", scan=True)
    assert query.all() == notes[::-1]
    assert query.order_by("importance").all() == notes
    assert query.order_by("-content").limit(2).offset(1).all() == [notes[3], notes[2]]
    assert query.order_by("time").filter(id__in=[note.note_id for note in notes[::-1]]).all() == notes
