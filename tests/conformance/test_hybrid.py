"""Hybrid recall as a user meets it: what is embedded when, what it costs, and what becomes of failures."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any
from zlib import crc32

import pytest

import omoide
from omoide import ContextAssembler, EmbeddingError, EmbeddingField, ModelError, StringField
from omoide.connection import Connection
from omoide.core import vectors
from omoide.model.instance import spec_of
from omoide.recipes import DefaultMemory, SubconsciousMemory
from omoide.stores.redis import meaning
from omoide.testing import ValkeyServer

SIZE = 64
PET, TEA, DEPLOY = "I adopted a puppy", "Caroline drinks tea", "We release on Tuesdays"
ALIKE = {"puppy": "dog", "release": "deploy", "adopted": "has"}
SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


class Words:
    """Vectors of words, a few of them taken for others; it notes what it was given."""

    def __init__(self, name: str = "words", size: int = SIZE) -> None:
        self.name, self.size = name, size
        self.calls: list[list[str]] = []
        self.error: Exception | None = None
        self.poison = ""

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        if self.error is not None or (self.poison and any(self.poison in text for text in texts)):
            raise self.error or ValueError(f"refused: {texts}")
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.0] * self.size
        for word in text.lower().replace("?", "").split():
            vector[crc32(ALIKE.get(word, word).encode()) % self.size] += 1
        return vector

    def take(self) -> list[list[str]]:
        calls, self.calls = self.calls, []
        return calls


WORDS = Words()


class MeantMemory(DefaultMemory):
    meaning = EmbeddingField(source="content", provider=WORDS, timeout=60)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    WORDS.calls, WORDS.error, WORDS.poison = [], None, ""


def memory(content: str, **values: Any) -> MeantMemory:
    return MeantMemory(agent_id="a", content=content, **values)


def fill(*texts: str) -> list[MeantMemory]:
    memories = [memory(text) for text in texts or (PET, TEA, DEPLOY)]
    assert all(outcome.embedded for outcome in MeantMemory.save_many(memories))
    return memories


def recall(query: str, model: type[Any] = MeantMemory, **options: Any) -> Any:
    return ContextAssembler(model, track=False, **options).assemble(query, agent_id="a")


class Meter:
    def __init__(self, connection: Connection) -> None:
        self.connection, self.before = connection, connection.round_trips

    def __call__(self) -> int:
        before, self.before = self.before, self.connection.round_trips
        return self.before - before


# ---- recall


def test_a_field_more_makes_auto_hybrid(connection: Connection) -> None:
    fill()
    assert ContextAssembler(DefaultMemory).mode == "lexical"
    result = recall("who has a dog?")
    assert result.records[0].content == PET
    assert (result.metadata["mode"], result.metadata["reader"]) == ("hybrid", "client")
    assert "without_meaning" not in result.metadata
    assert WORDS.take()[1:] == [["who has a dog?"]]
    by_words = recall("who has a dog?", mode="lexical")
    assert (by_words.ids, by_words.metadata["mode"], WORDS.take()) == ((), "lexical", [])


def test_a_query_of_stop_words_has_a_meaning_still(connection: Connection) -> None:
    fill("who is it that was there", TEA)
    result = recall("who is it?")
    assert result.records[0].content == "who is it that was there"
    assert result.metadata["terms"] == []
    blank = recall("   ")
    assert (blank.ids, blank.metadata["without_meaning"]) == ((), "no_text")


def test_a_recall_takes_one_round_trip_when_warm(connection: Connection, store_url: str) -> None:
    fill()
    trips = Meter(connection)
    with Connection(store_url, reader="client") as other, other.use():
        measure = Meter(other)
        for expected in (2, 1, 1, 1, 1, 1, 1):
            result = recall("who has a dog?")
            assert measure() == result.metadata["round_trips"] == expected
    recall("who has a dog?")
    trips()
    for number in range(4):  # what this process saves is added to what it holds
        memory(f"we have walrus {number}").save()
        assert trips() == 1
        assert recall("who has a dog?").records[0].content == PET
        assert trips() == 1


def test_what_another_process_writes_costs_a_round_trip_more_only_where_it_comes(
    connection: Connection, store_url: str
) -> None:
    (pet, *_) = fill()
    recall("who has a dog?")
    with Connection(store_url) as other:
        trips = Meter(connection)
        with other.use():
            memory("nothing of the kind").save()
        assert recall("who has a dog?", max_items=1).ids == (pet.memory_id,)
        assert trips() == 1
        with other.use():
            memory("has a cat and a dog").save()
            pet.delete()
        result = recall("who has a dog?")
        assert result.records[0].content == "has a cat and a dog"
        assert pet.memory_id not in result.ids
        assert trips() <= 2
        WORDS.error = OSError()
        later = memory("the dog has a ball")
        assert not later.save().embedded
        WORDS.error = None
        assert recall("who has a dog?", max_items=1).metadata["unembedded"] == 1
        with other.use():
            assert omoide.embed(MeantMemory, agent_id="a").embedded == 1
        trips()
        assert "unembedded" not in recall("who has a dog?", max_items=1).metadata
        assert trips() == 1
        assert recall("dog ball").ids[0] == later.memory_id


def test_more_than_a_mebibyte_of_vectors_comes_in_pieces(
    connection: Connection, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"note {number} of day {number % 7}" for number in range(120)]
    fill(*texts)
    monkeypatch.setattr(meaning, "PIECE_BYTES", 12 * (SIZE + 12))
    lua = "omoide.stores.redis.calls.load"
    whole = recall("note of day 3", max_items=50).ids
    from omoide import lua as scripts

    def smaller(name: str) -> Any:
        from dataclasses import replace
        from hashlib import sha1

        script = scripts.load(name)
        source = script.source.replace("1048576 / H.stride", f"{20 * (SIZE + 12)} / H.stride")
        return replace(script, source=source, sha=sha1(source.encode()).hexdigest().encode())

    monkeypatch.setattr(lua, smaller)
    with Connection(store_url, reader="client") as other, other.use():
        cold = recall("note of day 3", max_items=50)
        assert (cold.ids, cold.metadata["round_trips"]) == (whole, 3)
        assert recall("note of day 3", max_items=50).metadata["round_trips"] == 1


def test_beyond_its_bound_a_partition_is_recalled_by_words_and_says_so(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pet, *_) = fill()
    monkeypatch.setattr(meaning, "MOST_BYTES", 2 * SIZE)
    for _ in range(2):
        result = recall("tea or a dog?")
        assert result.metadata["without_meaning"] == "too_large"
        assert (result.metadata["mode"], len(result.ids)) == ("lexical", 1)
    pet.delete()
    assert recall("tea or a dog?").metadata["mode"] == "hybrid"


def test_the_server_reader_says_that_it_compares_no_vectors(connection: Connection, store_url: str) -> None:
    fill()
    with Connection(store_url, reader="server") as other, other.use():
        result = recall("tea for a dog?")
    assert (result.metadata["mode"], result.metadata["without_meaning"]) == ("lexical", "server_reader")
    assert [record.content for record in result.records] == [TEA]


def test_least_keeps_what_is_not_alike_from_matching(connection: Connection) -> None:
    class PickyMemory(DefaultMemory):
        meaning = EmbeddingField(source="content", provider=Words(), least=0.3)

    PickyMemory.save_many(PickyMemory(agent_id="a", content=text) for text in (PET, TEA, DEPLOY))
    assert [one.content for one in recall("has dog", PickyMemory).records] == [PET]
    assert recall("quantum chromodynamics", PickyMemory).ids == ()


def test_explain_names_the_parts_of_meaning(connection: Connection) -> None:
    _, lamp, tea = fill(PET, "I adopted a lamp", TEA)
    assembler = ContextAssembler(MeantMemory, track=False)
    result = assembler.assemble("who has a dog and tea?", agent_id="a", explain=True)
    assert "meaning" in {arm["name"] for arm in result.metadata["arms"]}
    for told in result.metadata["explain"].values():
        assert {"lexical", "meaning", "importance"} <= told["parts"].keys()
        assert told["parts"]["lexical"] + told["parts"]["meaning"] == pytest.approx(told["parts"]["worth"])
    for one, reason in ((lamp, "outranked"), (tea, "unmatched")):
        missing = assembler.explain_missing(one.memory_id, "has a dog", agent_id="a", max_items=1)
        assert missing.reason == reason
        assert "meaning" in str(missing.tree)


# ---- what is embedded


def test_a_group_is_embedded_in_one_call_and_saved_in_one_round_trip(connection: Connection) -> None:
    trips = Meter(connection)
    fill(*(f"note {number % 30}" for number in range(60)))
    assert [len(texts) for texts in WORDS.take()] == [30]
    assert trips() == 1
    with omoide.batch() as group:
        memory(PET).save()
        memory(TEA, author="Ann").save()
    assert [outcome.embedded for outcome in group.outcomes] == [True, True]
    assert WORDS.take() == [[PET, f"Ann: {TEA}"]]
    assert trips() == 1
    loop = SubconsciousMemory(agent_id="a", model=MeantMemory)
    assert loop.extract_memories("We met in Kyoto last spring and took the train to Nara.")
    assert len(WORDS.take()) == 1


def test_unchanged_text_is_not_embedded_again(connection: Connection, store_url: str) -> None:
    (pet, *_) = fill()
    WORDS.take()
    pet.importance = 0.2
    assert pet.save().embedded
    assert pet.update(tags={"pets"}).embedded
    loaded = MeantMemory.query.get(agent_id="a", memory_id=pet.memory_id)
    assert loaded.save().embedded
    trips = Meter(connection)
    again = memory(PET, memory_id=pet.memory_id)  # what is stored under this id is not known here
    assert again.save().embedded
    assert trips() == 2
    assert all(one.embedded for one in MeantMemory.save_many([memory(PET, memory_id=pet.memory_id)]))
    assert omoide.reindex(MeantMemory, agent_id="a") == 3
    assert WORDS.take() == []
    with Connection(store_url) as other, other.use():
        assert recall("who has a dog?").records[0].content == PET
    WORDS.take()
    assert pet.update(content="I adopted a kitten").embedded
    assert WORDS.take() == [["I adopted a kitten"]]
    memory("I adopted a kitten", memory_id=pet.memory_id, author="Ann").save()
    assert WORDS.take() == [["Ann: I adopted a kitten"]]


def test_a_provider_gets_only_what_the_firewall_lets_through(connection: Connection) -> None:
    assert not memory(f"the key is {SECRET}").save()
    assert WORDS.take() == []
    fill()
    WORDS.take()
    result = recall(f"who has a dog, {SECRET}?")
    assert result.metadata["query_redacted"] == 1
    ((asked,),) = WORDS.take()
    assert SECRET not in asked
    assert "dog" in asked


def test_what_the_firewall_blocks_today_is_not_given_to_a_provider(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Words()
    provider.error = OSError()

    class StrictMemory(omoide.NeverRecordMixin, omoide.Model):
        lax_id = omoide.AutoKeyField()
        agent_id = omoide.KeyField()
        content = StringField(default="")
        text = omoide.BM25Field(source="content")
        meaning = EmbeddingField(source="content", provider=provider)

    monkeypatch.setenv("OMOIDE_NEVER_RECORD_DISABLE", "1")
    StrictMemory.save_many(StrictMemory(agent_id="a", content=text) for text in (PET, f"the key is {SECRET}"))
    monkeypatch.delenv("OMOIDE_NEVER_RECORD_DISABLE")
    provider.take()
    provider.error = None
    done = omoide.embed(StrictMemory)
    assert (done.embedded, done.withheld) == (1, 1)
    omoide.reindex(StrictMemory, agent_id="a")
    assert provider.take() == [[PET]]


# ---- failures


def test_a_failing_provider_loses_nothing_and_is_caught_up_with(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    fill()
    WORDS.error = ValueError("no content in here: dog")
    outcome = memory("the dog sleeps").save()
    assert (outcome.stored, outcome.embedded) == (True, False)
    assert MeantMemory.counters(agent_id="a").read("embedding_failed") == 1
    result = recall("the dog")
    assert result.metadata["without_meaning"] == "provider_failed"
    assert [record.content for record in result.records] == ["the dog sleeps"]
    assert "words raised ValueError" in caplog.text
    assert "dog" not in caplog.text
    assert omoide.embed(MeantMemory).failed == 1
    MeantMemory.save_many(memory(f"cat {number}") for number in range(2))
    with pytest.raises(EmbeddingError, match="words raised ValueError"):
        omoide.embed(MeantMemory)
    WORDS.error = None
    assert recall("tea and the dog").metadata["unembedded"] == 3
    told: list[tuple[int, int]] = []
    done = omoide.embed(MeantMemory, progress=lambda looked, total: told.append((looked, total)))
    assert (done.looked, done.embedded, done.failed) == (6, 3, 0)
    assert told == [(6, 6)]
    assert omoide.embed(MeantMemory).embedded == 0
    assert "unembedded" not in recall("tea and the dog").metadata


def test_one_text_that_a_provider_refuses_does_not_stop_the_others(connection: Connection) -> None:
    WORDS.error = OSError()
    MeantMemory.save_many(memory(f"note {number}") for number in range(70))
    WORDS.error, WORDS.poison = None, "note 13"
    done = omoide.embed(MeantMemory, agent_id="a")
    assert (done.looked, done.embedded, done.failed) == (70, 69, 1)
    WORDS.poison = ""
    assert asyncio.run(_embed_async()) == 1


async def _embed_async() -> int:
    return (await omoide.aembed(MeantMemory)).embedded


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        [[1.0], [1.0, 2.0]],
        [[float("nan")], [1.0]],
        [["a"], ["b"]],
        [[], []],
        [[0.0], [0.0]],
    ],
)
def test_what_is_no_vector_is_not_stored(connection: Connection, answer: Any) -> None:
    class OddMemory(DefaultMemory):
        meaning = EmbeddingField(source="content", provider=lambda texts: answer, name="odd")

    outcomes = OddMemory.save_many(OddMemory(agent_id="a", content=text) for text in (PET, TEA))
    assert [(one.stored, one.embedded) for one in outcomes] == [(True, False)] * 2
    assert recall("tea", OddMemory).metadata["without_meaning"] == "provider_answer"


def test_a_provider_that_hangs_leaves_time_for_words(connection: Connection) -> None:
    stuck = threading.Event()

    class SlowMemory(DefaultMemory):
        meaning = EmbeddingField(source="content", provider=lambda texts: stuck.wait(60), name="slow")

    loop = SubconsciousMemory(
        agent_id="a", model=SlowMemory, assembler=ContextAssembler(SlowMemory), deadline=1.0
    )
    try:
        assert loop.extract_memories("Caroline drinks tea, every afternoon at four.")
        _, result = loop.inject_context([{"role": "user", "content": "Who drinks tea?"}])
        assert result.metadata["without_meaning"] == "provider_timeout"
        assert len(result.ids) == 1
    finally:
        stuck.set()


def test_another_provider_is_not_compared_until_vectors_are_made_anew(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def model(provider: Words, name: str) -> type[DefaultMemory]:
        class Changing(DefaultMemory):
            meaning = EmbeddingField(source="content", provider=provider)

            class Meta:
                name = "ChangingMemory"

        Changing.__name__ = name
        return Changing

    first, second, wider = Words("first"), Words("second"), Words("second", 2 * SIZE)
    with contextlib.ExitStack():
        before = model(first, "ChangingBefore")
        before.save_many(before(agent_id="a", content=text) for text in (PET, TEA, DEPLOY))
        assert recall("has a dog", before).metadata["mode"] == "hybrid"
        after = model(second, "ChangingAfter")
        result = recall("has a dog and tea", after)
        assert (result.metadata["without_meaning"], len(result.ids)) == ("other_provider", 1)
        assert "another provider" in caplog.text
        outcome = after(agent_id="a", content="a dog has tea").save()
        assert (outcome.stored, outcome.embedded) == (True, False)
        assert omoide.embed(after).embedded == 4
        assert recall("has a dog", after).metadata["mode"] == "hybrid"
        assert recall("has a dog", before).metadata["without_meaning"] == "other_provider"
        wide = model(wider, "ChangingWide")
        assert recall("has a dog", wide).metadata["without_meaning"] == "other_provider"
        wider.error = OSError("down")
        assert omoide.embed(wide, agent_id="a").embedded == 0
        wider.error = None
        assert omoide.embed(wide, agent_id="a").embedded == 4
        assert recall("has a dog", wide).metadata["mode"] == "hybrid"
        wider.take()
        assert omoide.embed(wide, agent_id="a").embedded == 0
        assert [len(texts) for texts in wider.take()] == [1]
        narrow = model(Words("second"), "ChangingNarrow")
        assert not narrow(agent_id="a", content="a parrot").save().embedded
        assert omoide.embed(narrow).embedded == 5
        assert omoide.embed(wide).embedded == 5
        assert omoide.reindex(before, agent_id="a") == 5
        assert recall("has a dog", before).metadata["mode"] == "hybrid"
        assert [health.findings for health in omoide.doctor(before)] == [()]


# ---- nothing is left behind


def test_an_erased_memory_leaves_no_trace_of_its_vector(
    connection: Connection, valkey_server: ValkeyServer
) -> None:
    pet, tea, _ = fill()
    raw = valkey_server.client()

    def trace(text: str) -> bool:
        unit = vectors.directions([WORDS._vector(text)], 1)
        index = spec_of(MeantMemory).embedding
        assert index is not None
        (slot,) = vectors.slots(unit, [vectors.digest(index.kind, text)])
        held = b"".join(raw.get(key) or b"" for key in raw.scan_iter() if raw.type(key) == b"string")
        return any(part in held for part in (slot, slot[:8], slot[12:]))

    assert trace(PET)
    pet.delete()
    assert not trace(PET)
    tea.update(content="Caroline drinks coffee")
    assert not trace(TEA)
    assert trace(DEPLOY)
    MeantMemory.delete_partition(agent_id="a")
    assert raw.keys() == []
    raw.close()


def test_partitions_keep_their_vectors_apart(connection: Connection) -> None:
    fill()
    WORDS.error = OSError()
    MeantMemory(agent_id="b", content="the dog of b").save()
    WORDS.error = None
    assert omoide.embed(MeantMemory, agent_id="a").embedded == 0
    assert omoide.embed(MeantMemory).embedded == 1
    assert all(record.agent_id == "a" for record in recall("who has a dog?", max_items=50).records)
    assert len(ContextAssembler(MeantMemory).assemble("who has a dog?", agent_id="b").ids) == 1


# ---- async


def test_async_awaits_and_keeps_the_loop_free(connection: Connection) -> None:
    ran: list[str] = []

    async def awaited(texts: list[str]) -> list[list[float]]:
        await asyncio.sleep(0)
        ran.append(threading.current_thread().name)
        return WORDS(texts)

    def blocking(texts: list[str]) -> list[list[float]]:
        ran.append(threading.current_thread().name)
        return WORDS(texts)

    class AwaitedMemory(DefaultMemory):
        meaning = EmbeddingField(source="content", provider=awaited)

    class BlockingMemory(DefaultMemory):
        meaning = EmbeddingField(source="content", provider=blocking)

    async def use(model: type[DefaultMemory]) -> Any:
        outcomes = await model.asave_many([model(agent_id="a", content=text) for text in (PET, TEA)])
        assert all(one.embedded for one in outcomes)
        return await ContextAssembler(model, track=False).aassemble("who has a dog?", agent_id="a")

    for model, places in ((AwaitedMemory, {"MainThread"}), (BlockingMemory, {"omoide-embedding"})):
        result = asyncio.run(use(model))
        assert (result.records[0].content, result.metadata["mode"]) == (PET, "hybrid")
        assert set(ran) == places
        ran.clear()
    assert AwaitedMemory(agent_id="b", content=PET).save().embedded
    assert recall("who has a dog?", AwaitedMemory).metadata["mode"] == "hybrid"


# ---- definitions


def test_a_model_has_one_embedding_field_of_text(connection: Connection) -> None:
    with pytest.raises(ModelError, match="two fields of the kind EmbeddingField"):

        class Twice(DefaultMemory):
            one = EmbeddingField(source="content", provider=WORDS)
            two = EmbeddingField(source="content", provider=WORDS)

    with pytest.raises(ModelError, match="source must name a text field"):

        class Nowhere(DefaultMemory):
            one = EmbeddingField(source="importance", provider=WORDS)

    for wrong in ({"provider": "words"}, {"provider": WORDS, "timeout": 0}, {"provider": WORDS, "least": 2}):
        with pytest.raises(ModelError, match="EmbeddingField needs"):
            EmbeddingField(source="content", **wrong)
    with pytest.raises(ModelError, match="has no EmbeddingField"):
        omoide.embed(DefaultMemory)
    assert MeantMemory(agent_id="a", content=PET, author="Ann").meaning == f"Ann: {PET}"
    with pytest.raises(omoide.FieldError, match="is derived from content"):
        MeantMemory(agent_id="a", meaning="x")
