"""Thread history: exact messages of one session, apart from long-term memory."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from omoide import ConflictError, Connection, FieldError, PolicyError, QueryError, StoreUnavailableError
from omoide.apps.cli.main import main
from omoide.ops import port
from omoide.recipes import ThreadMemory, ascan_threads, scan_threads
from omoide.stores.postgres.script import Step

HOSTILE = ["*", "a'; DROP TABLE popagent_messages; --", "%", "a\nb", "日本語", "{a}", "a/b", " ", "\\", '"']


@pytest.fixture
def connection(valkey_url: str, postgres_url: str) -> Iterator[Connection]:
    with Connection(valkey_url, postgres=postgres_url) as connection, connection.use():
        yield connection


@pytest.fixture
def thread(connection: Connection, request: pytest.FixtureRequest) -> ThreadMemory:
    return ThreadMemory("s1", resource_id=request.node.name)


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_messages_come_back_equal_and_in_order(thread: ThreadMemory) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "a\x00b \u2028 𝄞 👩‍👩‍👧 '; -- %s"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "arguments": '{"x": 1.50}'}]},
        {"role": "tool", "content": [{"type": "text", "text": ""}], "n": -(2**63), "f": 0.1, "t": True},
        {"b": 1, "a": 2},
    ]
    assert thread.append(messages) == (1, 2, 3, 4)
    found = thread.messages()
    assert found == messages
    assert [list(message) for message in found] == [list(message) for message in messages]
    assert type(found[2]["f"]) is float
    assert type(found[2]["n"]) is int


def test_pages_go_backwards(thread: ThreadMemory) -> None:
    thread.append([said(str(number)) for number in range(10)])
    assert [one["content"] for one in thread.messages(3)] == ["7", "8", "9"]
    assert [one["content"] for one in thread.messages(3, before=8)] == ["4", "5", "6"]
    assert thread.messages(0) == []
    assert thread.count() == 10


def test_concurrent_appends_all_stay_and_none_interleaves(
    thread: ThreadMemory, connection: Connection
) -> None:
    def append(number: int) -> tuple[int, ...]:
        with port.using(connection):
            return thread.append([said(f"{number}-{part}") for part in range(3)])

    with ThreadPoolExecutor(8) as pool:
        places = sorted(place for found in pool.map(append, range(40)) for place in found)
    assert places == list(range(1, 121))
    texts = [one["content"] for one in thread.messages()]
    for start in range(0, 120, 3):
        assert [text.partition("-")[2] for text in texts[start : start + 3]] == ["0", "1", "2"]
        assert len({text.partition("-")[0] for text in texts[start : start + 3]}) == 1


def test_a_repeated_operation_appends_nothing(thread: ThreadMemory, connection: Connection) -> None:
    first = thread.append([said("a"), said("b")], operation_id="turn-1")
    thread.append([said("c")])
    assert thread.append([said("a"), said("b")], operation_id="turn-1") == first == (1, 2)

    def append(_: int) -> tuple[int, ...]:
        with port.using(connection):
            return thread.append([said("x")], operation_id="turn-2")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(append, range(20))) == {(4,)}
    assert thread.count() == 4


def test_an_operation_id_names_one_call(thread: ThreadMemory) -> None:
    assert thread.append([{"role": "user", "content": "a"}], operation_id="turn-1") == (1,)
    assert thread.append([{"content": "a", "role": "user"}], operation_id="turn-1") == (1,)
    for other in ([said("b")], [said("a"), said("b")]):
        with pytest.raises(ConflictError, match="other messages") as caught:
            thread.append(other, operation_id="turn-1")
        assert caught.value.reason == "operation"
    assert thread.append([said("b")], operation_id="turn-2") == (2,)
    assert thread.messages() == [said("a"), said("b")]


def test_sessions_and_resources_do_not_see_each_other(connection: Connection) -> None:
    names = [name for name in HOSTILE if name.strip()]
    for name in names:
        for session in HOSTILE:
            ThreadMemory(session, resource_id=name).append([said(f"{name}|{session}")], operation_id="same")
    for name in names:
        assert {one.session_id for one in ThreadMemory.sessions(name)} == set(HOSTILE)
        for session in HOSTILE:
            assert ThreadMemory(session, resource_id=name).messages() == [said(f"{name}|{session}")]
    assert ThreadMemory("%", resource_id="%").delete()
    assert not ThreadMemory("%", resource_id="%").delete()
    assert ThreadMemory.delete_sessions("*", ["%", "nobody", "*"]) == 2
    assert ThreadMemory.delete_sessions("{a}") == len(HOSTILE)
    assert len(ThreadMemory.sessions("*")) == len(HOSTILE) - 2
    assert ThreadMemory.sessions("{a}") == []
    assert len(ThreadMemory.sessions("a/b")) == len(HOSTILE)


def test_sessions_are_listed_latest_first(connection: Connection) -> None:
    for session in ("a", "b", "a"):
        ThreadMemory(session, resource_id="listed").append([said("x")])
    found = ThreadMemory.sessions("listed")
    assert [(one.session_id, one.messages) for one in found] == [("a", 2), ("b", 1)]
    assert found[0].updated_at > found[0].created_at
    assert ThreadMemory.sessions("listed", limit=1, offset=1) == found[1:]


@pytest.mark.parametrize(
    "bad",
    ["text", {"role": "user"}, [["role"]], [{1: 2}], [{"x": float("nan")}], [{"x": (1,)}], [{"x": "\ud800"}],
     [{"x": 2**63}], [said("a" * 1_048_577)], [said("x")] * 1_001, None],
)  # fmt: skip
def test_what_would_not_come_back_equal_is_refused(thread: ThreadMemory, bad: Any) -> None:
    with pytest.raises(FieldError) as told:
        thread.append(bad)
    assert len(str(told.value)) < 200
    assert thread.count() == 0


@pytest.mark.parametrize("bad", ["", None, 7, "x" * 513, "\ud800", "a\x00"])
def test_ids_are_checked_before_anything_is_asked(bad: Any) -> None:
    with pytest.raises(QueryError):
        ThreadMemory(bad, resource_id="a")
    with pytest.raises(QueryError):
        ThreadMemory("a", resource_id=bad)
    with pytest.raises(QueryError):
        ThreadMemory.delete_sessions("a", [bad])


def test_without_postgres_it_says_so(valkey_url: str) -> None:
    with (
        Connection(valkey_url) as connection,
        connection.use(),
        pytest.raises(StoreUnavailableError, match="no PostgreSQL"),
    ):
        ThreadMemory("s", resource_id="a").messages()


def test_async_twins(connection: Connection) -> None:
    async def main() -> None:
        thread = ThreadMemory("s", resource_id="async")
        places = await asyncio.gather(*(thread.aappend([said(str(number))]) for number in range(10)))
        assert sorted(place for (place,) in places) == list(range(1, 11))
        assert len(await thread.amessages()) == await thread.acount() == 10
        assert [one.session_id for one in await ThreadMemory.asessions("async")] == ["s"]
        assert await ThreadMemory.adelete_sessions("async", ["nobody"]) == 0
        assert await thread.adelete()
        assert await thread.acount() == 0

    asyncio.run(main())
    asyncio.run(main())


def test_every_call_has_a_twin_of_the_same_signature() -> None:
    names = {name for name in vars(ThreadMemory) if not name.startswith("_")}
    calls = {name for name in names if not (name.startswith("a") and name[1:] in names)}
    assert calls == {"append", "count", "delete", "delete_sessions", "messages", "sessions"}
    for name in calls:
        first = inspect.signature(getattr(ThreadMemory, name))
        second = inspect.signature(getattr(ThreadMemory, "a" + name))
        assert list(first.parameters.values()) == list(second.parameters.values()), name


def test_no_message_is_in_the_statistics_of_the_server(thread: ThreadMemory, connection: Connection) -> None:
    thread.append([said("confidential-needle")], operation_id="needle-operation")
    thread.messages()
    rows = connection.database.run(_activity)
    assert rows
    assert not any("needle" in text for text in rows)


def _activity() -> Any:
    rows = yield Step("SELECT query FROM pg_stat_activity WHERE query <> ''")
    return [text for (text,) in rows]


SECRETS = [
    ({"role": "user", "content": f"the key is AKIA{'QZXW' * 4}, keep it"}, "credential"),
    ({"role": "tool", "content": [{"type": "text", "text": "password: hunter7Zq!x"}]}, "credential"),
    ({"role": "user", "content": "Off the record: Mia is leaving in May."}, "off_the_record"),
]


@pytest.mark.parametrize(("message", "reason"), SECRETS, ids=["first", "second", "third"])
def test_what_the_firewall_blocks_is_refused_and_nothing_is_written(
    thread: ThreadMemory, message: dict[str, Any], reason: str
) -> None:
    with pytest.raises(PolicyError, match=r"messages\[1\] is not kept") as caught:
        thread.append([said("hello"), message])
    assert caught.value.reason == reason
    assert "AKIA" not in str(caught.value)
    with pytest.raises(PolicyError):
        asyncio.run(thread.aappend([message]))
    assert thread.count() == 0
    unscreened = ThreadMemory(thread.session_id, resource_id=thread.resource_id, screened=False)
    assert unscreened.append([message]) == (1,)
    assert thread.messages() == [message]


def test_names_that_the_firewall_blocks_are_refused(connection: Connection) -> None:
    key = f"AKIA{'QZXW' * 4}"
    for names in ({"session_id": key, "resource_id": "a"}, {"session_id": "s", "resource_id": key}):
        with pytest.raises(PolicyError):
            ThreadMemory(**names)
    thread = ThreadMemory("s", resource_id="names")
    with pytest.raises(PolicyError, match="operation_id"):
        thread.append([said("x")], operation_id=key)
    assert thread.count() == 0


def test_stored_messages_are_screened(connection: Connection) -> None:
    for resource in ("screened-a", "screened-b"):
        thread = ThreadMemory("s", resource_id=resource, screened=False)
        thread.append([said(f"note {number}") for number in range(70)])
        thread.append([message for message, _ in SECRETS])
    told: list[tuple[int, int]] = []
    found = scan_threads("screened-a", progress=lambda *at: told.append(at))
    assert found == asyncio.run(ascan_threads("screened-a"))
    assert [(one.partition, one.id, one.reason) for one in found.found] == [
        (("screened-a", "s"), str(71 + place), reason) for place, (_, reason) in enumerate(SECRETS)
    ]
    assert (found.scanned, told) == (73, [(32, 73), (64, 73), (73, 73)])
    assert "AKIA" not in repr(found)
    everybody = {one.partition[0] for one in scan_threads().found if one.partition}
    assert {"screened-a", "screened-b"} <= everybody
    key = f"AKIA{'QZXW' * 4}"
    ThreadMemory(key, resource_id="screened-c", screened=False).append([said("x")])
    (hidden,) = scan_threads("screened-c").found
    assert (hidden.partition, hidden.id) == ((), "1")
    for resource in ("screened-a", "screened-b", "screened-c"):
        ThreadMemory.delete_sessions(resource)


def test_threads_are_scanned_from_the_command_line(
    connection: Connection, valkey_url: str, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ThreadMemory("s", resource_id="scanned", screened=False).append([said("fine"), SECRETS[0][0]])
    here = ["--url", valkey_url, "--postgres", postgres_url, "--threads"]
    assert main(["scan", "--agent", "scanned", *here]) == 1
    out = capsys.readouterr().out
    assert "scanned/s" in out
    assert "2 messages scanned, 1 blocked" in out
    assert "AKIA" not in out
    assert main(["scan", "--agent", "nobody-there", *here]) == 2
    assert main(["scan", "--agent", "scanned", "--action", "erase", *here]) == 2
    assert main(["scan", "--model", "a:B", *here]) == 2
    ThreadMemory.delete_sessions("scanned")
