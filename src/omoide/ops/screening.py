"""The firewall over what is already stored: report it, put it in quarantine, or erase it.

    Partitions ──▶ Page ──records──▶ scan ──clean──▶ next page
                    ▲                  └─blocked──▶ report
                    │                           ├─▶ Put into QuarantinedMemory, then Erase
                    │                           └─▶ Erase
                    └──────────── cursor ────────────┘

Partitions are visited in the order of a digest of their names, so that a cursor says where to go on
without naming one, whatever was stored meanwhile. A record is copied before it is erased: what is
cut short leaves it in both places, and going on from the cursor puts that right. Nothing here holds,
logs or raises content: a finding is an id, a reason and a rule.

A firewall that fails must not erase memories: with a failed self-test nothing is scanned, and a
record that cannot be judged (`budget`, `error`) is reported and stays where it is.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from omoide.errors import PolicyError, QueryError, StoreError
from omoide.mixins.never_record import UNREAD, policy_of
from omoide.model.instance import Instance, spec_of
from omoide.model.partition import scope_of_call
from omoide.model.schema import ModelSpec, Scope
from omoide.ops import port
from omoide.ops.quarantine import copy_of
from omoide.ops.request import (
    Batch,
    Count,
    Erase,
    Observe,
    Page,
    PageReply,
    Partitions,
    PartitionStatus,
    Put,
    Record,
)
from omoide.ops.run import Plan, arun, run
from omoide.ops.save import raise_if_nothing_went, warn_of_lost_counters

if TYPE_CHECKING:
    from omoide.privacy import Policy, Verdict

ACTIONS = ("report", "quarantine", "erase")
PAGE = 250
"""Records scanned between two cursors."""

_END = "~"
_PLACE = re.compile("[0-9a-f]{4}")

Progress = Callable[[int, int, str], None]
"""Told (records scanned in this run, records to scan, cursor to go on from) after every page."""


@dataclass(frozen=True, slots=True)
class Found:
    """A stored record that the firewall blocks.

    `partition` (its values) and `id` are empty where they are what is blocked.
    """

    model: str
    partition: tuple[str, ...]
    id: str
    reason: str
    rule: str


@dataclass(frozen=True, slots=True)
class Screened:
    """What a run over stored records found and did.

    Attributes:
        scanned: Records that were looked at.
        found: Those that are blocked, in the order of the run.
        suspect: Records with a random-looking token that no rule explains. They are not in `found`.
        removed: How many of `found` left their partition.
        left: How many of `found` stay although they should go: they could not be judged, or quarantine
            cannot hold them, since they are over 1 MiB or the name of their partition is blocked itself.
    """

    action: str
    scanned: int = 0
    found: tuple[Found, ...] = ()
    suspect: int = 0
    removed: int = 0
    left: int = 0

    @property
    def reasons(self) -> dict[str, int]:
        """Records by reason."""
        return dict(sorted(Counter(one.reason for one in self.found).items()))

    @property
    def rules(self) -> dict[str, int]:
        """Records by rule."""
        return dict(sorted(Counter(one.rule for one in self.found).items()))


@dataclass(slots=True)
class _Run:
    """A run in progress."""

    model: type[Instance]
    action: str
    progress: Progress | None
    total: int
    scanned: int = 0
    suspect: int = 0
    removed: int = 0
    left: int = 0
    found: list[Found] = field(default_factory=list)

    @property
    def policy(self) -> Policy | None:
        return policy_of(self.model)


# ---- screening -----------------------------------------------------------------------------------


def scan_memories(
    model: type[Instance],
    *,
    action: str = "report",
    progress: Progress | None = None,
    cursor: str | None = None,
    **partition: Any,
) -> Screened:
    """Run the firewall over stored records of one partition, or of all partitions of a model.

    Args:
        action: `report` changes nothing, `quarantine` moves what is blocked to `QuarantinedMemory`,
            `erase` erases it with all its traces.
        progress: Told how far it is, and the cursor, after every page.
        cursor: Where a run that was cut short had got to, as `progress` was told.
        partition: All partition fields; none of them for every partition.
    Returns:
        Findings without content; of a resumed run those of this run.
    Raises:
        QueryError: an unknown action, a bad cursor, or some partition fields but not all.
        PolicyError: the firewall failed its self-test; nothing was scanned.
        StoreError: what could not be copied was not erased.
    Cost: one round trip per 250 records, two more where some of them go, and their bodies through
        this process. A record that is written while its page is screened goes as well.
    """
    return run(screened(model, action, progress, cursor, partition), port.current().store)


async def ascan_memories(
    model: type[Instance],
    *,
    action: str = "report",
    progress: Progress | None = None,
    cursor: str | None = None,
    **partition: Any,
) -> Screened:
    """Run the firewall over stored records; see `scan_memories`."""
    return await arun(screened(model, action, progress, cursor, partition), port.current().astore)


def screened(
    model: type[Instance],
    action: str,
    progress: Progress | None,
    cursor: str | None,
    partition: dict[str, Any],
) -> Plan[Screened]:
    """The plan of `scan_memories`."""
    spec = spec_of(model)
    if action not in ACTIONS:
        raise QueryError(f"an action is one of {', '.join(ACTIONS)}")
    check_firewall()
    begun, page = _read_cursor(cursor)
    scopes, total = yield from _scopes(spec, partition)
    state = _Run(model, action, progress, total)
    places = [*(place for place, _ in scopes), _END]
    for (place, scope), end in zip(scopes, places[1:], strict=True):
        if place >= begun:
            yield from _screen_one(state, scope, (place, end), page if place == begun else "")
    return Screened(action, state.scanned, tuple(state.found), state.suspect, state.removed, state.left)


def check_firewall() -> None:
    """Raise PolicyError when the firewall does not find what it has to."""
    from omoide.privacy import self_test

    checked = self_test()
    if checked.blocked:
        raise PolicyError("the firewall failed its self-test: nothing was scanned", reason=checked.reason)


def _scopes(spec: ModelSpec, partition: dict[str, Any]) -> Plan[tuple[list[tuple[str, Scope]], int]]:
    """Partitions with their places, in order, and the records of all of them."""
    if partition or not spec.partition_by:
        scope = scope_of_call(spec, partition, "scan_memories")
        total: int = yield Count(scope)
        return [(_place(scope), scope)], total
    statuses: tuple[PartitionStatus, ...] = yield Partitions(spec.name)
    scopes = [Scope(spec, status.values) for status in statuses]
    return sorted(((_place(one), one) for one in scopes), key=lambda pair: (pair[0], pair[1].values)), sum(
        status.live for status in statuses
    )


def _screen_one(state: _Run, scope: Scope, places: tuple[str, str], page: str) -> Plan[None]:
    """Screen a partition from a page on; `places` are its own and that of the one after it."""
    name = _scan_name(scope, state.policy)
    while True:
        reply: PageReply = yield Page(scope, page, PAGE)
        blocked = []
        for record in reply.records:
            verdict = name if name.blocked else _scan(scope.spec, record, state.policy)
            state.suspect += verdict.suspect and not verdict.blocked
            if verdict.blocked:
                blocked.append((record, verdict))
        state.scanned += len(reply.records)
        state.found += _findings(scope, blocked, state.policy, hide=name.blocked)
        if state.action != "report":
            yield from _remove(state, scope, blocked, nameless=name.blocked)
        page = reply.cursor
        if state.progress is not None:
            cursor = _write_cursor(places[0] if page else places[1], page)
            state.progress(state.scanned, max(state.scanned, state.total), cursor)
        if not page:
            return


def _scan(spec: ModelSpec, record: Record, policy: Policy | None) -> Verdict:
    """The verdict over all strings of a stored record, fields this class does not know included."""
    from omoide.privacy import scan, scan_values

    values = {
        name: value
        for name, value in record.values.items()
        if value is not None
        and name != spec.id_field
        and (name not in spec.fields or spec.fields[name].scanned)
    }
    verdict = scan_values(values, policy=policy)
    if verdict.blocked:
        return verdict
    own = scan(record.id, policy=policy)
    return own if own.blocked else verdict


def _scan_name(scope: Scope, policy: Policy | None) -> Verdict:
    """The verdict over the name of a partition; clean when it could not be judged."""
    from omoide.privacy import scan_values
    from omoide.privacy.verdict import CLEAN

    verdict = scan_values(dict(zip(scope.spec.partition_by, scope.values, strict=True)), policy=policy)
    return CLEAN if verdict.reason in UNREAD else verdict


def _findings(
    scope: Scope, blocked: Sequence[tuple[Record, Verdict]], policy: Policy | None, *, hide: bool
) -> Iterator[Found]:
    from omoide.privacy import scan

    shown = () if hide else scope.values
    for record, verdict in blocked:
        own = "" if scan(record.id, policy=policy).blocked else record.id
        yield Found(scope.spec.name, shown, own, verdict.reason, verdict.rule)


def _remove(
    state: _Run, scope: Scope, blocked: Sequence[tuple[Record, Verdict]], *, nameless: bool
) -> Plan[None]:
    """Take records out of their partition, in quarantine before that when it is asked for.

    Where the name of the partition is blocked, no copy and no counter is made under it.
    """
    judged = [(record, verdict) for record, verdict in blocked if verdict.reason not in UNREAD]
    ids = tuple(record.id for record, _ in judged)
    if state.action == "quarantine":
        ids = () if nameless else (yield from _copy(scope, judged))
    state.left += len(blocked) - len(ids)
    if not ids:
        return
    done = "quarantined" if state.action == "quarantine" else "erased"
    counters = ((f"never_record_stored:{done}", len(ids)),)
    erase = Erase(scope, ids)
    writes = (erase,) if nameless else (erase, Observe(scope, (), counters=counters))
    replies: tuple[Any, ...] = yield Batch(writes)
    raise_if_nothing_went(replies[:1])
    warn_of_lost_counters(replies[1:])
    state.removed += sum(replies[0])


def _copy(scope: Scope, judged: Sequence[tuple[Record, Verdict]]) -> Plan[tuple[str, ...]]:
    """Write records into quarantine; the ids that are there now. Raises when one could not be written."""
    puts: list[Put] = []
    for record, verdict in judged:
        put = copy_of(scope, record, verdict.reason, verdict.rule)
        if put is not None:
            puts.append(put)
    if not puts:
        return ()
    replies: tuple[Any, ...] = yield Batch(tuple(puts))
    for reply in replies:
        if isinstance(reply, StoreError):
            raise reply
    return tuple(put.id for put in puts)


# ---- cursors -------------------------------------------------------------------------------------


def _place(scope: Scope) -> str:
    """Where a partition stands in the order of a run: 4 hex digits, too few to tell its name.

    Partitions may share a place. A cursor of a page does not fit the others, which start anew.
    """
    return blake2b("\0".join(scope.values).encode(), digest_size=2).hexdigest()


def _write_cursor(place: str, page: str) -> str:
    return urlsafe_b64encode(f"{place}|{page}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str | None) -> tuple[str, str]:
    if not cursor:
        return "", ""
    if not isinstance(cursor, str):
        raise QueryError("that is no cursor of a scan")
    try:
        place, bar, page = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition("|")
    except ValueError:
        place = bar = page = ""
    if not bar or not (place == _END or _PLACE.fullmatch(place)):
        raise QueryError("that is no cursor of a scan")
    return place, page


__all__ = [
    "ACTIONS",
    "Found",
    "Progress",
    "Screened",
    "ascan_memories",
    "check_firewall",
    "scan_memories",
    "screened",
]
