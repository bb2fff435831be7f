"""What internal executions of an agent may do with its memory, one row a resource.

    execution      recall                       episodes
    chat           always                       always
    task           unless `task_recall` is off  unless `task_retention` is off
    schedule       unless `schedule_recall` …   unless `schedule_retention` …
    self-update    never                        never

A resource without a row has everything on.
"""

from __future__ import annotations

from omoide.errors import FieldError, QueryError
from omoide.fields import AutoKeyField, BoolField, KeyField
from omoide.model.mirror import PostgresMirror
from omoide.model.naming import unknown_field
from omoide.model.schema import Scope
from omoide.ops import load
from omoide.ops import save as saves
from omoide.ops.model import Model
from omoide.ops.run import Plan
from omoide.ops.save import MOST_RACES

RECALL = "recall"
RETENTION = "retention"
EXECUTIONS = ("chat", "task", "schedule", "self-update")
ALWAYS = "chat"
NEVER = "self-update"
ROW = "settings"
SWITCHES = ("task_recall", "task_retention", "schedule_recall", "schedule_retention")


class LongTermSettings(Model):
    """The settings row of a resource: what its tasks and schedules may do with memory."""

    settings_id = AutoKeyField()
    resource_id = KeyField()
    task_recall = BoolField(default=True)
    task_retention = BoolField(default=True)
    schedule_recall = BoolField(default=True)
    schedule_retention = BoolField(default=True)

    class Meta:
        mirror = PostgresMirror(table="popagent_memory_settings")


def checked(execution: object) -> str:
    """An execution, or QueryError."""
    if execution not in EXECUTIONS:
        raise QueryError(f"execution is one of {', '.join(EXECUTIONS)}")
    return str(execution)


def allows(scope: Scope, execution: str, action: str) -> Plan[bool]:
    """Whether an execution may recall, or keep episodes. Cost: none for a chat, else one round trip."""
    if execution in (ALWAYS, NEVER):
        return execution == ALWAYS
    row = yield from read(scope)
    return bool(getattr(row, f"{execution}_{action}"))


def read(scope: Scope) -> Plan[LongTermSettings]:
    """The row of a resource, with its defaults where there is none. One round trip."""
    row = yield from load.one(LongTermSettings, scope, ROW)
    return row or LongTermSettings(settings_id=ROW, resource_id=scope.values[0])


def change(scope: Scope, changes: dict[str, object]) -> Plan[LongTermSettings]:
    """Set some switches and no others; the row as it is then. Two round trips."""
    for name, value in changes.items():
        if name not in SWITCHES:
            raise unknown_field("LongTermSettings", name, SWITCHES)
        if not isinstance(value, bool):
            raise FieldError("LongTermSettings", name, "must be true or false")
    for _ in range(MOST_RACES):
        row = yield from load.one(LongTermSettings, scope, ROW)
        if row is not None:
            if (yield from saves.update(row, changes)):
                return row
            continue
        row = LongTermSettings(settings_id=ROW, resource_id=scope.values[0], **changes)
        if (yield from saves.save(row, mode="create")):
            return row
    raise saves.version_conflict(scope.spec)


__all__ = ["EXECUTIONS", "RECALL", "RETENTION", "LongTermSettings", "allows", "change", "checked", "read"]
