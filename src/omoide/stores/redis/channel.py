"""One connected socket, and how it gets connected.

Plain TCP and unix sockets are opened here, AUTH and SELECT going out in one round trip; TLS, with
all its options, is redis-py's. So a short-lived process that talks to a local server never
imports redis-py, which alone takes longer than a recall. Bytes go out with `sendall` and come
in through a hiredis reader, each under the deadline of the call.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from typing import Any

from hiredis import HiredisError

from omoide import settings
from omoide.errors import StoreError, StoreUnavailableError
from omoide.stores.redis.exchange import Argument, Deadline, pack
from omoide.stores.redis.topology import NOT_YET, connection_options, reply_reader
from omoide.stores.redis.translate import connection_error
from omoide.stores.redis.url import Address, Target, show_address

__all__ = ["Channel", "dial"]

_HANG_UP = select.POLLIN | getattr(select, "POLLRDHUP", 0) if hasattr(select, "poll") else 0


def dial(target: Target, node: Address, deadline: Deadline, *, sentinel: bool = False) -> Channel:
    """Connect to a node and log in.

    Raises:
        StoreUnavailableError, StoreTimeoutError: no server, none in time, or it refuses the user.
    """
    options = target.sentinel_options if sentinel else target.options
    if target.tls:
        return _dial_tls(target, node, deadline, sentinel)
    limit = float(options.get("socket_connect_timeout") or settings.DEFAULT_TIMEOUT)
    try:
        channel = Channel(_connect(node, deadline, limit))
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise connection_error(error, show_address(node)) from None
    if greeting := list(_greeting(options)):
        for reply in channel.ask(greeting, node, deadline):
            if isinstance(reply, Exception):
                channel.close()
                raise connection_error(reply, show_address(node)) from None
    return channel


def _connect(node: Address, deadline: Deadline, limit: float) -> socket.socket:
    """A connected socket to the first address of the host that takes it."""
    trouble: OSError = ConnectionRefusedError()
    for family, kind, protocol, address in _addresses(node):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(min(limit, deadline.left()))
            if family != getattr(socket, "AF_UNIX", None):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.connect(address)
        except OSError as error:
            connection.close()
            if isinstance(error, StoreError):
                raise
            trouble = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise trouble


def _addresses(node: Address) -> Iterator[tuple[int, int, int, Any]]:
    host, port = node
    if port == 0:
        if not hasattr(socket, "AF_UNIX"):
            raise StoreUnavailableError("this platform has no unix sockets")
        yield socket.AF_UNIX, socket.SOCK_STREAM, 0, host
        return
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        yield family, kind, protocol, address


def _greeting(options: Any) -> Iterator[tuple[Argument, ...]]:
    """What a new connection says first."""
    username, password = options.get("username"), options.get("password")
    if username:
        yield ("AUTH", username, password or "")
    elif password:
        yield ("AUTH", password)
    if name := options.get("client_name"):
        yield ("CLIENT", "SETNAME", name)
    if db := options.get("db"):
        yield ("SELECT", int(db))


def _dial_tls(target: Target, node: Address, deadline: Deadline, sentinel: bool) -> Channel:
    from redis.connection import SSLConnection
    from redis.exceptions import RedisError

    kind: Any = SSLConnection
    try:
        connection = kind(**connection_options(target, node, deadline.left(), sentinel=sentinel))
        connection.connect()
    except (RedisError, OSError) as error:
        raise connection_error(error, show_address(node)) from None
    return Channel(connection._sock, connection)


class Channel:
    """A connected socket and its reader."""

    __slots__ = ("_buffer", "_owner", "_poll", "_reader", "_socket", "received")

    def __init__(self, connected: socket.socket, owner: Any = None) -> None:
        self._socket = connected
        self._owner = owner
        self._reader = reply_reader()
        self._buffer = bytearray(65536)
        self.received = 0
        self._poll = select.poll() if _HANG_UP else None
        if self._poll is not None:
            self._poll.register(self._socket, _HANG_UP)

    def ask(self, commands: list[tuple[Argument, ...]], node: Address, deadline: Deadline) -> list[Any]:
        """Replies to commands outside of an exchange; whatever goes wrong closes the channel."""
        replies: list[Any] = []
        try:
            self.send(b"".join([pack(command) for command in commands]), deadline)
            self.receive(len(commands), replies, deadline)
        except BaseException as error:
            self.close()
            if isinstance(error, (OSError, HiredisError)):
                raise connection_error(error, show_address(node)) from None
            raise
        return replies

    def send(self, payload: bytes, deadline: Deadline) -> None:
        self._socket.settimeout(deadline.left())
        self._socket.sendall(payload)

    def receive(self, count: int, replies: list[Any], deadline: Deadline) -> None:
        """Append `count` replies; what arrived before a failure is in `replies` all the same."""
        reader, buffer = self._reader, self._buffer
        while True:
            while (reply := reader.gets()) is not NOT_YET:
                replies.append(reply)
                if len(replies) == count:
                    return
            self._socket.settimeout(deadline.left())
            got = self._socket.recv_into(buffer)
            if got == 0:
                raise ConnectionResetError
            self.received += got
            reader.feed(buffer, 0, got)

    def usable(self) -> bool:
        """Whether the other side has neither hung up nor said anything unasked."""
        if self._reader.has_data():
            return False
        if self._poll is None or not self._poll.poll(0):
            return True
        if self._owner is None:
            return False
        # What is readable may be a message of TLS itself; reading it is the way to find out.
        self._socket.settimeout(0.0)
        try:
            self._socket.recv(1)
        except OSError as error:
            return type(error).__name__ == "SSLWantReadError"
        return False

    def __del__(self) -> None:
        if hasattr(self, "_owner"):
            self.close()

    def close(self) -> None:
        """Close this process's end; after a fork the other process can go on with its own."""
        if self._owner is not None:
            self._owner.disconnect()
        else:
            self._socket.close()
