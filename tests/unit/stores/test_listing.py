"""Keys are found while slots move, each once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omoide.errors import StoreUnavailableError
from omoide.stores.redis.listing import list_keys

A, B = ("a", 1), ("b", 2)


class Cluster:
    """Two nodes that hold slots and keys, and what happens to them after each scan."""

    def __init__(self, *events: Callable[[Cluster], None]) -> None:
        self.slots = {A: "0-1", B: "2-3"}
        self.keys: dict[Any, set[bytes]] = {A: {b"k1"}, B: {b"k2"}}
        self.events = list(events)
        self.scans: list[Any] = []

    def drive(self, *, cluster: bool = True) -> list[bytes]:
        looks = list_keys([b"k*"], cluster=cluster)
        answer: Any = None
        try:
            while True:
                look = looks.send(answer)
                answer = [A, B] if look is None else self.answer(*look)
        except StopIteration as stop:
            return stop.value

    def answer(self, node: Any, command: Any) -> Any:
        if command.args[0] == b"CLUSTER":
            other = "x host master - 0 0 1 connected 9\n"
            return f"{other}y host myself,master - 0 0 1 connected {self.slots[node]}\n".encode()
        self.scans.append(node)
        reply = [b"0", sorted(self.keys[node])]
        if self.events:
            self.events.pop(0)(self)
        return reply


def nothing(cluster: Cluster) -> None:
    pass


def move(cluster: Cluster) -> None:
    """A key of an open slot goes from b to a."""
    cluster.keys[A] |= {b"k2"}
    cluster.keys[B] -= {b"k2"}


def open_slot(cluster: Cluster) -> None:
    cluster.slots[B] = "2-3 [3->-a]"


def own(cluster: Cluster) -> None:
    cluster.slots = {A: "0-1 3", B: "2"}


def test_a_quiet_cluster_is_scanned_once() -> None:
    cluster = Cluster()
    assert sorted(cluster.drive()) == [b"k1", b"k2"]
    assert cluster.scans == [A, B]


def test_one_server_is_asked_for_nothing_but_its_keys() -> None:
    cluster = Cluster()
    assert sorted(cluster.drive(cluster=False)) == [b"k1", b"k2"]


def test_a_key_that_moves_between_two_scans_is_found() -> None:
    cluster = Cluster(move)
    open_slot(cluster)
    assert sorted(cluster.drive()) == [b"k1", b"k2"]
    assert cluster.scans == [A, B, B, A]


def test_a_key_whose_slot_changes_hands_during_the_scan_is_found() -> None:
    cluster = Cluster(lambda one: (move(one), own(one)))
    assert sorted(cluster.drive()) == [b"k1", b"k2"]


def test_slots_that_never_rest_are_reported() -> None:
    def turn(cluster: Cluster) -> None:
        cluster.slots = {A: f"{len(cluster.scans)}", B: "2"}

    with pytest.raises(StoreUnavailableError, match="faster"):
        Cluster(*[turn] * 100).drive()
