"""Plans of the memory loop: what a turn was given, what came of it.

    outcome       evidence        touched   linked with the others of the turn
    acted         for 1.0         yes       yes
    used          for 0.5         yes       yes
    dismissed     against 0.25    no        no
    deferred      none            no        no
    contradicted  against 2.0     no        no

The numbers are a model's `Defaults`; what has evidence for it is touched and linked. With a turn
id each record takes one outcome, once; the store says `repeated` to the rest. The delivery has
counted an access already, so an outcome counts one only where there was no delivery.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from omoide.errors import QueryError
from omoide.model.defaults import Defaults
from omoide.model.partition import refuse, refuse_ids, text_rule
from omoide.model.schema import Scope
from omoide.ops.request import Evidence, Observe, ObserveReply, ReadTurn, Record
from omoide.ops.run import Plan

_LINKED = 32
_TURN = re.compile("[0-9a-f]{32}")
"""A turn id as omoide makes them."""


def weights(outcome: str, defaults: Defaults) -> tuple[float, float]:
    """Evidence (for, against) of an outcome.

    Raises:
        QueryError: an outcome that the defaults do not name.
    """
    found = defaults.outcomes.get(outcome) if isinstance(outcome, str) else None
    if found is None:
        raise QueryError(f"no such outcome; there are {', '.join(sorted(defaults.outcomes))}")
    return found


def evidence(outcomes: Mapping[str, str], defaults: Defaults, *, delivered: bool) -> tuple[Evidence, ...]:
    """The evidence of outcomes by id; QueryError for an unknown outcome."""
    pieces = []
    for id, outcome in outcomes.items():
        support, against = weights(outcome, defaults)
        good = support > 0.0
        pieces.append(Evidence(id, support, against, touch=good, access=good and not delivered))
    return tuple(pieces)


def refuse_turn(scope: Scope, call: str, turn: str | None, ids: Iterable[str] = ()) -> None:
    """Raise PolicyError for a turn id of the caller's own, or an id, that the firewall keeps out.

    QueryError for one that is no text a store can hold.
    """
    ids = tuple(ids)
    for what, text in (*(("an id", one) for one in ids), ("turn", turn or "")):
        rule = text_rule(text)
        if rule is not None:
            raise QueryError(f"{scope.spec.name}.{call}: {what} {rule}")
    refuse_ids(scope.spec, call, (one for one in ids if one))
    if turn and not _TURN.fullmatch(turn):
        refuse(scope.spec, call, {"turn": turn})


def observe(scope: Scope, outcomes: Mapping[str, str], defaults: Defaults, turn: str | None) -> Observe:
    """One request for the outcomes of a turn; the first 32 records put to use become linked."""
    pieces = evidence(outcomes, defaults, delivered=turn is not None)
    together = tuple(piece.id for piece in pieces if piece.support > 0.0)[:_LINKED]
    several = len(together) > 1 or together == ("",)
    link = defaults.link_weight if several and scope.spec.graph else 0.0
    return Observe(scope, pieces, turn, together if link and together != ("",) else (), link)


def report(
    scope: Scope,
    outcome: str | Mapping[str, str],
    ids: Iterable[str] | None,
    defaults: Defaults,
    turn: str | None,
) -> Plan[dict[str, str]]:
    """Apply one outcome to all of a turn, or one to each; id -> `applied`, `missing`, `repeated`.

    Without `ids`, one outcome goes to every record of the turn. Cost: one round trip.
    """
    if isinstance(outcome, str):
        outcome = dict.fromkeys(("",) if ids is None and turn else ids or (), outcome)
    if not outcome:
        return {}
    reply: ObserveReply = yield observe(scope, outcome, defaults, turn)
    return dict(zip(reply.ids, reply.states, strict=True))


def read(scope: Scope, turn: str) -> Plan[tuple[Record, ...]]:
    """The records a turn was given that are still there; none for a turn that is not known."""
    given: tuple[Record, ...] | None = yield ReadTurn(scope, turn)
    return given or ()


def corroboration(ids: Iterable[str], defaults: Defaults) -> tuple[Evidence, ...]:
    """Evidence for memories that a turn's text repeats. It is no outcome: that of the turn stays open."""
    return tuple(Evidence(id, support=defaults.echo_support) for id in ids)


__all__ = ["corroboration", "evidence", "observe", "read", "refuse_turn", "report", "weights"]
