"""The never-record firewall at the door of the store.

    save ──values──▶ scan ──clean──▶ write
                       ├─blocked──▶ falsy outcome
                       └─redact───▶ blocked parts taken out ──clean──▶ write of the rest
                                                            └─not──▶ falsy outcome

Loud either way: durable counters of the partition, counters of this process, a tombstone, a log
line, callbacks. Nothing of a blocked text is kept anywhere: a tombstone and a log line hold a
model, a reason and a rule. A counter that cannot be written does not undo a block, and a partition
whose own name is blocked gets no counter, since the name would be part of its key.

    counter                       counts
    never_record:<reason>         records kept out (`credential`, `natural_language`, `off_the_record`,
                                  `personal`, `budget`, `error`, `self_test`)
    never_record:suspect          records stored with a random-looking token that no rule explains
    never_record:allowed          records stored because of the allow-list or a rule switched off
    never_record:redacted         records stored without their blocked parts
    never_record_rule:<rule>      the same blocks and redactions by rule
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import uuid4

from omoide.errors import FieldError, ModelError
from omoide.model.draft import Draft, Refusal
from omoide.model.instance import Instance, spec_of
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.privacy import Policy, Verdict

KEPT = 100
"""Tombstones kept in this process: the last so many."""

MODES = ("drop", "redact")
STORED_ANYWAY = frozenset(("suspect", "allowed", "redacted"))
"""What is counted about records that were stored."""
UNREAD = frozenset(("", "budget", "error", "self_test"))
"""Reasons that say nothing of what a text holds."""

_REASON_COUNTER = "never_record:"
_RULE_COUNTER = "never_record_rule:"

_log = logging.getLogger("omoide.never_record")


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A record that was not stored, or not whole: when (seconds since the epoch), which model, why.

    `id` is random. With reason `redacted` the rest of the record is stored.
    """

    id: str
    time: Seconds
    model: str
    reason: str
    rule: str


_Named = tuple["Policy | None", tuple[tuple[str, str], ...]]
_MOST_CLEAN = 4_096
_SHORT = 512
_clean: set[_Named] = set()
_tombstones: deque[Tombstone] = deque(maxlen=KEPT)
_callbacks: list[Callable[[Tombstone], None]] = []
_counts: Counter[tuple[str, str]] = Counter()


def tombstones() -> tuple[Tombstone, ...]:
    """The last 100 blocks of this process, oldest first."""
    return tuple(_tombstones)


def process_counts() -> dict[str, dict[str, int]]:
    """What the firewall counted in this process: model name -> reason -> records."""
    found: dict[str, dict[str, int]] = {}
    for (model, reason), count in sorted(_counts.items()):
        found.setdefault(model, {})[reason] = count
    return found


def on_block(callback: Callable[[Tombstone], None]) -> Callable[[], None]:
    """Call back after every block and redaction in this process; returns what takes it away again.

    An exception of a callback is logged by its type and changes nothing else.
    """
    _callbacks.append(callback)
    return lambda: _callbacks.remove(callback) if callback in _callbacks else None


def by_reason(counters: Mapping[str, int]) -> dict[str, int]:
    """What the firewall counted, by reason, out of all counters of a partition."""
    return _named(counters, _REASON_COUNTER)


def by_rule(counters: Mapping[str, int]) -> dict[str, int]:
    """Blocks and redactions by rule, out of all counters of a partition."""
    return _named(counters, _RULE_COUNTER)


def kept_out(counters: Mapping[str, int]) -> int:
    """Records that were not stored, out of all counters of a partition."""
    return sum(count for reason, count in by_reason(counters).items() if reason not in STORED_ANYWAY)


def totals(partitions: Iterable[tuple[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    """What the firewall counted, by model and reason, out of (model name, counters) of partitions."""
    found: dict[str, Counter[str]] = {}
    for model, counters in partitions:
        found.setdefault(model, Counter()).update(by_reason(counters))
    return {model: dict(sorted(counts.items())) for model, counts in sorted(found.items()) if counts}


class NeverRecordMixin:
    """Scans every string of a record before it is stored, and refuses secrets and what is off the record.

    `never_record_policy` replaces the default policy. `never_record_mode = "redact"` stores the rest
    of a record whose blocked parts can be taken out of its texts; the instance then holds what was
    stored. What is off the record is dropped in either mode. `OMOIDE_NEVER_RECORD_DISABLE=1` switches
    the firewall off for a deployment.
    """

    __omoide_never_record__: ClassVar[bool] = True
    never_record_policy: ClassVar[Policy | None] = None
    never_record_mode: ClassVar[str] = "drop"

    def __init_subclass__(cls, **options: Any) -> None:
        _mode_of(cls)
        policy_of(cls)
        super().__init_subclass__(**options)

    @classmethod
    def never_record_counts(cls, **partition: Any) -> dict[str, int]:
        """Records kept out, by reason; `suspect`, `allowed` and `redacted` count stored ones.

        Cost: one round trip.
        """
        return by_reason(cast(Any, cls).counters(**partition).all())

    @classmethod
    async def anever_record_counts(cls, **partition: Any) -> dict[str, int]:
        """Records kept out, by reason; see `never_record_counts`. Cost: one round trip."""
        return by_reason(await cast(Any, cls).counters(**partition).aall())

    @classmethod
    def never_record_rules(cls, **partition: Any) -> dict[str, int]:
        """Blocks and redactions by the rule that decided. Cost: one round trip."""
        return by_rule(cast(Any, cls).counters(**partition).all())

    @classmethod
    async def anever_record_rules(cls, **partition: Any) -> dict[str, int]:
        """Blocks and redactions by the rule that decided. Cost: one round trip."""
        return by_rule(await cast(Any, cls).counters(**partition).aall())

    @classmethod
    def never_record_tombstones(cls) -> tuple[Tombstone, ...]:
        """Blocks of this model among the last 100 of this process, oldest first. Cost: no I/O."""
        name = spec_of(cast(Any, cls)).name
        return tuple(one for one in _tombstones if one.model == name)

    @classmethod
    def __omoide_judge__(cls, named: Mapping[str, object]) -> str:
        """The reason to keep what a call names out of keys and commands, "" when there is none."""
        from omoide.settings import never_record_disabled

        if never_record_disabled():
            return ""
        policy = policy_of(cls)
        known = (policy, tuple((name, value) for name, value in named.items() if isinstance(value, str)))
        if len(known[1]) == len(named) and known in _clean:
            return ""
        reason = judge(spec_of(cast(Any, cls)).name, named, policy)
        if reason:
            return reason
        if len(known[1]) == len(named):
            _remember(known)
        return ""

    def __omoide_gate__(self, draft: Draft) -> Refusal | None:
        from omoide.privacy import scan_values
        from omoide.settings import never_record_disabled

        if not isinstance(self, Instance) or never_record_disabled():
            return None
        mode, policy = _mode_of(type(self)), policy_of(type(self))
        verdict = scan_values(_scanned(self, draft), policy=policy)
        if not verdict.blocked:
            _note(self, draft, verdict)
            return None
        taken = _take_out(self, draft, policy) if mode == "redact" else ()
        if not taken:
            return _refuse(self, verdict, policy)
        model = spec_of(type(self)).name
        _count(model, "redacted")
        _announce(model, "redacted", taken[0].rule)
        draft.counters.append((_REASON_COUNTER + "redacted", 1))
        rules = Counter(one.rule for one in taken)
        draft.counters.extend((_RULE_COUNTER + rule, count) for rule, count in rules.items())
        return None


def judge(model: str, values: Mapping[str, object], policy: Policy | None = None) -> str:
    """Scan what is about to be kept under a name; the reason to refuse it, "" when there is none.

    A refusal is counted and announced in this process. Cost: no I/O.
    """
    from omoide.privacy import scan_values
    from omoide.settings import never_record_disabled

    verdict = None if never_record_disabled() else scan_values(values, policy=policy)
    if verdict is None or not verdict.blocked:
        return ""
    _count(model, verdict.reason)
    _announce(model, verdict.reason, verdict.rule)
    return verdict.reason


def policy_of(model: type) -> Policy | None:
    """The policy of a model, None for the default or a model without a firewall.

    Raises:
        ModelError: its `never_record_policy` is none, whenever it was set.
    """
    policy = getattr(model, "never_record_policy", None)
    if policy is not None:
        from omoide.privacy import Policy

        if not isinstance(policy, Policy):
            raise ModelError(f"{model.__name__}.never_record_policy must be an omoide.privacy.Policy")
    return policy


def _mode_of(model: type) -> str:
    mode: str = getattr(model, "never_record_mode", MODES[0])
    if mode not in MODES:
        raise ModelError(f"{model.__name__}.never_record_mode must be one of {', '.join(MODES)}")
    return mode


def _remember(known: _Named) -> None:
    """Names of partitions and filters come again and again; what was clean is not scanned twice."""
    if sum(len(value) for _, value in known[1]) > _SHORT:
        return
    if len(_clean) >= _MOST_CLEAN:
        _clean.clear()
    _clean.add(known)


def _note(instance: Instance, draft: Draft, verdict: Verdict) -> None:
    """Count what is remarkable about a record that is stored."""
    draft.suspect = draft.suspect or verdict.suspect
    for name, seen in (("suspect", verdict.suspect), ("allowed", verdict.allowed)):
        if seen:
            _count(spec_of(type(instance)).name, name)
            draft.counters.append((_REASON_COUNTER + name, 1))


def _refuse(instance: Instance, verdict: Verdict, policy: Policy | None) -> Refusal:
    from omoide.privacy import scan_values

    spec = spec_of(type(instance))
    _count(spec.name, verdict.reason)
    _announce(spec.name, verdict.reason, verdict.rule)
    partition = {name: getattr(instance, name, None) for name in spec.partition_by}
    if scan_values(partition, policy=policy).reason not in UNREAD:
        return Refusal(verdict.reason)
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


def _take_out(instance: Instance, draft: Draft, policy: Policy | None) -> tuple[Verdict, ...]:
    """Take the blocked parts out of the texts of a record; () when that leaves it blocked.

    Only texts are changed, never an id or a partition. The whole record is scanned again, so that a
    part that only counts beside the name of its field is not missed.
    """
    from omoide.privacy import redact, scan_values

    spec = spec_of(type(instance))
    changed: dict[str, str] = {}
    taken: list[Verdict] = []
    for name in _texts(instance, draft):
        redaction = redact(str(draft.values[name]), policy=policy)
        if not redaction.removed:
            continue
        if not redaction.text:
            return ()
        changed[name] = redaction.text
        taken += redaction.verdicts
    verdict = scan_values({**_scanned(instance, draft), **changed}, policy=policy)
    if verdict.blocked or not changed:
        return ()
    try:
        for name, text in changed.items():
            spec.fields[name].verify(text, spec.name)
    except FieldError:  # without its disguises a text may be longer than its field allows
        return ()
    for name, text in changed.items():
        setattr(instance, name, text)
    draft.values = {**draft.values, **changed}
    _note(instance, draft, verdict)
    return tuple(taken)


def _texts(instance: Instance, draft: Draft) -> Iterable[str]:
    """Fields of text that may be changed."""
    spec = spec_of(type(instance))
    fixed = (spec.id_field, *spec.partition_by)
    return [
        name
        for name, field in spec.fields.items()
        if field.textual and field.scanned and name not in fixed and isinstance(draft.values.get(name), str)
    ]


def _count(model: str, reason: str) -> None:
    _counts[model, reason] += 1


def _announce(model: str, reason: str, rule: str) -> None:
    tombstone = Tombstone(uuid4().hex, time.time(), model, reason, rule)
    _tombstones.append(tombstone)
    done = "stored without its blocked parts" if reason == "redacted" else "not stored"
    _log.warning("%s: model=%s reason=%s rule=%s", done, model, reason, rule)
    for callback in tuple(_callbacks):
        try:
            callback(tombstone)
        except Exception as error:  # noqa: BLE001 - code of the user: it must not undo or hide a block
            _log.error("a callback for blocks failed: %s", type(error).__name__)


def _named(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): count for name, count in counters.items() if name.startswith(prefix)}
