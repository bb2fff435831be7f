"""Blocking connections against real servers, and against servers that misbehave."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis.exceptions import NoPermissionError, NoScriptError, ResponseError

from omoide.errors import CapabilityError, StoreTimeoutError, StoreUnavailableError
from omoide.stores.redis.wire import Command, SyncWire
from omoide.testing import ValkeyServer

PING = Command(("PING",), b"", idempotent=True)


def command(*args: bytes | str | int | float, idempotent: bool = False) -> Command:
    return Command(args, b"k", idempotent)


@pytest.fixture
def wire(store_url: str) -> Iterator[SyncWire]:
    with contextlib.closing(SyncWire(store_url)) as wire:
        wire.capabilities()
        yield wire


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer(port=True) as server:
        yield server


@contextlib.contextmanager
def fake_server(
    serve: Callable[[socket.socket, int], None], *, greet: bool = True
) -> Iterator[tuple[str, list[int]]]:
    """A TCP server that calls `serve(connection, number)` for each connection, once asked who it is."""
    seen: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    seen.append(len(seen))
                    threading.Thread(target=one, args=(connection, len(seen)), daemon=True).start()

        def one(connection: socket.socket, number: int) -> None:
            with connection, contextlib.suppress(OSError):
                if greet:
                    connection.recv(100)
                    connection.sendall(b"-NOPERM no\r\n")
                serve(connection, number)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"redis://127.0.0.1:{listener.getsockname()[1]}", seen
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def answer_probe(connection: socket.socket) -> None:
    """Answer the first batch, which asks what the server is."""
    connection.recv(65536)
    connection.sendall(b"$21\r\nredis_version:7.0.0\r\n\r\n-NOPERM no\r\n")


def test_one_call_is_one_round_trip_and_bytes_are_counted(wire: SyncWire) -> None:
    trips, out, into = wire.round_trips, wire.bytes_out, wire.bytes_in
    assert wire.call([command("SET", "k", 1), command("INCR", b"k"), command("GET", "k")]) == [b"OK", 2, b"2"]
    assert wire.round_trips - trips == 1
    sent = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n1\r\n"
    sent += b"*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
    assert wire.bytes_out - out == len(sent)
    assert wire.bytes_in - into == len(b"+OK\r\n:2\r\n$1\r\n2\r\n")


def test_nothing_to_send_is_no_round_trip(wire: SyncWire) -> None:
    trips = wire.round_trips
    assert wire.call([]) == []
    assert wire.round_trips == trips


def test_replies_keep_their_types_and_errors_their_place(wire: SyncWire) -> None:
    replies = wire.call(
        [
            command("SET", "k", "日本"),
            command("LPUSH", "k", 1),
            command("GET", "k"),
            command("GET", "none"),
            command("EVALSHA", "0" * 40, 0),
            command("EVAL", "return {1, 'a', {2}}", 0),
        ]
    )
    assert isinstance(replies[1], ResponseError)
    assert replies[2:4] == ["日本".encode(), None]
    assert isinstance(replies[4], NoScriptError)
    assert replies[5] == [1, b"a", [2]]


def test_a_megabyte_each_way(wire: SyncWire) -> None:
    value = os.urandom(3_000_000)
    assert wire.call([command("SET", "k", value), command("GET", "k")]) == [b"OK", value]


def test_what_the_server_is(wire: SyncWire) -> None:
    found = wire.capabilities()
    assert found.name == "valkey"
    assert found.version >= (7, 2)
    assert not found.cluster
    assert wire.each_primary(("DBSIZE",)) == [0]
    assert len(wire.primaries()) == 1


def test_the_server_is_asked_once_however_many_threads_come_first(store_url: str) -> None:
    with contextlib.closing(SyncWire(store_url)) as wire:
        threads = [threading.Thread(target=lambda: [wire.call([PING]) for _ in range(100)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wire.round_trips == 1 + 8 * 100


def test_a_restart_between_two_calls_goes_unnoticed(server: ValkeyServer) -> None:
    with contextlib.closing(SyncWire(server.url)) as wire:
        wire.call([PING])
        server.restart()
        trips = wire.round_trips
        assert wire.call([command("INCR", "k")]) == [1]
        assert wire.round_trips - trips == 1


def test_a_killed_server_is_an_outage_until_it_is_back(server: ValkeyServer) -> None:
    with contextlib.closing(SyncWire(server.url)) as wire:
        wire.call([PING])
        server.kill9()
        started = time.monotonic()
        with pytest.raises(StoreUnavailableError, match="no connection"):
            wire.call([PING])
        assert time.monotonic() - started < 4
        server.start()
        assert wire.call([PING]) == [b"PONG"]


def test_a_server_that_hangs_costs_no_more_than_the_timeout(server: ValkeyServer) -> None:
    with contextlib.closing(SyncWire(server.url)) as wire:
        wire.call([PING])
        server.pause()
        started = time.monotonic()
        with pytest.raises(StoreTimeoutError):
            wire.call([command("INCR", "k")], timeout=0.3)
        assert 0.25 < time.monotonic() - started < 4
        server.resume()
        assert wire.call([command("ECHO", "not the INCR")]) == [b"not the INCR"]


def test_a_black_hole_costs_no_more_than_the_timeout() -> None:
    with fake_server(lambda connection, _: time.sleep(5)) as (url, _seen):
        started = time.monotonic()
        with pytest.raises(StoreTimeoutError), contextlib.closing(SyncWire(url)) as wire:
            wire.call([PING], timeout=0.3)
        assert time.monotonic() - started < 4


def test_a_dripping_server_costs_no_more_than_the_timeout() -> None:
    def drip(connection: socket.socket, _number: int) -> None:
        answer_probe(connection)
        connection.recv(100)
        connection.sendall(b"$1000\r\n")
        for _ in range(100):
            connection.sendall(b"x")
            time.sleep(0.05)

    with fake_server(drip) as (url, _seen), contextlib.closing(SyncWire(url)) as wire:
        wire.capabilities()
        started = time.monotonic()
        with pytest.raises(StoreTimeoutError):
            wire.call([PING], timeout=0.4)
        assert time.monotonic() - started < 4


def hang_up_once(connection: socket.socket, number: int) -> None:
    """The first connection answers the probe and closes on the next command; others answer."""
    if number == 1:
        answer_probe(connection)
        connection.recv(100)
        return
    while connection.recv(100):
        connection.sendall(b"+PONG\r\n")


def test_a_lost_reply_is_asked_for_again_only_when_that_is_harmless() -> None:
    with fake_server(hang_up_once) as (url, seen), contextlib.closing(SyncWire(url)) as wire:
        wire.capabilities()
        assert wire.call([PING]) == [b"PONG"]
        assert len(seen) == 2
    with fake_server(hang_up_once) as (url, seen), contextlib.closing(SyncWire(url)) as wire:
        wire.capabilities()
        with pytest.raises(StoreUnavailableError):
            wire.call([command("INCR", "k")])
        assert len(seen) == 1


def test_a_connection_with_an_unexpected_reply_is_not_used_again() -> None:
    def talkative(connection: socket.socket, _number: int) -> None:
        answer_probe(connection)
        while connection.recv(100):
            connection.sendall(b"+PONG\r\n+stray\r\n")

    def polite(connection: socket.socket, _number: int) -> None:
        while connection.recv(100):
            connection.sendall(b"+PONG\r\n")

    with (
        fake_server(
            lambda connection, number: (talkative if number == 1 else polite)(connection, number)
        ) as (
            url,
            seen,
        ),
        contextlib.closing(SyncWire(url)) as wire,
    ):
        assert wire.call([PING]) == [b"PONG"]
        assert wire.call([PING]) == [b"PONG"]
        assert len(seen) == 2


def test_loading_is_waited_for() -> None:
    def load(connection: socket.socket, _number: int) -> None:
        answer_probe(connection)
        for reply in (b"-LOADING x\r\n", b"-LOADING x\r\n", b"+PONG\r\n"):
            connection.recv(100)
            connection.sendall(reply)

    with fake_server(load) as (url, _seen), contextlib.closing(SyncWire(url)) as wire:
        wire.capabilities()
        assert wire.call([PING]) == [b"PONG"]


def test_an_old_server_is_refused() -> None:
    def old(connection: socket.socket, _number: int) -> None:
        connection.recv(65536)
        connection.sendall(b"$22\r\nredis_version:6.2.14\r\n\r\n-ERR unknown command\r\n")

    with (
        fake_server(old) as (url, _seen),
        contextlib.closing(SyncWire(url)) as wire,
        pytest.raises(CapabilityError, match=r"redis 6\.2\.14"),
    ):
        wire.call([PING])


def test_a_replica_refuses_writes_until_it_is_promoted(
    server: ValkeyServer, valkey_server: ValkeyServer
) -> None:
    server.command("REPLICAOF", "127.0.0.1", 1)
    with contextlib.closing(SyncWire(server.url)) as wire:
        with pytest.raises(StoreUnavailableError, match="replica"):
            wire.call([command("INCR", "k")])
        promote = threading.Timer(0.3, lambda: server.command("REPLICAOF", "NO", "ONE"))
        promote.start()
        assert wire.call([command("INCR", "k")]) == [1]
        promote.join()


def test_a_user_who_may_do_little_can_connect(server: ValkeyServer) -> None:
    server.command("ACL", "SETUSER", "small", "on", ">pw", "~omoide:*", "-@all", "+get", "+set", "+evalsha")
    url = server.url.replace("redis://", "redis://small:pw@")
    with contextlib.closing(SyncWire(url)) as wire:
        replies = wire.call([command("SET", "omoide:a", 1), command("GET", "omoide:a"), command("DBSIZE")])
        assert replies[:2] == [b"OK", b"1"]
        assert isinstance(replies[2], NoPermissionError)
        found = wire.capabilities()
        assert (found.name, found.maxmemory_policy) == ("valkey", "")
        assert found.version >= (7, 2)


def test_a_wrong_password_is_said_at_once_and_not_repeated(server: ValkeyServer) -> None:
    server.command("ACL", "SETUSER", "small", "on", ">pw", "allkeys", "+@all")
    url = server.url.replace("redis://", "redis://small:hunter2@")
    with contextlib.closing(SyncWire(url)) as wire:
        with pytest.raises(StoreUnavailableError, match="user name or password") as caught:
            wire.call([PING])
        assert "hunter2" not in f"{caught.value}{caught.value.hint}{wire!r}{wire.target!r}"
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__


def test_threads_never_get_each_others_replies(wire: SyncWire) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(200):
            text = b"%d-%d" % (number, turn)
            if wire.call([command("ECHO", text)]) != [text]:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_interrupted_call_leaves_no_reply_behind(wire: SyncWire) -> None:
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            wire.call([command("BLPOP", "none", 2)])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert wire.call([command("ECHO", "fresh")]) == [b"fresh"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_parent_and_child_both_go_on_after_a_fork(wire: SyncWire) -> None:
    wire.call([PING])
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        right = all(wire.call([command("ECHO", b"c%d" % turn)]) == [b"c%d" % turn] for turn in range(50))
        os.write(write_end, b"1" if right else b"0")
        os._exit(0)
    assert all(wire.call([command("ECHO", b"p%d" % turn)]) == [b"p%d" % turn] for turn in range(50))
    os.waitpid(child, 0)
    assert os.read(read_end, 1) == b"1"
    os.close(read_end)
    os.close(write_end)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout {key} -out {cert} "
        "-addext subjectAltName=DNS:localhost",
        shell=True,
        check=True,
        capture_output=True,
    )
    return key, cert


def test_tls_checks_the_certificate(certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])

    def serve(connection: socket.socket, _number: int) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(100)
            secure.sendall(b"-NOPERM no\r\n")
            secure.recv(65536)
            secure.sendall(b"$21\r\nredis_version:7.0.0\r\n\r\n-NOPERM no\r\n")
            while secure.recv(100):
                secure.sendall(b"+PONG\r\n")

    with fake_server(serve, greet=False) as (url, seen):
        secure_url = url.replace("redis://127.0.0.1", "rediss://localhost")
        with contextlib.closing(SyncWire(f"{secure_url}?ssl_ca_certs={certificate[1]}")) as wire:
            assert wire.call([PING]) == [b"PONG"]
            assert wire.call([PING]) == [b"PONG"]
            assert len(seen) == 1
        with contextlib.closing(SyncWire(secure_url)) as wire, pytest.raises(StoreUnavailableError):
            wire.call([PING])
