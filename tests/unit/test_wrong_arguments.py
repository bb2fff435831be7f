"""Arguments that cannot be meant are refused by omoide's own errors, before anything is asked or stored."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

import omoide
from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    ContextAssembler,
    Defaults,
    EmbeddingField,
    KeyField,
    Model,
    RankWeights,
    StringField,
    ValidityField,
)
from omoide.connection import Connection
from omoide.errors import FieldError, ModelError, OmoideError, QueryError, StoreError
from omoide.fields import DecayingSortedField
from omoide.ops import port
from omoide.privacy.samples import Maker
from omoide.recipes import (
    DefaultMemory,
    LongTermMemory,
    SubconsciousMemory,
    ThreadMemory,
    ledger,
    maintain,
    tools_of,
)

AGENT = {"agent_id": "ada"}
TOKEN = "gh" + "p_" + Maker(41).body("an", 36)
ANY: Any = 5
NONE: Any = None
HUGE = 10**400
ALONE = "\ud800"


class VersionedClaim(Model):
    fact_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField()
    valid = ValidityField(key="content")


class NeverStoredNote(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()


FIELDS: list[Callable[[], object]] = [
    lambda: ValidityField(key=ANY),
    lambda: ValidityField(key=(ANY,)),
    lambda: BM25Field(source=ANY),
    lambda: BM25Field(source=(ANY,)),
    lambda: BM25Field(source="content", k1="x"),  # type: ignore[arg-type]
    lambda: EmbeddingField(source=ANY, provider=len),
    lambda: EmbeddingField(source="content", provider=len, timeout="x"),  # type: ignore[arg-type]
    lambda: EmbeddingField(source="content", provider=len, least="x"),  # type: ignore[arg-type]
    lambda: DecayingSortedField(half_life="x"),  # type: ignore[arg-type]
    lambda: DecayingSortedField(exponent="x"),  # type: ignore[arg-type]
    lambda: ConfidenceField(initial="x"),  # type: ignore[arg-type]
    lambda: omoide.PostgresMirror(table=ANY),
    lambda: BM25Field(source="content", ranking=ANY),
    lambda: BM25Field(source="content", k1=HUGE),
    lambda: EmbeddingField(source="content", provider=len, timeout=HUGE),
    lambda: DecayingSortedField(half_life=HUGE),
    lambda: Defaults(deadline=HUGE),
    lambda: Defaults(deadline=1e300),
    lambda: RankWeights(near=NONE),
    lambda: RankWeights(date=NONE),
    lambda: RankWeights(near=HUGE),
    lambda: RankWeights(answer=float("nan")),
]

CALLS: list[Callable[[], object]] = [
    lambda: maintain(now="x"),  # type: ignore[arg-type]
    lambda: maintain(now=datetime(2026, 1, 1)),
    lambda: ledger("ada", limit=-1),
    lambda: ledger("ada", limit=True),
    lambda: ledger(ANY),
    lambda: LongTermMemory(ANY),
    lambda: LongTermMemory("  "),
    lambda: LongTermMemory("ada", session_id=ANY),
    lambda: LongTermMemory("ada", deadline=-1),
    lambda: ThreadMemory("monday", resource_id="\u3000 "),
    lambda: ThreadMemory.sessions("ada", limit=-1),
    lambda: ThreadMemory.delete_sessions("ada", ANY),
    lambda: ThreadMemory.delete_sessions("ada", "monday"),
    lambda: tools_of(LongTermMemory("ada"), "nope"),
    lambda: tools_of(LongTermMemory("ada"), ANY),
    lambda: tools_of(LongTermMemory("ada"), [ANY]),
    lambda: SubconsciousMemory(**AGENT, extractor=ANY),
    lambda: SubconsciousMemory(**AGENT, extractor_deadline=0),
    lambda: SubconsciousMemory(**AGENT).report_outcomes("turn", ANY),
    lambda: ContextAssembler(DefaultMemory, token_counter=ANY),
    lambda: ContextAssembler(DefaultMemory, deadline="x"),  # type: ignore[arg-type]
    lambda: ContextAssembler(DefaultMemory).assemble("tea", exclude=ANY, **AGENT),
    lambda: DefaultMemory.delete_many("abc", **AGENT),
    lambda: DefaultMemory.query.filter(**AGENT).exclude("abc"),
    lambda: DefaultMemory.query.filter(**AGENT).order_by(ANY),
    lambda: omoide.export_memories(DefaultMemory, ANY, **AGENT),
    lambda: omoide.import_memories(DefaultMemory, ANY, **AGENT),
    lambda: omoide.import_memories(
        DefaultMemory, io.BytesIO(b"{}\n"), file_format="jsonl", field_map=ANY, **AGENT
    ),
    lambda: omoide.scan_memories(DefaultMemory, cursor=ANY),
    lambda: omoide.forget(DefaultMemory, patience="x", **AGENT),  # type: ignore[arg-type]
    lambda: omoide.prune(ALONE),
    lambda: LongTermMemory("ada", deadline=HUGE),
    lambda: SubconsciousMemory(**AGENT, extractor_deadline=HUGE),
    lambda: SubconsciousMemory(**AGENT).report_outcomes(ALONE, "acted"),
    lambda: SubconsciousMemory(**AGENT).report_outcomes("turn", {ALONE: "acted"}),
    lambda: SubconsciousMemory(**AGENT).report_outcomes("turn", {ANY: "acted"}),
    lambda: SubconsciousMemory(**AGENT).extract_memories("tea", turn_id=ALONE),
    lambda: ContextAssembler(DefaultMemory, ranking=ANY),
    lambda: ContextAssembler(DefaultMemory, deadline=1e300),
    lambda: ContextAssembler(DefaultMemory).assemble("tea", ranking=ANY, **AGENT),
    lambda: VersionedClaim(content="tea", **AGENT).save(supersedes=[]),  # type: ignore[arg-type]
    lambda: DefaultMemory.query.filter(**AGENT).order_by([]),  # type: ignore[arg-type]
    lambda: DefaultMemory.save_many(ANY),
    lambda: DefaultMemory.save_many(NONE),
    lambda: DefaultMemory.save_many("abc"),  # type: ignore[arg-type]
]


@pytest.fixture
def connection(store_url: str) -> Iterator[Connection]:
    with Connection(store_url) as connection, connection.use():
        yield connection


@pytest.mark.parametrize("make", FIELDS)
def test_an_option_of_a_field_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ModelError):
        make()


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_is_refused(connection: Connection, call: Callable[[], object]) -> None:
    before = connection.round_trips
    with pytest.raises(QueryError):
        call()
    assert connection.round_trips == before


NAMED: list[tuple[str, Callable[[], object]]] = [
    ("exclude", lambda: ContextAssembler(DefaultMemory).assemble("tea", exclude=ANY, **AGENT)),
    ("exclude", lambda: ContextAssembler(DefaultMemory).assemble("tea", exclude=[ALONE], **AGENT)),
    ("exclude", lambda: DefaultMemory.query.filter(**AGENT).exclude("abc")),
    ("supersedes", lambda: VersionedClaim(content="tea", **AGENT).save(supersedes=ALONE)),
    ("user", lambda: LongTermMemory("ada").retain_turn(ALONE, "tea")),
    ("assistant", lambda: LongTermMemory("ada").retain_turn("tea", ALONE)),
    ("importance", lambda: LongTermMemory("ada").retain("tea", importance=HUGE)),
    ("near", lambda: RankWeights(near=NONE)),
]


@pytest.mark.parametrize(("name", "call"), NAMED)
def test_the_error_names_the_argument(connection: Connection, name: str, call: Callable[[], object]) -> None:
    with pytest.raises(OmoideError, match=rf"\b{name}\b"):
        call()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"redis://{ALONE}", {}),
        ("redis://a..b", {}),
        ("redis://localhost?timeout=1e300", {}),
        (None, {"namespace": ALONE}),
        (None, {"timeout": HUGE}),
        (None, {"timeout": 1e300}),
        (None, {"postgres": f"postgresql://{ALONE}"}),
    ],
)
def test_a_connection_that_cannot_be_is_refused_before_it_is_the_default(
    store_url: str, url: str | None, options: dict[str, Any]
) -> None:
    before = port.bound()
    with pytest.raises((QueryError, StoreError)) as caught:
        omoide.connect(url or store_url, **options)
    assert type(caught.value) in (QueryError, StoreError)
    assert port.bound() is before


def test_a_namespace_of_the_environment_is_text(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMOIDE_NAMESPACE", "\udcff")
    with pytest.raises(QueryError, match="namespace"):
        Connection(store_url)


def test_an_id_to_supersede_is_read_as_every_id(connection: Connection) -> None:
    assert VersionedClaim(fact_id="5", content="tea", **AGENT).save()
    assert VersionedClaim(fact_id="6", content="tea", **AGENT).save(supersedes=ANY)
    assert VersionedClaim.query.filter(**AGENT).ids() == ["6"]


def test_a_scan_of_nothing_finds_nothing(connection: Connection) -> None:
    told = omoide.scan_memories(NeverStoredNote)
    assert (told.scanned, told.found, told.removed) == (0, (), 0)


STRANGE: list[Callable[[str], object]] = [
    lambda name: DefaultMemory(**{name: 1}),
    lambda name: setattr(DefaultMemory(content="tea", **AGENT), name, 1),
    lambda name: DefaultMemory(content="tea", **AGENT).update(**{name: 1}),
    lambda name: DefaultMemory.count(**AGENT, **{name: 1}),
    lambda name: DefaultMemory.query.filter(**AGENT, **{name: 1}),
    lambda name: DefaultMemory.query.filter(**AGENT, **{f"{name}__gt": 1}),
    lambda name: DefaultMemory.query.filter(**AGENT, **{f"content__{name}": 1}),
    lambda name: DefaultMemory.query.filter(**AGENT).order_by(name),
    lambda name: DefaultMemory.query.get_many(["a"], **AGENT, **{name: 1}),
    lambda name: ContextAssembler(DefaultMemory).assemble("tea", **AGENT, **{name: 1}),
    lambda name: omoide.scan_memories(DefaultMemory, **{name: 1}),
    lambda name: SubconsciousMemory(**AGENT, **{name: 1}),
    lambda name: LongTermMemory("ada").change_settings(**{name: True}),
    lambda name: _refused(tools_of(LongTermMemory("ada"))[0](**{name: 1})),
]


def _refused(answer: dict[str, Any]) -> None:
    raise QueryError(answer["error"])


@pytest.mark.parametrize("call", STRANGE)
def test_an_unknown_name_is_told_only_where_it_holds_no_secret(
    connection: Connection, call: Callable[[str], object]
) -> None:
    with pytest.raises((QueryError, FieldError), match="colour"):
        call("colour")
    with pytest.raises((QueryError, FieldError)) as caught:
        call(TOKEN)
    assert TOKEN[:12] not in f"{caught.value} {vars(caught.value)}"
    assert caught.value.__cause__ is None


def test_letters_of_a_text_are_no_ids(connection: Connection) -> None:
    for name in "abc":
        assert DefaultMemory(memory_id=name, content=name, **AGENT).save()
    with pytest.raises(QueryError, match="list of strings"):
        DefaultMemory.delete_many("abc", **AGENT)
    assert DefaultMemory.count(**AGENT) == 3


def test_a_name_in_a_file_is_told_only_where_it_holds_no_secret(connection: Connection) -> None:
    def lines(name: str) -> io.BytesIO:
        return io.BytesIO(f'{{"content": "tea", "{name}": 1}}\n'.encode())

    with pytest.raises(omoide.TransferError, match="has no field 'colour'"):
        omoide.import_memories(DefaultMemory, lines("colour"), file_format="jsonl", **AGENT)
    with pytest.raises(omoide.TransferError, match="has no field") as caught:
        omoide.import_memories(DefaultMemory, lines(TOKEN), file_format="jsonl", **AGENT)
    assert TOKEN[:12] not in str(caught.value)
    memory = f'{{"id": "1", "memory": "tea", "{TOKEN}": 1, "colour": 2}}\n'.encode()
    told = omoide.import_memories(DefaultMemory, io.BytesIO(memory), file_format="mem0", **AGENT)
    assert told.ignored == {"(a name that the firewall keeps out)": 1, "colour": 1}
    export = f'{{"omoide":"export","format":1,"model":"{TOKEN}","id":"a","partition_by":[]}}\n'.encode()
    with pytest.raises(omoide.TransferError) as caught:
        omoide.import_memories(DefaultMemory, io.BytesIO(export))
    assert TOKEN[:12] not in str(caught.value)
