"""The never-record firewall at the door of the store.

    save ──values──▶ scan ──clean──▶ write
                       └─blocked──▶ falsy outcome, counters, tombstone, log line, callbacks

Nothing of a blocked text is kept anywhere: a tombstone and a log line hold a model, a reason and a
rule. A counter that cannot be written does not undo a block.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import uuid4

from omoide.model.draft import Draft, Refusal
from omoide.model.instance import Instance, spec_of
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.privacy import Policy

KEPT = 100
"""Tombstones kept in this process: the last so many."""

_REASON_COUNTER = "never_record:"
_RULE_COUNTER = "never_record_rule:"

_log = logging.getLogger("omoide.never_record")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A record that was not stored: when (seconds since the epoch), which model, why. `id` is random."""

    id: str
    time: Seconds
    model: str
    reason: str
    rule: str


_tombstones: deque[Tombstone] = deque(maxlen=KEPT)
_callbacks: list[Callable[[Tombstone], None]] = []


def tombstones() -> tuple[Tombstone, ...]:
    """The last 100 blocks of this process, oldest first."""
    return tuple(_tombstones)


def on_block(callback: Callable[[Tombstone], None]) -> Callable[[], None]:
    """Call back after every block in this process; returns what takes the callback away again.

    What a callback raises reaches the caller of the save; the record is not stored either way.
    """
    _callbacks.append(callback)
    return lambda: _callbacks.remove(callback) if callback in _callbacks else None


class NeverRecordMixin:
    """Scans every string of a record before it is stored, and refuses secrets and what is off the record.

    `never_record_policy` replaces the default policy. `OMOIDE_NEVER_RECORD_DISABLE=1` switches the
    firewall off for a deployment.
    """

    __omoide_never_record__: ClassVar[bool] = True
    never_record_policy: ClassVar[Policy | None] = None

    @classmethod
    def never_record_counts(cls, **partition: Any) -> dict[str, int]:
        """Records kept out, by reason; `suspect` and `allowed` count stored ones. Cost: one round trip."""
        return _by_reason(cast(Any, cls).counters(**partition).all())

    @classmethod
    async def anever_record_counts(cls, **partition: Any) -> dict[str, int]:
        """Records kept out, by reason; `suspect` and `allowed` count stored ones. Cost: one round trip."""
        return _by_reason(await cast(Any, cls).counters(**partition).aall())

    def __omoide_gate__(self, draft: Draft) -> Refusal | None:
        from omoide.privacy import scan_values
        from omoide.settings import never_record_disabled

        if not isinstance(self, Instance) or never_record_disabled():
            return None
        verdict = scan_values(_scanned(self, draft), policy=self.never_record_policy)
        draft.suspect = draft.suspect or verdict.suspect
        if not verdict.blocked:
            noted = {"suspect": verdict.suspect, "allowed": verdict.allowed}
            draft.counters.extend((_REASON_COUNTER + name, 1) for name, seen in noted.items() if seen)
            return None
        _announce(spec_of(type(self)).name, verdict.reason, verdict.rule)
        counters = [(_REASON_COUNTER + verdict.reason, 1)]
        if verdict.rule:
            counters.append((_RULE_COUNTER + verdict.rule, 1))
        return Refusal(verdict.reason, tuple(counters))


def _scanned(instance: Instance, draft: Draft) -> dict[str, object]:
    """The values words of a person may be in: all text, but no id that omoide made."""
    spec = spec_of(type(instance))
    state = instance._omoide
    own_id = state.generated_id or state.stored
    return {
        name: value
        for name, value in draft.values.items()
        if value is not None
        and not (name == spec.id_field and own_id)
        and (name not in spec.fields or spec.fields[name].scanned)
    }


def _announce(model: str, reason: str, rule: str) -> None:
    tombstone = Tombstone(uuid4().hex, time.time(), model, reason, rule)
    _tombstones.append(tombstone)
    _log.warning("not stored: model=%s reason=%s rule=%s", model, reason, rule)
    for callback in tuple(_callbacks):
        callback(tombstone)


def _by_reason(counters: dict[str, int]) -> dict[str, int]:
    return {
        name.removeprefix(_REASON_COUNTER): count
        for name, count in counters.items()
        if name.startswith(_REASON_COUNTER)
    }
