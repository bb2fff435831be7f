"""Nothing of a blocked text is anywhere: no key, value, file, log line, error, command, slow log.

Secrets are put together here. What is searched for are pieces of them, in any case, since an index
would hold terms and not texts.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

import omoide
from omoide import AutoKeyField, BM25Field, ContextAssembler, DictField, KeyField, Model, NeverRecordMixin
from omoide.apps.cli.main import main
from omoide.connection import Connection
from omoide.errors import PolicyError, StoreUnavailableError
from omoide.fields import BytesField, ListField, StringField, TagField
from omoide.mixins.never_record import process_counts
from omoide.model.instance import spec_of
from omoide.ops.batch import batch
from omoide.ops.reindex import reindex
from omoide.ops.search import screen
from omoide.privacy import Policy, UserRule
from omoide.privacy.samples import Maker
from omoide.recipes import DefaultMemory, SubconsciousMemory
from omoide.testing import ValkeyServer

_BODY = Maker(91).body("an", 36)
TOKEN = "gh" + "p_" + _BODY
PASSWORD = "Zorbalu-" + "7731x"
SECRETS = {
    "credential": (f"the deploy key is {TOKEN}", (_BODY[:12], _BODY[-12:])),
    "spoken": (f"the wifi password is {PASSWORD}", ("zorbalu", "7731x")),
    "aside": ("Off the record, Quixnefti is leaving Vandrolim.", ("quixnefti", "vandrolim")),
    "card": ("my visa is 4539 1488 " + "0343 6467", ("0343 6467", "03436467")),
    "disguised": ("use " + "\u200b".join(TOKEN) + " for it", (_BODY[:12], "\u200b" + _BODY[0])),
}
MARKS = tuple(mark for _, marks in SECRETS.values() for mark in marks)
CLEAN = "We deploy the booking site on Tuesdays"


class SecretNote(NeverRecordMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    project = StringField(default="", index=True)
    items = ListField(default=[])
    document = DictField(default={})
    data = BytesField(default=b"")
    tags = TagField()
    search = BM25Field(source="content")


class SecretRedacted(SecretNote):
    never_record_mode = "redact"


class _Everywhere:
    """All that a run leaves behind, searched for pieces of secrets."""

    def __init__(self, server: ValkeyServer, caplog: pytest.LogCaptureFixture) -> None:
        self.server = server
        self.caplog = caplog
        self.said: list[str] = []

    def check(self) -> None:
        held = b"\n".join([*_contents(self.server), *_dumps(self.server), *_files(self.server.folder)])
        text = held.decode("utf-8", "replace") + self.caplog.text + "\n".join(self.said)
        low = text.lower()
        assert "deploy" in low, "what may be stored is stored"
        assert [mark for mark in MARKS if mark.lower() in low] == []


def _contents(server: ValkeyServer) -> Iterator[bytes]:
    read: dict[bytes, Callable[[bytes], Any]] = {
        b"hash": lambda key: server.command("HGETALL", key),
        b"string": lambda key: server.command("GET", key),
        b"zset": lambda key: server.command("ZRANGE", key, 0, -1),
        b"set": lambda key: server.command("SMEMBERS", key),
        b"list": lambda key: server.command("LRANGE", key, 0, -1),
    }
    for key in server.command("KEYS", "*"):
        yield key
        held = read[server.command("TYPE", key)](key)
        if isinstance(held, Mapping):
            held = [*held, *held.values()]
        yield from held if isinstance(held, list | set) else [held]


def _dumps(server: ValkeyServer) -> Iterator[bytes]:
    for key in server.command("KEYS", "*"):
        yield server.command("DUMP", key)


def _files(folder: Path) -> Iterator[bytes]:
    """Append-only file, server log, snapshot: all that the server wrote to disk."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert any("appendonly" in str(path) and path.stat().st_size > 1000 for path in found)
    for path in found:
        yield path.read_bytes()


@pytest.fixture(scope="module")
def logged_server() -> Iterator[ValkeyServer]:
    """A server with an append-only file that is uncompressed, and a log of everything."""
    from omoide.testing.plugin import _need_binary

    _need_binary()
    config = [("rdbcompression", "no"), ("loglevel", "debug"), ("appendfsync", "always")]
    with ValkeyServer(aof=True, config=config) as server:
        yield server


@pytest.fixture
def everywhere(logged_server: ValkeyServer, caplog: pytest.LogCaptureFixture) -> Iterator[_Everywhere]:
    caplog.set_level(logging.DEBUG)
    logged_server.start()
    logged_server.flush()
    with omoide.connect(logged_server.url):
        yield _Everywhere(logged_server, caplog)


# ---- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [text for text, _ in SECRETS.values()], ids=list(SECRETS))
def test_no_write_path_lets_a_piece_through(
    text: str, everywhere: _Everywhere, capsys: pytest.CaptureFixture[str]
) -> None:
    note = SecretNote(agent_id="ada", content=CLEAN)
    assert note.save()
    outcomes: list[Any] = [SecretNote(agent_id="ada", **values).save() for values in _places(text)]
    outcomes += SecretNote.save_many(SecretNote(agent_id="ada", **values) for values in _places(text))
    outcomes.append(note.update(content=text))
    with batch() as group:
        SecretNote(agent_id="ada", content=text).save()
        SecretNote(agent_id="ada", content=CLEAN).save()
    outcomes.append(group.outcomes[0])
    assert group.outcomes[1]
    assert not any(outcomes)
    with pytest.raises(PolicyError) as refused:
        SecretNote.create(agent_id="ada", content=text)
    everywhere.said += [str(refused.value), repr(refused.value), refused.value.hint, repr(outcomes)]
    asyncio.run(_write_async(text))
    assert reindex(SecretNote, agent_id="ada") == 2
    _capture(text)
    everywhere.said += [repr(omoide.status()), repr(SecretNote.never_record_tombstones())]
    counts = SecretNote.never_record_counts(agent_id="ada")
    assert sum(counts.values()) == len(outcomes) + 1 + 5
    assert sum(SecretNote.never_record_rules(agent_id="ada").values()) == sum(counts.values())
    assert main(["retain", text, "--agent", "ada", "--url", everywhere.server.url]) == 1
    assert main(["status", "--url", everywhere.server.url]) == 0
    assert main(["doctor", "--json", "--url", everywhere.server.url]) == 0
    shown = capsys.readouterr()
    everywhere.said += [shown.out, shown.err]
    everywhere.check()


def _places(text: str) -> list[dict[str, Any]]:
    """A text wherever a model can hold one."""
    return [
        {"content": text},
        {"project": text},
        {"items": ["x", {"y": [text]}]},
        {"document": {"deep": {"er": text}}},
        {"document": {text: 1}},
        {"data": text.encode()},
        {"tags": {text.encode()[:128].decode(errors="ignore")}},
    ]


async def _write_async(text: str) -> None:
    note = SecretNote(agent_id="ada", content=CLEAN)
    assert not await SecretNote(agent_id="ada", content=text).asave()
    assert not any(await SecretNote.asave_many([SecretNote(agent_id="ada", content=text)]))
    with pytest.raises(PolicyError):
        await SecretNote.acreate(agent_id="ada", content=text)
    async with batch() as group:
        await SecretNote(agent_id="ada", content=text).asave()
    assert not group.outcomes[0]
    stored = await SecretNote.query.filter(agent_id="ada").afirst()
    assert stored is not None
    assert not await stored.aupdate(project=text)
    assert note.content == CLEAN


def _capture(text: str) -> None:
    """The raw turn, and extractors that put it elsewhere, with and without a turn."""
    DefaultMemory(agent_id="ada", content=CLEAN).save()
    for extractor in (
        None,
        lambda said: [{"content": "a note", "tags": {said[:200]}}],
        lambda said: [said, said],
    ):
        memory = SubconsciousMemory(agent_id="ada", extractor=extractor, author="Mika")
        _, result = memory.inject_context([{"role": "user", "content": "When do we deploy?"}])
        for outcome in (*memory.extract_memories(text, result=result), *memory.extract_memories(text)):
            assert not outcome


def test_a_partition_that_is_named_by_a_secret_leaves_nothing(everywhere: _Everywhere) -> None:
    SecretNote(agent_id="ada", content=CLEAN).save()
    for text, _ in SECRETS.values():
        assert not SecretNote(agent_id=text, content=CLEAN).save()
        assert not any(SecretNote.save_many([SecretNote(agent_id=text, content=text)]))
    everywhere.check()


def test_what_is_redacted_leaves_nothing_behind(everywhere: _Everywhere) -> None:
    for name in ("credential", "spoken", "card"):
        note = SecretRedacted(
            agent_id="ada", content=f"We deploy on Tuesdays.\n{SECRETS[name][0]}\nNot on Fridays."
        )
        assert note.save()
        assert "Tuesdays" in note.content
        everywhere.said.append(note.content)
    assert not SecretRedacted(agent_id="ada", content=SECRETS["aside"][0]).save()
    assert SecretRedacted.never_record_counts(agent_id="ada") == {"redacted": 3, "off_the_record": 1}
    everywhere.check()


# ---- asking ----------------------------------------------------------------------------------------


class _Monitor:
    """Every command the server carries out while a block runs, as text."""

    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self.seen: list[str] = []

    def __enter__(self) -> _Monitor:
        self.client = redis.Redis(unix_socket_path=str(self.server.socket_path))
        self.monitor = self.client.monitor()
        self.monitor.__enter__()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        return self

    def _read(self) -> None:
        for command in self.monitor.listen():
            self.seen.append(str(command["command"]))
            if "end-of-the-test" in self.seen[-1]:
                return

    def __exit__(self, *_: object) -> None:
        self.server.command("ECHO", "end-of-the-test")
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.client.connection_pool.disconnect()


@pytest.mark.parametrize("reader", ["client", "server"])
def test_a_pasted_secret_reaches_no_command_and_no_slow_log(
    reader: str, store_url: str, valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    valkey_server.command("CONFIG", "SET", "slowlog-log-slower-than", 0)
    valkey_server.command("CONFIG", "SET", "slowlog-max-len", 100_000)
    valkey_server.command("SLOWLOG", "RESET")
    try:
        with omoide.connect(store_url, reader=reader), _Monitor(valkey_server) as monitor:
            kept = DefaultMemory(agent_id="ada", content=CLEAN)
            kept.save()
            said = [part for text, _ in SECRETS.values() for part in _ask(text, kept.memory_id)]
            assert DefaultMemory.counters(agent_id="ada").read("query_redacted") >= len(SECRETS)
        slow = repr(valkey_server.command("SLOWLOG", "GET", -1))
    finally:
        valkey_server.command("CONFIG", "SET", "slowlog-log-slower-than", 10_000)
    commands = "\n".join(monitor.seen)
    assert "booking" in commands.lower()
    assert "ada" in slow
    held = "\n".join([commands, slow, caplog.text, *said]).lower()
    assert [mark for mark in MARKS if mark.lower() in held] == []


def _ask(text: str, record_id: str) -> list[str]:
    """Ask in every way, with a question around the secret; what the answers tell about the question."""
    query = f"When do we deploy the booking site?\n{text}\nand who knows"
    said: list[str] = []
    for mode in ("auto", "lexical", "composite"):
        assembler = ContextAssembler(DefaultMemory, mode=mode)
        result = assembler.assemble(query, agent_id="ada", explain=True)
        again = asyncio.run(_ask_async(assembler, query))
        said += [repr(dict(one.metadata)) + one.formatted for one in (result, again)]
        if mode == "lexical":
            assert result.metadata["query_redacted"]
            said.append(repr(assembler.explain_missing(record_id, query, agent_id="ada").as_json()))
    memory = SubconsciousMemory(agent_id="ada")
    _, result = memory.inject_context([{"role": "user", "content": query}])
    said.append(repr(dict(result.metadata)) + result.formatted)
    return said


async def _ask_async(assembler: ContextAssembler, query: str) -> Any:
    return await assembler.aassemble(query, agent_id="ada")


def test_a_secret_across_the_cut_of_a_long_query_is_seen(store_url: str, valkey_server: ValkeyServer) -> None:
    with omoide.connect(store_url), _Monitor(valkey_server) as monitor:
        DefaultMemory(agent_id="ada", content=CLEAN).save()
        for place in range(4096 - 60, 4097, 6):
            query = ("booking " * 600)[: place - 1] + " " + TOKEN
            ContextAssembler(DefaultMemory).assemble(query, agent_id="ada")
    low = "\n".join(monitor.seen).lower()
    assert _BODY[:8].lower() not in low


LONG_JWT = (
    "ey"
    + "JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    + "eyJ"
    + ".".join((_LONG_BODY := Maker(17).body("an", 6_000), _BODY))
)


@pytest.mark.parametrize("place", range(4_000, 4_096, 19))
@pytest.mark.parametrize(
    ("secret", "marks"),
    [
        (LONG_JWT, (_LONG_BODY[:12], _LONG_BODY[30:44])),
        ("0x" + (f"see {TOKEN} " + "x" * 40_000).encode().hex(), ("73656520",)),
        ("zanzibar-" + "the quixnefti of vandrolim " * 60 + "end", ("quixnefti", "vandrolim", "zanzibar")),
        ("zanzibar-" + "quixnefti " * 6_000 + "end", ("quixnefti", "zanzibar")),
    ],
    ids=["jwt", "hex", "own", "own_wide"],
)
def test_no_secret_that_reaches_far_beyond_the_cut_leaks(
    place: int, secret: str, marks: tuple[str, ...]
) -> None:
    rule = UserRule("house", ("zanzibar-",), r"zanzibar-[a-z ]{8,65000}end")
    query = ("booking " * 600)[: place - 1] + " " + secret + "\nand who knows"
    question = screen(
        query, spec_of(DefaultMemory), max_chars=4_096, max_terms=64, policy=Policy(rules=(rule,))
    )
    held = repr(question).lower()
    assert "book" in held
    assert [mark for mark in marks if mark.lower() in held] == []


@pytest.mark.parametrize("name", ["credential", "spoken", "card"])
def test_what_a_call_names_reaches_no_command(
    name: str, store_url: str, valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text = SECRETS[name][0]
    said: list[str] = []
    with omoide.connect(store_url), _Monitor(valkey_server) as monitor:
        note = SecretNote(agent_id="ada", content=CLEAN)
        note.save()
        asked = SecretNote.query.filter(agent_id="ada")
        recall = ContextAssembler(DefaultMemory)
        memory = SubconsciousMemory(agent_id="ada")
        calls: dict[str, list[Callable[[], Any]]] = {
            "agent_id": [
                lambda: SecretNote.count(agent_id=text),
                lambda: SecretNote.counters(agent_id=text),
                lambda: SecretNote.query.filter(agent_id=text),
                lambda: recall.assemble("booking", agent_id=text),
                lambda: SubconsciousMemory(agent_id=text),
                lambda: asyncio.run(SecretNote.acount(agent_id=text)),
            ],
            "name": [
                lambda: SecretNote.counters(agent_id="ada").increment(text),
                lambda: asyncio.run(SecretNote.counters(agent_id="ada").aincrement(text)),
            ],
            "note_id": [
                lambda: SecretNote.query.get(agent_id="ada", note_id=text),
                lambda: SecretNote.query.get_many([note.note_id, text], agent_id="ada"),
            ],
            "memory_id": [
                lambda: recall.assemble("booking", agent_id="ada", exclude=[text]),
                lambda: memory.report_outcomes("a turn", {text: "used"}),
            ],
            "project": [lambda: asked.filter(project=text)],
            "tags": [
                lambda: asked.filter(tags=text),
                lambda: recall.assemble("x", agent_id="ada", tags=text),
            ],
            "turn": [
                lambda: memory.report_outcomes(text, "used"),
                lambda: memory.extract_memories("We deploy on Mondays now", turn_id=text),
            ],
        }
        for field, those in calls.items():
            for call in those:
                with pytest.raises(PolicyError, match=rf": {field} is kept out by the firewall: ") as refused:
                    call()
                said.append("".join(traceback.format_exception(refused.value)))
                assert refused.value.__cause__ is None
                assert refused.value.reason in ("credential", "natural_language", "personal")
    held = "\n".join([*monitor.seen, caplog.text, *said]).lower()
    assert "booking" in held
    assert [mark for mark in MARKS if mark.lower() in held] == []


def test_a_partition_with_a_secret_name_can_be_erased(connection: Connection) -> None:
    name = SECRETS["credential"][0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMOIDE_NEVER_RECORD_DISABLE", "1")
        assert SecretNote(agent_id=name, content=CLEAN).save()
    with pytest.raises(PolicyError):
        SecretNote.count(agent_id=name)
    assert SecretNote.delete_many([name], agent_id=name) == 0
    assert SecretNote.delete_partition(agent_id=name) == 1


def test_a_verdict_on_a_missing_memory_tells_of_what_was_taken_out(connection: Connection) -> None:
    note = DefaultMemory(agent_id="ada", content=CLEAN)
    note.save()
    ask = ContextAssembler(DefaultMemory).explain_missing
    told = ask(note.memory_id, f"booking {TOKEN}", agent_id="ada")
    assert (told.reason, told.redacted) == ("delivered", 1)
    assert told.says.endswith("the firewall took parts of the query out")
    told = ask(note.memory_id, TOKEN, agent_id="ada")
    assert (told.reason, told.redacted) == ("no_terms", 1)
    assert ask(note.memory_id, "booking", agent_id="ada").redacted == 0


# ---- without a store -------------------------------------------------------------------------------


def test_a_counter_that_cannot_be_written_does_not_undo_a_block(
    store_url: str, valkey_server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    text = SECRETS["credential"][0]
    with omoide.connect(store_url):
        note = SecretNote(agent_id="ada", content=CLEAN)
        note.save()
        valkey_server.kill9()
        before = process_counts().get("SecretNote", {}).get("credential", 0)
        outcome = SecretNote(agent_id="ada", content=text).save()
        assert (outcome.stored, outcome.reason) == (False, "credential")
        outcomes = SecretNote.save_many([SecretNote(agent_id="ada", content=text)])
        assert [one.reason for one in outcomes] == ["credential"]
        with batch() as group:
            SecretNote(agent_id="ada", content=text).save()
        assert [one.reason for one in group.outcomes] == ["credential"]  # type: ignore[union-attr]
        with pytest.raises(PolicyError):
            SecretNote.create(agent_id="ada", content=text)
        assert note.update(content=text).reason == "credential"
        assert note.content == CLEAN
        with pytest.raises(StoreUnavailableError) as down:
            SecretNote.save_many([SecretNote(agent_id="ada", content=one) for one in (text, CLEAN)])
        assert process_counts()["SecretNote"]["credential"] == before + 6
    assert "could not be counted" in caplog.text
    held = (caplog.text + str(down.value)).lower()
    assert [mark for mark in MARKS if mark.lower() in held] == []
    valkey_server.start()


def test_a_query_is_screened_by_the_policy_of_its_model(connection: Connection) -> None:
    class HouseRules(DefaultMemory):
        never_record_policy = Policy(rules=(UserRule("house", ("zanzibar-",), r"zanzibar-[0-9]{4}"),))

    assert HouseRules(agent_id="a", content="hello there, friend of the house").save()
    assert not HouseRules(agent_id="a", content="the code is zanzibar-4711").save()
    result = ContextAssembler(HouseRules).assemble("hello zanzibar-4711", agent_id="a")
    assert result.metadata["terms"] == ["hello"]
    assert result.metadata["query_redacted"] == 1
    assert len(result.records) == 1
