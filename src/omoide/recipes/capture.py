"""Capture: from drafts to memories of a turn, written in one batch with what the turn repeated.

A memory of a known turn has an id made of the turn's and of what it says, and is written under an
operation id of its own: capturing the same text of the same turn again, after a lost reply or by
a second hook, stores nothing new.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from omoide.context.block import text_of
from omoide.context.render import frames
from omoide.context.result import AssemblyResult
from omoide.core.echo import Given
from omoide.errors import CorruptRecordError, FieldError, OmoideError, StoreError
from omoide.model.defaults import Defaults
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import turn
from omoide.ops.embedding import with_vectors
from omoide.ops.request import Batch, Observe, Put, Record
from omoide.ops.run import Plan
from omoide.ops.save import Prepared, SaveOutcome, prepare, raise_if_nothing_went, settle
from omoide.recipes.extractors import Draft
from omoide.recipes.reports import FAILED

if TYPE_CHECKING:
    from omoide.ops.model import Model

ECHO = "echo"
INVALID = "invalid"

_log = logging.getLogger("omoide.recipes")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a text comes from: its partition, and what is known of session, author and turn."""

    partition: Mapping[str, Any]
    session_id: str | None = None
    author: str | None = None
    turn: str | None = None


def given_of(result: AssemblyResult) -> Given:
    """What a turn was given, by its result."""
    memories = {item.id: item.text for item in result.items}
    return Given(memories, frames(), (result.formatted,)) if memories else Given()


def read_given(model: type[Model], scope: Scope, turn_id: str) -> Plan[Given]:
    """What a turn was given, by what the store holds under its id. Cost: 1 round trip."""
    records = yield from turn.read(scope, turn_id)
    memories: dict[str, str] = {}
    around: list[str] = []
    for record in records:
        text = _readable(model, record)
        if text:
            memories[record.id] = text
            author = record.values.get(scope.spec.author) if scope.spec.author else None
            around.append(f"{record.id} {_day(record)} {author or ''}")
    return Given(memories, frames(), tuple(around)) if memories else Given()


def _readable(model: type[Model], record: Record) -> str:
    """The text of a record; "" for one whose stored form is damaged, which cannot be echoed."""
    try:
        return text_of(model.from_record(record))
    except CorruptRecordError:
        return ""


def _day(record: Record) -> str:
    try:
        return datetime.fromtimestamp(record.time_ms / 1000, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def ready(
    model: type[Model], spec: ModelSpec, drafts: Sequence[Draft], source: Source
) -> list[Prepared | SaveOutcome]:
    """Drafts as checked and screened writes; what breaks a rule of a field is an `invalid` outcome.

    What a class of the user raises (its constructor, a default, `write_score`) is a `failed` outcome of
    that draft alone.
    """
    prepared: list[Prepared | SaveOutcome] = []
    for values in _values(spec, drafts):
        try:
            prepared.append(_prepare(model, spec, values, source))
        except FieldError as error:
            _log.warning("a captured memory was not stored: %s.%s is not valid", error.model, error.field)
            prepared.append(SaveOutcome(False, INVALID))
        except OmoideError:
            raise
        except Exception as error:  # noqa: BLE001 - code of the user: it must not end the turn
            _log.warning("a captured memory was not stored: %s raised %s", spec.name, type(error).__name__)
            prepared.append(SaveOutcome(False, FAILED))
    return prepared


def _prepare(model: type[Model], spec: ModelSpec, values: Mapping[str, Any], source: Source) -> Prepared:
    known: dict[str, Any] = {spec.session or "": source.session_id, spec.author or "": source.author}
    filled = {name: value for name, value in known.items() if name and value is not None}
    memory = model(**{**filled, **values, **source.partition})
    if source.turn is None:
        return prepare(memory)
    if spec.id_field not in values:
        setattr(memory, spec.id_field, _id(source, text_of(memory)))
        memory._omoide.generated_id = True
    return prepare(memory, operation_id=getattr(memory, spec.id_field))


def _id(source: Source, text: str) -> str:
    """An id made of the turn and of what is said in it by whom, in order of time like the turn's."""
    said = f"{source.author or ''}\0{text}".encode("utf-8", "surrogatepass")
    return f"{source.turn}{blake2b(said, digest_size=8).hexdigest()}"[-128:]


def _values(spec: ModelSpec, drafts: Sequence[Draft]) -> Iterator[Mapping[str, Any]]:
    """Field values of drafts; a plain text too long for its field becomes several memories."""
    name = spec.text.source[0] if spec.text is not None else "content"
    most: int = getattr(spec.fields.get(name), "max_bytes", 65_536)
    for draft in drafts:
        if isinstance(draft, str):
            yield from ({name: piece} for piece in pieces(draft, most))
        else:
            yield draft


def pieces(text: str, most: int) -> Iterator[str]:
    """A text in pieces of at most `most` bytes of UTF-8, broken at line ends or spaces if there are any.

    A lone surrogate becomes a question mark, since no store can hold it.
    """
    data = text.encode("utf-8", "replace")
    while len(data) > most:
        head = data[:most].decode("utf-8", "ignore").encode()
        cut = max(head.rfind(b"\n"), head.rfind(b" ", len(head) // 2))
        head = head[: cut + 1] if cut > len(head) // 2 else head
        piece = head.decode().strip()
        if piece:
            yield piece
        data = data[len(head) :]
    rest = data.decode()
    if rest.strip():
        yield rest


def write(
    scope: Scope,
    found: Sequence[Prepared | SaveOutcome],
    echoed: Sequence[str],
    turn_id: str | None,
    defaults: Defaults,
) -> Plan[list[SaveOutcome]]:
    """Store memories and corroborate what was repeated; no round trip when there is neither.

    `echoed`: ids that were repeated; with a turn id each of them counts as evidence once a turn.

    Raises:
        StoreError: no memory at all could be written.
    Cost: 1 round trip per 256 memories.
    """
    found = yield from with_vectors(found)
    puts = [one.put for one in found if isinstance(one, Prepared) and one.put is not None]
    counters: Counter[str] = Counter()
    for one in found:
        if isinstance(one, Prepared):
            counters.update(dict(one.counters))
    writes: list[Put | Observe] = list(puts)
    if echoed or counters:
        evidence = turn.corroboration(echoed, defaults)
        writes.append(Observe(scope, evidence, turn_id, counters=tuple(counters.items()), echo=True))
    if not writes:
        return _outcomes(found, (), echoed)
    replies: tuple[Any, ...] = yield Batch(tuple(writes))
    if puts:
        raise_if_nothing_went(replies[: len(puts)])
    if len(replies) > len(puts) and isinstance(replies[-1], StoreError):
        _log.warning("an echo or a refusal was not counted: %s", type(replies[-1]).__name__)
    return _outcomes(found, replies, echoed)


def _outcomes(
    found: Sequence[Prepared | SaveOutcome], replies: Sequence[Any], echoed: Sequence[str]
) -> list[SaveOutcome]:
    """One outcome for each draft, then one for each echo."""
    waiting = iter(replies)
    outcomes: list[SaveOutcome] = []
    for one in found:
        if isinstance(one, SaveOutcome):
            outcomes.append(one)
        elif one.put is None:
            outcomes.append(SaveOutcome(False, one.refusal.reason if one.refusal else INVALID, one.id))
        else:
            outcomes.append(settle(one, next(waiting)))
    return outcomes + [SaveOutcome(False, ECHO, duplicate_of=id) for id in echoed]


__all__ = ["ECHO", "INVALID", "Source", "given_of", "pieces", "read_given", "ready", "write"]
