"""Saves and deletes grouped in the client.

    with batch() as b:
        memory.save()        # returns an outcome with reason "batched"
        other.delete()       # returns False: nothing has happened yet
    b.outcomes               # what happened, in the order of the calls

On exit everything is checked and screened before the first byte is sent; leaving by an exception
sends nothing. Each record is written atomically, the batch is not: `outcomes` says what was stored.

`update()` sets its changes at once, so that a later call of the block sees them, and takes them back
when they are not stored in the end. Several updates of one instance are one write, and so are a
save and the updates after it. A block that has ended collects nothing: a task that it started and
that saves afterwards writes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from omoide.errors import OmoideError, QueryError, StoreError
from omoide.model.instance import Instance, id_of, scope_of, spec_of
from omoide.ops import port
from omoide.ops.changes import MISSING, adopt, changed, check_names
from omoide.ops.embedding import with_vectors
from omoide.ops.prepare import check_call, name_by_operation
from omoide.ops.request import Batch as BatchRequest
from omoide.ops.request import Erase, Observe, Write
from omoide.ops.run import Plan, arun, run
from omoide.ops.save import (
    Prepared,
    SaveOutcome,
    count_refusals,
    gate_counters,
    prepare,
    raise_if_nothing_went,
    refused,
    settle,
    warn_of_lost_counters,
)


@dataclass(frozen=True, slots=True)
class DeleteOutcome:
    """What became of a delete in a batch; truthy when a record was erased."""

    deleted: bool
    id: str = ""
    error: StoreError | None = None

    def __bool__(self) -> bool:
        return self.deleted


@dataclass(slots=True)
class _Save:
    """A save, or with `partial` an update: `changes` alone. `before`, `after`: attributes around them."""

    instance: Instance
    options: dict[str, Any]
    partial: bool = False
    changes: dict[str, Any] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def change(self, changes: Mapping[str, Any]) -> None:
        """Set fields of the instance; none of them when one cannot be set."""
        held = self.instance.__dict__
        before = {name: held.get(name, MISSING) for name in changes}
        try:
            for name, value in changes.items():
                setattr(self.instance, name, value)
        except OmoideError:
            _put_back(held, before)
            raise
        self.changes.update(changes)
        self.before = before | self.before
        self.after.update((name, held.get(name, MISSING)) for name in changes)

    def undo(self) -> None:
        """Take the changes back, but for what was set to something else since."""
        held = self.instance.__dict__
        ours = {name for name, value in self.after.items() if held.get(name, MISSING) is value}
        _put_back(held, {name: value for name, value in self.before.items() if name in ours})

    def draft(self) -> Instance:
        """What to write: the whole instance, or what is stored with the changes."""
        return changed(self.instance, self.changes) if self.partial else self.instance


@dataclass(frozen=True, slots=True)
class _Delete:
    instance: Instance


_active: ContextVar[Batch | None] = ContextVar("omoide_batch", default=None)


class Batch:
    """Collects the saves and deletes of a block; `with` and `async with` both work.

    Cost on exit: one round trip per 256 writes and node.
    """

    def __init__(self) -> None:
        self.outcomes: list[SaveOutcome | DeleteOutcome] = []
        self._calls: list[_Save | _Delete] = []
        self._places: list[int] = []
        self._token: Token[Batch | None] | None = None
        self._outer: Batch | None = None
        self._open = False

    def __len__(self) -> int:
        return len(self._places)

    def add_save(self, instance: Instance, **options: Any) -> SaveOutcome:
        """Note a save for the exit of the block."""
        check_call(options.get("operation_id"), options.get("expect_version"))
        name_by_operation(instance, options.get("operation_id"))
        self._note(_Save(instance, options))
        return SaveOutcome(False, "batched", id_of(instance))

    def add_update(self, instance: Instance, changes: Mapping[str, Any]) -> SaveOutcome:
        """Note an update for the exit of the block, and set its changes.

        Raises:
            FieldError: an unknown field, or a key that would change.
            QueryError: the record was neither loaded nor saved, so what is stored of it is not known.
        """
        check_names(instance, changes)
        place = self._last_of(instance)
        call = None if place is None else self._calls[place]
        if isinstance(call, _Save) and place is not None:
            call.change(changes)
            self._places.append(place)
        else:
            state = instance._omoide
            if not state.stored:
                name = spec_of(type(instance)).name
                raise QueryError(
                    f"{name}: an update in a batch needs a record that was loaded or saved",
                    hint="load it first",
                )
            call = _Save(instance, {"mode": "update", "expect_version": state.version}, partial=True)
            call.change(changes)
            self._note(call)
        return SaveOutcome(False, "batched", id_of(instance))

    def add_delete(self, instance: Instance) -> bool:
        """Note a delete for the exit of the block."""
        self._note(_Delete(instance))
        return False

    def _note(self, call: _Save | _Delete) -> None:
        self._places.append(len(self._calls))
        self._calls.append(call)

    def _last_of(self, instance: Instance) -> int | None:
        """Place of the last call about this very instance."""
        places = range(len(self._calls) - 1, -1, -1)
        return next((place for place in places if self._calls[place].instance is instance), None)

    def __enter__(self) -> Self:
        if self._token is not None or self.outcomes:
            raise QueryError("a batch is entered once")
        self._outer = _active.get()
        self._token = _active.set(self)
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        with self._undoing():
            if error is None and self._calls:
                self.outcomes = run(self._send(), port.current().store)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        with self._undoing():
            if error is None and self._calls:
                self.outcomes = await arun(self._send(), port.current().astore)

    def _leave(self) -> None:
        self._open = False
        if self._token is not None:
            _active.reset(self._token)

    @contextmanager
    def _undoing(self) -> Iterator[None]:
        """Take back the changes of updates that are not stored when the block ends."""
        try:
            yield
        finally:
            stored = {place for place, outcome in zip(self._places, self.outcomes, strict=False) if outcome}
            for place in range(len(self._calls) - 1, -1, -1):
                call = self._calls[place]
                if isinstance(call, _Save) and place not in stored:
                    call.undo()

    def _send(self) -> Plan[list[SaveOutcome | DeleteOutcome]]:
        ready: list[Prepared | Erase] = [_prepared(call) for call in self._calls]
        ready = yield from with_vectors(ready)
        writes = [_write(one) for one in ready]
        sent: list[Write] = [write for write in writes if write is not None]
        kept_out = [one for one in ready if isinstance(one, Prepared) and one.put is None]
        counters: list[Observe] = gate_counters([one for one in ready if isinstance(one, Prepared)])
        if not sent:
            yield from count_refusals(kept_out)
            return self._told([refused(one) for one in kept_out])
        replies: tuple[Any, ...] = yield BatchRequest((*sent, *counters))
        raise_if_nothing_went(replies[: len(sent)])
        warn_of_lost_counters(replies[len(sent) :])
        waiting = iter(replies)
        settled = []
        for call, one, write in zip(self._calls, ready, writes, strict=True):
            outcome = _outcome(one, None if write is None else next(waiting))
            if isinstance(one, Prepared) and one.instance is not call.instance and outcome:
                adopt(call.instance, one.instance, {})
            settled.append(outcome)
        return self._told(settled)

    def _told(self, settled: Sequence[SaveOutcome | DeleteOutcome]) -> list[SaveOutcome | DeleteOutcome]:
        """One outcome for each call of the block, calls that became one write sharing theirs."""
        return [settled[place] for place in self._places]


def batch() -> Batch:
    """Group the saves and deletes of a `with` or `async with` block; see `Batch`."""
    return Batch()


def active() -> Batch | None:
    """The batch of the block that is running, if any; one that has ended is passed over."""
    current = _active.get()
    while current is not None and not current._open:
        current = current._outer
    return current


def refuse(call: str) -> None:
    """Raise QueryError inside a batch, for a call that would go out before the writes collected so far."""
    if active() is not None:
        raise QueryError(f"{call} is not part of a batch", hint="call it before or after the block")


def _prepared(call: _Save | _Delete) -> Prepared | Erase:
    if isinstance(call, _Save):
        return prepare(call.draft(), **call.options)
    return Erase(scope_of(call.instance), (id_of(call.instance),))


def _write(ready: Prepared | Erase) -> Write | None:
    return ready if isinstance(ready, Erase) else ready.put


def _outcome(ready: Prepared | Erase, reply: Any) -> SaveOutcome | DeleteOutcome:
    if isinstance(ready, Prepared):
        return refused(ready) if ready.put is None else settle(ready, reply)
    if isinstance(reply, StoreError):
        return DeleteOutcome(False, ready.ids[0], reply)
    return DeleteOutcome(bool(reply[0]), ready.ids[0])


def _put_back(held: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Set attributes as they were, those that were not set included."""
    for name, value in before.items():
        if value is MISSING:
            held.pop(name, None)
        else:
            held[name] = value
