"""The memory loop around a model's turn: recall before it, capture after it, learn from it.

    messages ──inject_context──▶ messages + block, result      2 round trips (3 when cold)
    reply    ──extract_memories─▶ outcomes                     1 (2 in another process)
    verdict  ──report_outcomes──▶ report                       1

Three rules hold for every call. It never breaks or delays the turn: it has a deadline, and a
failure comes back as a value. An outage is reported as an outage (`result.error`,
`outcome.reason`, `report.error`), never as "no memories". And a turn is named by its id, not by
what this object did last: recall, capture and outcome may run in different processes, overlap
with other turns or be repeated, and still land on the right records.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omoide.context import AssemblyResult, ContextAssembler
from omoide.core.echo import Given, Guard, Sifted
from omoide.errors import ModelError, OmoideError, QueryError
from omoide.model.instance import spec_of
from omoide.model.partition import checked_seconds, scope_of_call
from omoide.ops import port
from omoide.ops import turn as turns
from omoide.ops.run import Plan, arun, run
from omoide.ops.save import SaveOutcome
from omoide.recipes import capture
from omoide.recipes import messages as chat
from omoide.recipes.default_memory import DefaultMemory
from omoide.recipes.extracting import ExtractionError, aextract, extract
from omoide.recipes.extractors import Draft, Extractor, raw_turn
from omoide.recipes.reports import UNKNOWN_TURN, OutcomeReport, name_failure
from omoide.types import Seconds

if TYPE_CHECKING:
    from omoide.ops.model import Model

_log = logging.getLogger("omoide.recipes")
_FAILURES = (OmoideError, OSError, TimeoutError)


class SubconsciousMemory:
    """Memory that works beside a conversation of one agent.

    Args:
        model: A Model class; default: the assembler's, else `DefaultMemory`.
        assembler: How to recall, from the same model; default `ContextAssembler(model)`.
        extractor: What of a text to store; default `raw_turn`, the text as it is.
        deadline: Seconds for the store in each call.
        extractor_deadline: Seconds for an extractor of your own.
        session_id, author: Stored with what is captured, where the model has such fields, and part of the
            partition where they are.
        position: Where the block goes: `before_user`, `start` or `end`.
        partition: The model's partition fields, such as `agent_id="a"`.
    Raises:
        QueryError: a partition field is missing or empty.
        ModelError: `model` is none, or not the assembler's.
    """

    def __init__(
        self,
        *,
        model: type[Model] | None = None,
        assembler: ContextAssembler | None = None,
        extractor: Extractor | None = None,
        deadline: Seconds | None = None,
        extractor_deadline: Seconds = 30.0,
        session_id: str | None = None,
        author: str | None = None,
        position: str = "before_user",
        **partition: Any,
    ) -> None:
        self.assembler = assembler or ContextAssembler(model or DefaultMemory)
        self.model = model = model or self.assembler.model
        self.spec = spec_of(model)
        if self.assembler.model is not model:
            raise ModelError(
                f"{type(self).__name__} of {self.spec.name} has an assembler of {self.assembler.spec.name}",
                hint="recall and capture go to one model: leave `model` out, or give both the same",
            )
        named = {"session_id": session_id, "author": author}
        partition |= {name: value for name, value in named.items() if name in self.spec.partition_by}
        self.scope = scope_of_call(self.spec, partition, type(self).__name__)
        self.defaults = model.__omoide_defaults__
        self.partition = partition
        self.extractor = extractor or raw_turn
        if not callable(self.extractor):
            raise QueryError("extractor is a function of a text")
        self.deadline = self.defaults.deadline if deadline is None else checked_seconds("deadline", deadline)
        self.extractor_deadline = checked_seconds("extractor_deadline", extractor_deadline)
        self.session_id = session_id
        self.author = author
        if position not in chat.POSITIONS:
            raise QueryError(f"position is one of {', '.join(chat.POSITIONS)}")
        self.position = position
        self._last: AssemblyResult | None = None

    # ---- recall ------------------------------------------------------------------------------

    def inject_context(
        self, messages: Sequence[Any], query: str | None = None
    ) -> tuple[list[Any], AssemblyResult]:
        """Recall for the last user message, and put what was found before it.

        Args:
            messages: Mappings with `role` and `content` (text or blocks); never changed.
            query: What to recall for, instead of the last user message.
        Returns:
            A new list, and the result; on an outage the messages as they were and
            `result.error`, `unavailable`, `timeout` or `failed`.
        Cost: at most 3 round trips, at most `deadline` seconds.
        """
        question = self._question(messages, query)
        if question is None:
            return list(messages), self._keep(AssemblyResult(metadata={"matched": 0, "no_query": True}))
        try:
            with port.deadline(self.deadline):
                result = self.assembler.assemble(question, **self.partition)
        except _FAILURES as error:
            result = _outage(error)
        return chat.insert(messages, result.formatted, self.position), self._keep(result)

    async def ainject_context(
        self, messages: Sequence[Any], query: str | None = None
    ) -> tuple[list[Any], AssemblyResult]:
        """Async twin of `inject_context`."""
        question = self._question(messages, query)
        if question is None:
            return list(messages), self._keep(AssemblyResult(metadata={"matched": 0, "no_query": True}))
        try:
            with port.deadline(self.deadline):
                result = await self.assembler.aassemble(question, **self.partition)
        except _FAILURES as error:
            result = _outage(error)
        return chat.insert(messages, result.formatted, self.position), self._keep(result)

    # ---- capture -----------------------------------------------------------------------------

    def extract_memories(
        self,
        text: str,
        *,
        result: AssemblyResult | None = None,
        turn_id: str | None = None,
        author: str | None = None,
    ) -> list[SaveOutcome]:
        """Store what a text of this turn says, except what it repeats of the memories it was given.

        Args:
            text: A reply or a message.
            result: What the turn was given; default: by `turn_id`, else this object's last recall.
            turn_id: Names the turn when its result is in another process. With a turn, capturing
                the same text again stores nothing new.
            author: Who wrote it; default: this object's author.
        Returns:
            One outcome per memory, true when stored. A repeated memory is corroborated and gives a
            falsy outcome with reason `echo`, its id in `duplicate_of`. An outage gives one falsy
            outcome: `unavailable`, `timeout`, `failed`, `extractor_failed` or `extractor_timeout`.
        Raises:
            PolicyError: the firewall keeps a turn id of your own out of commands.
        Cost: 1 round trip, 2 by `turn_id` of another process.
        """
        text = _checked(text)
        turns.refuse_turn(self.scope, "extract_memories", turn_id)
        try:
            given = self._given(result, turn_id)
            if given is None:
                given = self._run(capture.read_given(self.model, self.scope, turn_id or ""))
            found = self._sift(text, given)
            drafts = extract(self.extractor, found.news, self.extractor_deadline) if found.news else []
            outcomes: list[SaveOutcome] = self._run(self._write(found, drafts, result, turn_id, author))
            return outcomes
        except (*_FAILURES, ExtractionError) as error:
            return [_lost(error)]

    async def aextract_memories(
        self,
        text: str,
        *,
        result: AssemblyResult | None = None,
        turn_id: str | None = None,
        author: str | None = None,
    ) -> list[SaveOutcome]:
        """Async twin of `extract_memories`."""
        text = _checked(text)
        turns.refuse_turn(self.scope, "extract_memories", turn_id)
        try:
            given = self._given(result, turn_id)
            if given is None:
                given = await self._arun(capture.read_given(self.model, self.scope, turn_id or ""))
            found = self._sift(text, given)
            drafts = await aextract(self.extractor, found.news, self.extractor_deadline) if found.news else []
            plan = self._write(found, drafts, result, turn_id, author)
            outcomes: list[SaveOutcome] = await self._arun(plan)
            return outcomes
        except (*_FAILURES, ExtractionError) as error:
            return [_lost(error)]

    # ---- feedback ----------------------------------------------------------------------------

    def report_outcomes(self, turn: AssemblyResult | str, outcome: str | Mapping[str, str]) -> OutcomeReport:
        """Tell what came of the memories a turn was given.

        Args:
            turn: The result of the recall, or its turn id.
            outcome: `acted`, `used`, `dismissed`, `deferred` or `contradicted`, for all of them or
                by id. Each record takes one outcome a turn; more are `repeated`.
        Returns:
            A report per id; false, with `error` of `unknown_turn`, for a turn id that names no turn, or
            one over a day old. A result without a turn id (`track=False`, or a delivery that could
            not be noted) cannot tell one report from the next: each counts.
        Raises:
            QueryError: an outcome that is none of these, or neither a result nor a turn id.
            PolicyError: the firewall keeps an id of your own out of commands.
        Cost: 1 round trip.
        """
        plan = self._report(turn, outcome)
        try:
            return _reported(self._run(plan), turn)
        except _FAILURES as error:
            return _unreported(error)

    async def areport_outcomes(
        self, turn: AssemblyResult | str, outcome: str | Mapping[str, str]
    ) -> OutcomeReport:
        """Async twin of `report_outcomes`."""
        plan = self._report(turn, outcome)
        try:
            return _reported(await self._arun(plan), turn)
        except _FAILURES as error:
            return _unreported(error)

    # ---- shared ------------------------------------------------------------------------------

    def _run(self, plan: Plan[Any]) -> Any:
        with port.deadline(self.deadline):
            return run(plan, port.current().store)

    async def _arun(self, plan: Plan[Any]) -> Any:
        with port.deadline(self.deadline):
            return await arun(plan, port.current().astore)

    def _question(self, messages: Sequence[Any], query: str | None) -> str | None:
        """What to recall for; None when nobody asked anything."""
        if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
            raise QueryError(f"messages is a list of messages, not a {type(messages).__name__}")
        if query is not None:
            return query
        position = chat.last_user(messages)
        return None if position is None else chat.text_of(messages[position])

    def _keep(self, result: AssemblyResult) -> AssemblyResult:
        self._last = result
        return result

    def _given(self, result: AssemblyResult | None, turn_id: str | None) -> Given | None:
        """What the turn was given; None when only the store knows it."""
        if result is None and self._last is not None and turn_id in (None, self._last.turn_id):
            result = self._last
        if result is not None:
            return capture.given_of(result)
        return Given() if turn_id is None else None

    def _sift(self, text: str, given: Given) -> Sifted:
        """What of a text is news."""
        if not given or self.spec.text is None:
            return Sifted(text if text.strip() else "", ())
        return Guard(given, self.spec.text.analyzer.terms, self.defaults.echo_cover).sift(text)

    def _write(
        self,
        found: Sifted,
        drafts: list[Draft],
        result: AssemblyResult | None,
        turn_id: str | None,
        author: str | None,
    ) -> Plan[list[SaveOutcome]]:
        """The plan that stores drafts and corroborates what was repeated: one batch."""
        turn_id = turn_id or (result.turn_id if result else None)
        source = capture.Source(self.partition, self.session_id, author or self.author, turn_id)
        ready = capture.ready(self.model, self.spec, drafts, source)
        return capture.write(self.scope, ready, found.echoed, turn_id, self.defaults)

    def _report(self, result: AssemblyResult | str, outcome: str | Mapping[str, str]) -> Plan[dict[str, str]]:
        """The plan of a report; a bad outcome is refused before it starts."""
        if not isinstance(outcome, str | Mapping):
            raise QueryError("outcome is one for all memories, or one by id")
        for name in (outcome,) if isinstance(outcome, str) else outcome.values():
            turns.weights(name, self.defaults)
        if not isinstance(result, AssemblyResult) and not (isinstance(result, str) and result):
            raise QueryError("turn is the result of a recall, or its turn id")
        ids = () if isinstance(outcome, str) else outcome
        turn_id = result.turn_id if isinstance(result, AssemblyResult) else result
        turns.refuse_turn(self.scope, "report_outcomes", turn_id, ids)
        if isinstance(result, AssemblyResult):
            return turns.report(self.scope, outcome, result.ids, self.defaults, result.turn_id)
        return turns.report(self.scope, outcome, None, self.defaults, result)


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise QueryError(f"a text is a string, not {type(text).__name__}")
    return text


def _reported(states: Mapping[str, str], turn: AssemblyResult | str) -> OutcomeReport:
    """A report; every turn that was noted has records, so one without any is not known."""
    return OutcomeReport(states, UNKNOWN_TURN if isinstance(turn, str) and not states else None)


def _outage(error: BaseException) -> AssemblyResult:
    """The result of a recall that failed, with a warning that names the kind and no content."""
    name = name_failure(error)
    _log.warning("recall failed, the turn goes on without memories: %s (%s)", name, type(error).__name__)
    return AssemblyResult(metadata={"error": name})


def _lost(error: BaseException) -> SaveOutcome:
    name, kind = name_failure(error), type(error).__name__
    if isinstance(error, ExtractionError):
        name, kind = error.reason, error.raised or kind
    _log.warning("capture failed, nothing is stored for certain: %s (%s)", name, kind)
    return SaveOutcome(False, reason=name)


def _unreported(error: BaseException) -> OutcomeReport:
    name = name_failure(error)
    _log.warning("outcomes were not reported for certain: %s (%s)", name, type(error).__name__)
    return OutcomeReport(error=name)


__all__ = ["SubconsciousMemory"]
