"""`omoide scan`: the firewall over what is already stored.

scan    omoide.ops.screening.scan_memories, omoide.recipes.scan_threads
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, Answer, Meter, say, table
from omoide.apps.cli.target import check_found
from omoide.errors import NotFoundError, QueryError

if TYPE_CHECKING:
    from omoide.ops.model import Model
    from omoide.ops.screening import Screened


class _Place:
    """Progress on stderr that remembers where to go on."""

    def __init__(self) -> None:
        self.cursor = ""
        self._meter = Meter("scanned")

    def __call__(self, done: int, total: int, cursor: str) -> None:
        self.cursor = cursor
        self._meter(done, total)

    def close(self) -> None:
        self._meter.close()


def scan(
    model: type[Model], partition: dict[str, Any], *, action: str = "report", resume: str | None = None
) -> Answer:
    """Scan the stored memories of a model, or of one partition, and report what is blocked.

    Args:
        action: `report`, `quarantine` or `erase`.
        resume: The cursor that a run which was cut short printed on stderr.
    Returns:
        Findings by id, reason and rule, never text. Code 1 when something blocked is still there.
    Cost: one round trip per 250 records.
    """
    from omoide.ops.screening import scan_memories

    place = _Place()
    cut_short = True
    try:
        found = scan_memories(model, action=action, progress=place, cursor=resume, **partition)
        cut_short = False
    finally:
        place.close()
        if cut_short and place.cursor:
            say(f"omoide: to go on: --resume {place.cursor}")
    if resume is None:
        check_found(model, partition, found.scanned)
    return Answer(_data(found, place.cursor), _report(found), _code(found), _notes(found))


def scan_threads(resource_id: str | None, *, action: str = "report", resume: str | None = None) -> Answer:
    """Scan the messages of threads, of a resource or of all; as `scan`, and nothing is taken out of a thread.

    Raises:
        QueryError: another action than `report`, or a cursor.
        NotFoundError: the resource has no thread.
    """
    from omoide.recipes import scan_threads as run

    if action != "report" or resume is not None:
        raise QueryError("threads are reported only", hint="ThreadMemory(session, resource_id=...).delete()")
    meter = Meter("scanned")
    try:
        found = run(resource_id, progress=meter)
    finally:
        meter.close()
    if resource_id is not None and not found.scanned:
        raise NotFoundError(f"no thread of {resource_id!r} is stored")
    return Answer(_data(found, ""), _report(found, "messages"), _code(found), _notes(found))


def _code(found: Screened) -> int:
    return FAILED if len(found.found) > found.removed else 0


def _data(found: Screened, cursor: str) -> dict[str, Any]:
    return {
        "action": found.action,
        "scanned": found.scanned,
        "blocked": len(found.found),
        "suspect": found.suspect,
        "removed": found.removed,
        "left": found.left,
        "reasons": found.reasons,
        "rules": found.rules,
        "memories": [
            {
                "model": one.model,
                "partition": list(one.partition),
                "id": one.id,
                "reason": one.reason,
                "rule": one.rule,
            }
            for one in found.found
        ],
        "cursor": cursor,
    }


def _report(found: Screened, what: str = "memories") -> str:
    rows: list[tuple[str, ...]] = [("partition", "id", "reason", "rule")]
    rows += [("/".join(one.partition) or "?", one.id or "?", one.reason, one.rule) for one in found.found]
    lines = [table(rows)] if found.found else []
    done = {"quarantine": "put in quarantine", "erase": "erased"}.get(found.action)
    gone = f", {found.removed} {done}" if done else ""
    lines.append(f"{found.scanned:,} {what} scanned, {len(found.found)} blocked{gone}")
    return "\n".join(lines)


def _notes(found: Screened) -> tuple[str, ...]:
    notes = []
    if found.suspect:
        notes.append(f"{found.suspect} memories hold a random-looking token that no rule explains")
    if found.left:
        notes.append(f"omoide: {found.left} blocked memories could not be moved and are still there")
    return tuple(notes)
