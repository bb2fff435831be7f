"""Vectors of what memories and queries mean: made before a write, caught up afterwards, made of a query.

    prepared records ──same text as stored──▶ digest alone: the store keeps the vector it has ─▶ write
                     └──────────────────────▶ Embed, one call for all ──▶ vector ──────────────▶ write
                                                     └──failed──▶ stored without one, and said so

    embed:  Unembedded ──records──▶ screened ──▶ Embed ──▶ PutVectors ──▶ next page

A provider gets only what the firewall lets through. It is called between round trips, never inside one, so
it holds no connection. Whatever it does, the memory is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from omoide.core.vectors import DIGEST_BYTES, digest, slots
from omoide.errors import EmbeddingError, ModelError
from omoide.model.instance import Instance, loaded_state, spec_of
from omoide.model.partition import scope_of_call
from omoide.model.schema import EmbeddingIndex, ModelSpec, Scope
from omoide.ops import port
from omoide.ops.prepare import Prepared
from omoide.ops.request import (
    Count,
    Digests,
    Embed,
    Partitions,
    PartitionStatus,
    Put,
    PutVectors,
    Record,
    Unembedded,
    UnembeddedReply,
)
from omoide.ops.run import Plan, arun, run

FAILED = "embedding_failed"
"""Counter of memories that were stored without a vector because the provider failed."""

PAGE = 64
"""Records embedded between two writes of `embed`."""

MOST_FAILURES = 3
"""Texts in a row that a provider refuses, each on its own, before it counts as down."""

Progress = Callable[[int, int], None]
"""Told (records looked at, records there are) after every page."""

_log = logging.getLogger("omoide")


# ---- before a write


def with_vectors(found: Sequence[Any], known: dict[str, bytes] | None = None) -> Plan[list[Any]]:
    """The same writes with the vectors of their texts; what is no `Prepared` with a text passes through.

    `known`: text -> slot of this model, for calls that may be repeated; what is made is added.

    Cost: one call of each provider for all texts that are new or changed; a round trip a partition where
    ids were given and it is not known what is stored under them.
    """
    result = list(found)
    places = [
        place
        for place, one in enumerate(result)
        if isinstance(one, Prepared) and one.put is not None and one.put.passage
    ]
    if not places:
        return result
    same = yield from _same_as_stored([result[place] for place in places])
    puts = yield from embedded([result[place].put for place in places], same, known)
    for place, put, kept in zip(places, puts, same, strict=True):
        one: Prepared = result[place]
        failed = not kept and len(put.slot) <= DIGEST_BYTES
        counters = (*one.counters, (FAILED, 1)) if failed else one.counters
        result[place] = replace(one, put=put, counters=counters)
    return result


def _same_as_stored(prepared: Sequence[Prepared]) -> Plan[list[bool]]:
    """Which texts are those that are stored, as far as instances and digests tell."""
    same = [False] * len(prepared)
    unknown: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for place, one in enumerate(prepared):
        state, index = one.instance._omoide, one.scope.spec.embedding
        if state.stored and index is not None and one.put is not None:
            same[place] = index.passage(state.raw) == one.put.passage
        elif not state.generated_id:
            unknown.setdefault((id(one.scope.spec), one.scope.values), []).append(place)
    for places in unknown.values():
        puts = [one.put for one in (prepared[place] for place in places) if one.put is not None]
        for place, held in zip(places, (yield from held_already(puts)), strict=True):
            same[place] = held
    return same


def held_already(puts: Sequence[Put]) -> Plan[list[bool]]:
    """Which writes of one partition have the text whose vector is stored. Cost: one round trip."""
    scope = puts[0].scope
    stored: tuple[bytes, ...] = yield Digests(scope, tuple(put.id for put in puts))
    return [name != b"" and name == _digest(put) for name, put in zip(stored, puts, strict=True)]


def embedded(
    puts: Sequence[Put], same: Sequence[bool], known: dict[str, bytes] | None = None
) -> Plan[list[Put]]:
    """The writes with their vectors; the digest alone where a text is the `same`, or the provider failed."""
    wanted: dict[int, tuple[ModelSpec, dict[str, None]]] = {}
    for put, kept in zip(puts, same, strict=True):
        if put.passage and not kept and put.passage not in (known or {}):
            spec = put.scope.spec
            wanted.setdefault(id(spec), (spec, {}))[1][put.passage] = None
    made: dict[tuple[int, str], bytes] = {}
    for spec, texts in wanted.values():
        index = _index(spec)
        try:
            units = yield Embed(index, tuple(texts))
        except EmbeddingError as error:
            _log.warning(
                "%s: %d memories are stored without a vector: %s (%s)",
                spec.name,
                len(texts),
                error,
                error.reason,
            )
            continue
        names = [digest(index.kind, text) for text in texts]
        made.update(zip(((id(spec), text) for text in texts), slots(units, names), strict=True))
    if known is not None:
        known.update((text, slot) for (_, text), slot in made.items())

    def slot_of(put: Put) -> bytes:
        given = (known or {}).get(put.passage) or made.get((id(put.scope.spec), put.passage))
        return given or _digest(put)

    return [replace(put, slot=slot_of(put)) if put.passage else put for put in puts]


def _digest(put: Put) -> bytes:
    return digest(_index(put.scope.spec).kind, put.passage)


def _index(spec: ModelSpec) -> EmbeddingIndex:
    if spec.embedding is None:
        raise ModelError(f"{spec.name} has no EmbeddingField", hint="add one, with a provider")
    return spec.embedding


# ---- of a query


def vector_of(spec: ModelSpec, text: str) -> Plan[tuple[Any, str]]:
    """(float32[dimensions] of length 1, "") of a screened query, or (None, why there is none)."""
    if spec.embedding is None or not text.strip():
        return None, "no_text"
    try:
        units = yield Embed(spec.embedding, (text,), query=True)
    except EmbeddingError as error:
        _log.warning("%s: recall by words alone: %s (%s)", spec.name, error, error.reason)
        return None, f"provider_{error.reason}"
    return (units[0], "") if units[0].any() else (None, "provider_answer")


# ---- catching up


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a run of `embed` did.

    Attributes:
        looked: Live records looked at; those of a page that was begun anew count again.
        embedded: Records that have a vector now and had none.
        failed: Records that the provider refused, each on its own.
        withheld: Records that the firewall blocks today; their text was not given to the provider.
    """

    looked: int = 0
    embedded: int = 0
    failed: int = 0
    withheld: int = 0


@dataclass(slots=True)
class _Run:
    model: type[Instance]
    progress: Progress | None
    total: int = 0
    looked: int = 0
    embedded: int = 0
    failed: int = 0
    withheld: int = 0
    refused: int = 0
    slot_bytes: int | None = None


def embed(
    model: type[Instance], *, again: bool = False, progress: Progress | None = None, **partition: Any
) -> Embedded:
    """Make the vectors that are missing, of one partition or of all partitions of a model.

    Vectors are missing where the provider failed, where records are older than the `EmbeddingField`, and
    all of them where it has another provider or source now, or the provider makes longer or shorter ones. A
    run that was cut short is taken up by the next.

    Args:
        again: Drop all vectors first and make them anew.
        progress: Told how far it is after every page.
        partition: All partition fields; none of them for every partition.
    Raises:
        ModelError: the model has no EmbeddingField.
        QueryError: some partition fields but not all.
        EmbeddingError: the provider is down; what was embedded stays.
    Cost: two round trips and one call of the provider per 64 records without a vector; where there is none,
        one call for a short text.
    """
    return run(catch_up(model, again, progress, partition), port.current().store)


async def aembed(
    model: type[Instance], *, again: bool = False, progress: Progress | None = None, **partition: Any
) -> Embedded:
    """Make the vectors that are missing; see `embed`."""
    return await arun(catch_up(model, again, progress, partition), port.current().astore)


def catch_up(
    model: type[Instance], again: bool, progress: Progress | None, partition: Mapping[str, Any]
) -> Plan[Embedded]:
    """The plan of `embed`."""
    spec = spec_of(model)
    _index(spec)
    state = _Run(model, progress)
    if partition or not spec.partition_by:
        scopes = [scope_of_call(spec, dict(partition), "embed")]
        state.total = yield Count(scopes[0])
    else:
        statuses: tuple[PartitionStatus, ...] = yield Partitions(spec.name)
        scopes = [Scope(spec, status.values) for status in statuses]
        state.total = sum(status.live for status in statuses)
    for scope in scopes:
        yield from _catch_up_one(state, scope, again)
    return Embedded(state.looked, state.embedded, state.failed, state.withheld)


def _catch_up_one(state: _Run, scope: Scope, again: bool) -> Plan[None]:
    cursor = ""
    while True:
        page: UnembeddedReply = yield Unembedded(scope, cursor, PAGE)
        rows, found = ([], []) if again else (yield from _vectors(state, scope.spec, page.records))
        if page.gen and (again or (yield from _outgrown(state, scope.spec, page.slot_bytes))):
            again, cursor = False, ""
            yield PutVectors(scope, "", page.gen, (), ())
            continue
        if rows:
            taken: tuple[bool, ...] | None = yield PutVectors(
                scope, _index(scope.spec).kind, page.gen, tuple(rows), tuple(found)
            )
            if taken is None:  # the rows were renumbered meanwhile
                cursor = ""
                continue
            state.embedded += sum(taken)
        state.looked += page.looked
        if state.progress is not None:
            state.progress(state.looked, max(state.looked, state.total))
        cursor = page.cursor
        if not cursor:
            return


def _outgrown(state: _Run, spec: ModelSpec, stored: int) -> Plan[bool]:
    """Whether the provider makes vectors of another size now than those that are `stored` under its name.

    Cost: a call of the provider, once in a run, where nothing was embedded yet.
    """
    if stored and state.slot_bytes is None:
        state.slot_bytes = stored  # of a provider that does not answer nothing is known
        with suppress(EmbeddingError):
            yield from _slots(state, _index(spec), ("how long is it?",))
    return stored not in (0, state.slot_bytes)


def _vectors(state: _Run, spec: ModelSpec, records: Iterable[Record]) -> Plan[tuple[list[int], list[bytes]]]:
    """Rows and slots of those records that have a text, may be embedded and could be."""
    index, texts = _index(spec), dict[int, str]()
    for record in records:
        text = index.passage(loaded_state(spec, record).raw)
        if text and blocked(state.model, text):
            state.withheld += 1
        elif text:
            texts[record.row] = text
    made = yield from _made(state, index, tuple(dict.fromkeys(texts.values())))
    rows = [row for row, text in texts.items() if made.get(text)]
    return rows, [made[texts[row]] for row in rows]


def _made(state: _Run, index: EmbeddingIndex, texts: tuple[str, ...]) -> Plan[dict[str, bytes]]:
    """Text -> slot. Texts of a call that fails are tried one by one, so that one cannot stop the others."""
    made: dict[str, bytes] = {}
    if not texts:
        return made
    try:
        return (yield from _slots(state, index, texts))
    except EmbeddingError as error:
        if error.reason not in ("failed", "answer"):
            raise
    for text in texts:
        try:
            made |= yield from _slots(state, index, (text,))
            state.refused = 0
        except EmbeddingError:
            state.refused += 1
            state.failed += 1
            if state.refused >= MOST_FAILURES:
                raise
    return made


def _slots(state: _Run, index: EmbeddingIndex, texts: tuple[str, ...]) -> Plan[dict[str, bytes]]:
    units = yield Embed(index, texts)
    made = slots(units, [digest(index.kind, text) for text in texts])
    state.slot_bytes = max(map(len, made)) or state.slot_bytes
    return dict(zip(texts, made, strict=True))


def blocked(model: type[Instance], text: str) -> bool:
    """Whether the firewall of a model keeps a text from leaving the process."""
    if not spec_of(model).never_record:
        return False
    from omoide.privacy import scan

    return scan(text, policy=getattr(model, "never_record_policy", None)).blocked


__all__ = [
    "FAILED",
    "Embedded",
    "Progress",
    "aembed",
    "catch_up",
    "embed",
    "embedded",
    "vector_of",
    "with_vectors",
]
