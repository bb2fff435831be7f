"""Valkey servers and clusters that live as long as a `with` block.

    with ValkeyServer() as server:            # unix socket, own temporary folder, nothing on disk
        omoide.connect(server.url)
        server.kill9(); server.restart()

    with ValkeyCluster(primaries=3) as cluster:
        omoide.connect(cluster.url)           # redis+cluster://127.0.0.1:p,127.0.0.1:p,127.0.0.1:p

Servers are children of this process, in a session of their own; what is still running when the
process exits is killed, and temporary folders are removed.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from redis.exceptions import ConnectionError as RedisConnectionError

from omoide.errors import StoreError, StoreUnavailableError
from omoide.stores.embedded import server_binary, server_config
from omoide.stores.redis.exchange import pack
from omoide.stores.redis.topology import NOT_YET, key_slot, reply_reader

__all__ = ["ValkeyCluster", "ValkeyServer"]

START_SECONDS = 15.0
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_ports = itertools.count()
_running: weakref.WeakSet[ValkeyServer] = weakref.WeakSet()


class ValkeyServer:
    """One server.

    Args:
        folder: Where it keeps its files; default a temporary folder, removed at the end.
        port: False = unix socket only, True = a free port on 127.0.0.1, or a port number.
        aof: Append-only file on, fsync every second, as in the embedded store.
        config: Further directives, (name, value) each; they come last, so they win.
        sentinel: Makes it a sentinel (needs a port): its directives without the leading word,
            for example `monitor mine 127.0.0.1 6379 1`.

    Starts when it is entered, or by `start()`.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        port: bool | int = False,
        aof: bool = False,
        config: Iterable[tuple[str, str]] = (),
        sentinel: Iterable[str] = (),
    ) -> None:
        self._sentinel = tuple(sentinel)
        self._own_folder = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="omoide-")) if folder is None else Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket_path = self.folder / "valkey.sock"
        self.port = free_ports(1)[0] if port is True else int(port)
        self._aof = aof
        self._config = tuple(config)
        self._process: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        return f"<ValkeyServer {self.url}>"

    def __enter__(self) -> ValkeyServer:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """URL to connect to: `redis://127.0.0.1:port` with a port, else `unix://`."""
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{self.socket_path}"

    @property
    def unix_url(self) -> str:
        """URL of its socket, which it has in any case."""
        return f"unix://{self.socket_path}"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        if self._process is None:
            raise StoreUnavailableError("the server does not run")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it and wait until it answers; nothing when it runs."""
        if self.running:
            return
        config = self.folder / "test.conf"
        config.write_bytes(self._directives())
        with contextlib.suppress(FileNotFoundError):
            self.socket_path.unlink()
        self._process = subprocess.Popen(
            [str(server_binary()), str(config), *(["--sentinel"] if self._sentinel else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _running.add(self)
        _wait(self._answers, f"{self.url} did not start, see {self.folder / 'server.log'}")

    def _directives(self) -> bytes:
        """The config file."""
        options = [
            ("port", str(self.port)),
            ("bind", "127.0.0.1"),
            ("unixsocket", str(self.socket_path)),
            ("dir", str(self.folder)),
            ("logfile", str(self.folder / "server.log")),
            ("loglevel", "warning"),
        ]
        if self._sentinel:
            lines = "".join(f"sentinel {line}\n" for line in self._sentinel)
            return server_config([*options, *self._config]) + lines.encode()
        options += [
            ("save", ""),
            ("appendonly", "yes" if self._aof else "no"),
            ("appendfsync", "everysec"),
            ("enable-debug-command", "local"),
        ]
        return server_config([*options, *self._config])

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            log = self.folder / "server.log"
            raise StoreUnavailableError(
                f"the server ended with {self._process.returncode}", hint=f"see {log}"
            )
        try:
            return bool(self.command("PING") == b"PONG")
        except (OSError, RedisConnectionError):  # not there, or still loading
            return False

    def command(self, *args: bytes | str | int | float) -> Any:
        """Reply to one command, over a connection of its own; error replies are raised."""
        return _node(self, *args)

    def client(self) -> Any:
        """A client of redis-py, to be closed."""
        import redis

        return redis.Redis(unix_socket_path=str(self.socket_path))

    def flush(self) -> None:
        """Remove every key and every cached script."""
        self.command("FLUSHALL", "SYNC")
        self.command("SCRIPT", "FLUSH", "SYNC")

    def kill9(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM: it writes what it has to and ends; wait for it."""
        self._signal(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: connections are accepted, nothing is answered, until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        os.kill(self.pid, signal.SIGCONT)

    def restart(self) -> None:
        """Stop it if it runs, start it again at the same address; without `aof` it is empty then."""
        self.terminate()
        self.start()

    def stop(self) -> None:
        """Kill it and remove the temporary folder."""
        self.kill9()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def cpu_seconds(self) -> float:
        """User and system time of the server process so far, in seconds.

        From /proc in clock ticks of 10 ms where there is one, else from the server itself, in
        microseconds but at the cost of a command.
        """
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return self.cpu_seconds_by_info()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def cpu_seconds_by_info(self) -> float:
        """The same by INFO: resolution 1 us; the INFO itself (about 50 us) counts in."""
        lines = self.command("INFO", "cpu").split(b"\r\n")
        values = dict(line.split(b":", 1) for line in lines if b":" in line)
        return float(values[b"used_cpu_user"]) + float(values[b"used_cpu_sys"])

    def _signal(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        _running.discard(self)
        if process is None:
            return
        process.send_signal(number)
        if number != signal.SIGKILL:
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


_KEY_PLACES: Final[dict[str, int | None]] = {
    **dict.fromkeys(("EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"), 3),
    **dict.fromkeys(("MEMORY", "OBJECT"), 2),
    **dict.fromkeys(
        ("ACL", "CLIENT", "CONFIG", "DBSIZE", "DEBUG", "FLUSHALL", "INFO", "KEYS", "PING", "SCAN", "SCRIPT")
    ),
    "SLOWLOG": None,
}
"""Where a command has its key; None: it has none, and is for every node."""


class ValkeyCluster:
    """A cluster on loopback ports, all slots assigned.

    Args:
        primaries: At least 1; slots are spread evenly, in order.
        replicas: Per primary. `servers` lists the primaries first, then the replicas.
        config: Further directives for every node.
    """

    def __init__(
        self, primaries: int = 3, replicas: int = 0, *, config: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.primaries = primaries
        count = primaries * (1 + replicas)
        ports = free_ports(2 * count)
        self.servers = [
            ValkeyServer(
                port=ports[index],
                config=[
                    ("cluster-enabled", "yes"),
                    ("cluster-port", str(ports[count + index])),
                    ("cluster-node-timeout", "1000"),
                    ("cluster-replica-validity-factor", "0"),
                    ("repl-diskless-sync-delay", "0"),
                    *config,
                ],
            )
            for index in range(count)
        ]

    def __repr__(self) -> str:
        return f"<ValkeyCluster {self.url}>"

    def __enter__(self) -> ValkeyCluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """`redis+cluster://` with every primary as seed."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers[: self.primaries])
        return f"redis+cluster://{hosts}"

    def start(self) -> None:
        """Start the nodes, make them meet, hand out slots and replicas, wait for `cluster_state:ok`."""
        for server in self.servers:
            server.start()
        first, *others = self.servers
        for server in others:
            bus = dict(server._config)["cluster-port"]
            _ok(_node(first, "CLUSTER", "MEET", "127.0.0.1", server.port, bus))
        for index, server in enumerate(self.servers[: self.primaries]):
            start, end = (16384 * k // self.primaries for k in (index, index + 1))
            _ok(_node(server, "CLUSTER", "ADDSLOTSRANGE", start, end - 1))
        _wait(self._met, "the cluster nodes did not meet")
        for index, server in enumerate(self.servers[self.primaries :]):
            primary = _node(self.servers[index % self.primaries], "CLUSTER", "MYID")
            _ok(_node(server, "CLUSTER", "REPLICATE", primary))
        _wait(self.healthy, "the cluster did not come up")

    def healthy(self) -> bool:
        """Whether every node sees the whole cluster up, its replicas in sync."""
        for index, server in enumerate(self.servers):
            if b"cluster_state:ok" not in _node(server, "CLUSTER", "INFO"):
                return False
            if index >= self.primaries and b"master_link_status:up" not in _node(
                server, "INFO", "replication"
            ):
                return False
        return True

    def _met(self) -> bool:
        return all(
            _node(server, "CLUSTER", "NODES").count(b" connected") == len(self.servers)
            for server in self.servers
        )

    def command(self, *args: bytes | str | int | float) -> Any:
        """Reply of the primary that has the key of a command; without a key, those of all as one.

        Numbers are added up, lists joined, and what INFO says; of other replies it is the first.
        """
        place = _KEY_PLACES.get(str(args[0]).upper(), 1)
        if place is not None:
            key = args[place]
            slot = key_slot(key if isinstance(key, bytes) else str(key).encode())
            return _node(self.owner(slot), *args)
        replies = [_node(server, *args) for server in self.servers[: self.primaries]]
        if all(isinstance(reply, int) for reply in replies):
            return sum(replies)
        if isinstance(replies[0], list):
            return [one for reply in replies for one in reply]
        return b"".join(replies) if args[0] == "INFO" else replies[0]

    def client(self) -> Any:
        """A cluster client of redis-py, to be closed."""
        import redis

        return redis.RedisCluster("127.0.0.1", self.servers[0].port)

    def owner(self, slot: int) -> ValkeyServer:
        """The primary that serves a slot, as the first running node sees it."""
        alive = next(server for server in self.servers if server.running)
        for start, end, primary, *_replicas in _node(alive, "CLUSTER", "SLOTS"):
            if start <= slot <= end:
                return next(server for server in self.servers if server.port == primary[1])
        raise StoreError(f"nobody serves slot {slot}")

    def flush(self) -> None:
        """Remove every key and every cached script of every primary."""
        for server in self.servers[: self.primaries]:
            _node(server, "FLUSHALL", "SYNC")
            _node(server, "SCRIPT", "FLUSH", "SYNC")

    def stop(self) -> None:
        """Kill every node and remove the folders."""
        for server in self.servers:
            server.stop()


def _node(server: ValkeyServer, *args: Any) -> Any:
    """Reply of this very node, whatever the cluster thinks of it."""
    reader = reply_reader()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as conversation:
        conversation.connect(str(server.socket_path))
        conversation.sendall(pack(args))
        while (reply := reader.gets()) is NOT_YET:
            received = conversation.recv(65536)
            if not received:
                raise ConnectionResetError("the server hung up")
            reader.feed(received)
    if isinstance(reply, Exception):
        raise reply
    return reply


def _ok(reply: Any) -> None:
    if reply != b"OK":
        raise StoreError("the cluster refused a command of its set-up")


def _wait(ready: Callable[[], bool], message: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise StoreUnavailableError(message)
        time.sleep(0.005)


def free_ports(count: int) -> list[int]:
    """TCP ports of 127.0.0.1 that nobody has at the moment, below the ephemeral range.

    Each process begins elsewhere and goes on where it left off, so that two that are about to
    start servers do not get the same.
    """
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            candidate = 20000 + (os.getpid() * 1009 + next(_ports)) % 12000
            probe = stack.enter_context(contextlib.closing(socket.socket()))
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            found.append(candidate)
    return found


@atexit.register
def _kill_all() -> None:
    for server in list(_running):
        server.stop()
