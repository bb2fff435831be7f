"""Named counters of a partition: atomic, durable, listed by `omoide.status()`."""

from __future__ import annotations

from omoide.errors import QueryError
from omoide.model.partition import key_rule, refuse
from omoide.model.schema import Scope
from omoide.ops import port
from omoide.ops.request import Increment, ReadCounters
from omoide.ops.run import Plan, arun, run

NAME_BYTES = 128
OURS = ("evicted", "filtered", "query_redacted")
OUR_PREFIXES = ("never_record:", "never_record_rule:")
"""Names that only the library counts under; they can be read like any other."""

_MOST = 2**53 - 1


class Counters:
    """The counters of one partition (`Model.counters(agent_id=...)`)."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def increment(self, name: str, delta: int = 1) -> int:
        """Add to a counter (made at 0); its new value. Cost: one round trip.

        Raises:
            QueryError: a name that is no text of 1..128 bytes or that the library counts under, or no whole
                number of 53 bits.
            PolicyError: the firewall of the model keeps the name out.
        """
        return run(_increment(self._scope, name, delta), port.current().store)

    async def aincrement(self, name: str, delta: int = 1) -> int:
        """Add to a counter (made at 0); its new value; see `increment`."""
        return await arun(_increment(self._scope, name, delta), port.current().astore)

    def read(self, name: str) -> int:
        """The value of a counter, 0 when there is none. Cost: one round trip."""
        return run(_read(self._scope, name), port.current().store)

    async def aread(self, name: str) -> int:
        """The value of a counter, 0 when there is none. Cost: one round trip."""
        return await arun(_read(self._scope, name), port.current().astore)

    def all(self) -> dict[str, int]:
        """Every counter of the partition. Cost: one round trip."""
        return run(_all(self._scope), port.current().store)

    async def aall(self) -> dict[str, int]:
        """Every counter of the partition. Cost: one round trip."""
        return await arun(_all(self._scope), port.current().astore)


def _checked(name: str) -> str:
    rule = key_rule(name, NAME_BYTES)
    if rule is not None:
        raise QueryError(f"a counter name {rule}")
    return name


def _increment(scope: Scope, name: str, delta: int) -> Plan[int]:
    if isinstance(delta, bool) or not isinstance(delta, int):
        raise QueryError("a counter is changed by a whole number")
    if abs(delta) > _MOST:
        raise QueryError("a counter is changed by a number of at most 53 bits")
    _checked(name)
    if name in OURS or name.startswith(OUR_PREFIXES):
        raise QueryError("the library counts under this name", hint="choose another name for your counter")
    refuse(scope.spec, "counters", {"name": name})
    value: int = yield Increment(scope, name, delta)
    return value


def _read(scope: Scope, name: str) -> Plan[int]:
    _checked(name)
    counters: dict[str, int] = yield ReadCounters(scope)
    return counters.get(name, 0)


def _all(scope: Scope) -> Plan[dict[str, int]]:
    counters: dict[str, int] = yield ReadCounters(scope)
    return counters
