"""Which node has which slot, and everything else a wire knows without a socket.

A single server and a sentinel's primary are one node that has every slot; a cluster has a list
of 16,384 nodes, read from CLUSTER SLOTS and corrected by MOVED replies.
"""

from __future__ import annotations

import binascii
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

import hiredis

from omoide import settings
from omoide.errors import StoreError, StoreUnavailableError
from omoide.stores.redis.capabilities import PROBE, Capabilities, read_capabilities
from omoide.stores.redis.exchange import Command, Deadline
from omoide.stores.redis.translate import reply_error, server_reply
from omoide.stores.redis.url import Address, Target, show_address

__all__ = ["Topology", "Traffic", "connection_options", "key_slot", "reply_reader"]

NOT_YET: Final[Any] = object()
"""What a reply reader gives while a reply is incomplete."""

WHO: Final = ("INFO", "server")
"""What a new connection asks: its answer names the process."""

PROBE_COMMANDS: Final = tuple(Command(args, b"", idempotent=True) for args in PROBE)
SLOTS_COMMAND: Final = Command(("CLUSTER", "SLOTS"), b"", idempotent=True)


def key_slot(key: bytes) -> int:
    """Slot of a key, 0..16383: CRC16 (XMODEM) of what the first non-empty `{...}` holds, else of all."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return binascii.crc_hqx(key, 0) & 16383


def reply_reader() -> Any:
    """A `hiredis.Reader`; error replies become exception objects, in their place."""
    return hiredis.Reader(notEnoughData=NOT_YET, replyError=server_reply)


def connection_options(target: Target, address: Address, left: float, *, sentinel: bool) -> dict[str, Any]:
    """Keyword arguments of a redis-py connection class, sync or async.

    RESP2 spares the HELLO of RESP3, and no library name is sent: a new connection costs no round
    trip besides AUTH and SELECT, and asks nothing a restricted user may not do.
    """
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    options: dict[str, Any] = dict(target.sentinel_options if sentinel else target.options)
    limit = options.get("socket_connect_timeout") or settings.DEFAULT_TIMEOUT
    options.update(
        protocol=2,
        retry=Retry(NoBackoff(), 0),
        decode_responses=False,
        socket_timeout=left,
        socket_connect_timeout=min(limit, left),
    )
    options.update(_no_library_name())
    if address[1] == 0:
        options["path"] = address[0]
    else:
        options["socket_keepalive"] = True
        options["host"], options["port"] = address
    return options


def _no_library_name() -> Mapping[str, None]:
    import inspect

    from redis.connection import AbstractConnection

    names = inspect.signature(AbstractConnection.__init__).parameters
    return {"driver_info": None} if "driver_info" in names else {"lib_name": None, "lib_version": None}


class Traffic:
    """Exact counts of what went over the wire, from any thread.

    One round trip is one batch of bytes to one node and its replies; a call to three nodes is
    three. Connecting (AUTH, SELECT) and asking sentinels are not counted; probing the server and
    reading the slot map are.

    `history` goes up when a node turns out to be another server process than before: after a
    restart or a failover writes may be lost, so that nothing read before can be relied on.
    """

    def __init__(self) -> None:
        self.history = 0
        self._processes: dict[Address, object] = {}
        self.round_trips = 0
        self.bytes_out = 0
        self.bytes_in = 0
        self._lock = threading.Lock()

    def add(self, sent: int, received: int) -> None:
        with self._lock:
            self.round_trips += 1
            self.bytes_out += sent
            self.bytes_in += received

    def meet(self, node: Address, reply: Any) -> None:
        """Take the answer of a new connection to INFO server: does the same process run there?

        One that does not tell counts as another.
        """
        text = reply if isinstance(reply, bytes) else b""
        run = next((line for line in text.splitlines() if line.startswith(b"run_id:")), object())
        with self._lock:
            if self._processes.get(node) != run:
                self._processes[node] = run
                self.history += 1

    def after_fork(self) -> None:
        """A lock held by another thread of the parent must not stay held in the child."""
        self._lock = threading.Lock()


class Topology:
    """Nodes of a target. Not a lock in sight: every change is one assignment."""

    def __init__(self, target: Target) -> None:
        if target.kind == "embedded":
            raise StoreError("an embedded store is connected to through the socket of its server")
        self.target = target
        self.cluster = target.kind == "cluster"
        self.capabilities: Capabilities | None = None
        self._home: Address | None = target.addresses[0] if target.kind == "single" else None
        self._slots: list[Address | None] = []
        self._hint: Address | None = None
        self.suspects: set[Address] = set()

    @property
    def patient(self) -> bool:
        """Whether another node may take over one that is gone."""
        return self.cluster or self.target.kind == "sentinel"

    @property
    def ready(self) -> bool:
        """Whether `route` knows every node it needs and the server was found fit."""
        return self.capabilities is not None

    @property
    def home(self) -> Address | None:
        """The one node of a single server or sentinel service; None: a sentinel is to be asked."""
        return self._home

    def found_primary(self, reply: Any) -> Address | None:
        """Take a sentinel's answer; None when it does not know the service."""
        if isinstance(reply, list) and len(reply) == 2:
            self._home = (reply[0].decode(), int(reply[1]))
            return self._home
        return None

    def lost_primary(self) -> None:
        """Have the sentinels asked again."""
        if self.target.kind == "sentinel":
            self._home = None

    def route(self, slot_key: bytes) -> Address:
        """Node of a key."""
        if not self.cluster:
            if self._home is None:
                raise StoreUnavailableError(f"no sentinel knows the primary {self.target.service}")
            return self._home
        node = self._slots[key_slot(slot_key)] if self._slots else None
        if node is None:
            raise StoreUnavailableError("no node of the cluster serves the slot", hint="see CLUSTER INFO")
        return node

    def moved(self, slot: int, node: Address) -> None:
        """Correct one slot; the node that it moved to is asked first for the whole map."""
        self._hint = node
        if self._slots:
            self._slots[slot] = node

    def sources(self) -> list[Address]:
        """Nodes to ask for the slot map, most promising first."""
        known = [self._hint, *dict.fromkeys(self._slots), *self.target.addresses]
        nodes = [node for node in dict.fromkeys(known) if node is not None]
        return sorted(nodes, key=self.suspects.__contains__)

    def timed_out(self, nodes: Iterable[Address]) -> None:
        """Ask others about the map before the next call: these nodes may be gone for good."""
        if self.patient:
            self.suspects.update(nodes)

    def connecting(self, deadline: Deadline) -> Deadline:
        """Time to connect in: with somewhere else to go, not all there is."""
        return Deadline.after(deadline.left() / 3) if self.patient else deadline

    def primaries(self) -> list[Address]:
        """Every node that has slots, or the only one."""
        if not self.cluster:
            return [self.route(b"")]
        return sorted({node for node in self._slots if node is not None})

    def take_slots(self, reply: Any, asked: Address) -> None:
        """Take a reply to CLUSTER SLOTS; a node that does not know its own host is the one asked."""
        if isinstance(reply, Exception):
            raise reply_error(reply)
        slots: list[Address | None] = [None] * 16384
        for start, end, primary, *_replicas in reply:
            node = ((primary[0] or b"").decode() or asked[0], int(primary[1]))
            slots[start : end + 1] = [node] * (end - start + 1)
        if not reply:
            raise StoreUnavailableError("the cluster has no slots assigned", hint="see CLUSTER INFO")
        self._slots = slots
        self.cluster = True

    def take_probe(self, replies: list[Any], node: Address) -> Capabilities:
        """Take the replies to `PROBE_COMMANDS`."""
        return read_capabilities(replies, show_address(node))
