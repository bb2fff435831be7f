"""Headers, includes and digests; what servers and users may expect of the scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from memories import Keys, Mirror, find, put, record

import omoide.lua
from omoide.connection import Connection
from omoide.errors import ModelError
from omoide.lua import load, loader, names
from omoide.model.schema import Scope
from omoide.ops.request import Get, Search

REDIS_7_0 = frozenset(
    [
        "APPEND",
        "DEL",
        "EXISTS",
        "GET",
        "GETRANGE",
        "HDEL",
        "HEXISTS",
        "HGET",
        "HGETALL",
        "HLEN",
        "HSCAN",
        "HMGET",
        "HRANDFIELD",
        "HSET",
        "HSTRLEN",
        "PERSIST",
        "PEXPIREAT",
        "PEXPIRETIME",
        "RENAME",
        "SET",
        "SETRANGE",
        "STRLEN",
        "TIME",
        "TYPE",
        "UNLINK",
        "ZADD",
        "ZCARD",
        "ZCOUNT",
        "ZMSCORE",
        "ZRANGE",
        "ZRANGEBYLEX",
        "ZRANGEBYSCORE",
        "ZREM",
        "ZREVRANGE",
        "ZREVRANGEBYLEX",
        "ZSCORE",
    ]
)
LIBRARIES = Path(omoide.lua.__file__).parent / "lib"
_FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
WRITES = frozenset(
    [
        "APPEND",
        "DEL",
        "HDEL",
        "HSET",
        "PERSIST",
        "PEXPIREAT",
        "RENAME",
        "SET",
        "SETRANGE",
        "UNLINK",
        "ZADD",
        "ZREM",
    ]
)
_COMMAND = re.compile(r"\b(?:call|pcall|pcall_redis|redis\.call|redis\.pcall)\(\s*'([A-Za-z]+)'")
_ANY_CALL = re.compile(r"\b(?:call|pcall_redis|redis\.call|redis\.pcall)\(([^)\n]*)")


@pytest.mark.parametrize("name", names())
def test_every_verb_says_what_it_takes_and_what_it_costs(name: str) -> None:
    script = load(name)
    assert script.name == name
    assert script.keys == "head"
    assert script.returns
    assert script.cost
    assert len(script.includes) == len(set(script.includes))
    assert not [line for line in script.source.splitlines() if not line or line.lstrip().startswith("--")]


@pytest.mark.parametrize("name", names())
@pytest.mark.usefixtures("one_server")
def test_the_digest_is_the_server_s(name: str, keys: Keys) -> None:
    script = load(name)
    assert keys.redis.script_load(script.source).encode() == script.sha


@pytest.mark.parametrize("name", names())
def test_it_has_the_functions_it_names_and_no_others(name: str) -> None:
    script = load(name)
    source = script.source
    libraries = [(LIBRARIES / f"{one}.lua").read_text("utf-8") for one in script.includes]
    everywhere = {one for text in libraries for one in _FUNCTION.findall(text)}
    named = Counter(re.findall(r"[A-Za-z_]\w*", source))
    defined = set(_FUNCTION.findall(source))
    assert everywhere & named.keys() <= defined
    assert not [one for one in defined if named[one] < 2]


def test_an_included_library_is_there_once_and_before_its_users() -> None:
    script = load("save")
    assert script.includes.index("journal") < script.includes.index("erase") < script.includes.index("put")
    defined = Counter(re.findall(r"^local function (\w+)", script.source, re.MULTILINE))
    assert set(defined.values()) == {1}


@pytest.mark.parametrize("lacking", ["KEYS", "ARGV", "Returns", "Cost", "Include", "verb:"])
def test_a_verb_without_a_whole_header_is_refused(
    lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    header = [
        "-- verb: does it",
        "-- KEYS: head",
        "-- ARGV:",
        "-- Returns: one",
        "-- Cost: O(1)",
        "-- Include:",
    ]
    kept = [line for line in header if not line.startswith(f"-- {lacking}")]
    (tmp_path / "verb.lua").write_text("\n".join([*kept, "return 1", ""]))
    monkeypatch.setattr(loader, "files", lambda package: tmp_path)
    with pytest.raises(ModelError, match=r"verb\.lua: the header lacks"):
        loader.load.__wrapped__("verb")


def test_a_header_is_read_over_several_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "one.lua").write_text("-- one: a library\n\nlocal x = 1 -- the first\n")
    (tmp_path / "lib" / "two.lua").write_text(
        "-- two: more\n-- Include: one\nlocal y = x\n  -- why\nlocal z = y\n"
    )
    (tmp_path / "verb.lua").write_text(
        "-- verb: does it\n-- KEYS: head\n-- ARGV: first,\n--   second\n-- Returns: z\n-- Cost: O(1)\n"
        "-- Include: one two\nreturn z\n"
    )
    monkeypatch.setattr(loader, "files", lambda package: tmp_path)
    script = loader.load.__wrapped__("verb")
    assert script.argv == "first, second"
    assert script.includes == ("one", "two")
    assert script.source == "local x = 1 -- the first\nlocal y = x\nlocal z = y\nreturn z"


@pytest.mark.parametrize("name", names())
def test_only_commands_of_redis_7_0(name: str) -> None:
    used = set(_COMMAND.findall(load(name).source))
    assert used
    assert used <= REDIS_7_0


def test_no_command_is_called_by_a_computed_name() -> None:
    """Else the list above would not be whole. What is taken back runs by entries of the journal."""
    for name in names():
        for argument in _ANY_CALL.findall(load(name).source):
            assert re.match(r"\s*'[A-Z]+'|unpack\(entry", argument), argument


def test_what_the_journal_can_take_back_is_known() -> None:
    text = (Path(omoide.lua.__file__).parent / "lib" / "journal.lua").read_text()
    assert set(re.findall(r"note\('([A-Z]+)'", text)) <= WRITES


@pytest.mark.parametrize("name", names())
def test_read_only_verbs_write_nothing_by_their_text(name: str) -> None:
    script = load(name)
    if script.read_only and "journal" not in script.includes:
        assert not WRITES & set(_COMMAND.findall(script.source))


@pytest.mark.parametrize("name", sorted(loader.READ_ONLY - {"rank", "fetch"}))
@pytest.mark.usefixtures("one_server")
def test_read_verbs_run_where_writes_are_refused(
    name: str, connection: Connection, scope: Scope, keys: Keys
) -> None:
    """EVALSHA_RO refuses a script at its first write command; here every read verb answers by it."""
    connection.store.execute(put(scope, "1", "the cat likes fish"))
    gen = keys.redis.hget(keys.name(scope, "h"), "gen")
    spread = {"seeds": [["1", 1.0]], "hops": 1, "fan_out": 4, "decay": 0.5, "limit": 5}
    arguments = {
        "column": (1, 1),
        "count": (),
        "digests": ("kind", "1"),
        "dump": (0, 10),
        "edges": (gen, 1),
        "get": ("id", "1"),
        "ids": (gen, 1),
        "left": (),
        "missing": ("kind", 0, 10),
        "order": ("", 0, 10),
        "page": (0, 10),
        "place": ("1",),
        "records": (gen, 1_048_576, 1),
        "slots": (12, 1, 1),
        "spread": (msgspec.msgpack.encode(spread),),
        "top": (5, 1, 1, 0, "", "", 0),
        "turn": ("none",),
        "vocabulary": (0, 10),
    }
    keys.redis.script_load(load(name).source)
    reply = keys.redis.execute_command(
        "EVALSHA_RO", load(name).sha, 1, keys.name(scope, "h"), *arguments[name]
    )
    assert isinstance(reply, list)


@pytest.mark.usefixtures("one_server")
def test_both_readers_rank_where_writes_are_refused(
    connection: Connection, server_reader: Connection, scope: Scope, keys: Keys
) -> None:
    connection.store.execute(put(scope, "1", "the cat likes fish"))
    keys.redis.config_resetstat()
    for reader in (connection, server_reader):
        assert [name for name, _ in find(reader, scope, "cat")] == ["1"]
    sent = keys.redis.info("commandstats")
    assert "cmdstat_evalsha_ro" in sent
    assert "cmdstat_evalsha" not in sent


@pytest.mark.usefixtures("one_server")
def test_a_server_that_forgets_its_scripts_is_sent_them_again(
    connection: Connection, scope: Scope, keys: Keys
) -> None:
    connection.store.execute(put(scope, "1", "the cat likes fish"))
    keys.redis.script_flush()
    before = connection.round_trips
    assert connection.store.execute(put(scope, "2", "the dog likes meat")).status == "stored"
    assert connection.round_trips == before + 2
    keys.redis.script_flush()
    assert record(connection, scope, "2").version == 1
    keys.redis.script_flush()
    assert [hit.record.id for hit in connection.store.execute(Search(scope, {"dog": 1.0})).hits] == ["2"]
    assert record(connection, scope, "1").version == 1
    before = connection.round_trips
    assert connection.store.execute(Get(scope, ("1", "2")))
    assert connection.round_trips == before + 1


def test_a_partition_looks_the_same_whoever_loaded_the_scripts(
    mirror: Callable[..., Mirror], keys: Keys
) -> None:
    held = mirror()
    held.save("1", "the cat likes fish")
    keys.redis.script_flush()
    held.save("2", "the dog likes fish")
    held.agrees("fish", "cat dog")
