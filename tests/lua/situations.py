"""One partition and one write for every branch of the scripts that write.

A situation prepares a partition and gives the write to try. What it leaves behind is rich: postings in
tails and sealed segments, edges, entities, uniqueness, ordinals, statistics, turns, counters, expiry.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from memories import Keys, copy_page, note_spec, put, row_of, slot

from omoide.connection import Connection
from omoide.model.schema import Scope
from omoide.ops.request import (
    Adopt,
    Apply,
    BeginReindex,
    BeginRestore,
    Changes,
    CopyRecords,
    Deliver,
    Drop,
    Erase,
    Evidence,
    FinishReindex,
    Increment,
    Kept,
    Link,
    LoadRows,
    Observe,
    Page,
    Prune,
    PutVectors,
    RowState,
    Span,
    Statistics,
    Unembedded,
)

Situation = Callable[[Connection, Keys], Any]
SITUATIONS: dict[str, Situation] = {}
DIGEST = b"0123456789abcdef"
OTHER_DIGEST = b"fedcba9876543210"
DETAILS = {"session": "s", "author": "w", "entities": ("Bob", "Ann"), "tags": ("x",)}


def situation(prepare: Situation) -> Situation:
    SITUATIONS[prepare.__name__] = prepare
    return prepare


def _scope(**shape: Any) -> Scope:
    return Scope(note_spec(**shape), ("a",))


def _filled(connection: Connection, scope: Scope, **common: Any) -> None:
    """Four linked records, one of them with statistics, a turn and a counter."""
    execute = connection.store.execute
    execute(put(scope, "1", "the cat likes fish", unique=(DIGEST,), **DETAILS, **common))
    execute(put(scope, "2", "the dog likes meat", **DETAILS, **common))
    execute(put(scope, "3", "the cow likes grass", session="s", **common))
    execute(put(scope, "4", "rain", author="w", importance=0.2, **common))
    execute(Link(scope, "1", "3", 2.0))
    execute(Link(scope, "2", "4", 1.0))
    execute(Deliver(scope, "turn", ("1", "2", "3")))
    execute(Observe(scope, (Evidence("1", 1, 0, True, True), Evidence("4", 0, 1))))
    execute(Increment(scope, "recalls", 3))


def _due(connection: Connection, scope: Scope, count: int) -> None:
    for number in range(count):
        connection.store.execute(
            put(scope, f"due {number}", "the due likes fish", ttl_ms=1, entities=("Bob",))
        )
    time.sleep(0.003)


def _under_rebuild(connection: Connection, scope: Scope) -> str:
    """Start a rebuild and copy the first two records."""
    execute = connection.store.execute
    state = execute(BeginReindex(scope))
    page = execute(Page(scope, state.cursor, 2))
    copy_page(connection, scope, state.token, page.records)
    return state.token


def _abandon(keys: Keys, scope: Scope) -> None:
    keys.redis.hset(keys.name(scope, "h"), "lease", 1)


@situation
def save_first(connection: Connection, keys: Keys) -> Any:
    return put(_scope(), "1", "the cat likes fish", unique=(DIGEST,), **DETAILS)


@situation
def save_new(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return put(scope, "5", "a bird likes fish", unique=(OTHER_DIGEST,), **DETAILS)


@situation
def save_update(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return put(scope, "1", "the cat likes milk", unique=(OTHER_DIGEST,), author="v", entities=("Ann", "Cid"))


def _with_state(scope: Scope) -> Any:
    """A new record that comes with its state, links to what is there and to what is not."""
    kept = Kept(
        version=7,
        statistics=Statistics(3.5, 1.25, 2, 1, 9, 1_700_000_000_000),
        order=12.5,
        expires_ms=4_000_000_000_000,
        edges=(("1", 2.0), ("gone", 1.0), ("3", 0.5)),
    )
    return put(scope, "5", "a bird likes fish", unique=(OTHER_DIGEST,), kept=kept, **DETAILS)


@situation
def save_with_state(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    return _with_state(scope)


@situation
def save_with_state_under_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    _under_rebuild(connection, scope)
    return _with_state(scope)


@situation
def save_duplicate_with_due(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope)
    _due(connection, scope, 3)
    return put(scope, "9", "the cat", unique=(DIGEST,))


@situation
def save_over_an_expired_holder(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope)
    connection.store.execute(put(scope, "old", "the old one", unique=(OTHER_DIGEST,), ttl_ms=1))
    time.sleep(0.003)
    return put(scope, "9", "the cat", unique=(OTHER_DIGEST,))


@situation
def save_evicting(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return put(scope, "5", "a bird likes fish", cap=2, **DETAILS)


@situation
def save_expiring(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    return put(scope, "5", "a bird likes fish", ttl_ms=90_000, **DETAILS)


@situation
def save_expiring_update(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    connection.store.execute(put(scope, "1", "alone", ttl_ms=60_000, unique=(DIGEST,), **DETAILS))
    connection.store.execute(Observe(scope, (Evidence("1", 1, 0, True, True),)))
    return put(scope, "1", "still alone", ttl_ms=90_000)


@situation
def save_permanent_among_expiring(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    return put(scope, "5", "a bird likes fish", **DETAILS)


def _sealing(connection: Connection, count: int) -> Any:
    scope = _scope()
    for number in range(count):
        connection.store.execute(put(scope, f"{number}", "fish"))
    return put(scope, "new", "fish milk")


@situation
def save_sealing_the_first_block(connection: Connection, keys: Keys) -> Any:
    return _sealing(connection, 64)


@situation
def save_sealing_a_second_block(connection: Connection, keys: Keys) -> Any:
    return _sealing(connection, 128)


@situation
def save_update_of_a_sealed_row(connection: Connection, keys: Keys) -> Any:
    write = _sealing(connection, 130)
    return put(write.scope, "3", "fish")


@situation
def save_trimming_the_log(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    keys.redis.append(keys.name(scope, "x"), b"\1\0\0\0" * 4097)
    return put(scope, "1", "the cat likes milk")


@situation
def save_new_under_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    return put(scope, "5", "a bird likes fish", unique=(OTHER_DIGEST,), **DETAILS)


@situation
def save_update_under_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    return put(scope, "1", "the cat likes milk", unique=(OTHER_DIGEST,), cap=3, **DETAILS)


@situation
def save_after_an_abandoned_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    _abandon(keys, scope)
    return put(scope, "5", "a bird likes fish")


def _versions(connection: Connection, **shape: Any) -> Scope:
    """Three versions of one key, one of another, and two records without one."""
    scope = _scope(validity=True, **shape)
    execute = connection.store.execute
    common: dict[str, Any] = {"ttl_ms": 60_000} if shape else {}
    execute(put(scope, "1", "the cat likes fish", key="cat", valid_from_ms=100, unique=(DIGEST,), **common))
    execute(put(scope, "2", "the cat likes milk", key="cat", valid_from_ms=300, valid_to_ms=900, **common))
    execute(put(scope, "3", "the cat likes mice", key="cat", valid_from_ms=500, session="s", **common))
    execute(put(scope, "4", "the dog likes meat", key="dog", valid_from_ms=100, author="w", **common))
    execute(put(scope, "5", "rain", valid_from_ms=100, **common))
    execute(put(scope, "6", "snow", valid_from_ms=200, **common))
    return scope


@situation
def save_version_between_others(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "7", "the cat likes cream", key="cat", valid_from_ms=400)


@situation
def save_version_with_another_start(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "2", "the cat liked milk", key="cat", valid_from_ms=600)


@situation
def save_version_of_another_key(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "2", "the dog likes milk", key="dog", valid_from_ms=50)


@situation
def save_superseding(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "7", "the cat sleeps", key="cat", valid_from_ms=700, supersedes="3")


@situation
def save_superseding_without_a_key(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "7", "rain again", valid_from_ms=150, supersedes="5")


@situation
def save_superseding_by_an_earlier_one(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "6", "rain before", valid_from_ms=50, supersedes="5")


@situation
def save_superseding_under_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _versions(connection)
    state = connection.store.execute(BeginReindex(scope))
    page = connection.store.execute(Page(scope, state.cursor, 5))
    copy_page(connection, scope, state.token, page.records)
    return put(scope, "7", "rain again", valid_from_ms=150, supersedes="5")


@situation
def save_evicting_versions(connection: Connection, keys: Keys) -> Any:
    return put(_versions(connection), "7", "a bird", key="bird", valid_from_ms=100, cap=4)


@situation
def save_over_expired_versions(connection: Connection, keys: Keys) -> Any:
    scope = _versions(connection, ttl=60)
    connection.store.execute(put(scope, "due", "the cat ran", key="cat", valid_from_ms=350, ttl_ms=1))
    time.sleep(0.003)
    return put(scope, "7", "the cat likes cream", key="cat", valid_from_ms=400, ttl_ms=60_000)


@situation
def erase_versions(connection: Connection, keys: Keys) -> Any:
    return Erase(_versions(connection), ("2", "3", "5"))


@situation
def erase_versions_under_rebuild(connection: Connection, keys: Keys) -> Any:
    write = save_superseding_under_rebuild(connection, keys)
    connection.store.execute(write)
    return Erase(write.scope, ("2", "5"))


@situation
def copy_version(connection: Connection, keys: Keys) -> Any:
    scope = _versions(connection)
    connection.store.execute(put(scope, "7", "rain again", valid_from_ms=150, supersedes="5"))
    token = _under_rebuild(connection, scope)
    (fifth,) = connection.store.execute(Page(scope, "", 1000)).records[4:5]
    return CopyRecords(scope, token, (fifth.row,), (put(scope, "5", "rain"),))


@situation
def erase(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return Erase(scope, ("1", "nobody", "4", "1"))


@situation
def erase_the_last(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    return Erase(scope, ("1", "2", "3", "4"))


@situation
def erase_under_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    return Erase(scope, ("1", "4"))


@situation
def erase_the_permanent_one(connection: Connection, keys: Keys) -> Any:
    """What is left is due already, so the keys are too."""
    scope = _scope(ttl=60)
    connection.store.execute(put(scope, "1", "stays"))
    connection.store.execute(put(scope, "2", "goes", ttl_ms=1))
    time.sleep(0.003)
    return Erase(scope, ("1",))


@situation
def prune(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope)
    _due(connection, scope, 5)
    return Prune(scope)


@situation
def observe(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return Observe(
        scope,
        (
            Evidence("1", 1, 0, True, True),
            Evidence("2", 0, 2),
            Evidence("3", touch=True),
            Evidence("nobody", 1),
        ),
        turn="turn",
        linked=("1", "2", "3"),
        link=1.0,
        counters=(("outcomes", 2), ("recalls", 1)),
    )


@situation
def observe_under_rebuild(connection: Connection, keys: Keys) -> Any:
    write = observe(connection, keys)
    _under_rebuild(connection, write.scope)
    return write


@situation
def observe_after_an_abandoned_rebuild(connection: Connection, keys: Keys) -> Any:
    write = observe_under_rebuild(connection, keys)
    _abandon(keys, write.scope)
    return write


@situation
def deliver(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return Deliver(scope, "second turn", ("1", "4", "nobody"), counters=(("deliveries", 1),))


@situation
def deliver_over_an_old_turn(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    keys.redis.hset(keys.name(scope, "i"), "turn", struct.pack("<q", 1) + b"\x80")
    return Deliver(scope, "second turn", ("1", "4"), counters=(("deliveries", 1),))


@situation
def deliver_under_rebuild(connection: Connection, keys: Keys) -> Any:
    write = deliver(connection, keys)
    _under_rebuild(connection, write.scope)
    return write


@situation
def link(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return Link(scope, "1", "4", 0.5)


@situation
def link_away(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    return Link(scope, "2", "4", -5.0)


@situation
def link_in_an_expiring_partition(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    for name in "12":
        connection.store.execute(put(scope, name, "alone", ttl_ms=60_000))
    return Link(scope, "1", "2", 0.5)


@situation
def counter(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    connection.store.execute(put(scope, "1", "alone", ttl_ms=60_000))
    return Increment(scope, "recalls", 5)


@situation
def forget(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    return Drop(scope)


@situation
def begin(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    return BeginReindex(scope)


@situation
def begin_again(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    _under_rebuild(connection, scope)
    return BeginReindex(scope)


@situation
def begin_after_an_abandoned_rebuild(connection: Connection, keys: Keys) -> Any:
    write = begin_again(connection, keys)
    _abandon(keys, write.scope)
    return write


@situation
def begin_with_another_shape(connection: Connection, keys: Keys) -> Any:
    begin_again(connection, keys)
    return BeginReindex(_scope(fingerprint="shape-2"))


@situation
def copy(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _filled(connection, scope)
    token = _under_rebuild(connection, scope)
    (third,) = connection.store.execute(Page(scope, "", 1000)).records[2:3]
    again = put(scope, "3", "the cow likes grass", session="s", entities=("Bob",))
    return CopyRecords(scope, token, (third.row,), (again,))


@situation
def swap(connection: Connection, keys: Keys) -> Any:
    scope = _scope(ttl=60)
    _filled(connection, scope, ttl_ms=60_000)
    state = connection.store.execute(BeginReindex(scope))
    page = connection.store.execute(Page(scope, state.cursor))
    copy_page(connection, scope, state.token, page.records)
    return FinishReindex(scope, state.token)


def _with_vectors(connection: Connection, *, kind: str = "one") -> Scope:
    """Three records, the first two of them with vectors."""
    scope = _scope(kind=kind)
    for name, text in (("1", "the cat likes fish"), ("2", "the dog likes meat")):
        connection.store.execute(put(scope, name, text, slot=slot(scope, text), **DETAILS))
    connection.store.execute(put(scope, "3", "rain"))
    return scope


def _vectors_of_all(connection: Connection, scope: Scope, dimensions: int = 8) -> PutVectors:
    page = connection.store.execute(Unembedded(scope))
    index = scope.spec.embedding
    assert index is not None
    slots = tuple(slot(scope, record.values["content"], dimensions) for record in page.records)
    return PutVectors(scope, index.kind, page.gen, tuple(record.row for record in page.records), slots)


@situation
def save_with_a_vector(connection: Connection, keys: Keys) -> Any:
    scope = _with_vectors(connection)
    return put(scope, "4", "a bird", slot=slot(scope, "a bird"))


@situation
def save_keeping_a_vector(connection: Connection, keys: Keys) -> Any:
    scope = _with_vectors(connection)
    return put(scope, "1", "the cat likes fish", slot=slot(scope, "the cat likes fish")[:8], importance=0.3)


@situation
def save_under_rebuild_with_a_vector(connection: Connection, keys: Keys) -> Any:
    scope = _with_vectors(connection)
    _under_rebuild(connection, scope)
    return put(scope, "1", "the cat likes milk", slot=slot(scope, "the cat likes milk"))


@situation
def erase_with_a_vector(connection: Connection, keys: Keys) -> Any:
    return Erase(_with_vectors(connection), ("1", "3"))


@situation
def embed(connection: Connection, keys: Keys) -> Any:
    return _vectors_of_all(connection, _with_vectors(connection))


@situation
def embed_first(connection: Connection, keys: Keys) -> Any:
    connection.store.execute(put(_scope(), "1", "the cat likes fish"))
    return _vectors_of_all(connection, _scope(kind="one"))


@situation
def embed_over_another_kind(connection: Connection, keys: Keys) -> Any:
    _with_vectors(connection)
    return _vectors_of_all(connection, _scope(kind="two"), 5)


@situation
def embed_under_rebuild(connection: Connection, keys: Keys) -> Any:
    scope = _with_vectors(connection)
    _under_rebuild(connection, scope)
    return _vectors_of_all(connection, scope)


@situation
def copy_with_a_vector(connection: Connection, keys: Keys) -> Any:
    scope = _with_vectors(connection)
    token = connection.store.execute(BeginReindex(scope)).token
    (first,) = connection.store.execute(Page(scope, "", 1000)).records[:1]
    text = "the cat likes fish"
    return CopyRecords(scope, token, (first.row,), (put(scope, "1", text, slot=slot(scope, text)[:8]),))


@situation
def swap_with_vectors(connection: Connection, keys: Keys) -> Any:
    scope = _with_vectors(connection)
    state = connection.store.execute(BeginReindex(scope))
    page = connection.store.execute(Page(scope, state.cursor))
    copy_page(connection, scope, state.token, page.records)
    return FinishReindex(scope, state.token)


@situation
def forget_with_vectors(connection: Connection, keys: Keys) -> Any:
    return Drop(_with_vectors(connection))


def _shown(scope: Scope, name: str, text: str, **fields: Any) -> RowState:
    """A record as an authoritative row would have it."""
    return row_of(put(scope, name, text, **fields))


def _mirrored(connection: Connection, scope: Scope) -> None:
    """Three linked records that a mirror showed, and a counter."""
    rows = (
        _shown(scope, "1", "the cat likes fish", unique=(DIGEST,), **DETAILS),
        _shown(scope, "2", "the dog likes meat", **DETAILS),
        _shown(scope, "3", "the cow likes grass", session="s", confidence=0.7),
    )
    edges = (("1", (("2", 2.0), ("3", 1.0))), ("2", (("1", 2.0),)), ("3", (("1", 1.0),)))
    changes = Changes(rows, edges=edges, counters=(("mine", 4),))
    assert connection.store.execute(Apply(scope, 10, 10, changes, begins=True)) == 10


def _changes(scope: Scope) -> Changes:
    """A record written anew, a new one, one whose evidence changed, one that is gone."""
    second = _shown(scope, "2", "the dog likes bones", **DETAILS)
    return Changes(
        rows=(second, _shown(scope, "4", "rain", unique=(OTHER_DIGEST,), author="w")),
        states=(replace(_shown(scope, "1", ""), statistics=(3.0, 1.0, 2, 0, 5, 77), confidence=49151),),
        erased=("3",),
        edges=(("1", (("2", 2.5), ("4", 0.5))), ("2", (("1", 2.5),)), ("4", (("1", 0.5),))),
        counters=(("mine", 5), ("other", 1)),
    )


@situation
def apply_first(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    return Apply(scope, 10, 10, Changes((_shown(scope, "1", "the cat likes fish", **DETAILS),)), begins=True)


@situation
def apply(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _mirrored(connection, scope)
    return Apply(scope, 11, 12, _changes(scope))


@situation
def apply_versions(connection: Connection, keys: Keys) -> Any:
    """One written anew elsewhere, one that gets another end, one that gets a chain, one that is gone."""
    scope = _scope(validity=True)

    def shown(name: str, text: str, *span: Any) -> RowState:
        return row_of(put(scope, name, text), Span(*span))

    cats, rains = "k" + f"{'cat':-<16}", "s" + "0" * 24
    rows = (
        shown("1", "the cat likes fish", 100, 300, None, cats),
        shown("2", "the cat likes milk", 300, 500, None, cats),
        shown("3", "the cat likes mice", 500, None, None, cats),
        shown("4", "rain", 100, None, None, None),
        shown("5", "snow", 200, 900, 900, None),
    )
    connection.store.execute(Apply(scope, 10, 10, Changes(rows), begins=True))
    changes = Changes(
        rows=(
            shown("3", "the cat likes mice", 200, None, None, cats),
            shown("6", "rain again", 700, None, None, rains),
        ),
        spans=(("1", Span(100, 150, 150, cats)), ("4", Span(100, 700, None, rains))),
        erased=("2", "5"),
    )
    return Apply(scope, 11, 11, changes)


@situation
def apply_dropping(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _mirrored(connection, scope)
    return Apply(scope, 11, 11, Changes(drops=True))


@situation
def apply_to_a_copy(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _mirrored(connection, scope)
    connection.store.execute(BeginRestore(scope, "token"))
    connection.store.execute(LoadRows(scope, "token", (_shown(scope, "1", "a cat", **DETAILS),)))
    return Apply(scope, 11, 11, Changes((_shown(scope, "2", "a dog"),)), token="token")


@situation
def restore(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _mirrored(connection, scope)
    connection.store.execute(BeginRestore(scope, "token"))
    return BeginRestore(scope, "another")


@situation
def adopt(connection: Connection, keys: Keys) -> Any:
    scope = _scope()
    _mirrored(connection, scope)
    connection.store.execute(BeginRestore(scope, "token"))
    rows = (_shown(scope, "1", "a cat", **DETAILS), _shown(scope, "2", "a dog"))
    connection.store.execute(LoadRows(scope, "token", rows))
    return Adopt(scope, "token", 12, (("mine", 9),))
