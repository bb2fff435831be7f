"""The decisions of a call, without a socket."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from omoide.errors import StoreError, StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.exchange import (
    Command,
    Deadline,
    Forget,
    Outcome,
    Pause,
    Refresh,
    Round,
    exchange,
)
from omoide.stores.redis.translate import LoadingError, RefusedError, server_reply

A, B = ("a", 1), ("b", 2)


class Call:
    """Drives one exchange by hand."""

    def __init__(self, *commands: Command, seconds: float = 5.0, patient: bool = False) -> None:
        self.moves: list[tuple[int, tuple[str, int]]] = []
        self.plan: Generator[Any, Any, list[Any]] = exchange(
            commands,
            lambda key: B if key == b"b" else A,
            lambda slot, node: self.moves.append((slot, node)),
            Deadline.after(seconds),
            patient=patient,
        )
        self.step: Any = next(self.plan)

    def answer(self, *outcomes: Outcome) -> list[type]:
        """Answer a round; the kinds of steps up to the next round."""
        kinds = []
        self.step = self.plan.send(list(outcomes))
        while not isinstance(self.step, Round):
            kinds.append(type(self.step))
            self.step = self.plan.send(None)
        return kinds

    def finish(self, *outcomes: Outcome) -> list[Any]:
        with pytest.raises(StopIteration) as stop:
            self.plan.send(list(outcomes))
        result: list[Any] = stop.value.value
        return result


def get(key: str, *, idempotent: bool = False) -> Command:
    return Command(("GET", key), key.encode(), idempotent)


def replies(*values: Any) -> Outcome:
    return Outcome([server_reply(value) if isinstance(value, str) else value for value in values])


def lost(*values: Any, sent: bool = True, error: StoreError | None = None) -> Outcome:
    return Outcome(list(values), error or StoreUnavailableError("gone"), sent)


def test_one_send_per_node_and_replies_in_the_order_of_the_call() -> None:
    call = Call(get("a"), get("b"), get("c"))
    assert [(send.node, send.indices) for send in call.step.sends] == [(A, [0, 2]), (B, [1])]
    assert call.finish(replies(b"1", b"3"), replies(b"2")) == [b"1", b"2", b"3"]


def test_error_replies_stay_in_their_place() -> None:
    result = Call(get("a"), get("c")).finish(replies("WRONGTYPE no", b"1"))
    assert str(result[0]) == "WRONGTYPE no"
    assert result[1] == b"1"


def test_moved_refreshes_the_map_and_sends_only_that_command_again() -> None:
    call = Call(get("a"), get("c"))
    assert call.answer(replies("MOVED 7 new:3", b"1")) == [Refresh]
    assert call.moves == [(7, ("new", 3))]
    assert [send.indices for send in call.step.sends] == [[0]]
    assert call.finish(replies(b"0")) == [b"0", b"1"]


def test_moved_without_a_host_means_the_node_that_was_asked() -> None:
    call = Call(get("b"))
    call.answer(replies("MOVED 7 :3"))
    assert call.moves == [(7, ("b", 3))]


def test_ask_is_waited_out_where_the_partition_was() -> None:
    call = Call(get("a"), get("c"))
    assert call.answer(replies("ASK 7 new:3", b"1")) == [Pause]
    assert [(send.node, send.indices) for send in call.step.sends] == [(A, [0])]
    assert call.finish(replies(b"0")) == [b"0", b"1"]


def test_nodes_that_do_not_agree_yet_are_given_time() -> None:
    call = Call(get("a"))
    assert call.answer(replies("MOVED 7 b:2")) == [Refresh]
    for node in ("a:1", "b:2", "a:1"):
        assert Pause in call.answer(replies(f"MOVED 7 {node}"))
    assert call.finish(replies(b"1")) == [b"1"]


def test_endless_redirections_end() -> None:
    call = Call(get("a"))

    def redirect_for_ever() -> None:
        for _ in range(100):
            call.answer(Outcome([server_reply("MOVED 7 new:3")] * call.step.sends[0].replies))

    with pytest.raises(StoreUnavailableError, match="redirecting"):
        redirect_for_ever()


@pytest.mark.parametrize(
    "reply", ["LOADING x", "CLUSTERDOWN x", "TRYAGAIN x", "MASTERDOWN x", "BUSY a script"]
)
def test_what_was_not_executed_is_sent_again_after_a_pause(reply: str) -> None:
    call = Call(get("a"))
    assert Pause in call.answer(replies(reply))
    assert Pause in call.answer(replies(reply))
    assert call.finish(replies(b"1")) == [b"1"]


def test_waiting_ends_at_the_deadline_with_the_reason() -> None:
    call = Call(get("a"), seconds=0.005)
    with pytest.raises(StoreUnavailableError, match="loading"):
        call.answer(replies("LOADING x"))


def test_readonly_forgets_the_connections_of_the_node() -> None:
    call = Call(get("a"))
    assert call.answer(replies("READONLY x")) == [Forget, Pause, Refresh]
    assert call.finish(replies(b"1")) == [b"1"]


@pytest.mark.parametrize("patient", [False, True])
def test_a_lost_connection_is_retried_once_and_only_for_idempotent_commands(patient: bool) -> None:
    with pytest.raises(StoreUnavailableError):
        Call(get("a"), patient=patient).answer(lost())
    with pytest.raises(StoreUnavailableError):
        Call(get("a", idempotent=True), get("c"), patient=patient).answer(lost())
    call = Call(get("a", idempotent=True), get("c", idempotent=True), patient=patient)
    call.answer(lost(b"0"))
    assert [send.indices for send in call.step.sends] == [[1]]
    first, second = call.finish(lost())
    assert first == b"0"
    assert isinstance(second, StoreUnavailableError)


def test_no_connection_is_tried_twice_for_one_server_and_longer_where_a_failover_helps() -> None:
    call = Call(get("a"))
    call.answer(lost(sent=False))
    with pytest.raises(StoreUnavailableError):
        call.answer(lost(sent=False))
    call = Call(get("a"), patient=True)
    for _ in range(5):
        assert Refresh in call.answer(lost(sent=False))
    assert call.finish(replies(b"1")) == [b"1"]


def test_a_timeout_and_a_refused_user_are_final() -> None:
    with pytest.raises(StoreTimeoutError):
        Call(get("a", idempotent=True), patient=True).answer(lost(error=StoreTimeoutError("x")))
    with pytest.raises(RefusedError):
        Call(get("a", idempotent=True), patient=True).answer(lost(error=RefusedError("x"), sent=False))


def test_a_server_that_loads_while_connecting_is_waited_for() -> None:
    call = Call(get("a"))
    for _ in range(4):
        call.answer(lost(error=LoadingError("x"), sent=False))
    assert call.finish(replies(b"1")) == [b"1"]


def test_refused_credentials_in_a_reply_are_raised() -> None:
    with pytest.raises(StoreUnavailableError):
        Call(get("a")).answer(replies("NOAUTH Authentication required."))


def test_trouble_with_one_node_leaves_what_the_other_answered() -> None:
    call = Call(get("a"), get("b"), get("c"))
    first, second, third = call.finish(lost(b"1"), replies(b"2"))
    assert (first, second) == (b"1", b"2")
    assert isinstance(third, StoreUnavailableError)


def test_a_slot_that_keeps_moving_leaves_what_other_slots_answered() -> None:
    call = Call(get("a"), get("b"), seconds=0.005)
    moving, other = call.finish(replies("ASK 7 new:3"), replies(b"2"))
    assert isinstance(moving, StoreUnavailableError)
    assert other == b"2"
