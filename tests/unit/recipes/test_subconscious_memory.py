"""The memory loop over a real server: one turn, many turns, other processes, outages."""

from __future__ import annotations

import copy
import inspect
import logging
import time
from itertools import pairwise
from typing import Any

import pytest

from omoide.connection import Connection
from omoide.context import AssemblyResult, ContextAssembler
from omoide.core.echo import Given
from omoide.errors import ModelError, QueryError, StoreTimeoutError, StoreUnavailableError
from omoide.fields import StringField
from omoide.ops import port
from omoide.ops.request import Batch, Observe, Put, Request
from omoide.recipes import DefaultMemory, SubconsciousMemory, statements

TEXTS = [
    "Deploys are blue-green and happen on Tuesdays",
    "The staging database listens on port 5433",
    "Ann prefers green tea in the morning",
]
ASK = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "How do we deploy the database?"},
]


class TeamMemory(DefaultMemory):
    team = StringField(default="core")


@pytest.fixture
def stored(connection: Connection) -> list[DefaultMemory]:
    made = [DefaultMemory(agent_id="a", content=text) for text in TEXTS]
    assert all(DefaultMemory.save_many(made))
    return made


@pytest.fixture
def memory(stored: list[DefaultMemory]) -> SubconsciousMemory:
    return SubconsciousMemory(agent_id="a", deadline=5.0)


def everything(agent: str = "a") -> list[str]:
    return sorted(record.content for record in DefaultMemory.query.filter(agent_id=agent).all())


def found(id: str) -> DefaultMemory:
    record = DefaultMemory.query.get(agent_id="a", memory_id=id)
    assert record is not None
    return record


# ---- recall ------------------------------------------------------------------------------------------


def test_the_block_is_a_system_message_before_the_question(memory: SubconsciousMemory) -> None:
    before = copy.deepcopy(ASK)
    messages, result = memory.inject_context(ASK)
    assert before == ASK
    assert messages[0] == ASK[0]
    assert messages[2] == ASK[1]
    assert messages[1] == {"role": "system", "content": result.formatted}
    assert {record.content for record in result.records} == set(TEXTS[:2])


def test_content_blocks_and_a_query_of_ones_own(memory: SubconsciousMemory) -> None:
    blocks = [{"role": "user", "content": [{"type": "text", "text": "tea?"}, {"type": "image", "data": "x"}]}]
    before = copy.deepcopy(blocks)
    messages, result = memory.inject_context(blocks)
    assert blocks == before
    assert [record.content for record in result.records] == [TEXTS[2]]
    assert messages[-1] == blocks[0]
    _, other = memory.inject_context(blocks, query="which port")
    assert [record.content for record in other.records] == [TEXTS[1]]


def test_nothing_asked_and_nothing_found_change_nothing(memory: SubconsciousMemory) -> None:
    for given in ([], [{"role": "assistant", "content": "hi"}], [{"role": "user", "content": "zyzzyva"}]):
        messages, result = memory.inject_context(given)
        assert messages == given
        assert messages is not given
        assert result.error is None
        assert result.metadata["matched"] == 0


# ---- capture -----------------------------------------------------------------------------------------


def test_a_turn_is_stored_as_it_is(memory: SubconsciousMemory) -> None:
    outcomes = memory.extract_memories("Mia is on call this week.\nShe lives in Oslo.")
    assert [outcome.stored for outcome in outcomes] == [True]
    assert "Mia is on call this week.\nShe lives in Oslo." in everything()


def test_an_echo_is_corroborated_and_not_stored_again(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    reply = f"{result.formatted}\n\nThe next window is on the 14th."
    outcomes = memory.extract_memories(reply, result=result)
    assert [outcome.reason for outcome in outcomes] == ["", "echo", "echo"]
    assert {outcome.duplicate_of for outcome in outcomes[1:]} == set(result.ids)
    assert everything() == sorted([*TEXTS, "The next window is on the 14th."])
    for id in result.ids:
        assert found(id).confidence == pytest.approx(1.5 / 2.5, abs=1e-4)
        assert found(id).evidence()[1:] == (1, 0)


@pytest.mark.parametrize("format", ["content", "labelled", "structured", "xml", "natural"])
def test_an_echo_of_the_whole_block_stores_nothing(stored: list[DefaultMemory], format: str) -> None:
    memory = SubconsciousMemory(agent_id="a", assembler=ContextAssembler(DefaultMemory, format=format))
    _, result = memory.inject_context(ASK)
    outcomes = memory.extract_memories(result.formatted)
    assert {outcome.reason for outcome in outcomes} == {"echo"}
    assert everything() == sorted(TEXTS)
    other = SubconsciousMemory(agent_id="a")
    other.extract_memories(result.formatted, turn_id=result.turn_id)
    assert everything() == sorted(TEXTS)


def test_a_correction_is_news(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    correction = "The staging database listens on port 6000"
    assert [outcome.stored for outcome in memory.extract_memories(correction, result=result)] == [True]
    assert found(result.ids[1]).confidence == pytest.approx(0.5, abs=1e-4)


def test_one_turn_corroborates_a_memory_once(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    for _ in range(3):
        memory.extract_memories(TEXTS[0], result=result)
    assert (
        found(result.ids[0] if found(result.ids[0]).content == TEXTS[0] else result.ids[1]).evidence()[1] == 1
    )


def test_capturing_a_turn_twice_stores_it_once(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    first = memory.extract_memories("Mia is on call.", result=result)
    again = SubconsciousMemory(agent_id="a").extract_memories("Mia is on call.", turn_id=result.turn_id)
    assert first[0].id == again[0].id
    assert again[0].repeated
    assert everything().count("Mia is on call.") == 1
    memory.extract_memories("Mia is on call.")
    memory.extract_memories("Mia is on call.", author="user")
    assert everything().count("Mia is on call.") == 3


def test_a_secret_is_refused_loudly(memory: SubconsciousMemory) -> None:
    outcomes = memory.extract_memories("the key is ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8")
    assert [(outcome.stored, outcome.reason) for outcome in outcomes] == [(False, "credential")]
    assert everything() == sorted(TEXTS)
    assert DefaultMemory.never_record_counts(agent_id="a") == {"credential": 1}


def test_long_and_broken_text_is_stored_in_pieces(connection: Connection) -> None:
    memory = SubconsciousMemory(agent_id="a", deadline=5.0)
    outcomes = memory.extract_memories("line of words \ud800 here\n" * 6_000)
    assert len(outcomes) == 2
    assert all(outcomes)
    assert memory.extract_memories(" \n\t") == []


def test_session_and_author_are_stored(connection: Connection) -> None:
    memory = SubconsciousMemory(agent_id="a", session_id="s1", author="mia")
    memory.extract_memories("I live in Oslo")
    memory.extract_memories("Nice city", author="bot")
    records = {
        record.content: record for record in DefaultMemory.query.filter(agent_id="a", session_id="s1").all()
    }
    assert records["I live in Oslo"].author == "mia"
    assert records["Nice city"].author == "bot"


def test_extractors_choose_what_to_store(connection: Connection) -> None:
    SubconsciousMemory(agent_id="a", extractor=statements).extract_memories("Hello! I prefer tea. Ok?")
    assert everything() == ["I prefer tea."]
    own = SubconsciousMemory(
        agent_id="b",
        model=TeamMemory,
        extractor=lambda text: [{"content": text, "team": "web", "tags": {"x"}}],
    )
    assert all(own.extract_memories("a fact of the web team"))
    (record,) = TeamMemory.query.filter(agent_id="b", tags="x").all()
    assert (record.team, record.agent_id) == ("web", "b")


def test_an_extractor_cannot_move_a_memory_to_another_agent(connection: Connection) -> None:
    thief = SubconsciousMemory(agent_id="a", extractor=lambda text: [{"content": text, "agent_id": "victim"}])
    assert all(thief.extract_memories("a fact"))
    assert everything("victim") == []
    assert everything("a") == ["a fact"]


def test_drafts_that_break_a_rule_do_not_take_others_along(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    drafts = [{"content": "good"}, {"content": "secret words", "colour": "red"}, {"content": 7}]
    outcomes = SubconsciousMemory(agent_id="a", extractor=lambda text: drafts).extract_memories("x")
    assert [outcome.reason for outcome in outcomes] == ["", "invalid", "invalid"]
    assert everything() == ["good"]
    assert "secret words" not in caplog.text


def test_a_broken_extractor_is_not_nothing_to_store(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def down(text: str) -> Any:
        raise RuntimeError("500: " + text)

    outcomes = SubconsciousMemory(agent_id="a", extractor=down).extract_memories("private words")
    assert [outcome.reason for outcome in outcomes] == ["extractor_failed"]
    assert "private" not in caplog.text


# ---- feedback ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "confidence"),
    [("acted", 2 / 3), ("used", 0.6), ("dismissed", 1 / 2.25), ("deferred", 0.5), ("contradicted", 0.25)],
)
def test_an_outcome_moves_confidence_once_a_turn(
    memory: SubconsciousMemory, outcome: str, confidence: float
) -> None:
    _, result = memory.inject_context(ASK)
    report = memory.report_outcomes(result, outcome)
    assert report
    assert set(report.states.values()) == {"applied"}
    again = memory.report_outcomes(result, "acted")
    assert set(again.states.values()) == {"repeated"}
    for id in result.ids:
        assert found(id).confidence == pytest.approx(confidence, abs=1e-4)
        assert found(id).access_count == 1


def test_feedback_changes_the_order(memory: SubconsciousMemory) -> None:
    twins = [DefaultMemory(agent_id="a", content=f"the cache is warm {side}") for side in ("left", "right")]
    DefaultMemory.save_many(twins)
    question = [{"role": "user", "content": "is the cache warm?"}]
    _, first = memory.inject_context(question)
    lower = first.ids[1]
    memory.report_outcomes(first, {lower: "acted", first.ids[0]: "contradicted"})
    _, second = memory.inject_context(question)
    assert second.ids[0] == lower


def test_what_is_used_together_is_linked(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    memory.report_outcomes(result, {result.ids[0]: "acted", result.ids[1]: "used"})
    assert dict(found(result.ids[0]).associations.neighbours()) == {result.ids[1]: pytest.approx(0.5)}
    _, other = memory.inject_context(ASK)
    memory.report_outcomes(other, {other.ids[0]: "acted", other.ids[1]: "dismissed"})
    assert dict(found(result.ids[0]).associations.neighbours()) == {result.ids[1]: pytest.approx(0.5)}


def test_outcomes_land_on_their_own_turn(memory: SubconsciousMemory) -> None:
    _, aborted = memory.inject_context([{"role": "user", "content": "tea"}])
    _, subagent = memory.inject_context([{"role": "user", "content": "port"}])
    memory.report_outcomes(aborted, "acted")
    memory.report_outcomes(subagent.turn_id or "", "contradicted")
    assert found(aborted.ids[0]).confidence > 0.6
    assert found(subagent.ids[0]).confidence < 0.3


def test_outcomes_of_what_was_not_given_are_missing(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context([{"role": "user", "content": "tea"}])
    other = next(
        record for record in DefaultMemory.query.filter(agent_id="a").all() if record.content == TEXTS[1]
    )
    states = memory.report_outcomes(result, {other.memory_id: "acted", "ghost": "acted"}).states
    assert set(states.values()) == {"missing"}
    assert memory.report_outcomes(AssemblyResult(), "acted").states == {}
    with pytest.raises(QueryError, match="acted"):
        memory.report_outcomes(result, "brilliant")


def test_recall_capture_and_outcome_in_three_processes(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    wire = result.to_json()
    capturing = SubconsciousMemory(agent_id="a")
    outcomes = capturing.extract_memories(f"{TEXTS[1]}\nMia is on call.", turn_id=result.turn_id)
    assert [outcome.reason for outcome in outcomes] == ["", "echo"]
    reporting = SubconsciousMemory(agent_id="a")
    report = reporting.report_outcomes(AssemblyResult.from_json(wire), "used")
    assert set(report.states.values()) == {"applied"}
    assert set(reporting.report_outcomes(result.turn_id or "", "used").states.values()) == {"repeated"}


def test_another_agent_cannot_use_a_turn(memory: SubconsciousMemory) -> None:
    _, result = memory.inject_context(ASK)
    stranger = SubconsciousMemory(agent_id="b")
    assert stranger.report_outcomes(result.turn_id or "", "contradicted").states == {}
    assert set(stranger.report_outcomes(result, "contradicted").states.values()) == {"missing"}
    assert found(result.ids[0]).confidence == pytest.approx(0.5, abs=1e-4)


# ---- cost --------------------------------------------------------------------------------------------


def test_a_whole_turn_takes_at_most_five_round_trips(
    memory: SubconsciousMemory, connection: Connection
) -> None:
    for _ in range(2):
        steps = [connection.round_trips]
        _, result = memory.inject_context(ASK)
        steps.append(connection.round_trips)
        memory.extract_memories(f"{TEXTS[0]}\nMia is on call.", result=result)
        steps.append(connection.round_trips)
        memory.report_outcomes(result, "acted")
        steps.append(connection.round_trips)
    costs = [after - before for before, after in pairwise(steps)]
    assert costs == [2, 1, 1]


def test_seven_outcomes_take_one_round_trip(memory: SubconsciousMemory, connection: Connection) -> None:
    DefaultMemory.save_many([DefaultMemory(agent_id="a", content=f"apple {n}") for n in range(7)])
    _, result = memory.inject_context([{"role": "user", "content": "apple"}])
    assert len(result.ids) == 7
    memory.report_outcomes("no such turn", {"x": "acted"})
    before = connection.round_trips
    assert len(memory.report_outcomes(result, "acted").states) == 7
    assert connection.round_trips - before == 1


def test_capture_in_another_process_takes_two_round_trips(
    memory: SubconsciousMemory, connection: Connection
) -> None:
    _, result = memory.inject_context(ASK)
    for expected in (None, 2):
        before = connection.round_trips
        SubconsciousMemory(agent_id="a").extract_memories(f"Mia {expected}", turn_id=result.turn_id)
    assert connection.round_trips - before == 2


# ---- failure -----------------------------------------------------------------------------------------


class Broken:
    """A connection whose store fails in a given way, or hangs until the deadline."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    @property
    def store(self) -> Broken:
        return self

    @property
    def astore(self) -> Any:
        return _Native(self)

    def execute(self, request: Request[Any]) -> Any:
        if self.error is not None:
            raise self.error
        time.sleep(port.remaining() or 60)
        raise StoreTimeoutError("late")


class _Native:
    def __init__(self, broken: Broken) -> None:
        self.broken = broken

    async def execute(self, request: Request[Any]) -> Any:
        return self.broken.execute(request)


FAILURES = [
    (StoreUnavailableError("down"), "unavailable"),
    (ConnectionRefusedError("down"), "unavailable"),
    (StoreTimeoutError("late"), "timeout"),
    (None, "timeout"),
]


@pytest.mark.parametrize(("error", "name"), FAILURES)
async def test_an_outage_is_reported_and_never_breaks_the_turn(
    error: Exception | None, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SubconsciousMemory(agent_id="a", deadline=0.1)
    question = [{"role": "user", "content": "private words"}]
    given = AssemblyResult(turn_id="t", items=())
    with port.using(Broken(error)), caplog.at_level(logging.WARNING, logger="omoide.recipes"):
        start = time.perf_counter()
        for messages, result in (memory.inject_context(question), await memory.ainject_context(question)):
            assert messages == question
            assert result.error == name
        for outcomes in (
            memory.extract_memories("private"),
            await memory.aextract_memories("private", result=given),
        ):
            assert [(outcome.stored, outcome.reason) for outcome in outcomes] == [(False, name)]
        reports = (memory.report_outcomes("t", "acted"), await memory.areport_outcomes("t", {"x": "acted"}))
        assert [report.error for report in reports] == [name, name]
        assert time.perf_counter() - start < 8
    assert len(caplog.records) == 6
    assert "private" not in caplog.text


def test_a_hanging_extractor_ends_with_its_deadline(connection: Connection) -> None:
    def hang(text: str) -> Any:
        time.sleep(6.0)
        return [text]

    start = time.perf_counter()
    outcomes = SubconsciousMemory(agent_id="a", extractor=hang, extractor_deadline=0.05).extract_memories("x")
    assert [outcome.reason for outcome in outcomes] == ["extractor_timeout"]
    assert time.perf_counter() - start < 4


def test_misuse_is_refused_at_once() -> None:
    for bad in ({}, {"agent_id": ""}, {"agent_id": None}, {"agent_id": "a", "position": "top"}):
        with pytest.raises(QueryError):
            SubconsciousMemory(**bad)
    with pytest.raises(QueryError):
        SubconsciousMemory(agent_id="a").extract_memories(7)  # type: ignore[arg-type]


def test_one_batch_carries_everything(memory: SubconsciousMemory, connection: Connection) -> None:
    sent: list[Request[Any]] = []

    class Watched(Broken):
        def execute(self, request: Request[Any]) -> Any:
            sent.append(request)
            return connection.store.execute(request)

    _, result = memory.inject_context(ASK)
    memory.extractor = lambda text: [text, {"content": "the key is ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"}]
    with port.using(Watched(None)):
        memory.extract_memories(f"{TEXTS[0]}\nMia is on call.", result=result)
    (batch,) = sent
    assert isinstance(batch, Batch)
    put, observe = batch.writes
    assert isinstance(put, Put)
    assert isinstance(observe, Observe)
    assert put.values["content"] == "Mia is on call."
    assert [(piece.support, piece.against) for piece in observe.evidence] == [(0.5, 0.0)]
    assert dict(observe.counters)["never_record:credential"] == 1


# ---- twins -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inject_context", "extract_memories", "report_outcomes"])
def test_twins_have_equal_signatures(name: str) -> None:
    blocking, native = getattr(SubconsciousMemory, name), getattr(SubconsciousMemory, "a" + name)
    assert inspect.signature(blocking) == inspect.signature(native)
    assert inspect.iscoroutinefunction(native)


async def test_a_turn_in_async(memory: SubconsciousMemory, connection: Connection) -> None:
    messages, result = await memory.ainject_context(ASK)
    assert len(messages) == 3
    outcomes = await memory.aextract_memories(f"{TEXTS[0]}\nMia is on call.", turn_id=result.turn_id)
    assert [outcome.reason for outcome in outcomes] == ["", "echo"]
    report = await memory.areport_outcomes(result, "acted")
    assert set(report.states.values()) == {"applied"}
    await connection.astore.close()  # type: ignore[attr-defined]


def test_given_of_nothing_is_false() -> None:
    assert not Given()
    assert not Given(frame=("x",))


# ---- code of the user ----------------------------------------------------------------------------------


def refuse_to_count(text: str, /) -> int:
    raise ValueError(text)


@pytest.mark.parametrize("counter", [refuse_to_count, lambda text: None, lambda text: -1, lambda text: "5"])
async def test_a_token_counter_that_fails_does_not_end_the_turn(
    stored: list[DefaultMemory], counter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assembler = ContextAssembler(DefaultMemory, token_counter=counter)
    memory = SubconsciousMemory(agent_id="a", assembler=assembler, deadline=5.0)
    messages, result = memory.inject_context(ASK)
    assert (messages, result.error) == (ASK, "failed")
    _, result = await memory.ainject_context(ASK)
    assert result.error == "failed"
    assert "deploy" not in caplog.text
    with pytest.raises(QueryError, match="token_counter"):
        assembler.assemble("deploy", agent_id="a")


class MoodyMemory(DefaultMemory):
    def __init__(self, **values: Any) -> None:
        if "bad" in values.get("content", ""):
            raise RuntimeError(values["content"])
        super().__init__(**values)


def test_a_class_that_fails_loses_that_memory_alone(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SubconsciousMemory(
        model=MoodyMemory, agent_id="moody", extractor=lambda text: text.split("|"), deadline=5.0
    )
    outcomes = memory.extract_memories("a good thing|a bad thing|another good thing")
    assert [outcome.reason for outcome in outcomes] == ["", "failed", ""]
    assert "bad" not in caplog.text


def test_an_extractor_of_unnamed_values_is_reported(stored: list[DefaultMemory]) -> None:
    memory = SubconsciousMemory(agent_id="a", extractor=lambda text: [{1: "x"}], deadline=5.0)  # type: ignore[dict-item,list-item,arg-type]
    (outcome,) = memory.extract_memories("something new")
    assert outcome.reason == "extractor_failed"


# ---- what cannot be meant ----------------------------------------------------------------------------


def test_recall_and_capture_go_to_one_model() -> None:
    assembler = ContextAssembler(TeamMemory)
    assert SubconsciousMemory(agent_id="a", assembler=assembler).model is TeamMemory
    with pytest.raises(ModelError, match="DefaultMemory has an assembler of TeamMemory"):
        SubconsciousMemory(agent_id="a", model=DefaultMemory, assembler=assembler)


@pytest.mark.parametrize("no_model", ["DefaultMemory", str, None])
def test_a_model_is_a_model_class(no_model: Any) -> None:
    with pytest.raises(ModelError, match="a subclass of Model"):
        ContextAssembler(no_model)


@pytest.mark.parametrize("messages", ["How do we deploy?", b"x", {"role": "user", "content": "x"}, None, 7])
def test_messages_are_a_list(memory: SubconsciousMemory, messages: Any) -> None:
    with pytest.raises(QueryError, match="messages is a list"):
        memory.inject_context(messages)


@pytest.mark.parametrize("turn", [None, "", 7])
def test_a_report_names_a_turn(memory: SubconsciousMemory, turn: Any) -> None:
    with pytest.raises(QueryError, match="turn is"):
        memory.report_outcomes(turn, "acted")


def test_a_turn_that_nobody_knows_is_told(memory: SubconsciousMemory) -> None:
    report = memory.report_outcomes("no such turn", "acted")
    assert (bool(report), report.error, report.states) == (False, "unknown_turn", {})
