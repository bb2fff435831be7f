"""Renewing a record's place in the decay order."""

from __future__ import annotations

from omoide.model.instance import Instance, id_of, scope_of
from omoide.ops.request import Evidence, Observe, ObserveReply
from omoide.ops.run import Plan


def touch(instance: Instance) -> Plan[bool]:
    """Let a record decay from now; False when it is gone. One round trip."""
    reply: ObserveReply = yield Observe(scope_of(instance), (Evidence(id_of(instance), touch=True),))
    return reply.states[0] == "applied"
