"""Saves and deletes grouped in the client.

    with batch() as b:
        memory.save()        # returns an outcome with reason "batched"
        other.delete()       # returns False: nothing has happened yet
    b.outcomes               # what happened, in the order of the calls

On exit everything is checked and screened before the first byte is sent; leaving by an exception
sends nothing. Each record is written atomically, the batch is not: `outcomes` says what was stored.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from omoide.errors import QueryError, StoreError
from omoide.model.instance import Instance, id_of, scope_of
from omoide.ops import port
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


@dataclass(frozen=True, slots=True)
class _Save:
    instance: Instance
    options: dict[str, Any]


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
        self._token: Token[Batch | None] | None = None

    def __len__(self) -> int:
        return len(self._calls)

    def add_save(self, instance: Instance, **options: Any) -> SaveOutcome:
        """Note a save for the exit of the block."""
        self._calls.append(_Save(instance, options))
        return SaveOutcome(False, "batched", id_of(instance))

    def add_delete(self, instance: Instance) -> bool:
        """Note a delete for the exit of the block."""
        self._calls.append(_Delete(instance))
        return False

    def __enter__(self) -> Self:
        if self._token is not None or self.outcomes:
            raise QueryError("a batch is entered once")
        self._token = _active.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if error is None:
            self.outcomes = run(self._send(), port.current().store) if self._calls else []

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if error is None:
            self.outcomes = await arun(self._send(), port.current().astore) if self._calls else []

    def _leave(self) -> None:
        if self._token is not None:
            _active.reset(self._token)

    def _send(self) -> Plan[list[SaveOutcome | DeleteOutcome]]:
        ready = [_prepared(call) for call in self._calls]
        writes = [_write(one) for one in ready]
        sent: list[Write] = [write for write in writes if write is not None]
        kept_out = [one for one in ready if isinstance(one, Prepared) and one.put is None]
        counters: list[Observe] = gate_counters([one for one in ready if isinstance(one, Prepared)])
        if not sent:
            yield from count_refusals(kept_out)
            return [refused(one) for one in kept_out]
        replies: tuple[Any, ...] = yield BatchRequest((*sent, *counters))
        raise_if_nothing_went(replies[: len(sent)])
        warn_of_lost_counters(replies[len(sent) :])
        waiting = iter(replies)
        return [
            _outcome(one, None if write is None else next(waiting))
            for one, write in zip(ready, writes, strict=True)
        ]


def batch() -> Batch:
    """Group the saves and deletes of a `with` or `async with` block; see `Batch`."""
    return Batch()


def active() -> Batch | None:
    """The batch of the block that is running, if any."""
    return _active.get()


def _prepared(call: _Save | _Delete) -> Prepared | Erase:
    if isinstance(call, _Save):
        return prepare(call.instance, **call.options)
    return Erase(scope_of(call.instance), (id_of(call.instance),))


def _write(ready: Prepared | Erase) -> Write | None:
    return ready if isinstance(ready, Erase) else ready.put


def _outcome(ready: Prepared | Erase, reply: Any) -> SaveOutcome | DeleteOutcome:
    if isinstance(ready, Prepared):
        return refused(ready) if ready.put is None else settle(ready, reply)
    if isinstance(reply, StoreError):
        return DeleteOutcome(False, ready.ids[0], reply)
    return DeleteOutcome(bool(reply[0]), ready.ids[0])
