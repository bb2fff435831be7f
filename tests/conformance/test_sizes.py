"""How many bytes a document costs on the server: every key but the records themselves.

2,000 documents by default, the 20,000 of the bar with OMOIDE_FULL=1.
"""

from __future__ import annotations

import os
import random

from omoide import BM25Field, FloatField, KeyField, Model, StringField
from omoide.connection import Connection
from omoide.fields import AutoKeyField, ConfidenceField, DecayingSortedField
from omoide.recipes import DefaultMemory
from omoide.testing import ValkeyServer

DOCUMENTS = 20_000 if os.environ.get("OMOIDE_FULL") == "1" else 2_000
VOCABULARY = 30_000
SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvwxyz" for vowel in "aeiou"]


class Footnote(Model):
    """The indexes of DefaultMemory without access counts, links and firewall."""

    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    text = BM25Field(source="content", stem=False, stop_words=())


def word(number: int) -> str:
    """One of 30,000 made-up words, of 2 to 6 letters; the frequent ones are short, as in English."""
    letters = SYLLABLES[number % 100]
    while number := number // 100:
        letters += SYLLABLES[number % 100]
    return letters


def text(source: random.Random, distinct: int) -> str:
    """A text of so many distinct words, long-tailed as language is."""
    words: set[str] = set()
    while len(words) < distinct:
        words.add(word(int(VOCABULARY ** source.random())))
    return " ".join(sorted(words))


def usage(server: ValkeyServer) -> dict[str, int]:
    """Letter of a key -> bytes, the keys of all partitions together."""
    found: dict[str, int] = {}
    for key in server.command("KEYS", "*"):
        letter = key.decode().rpartition(":")[2]
        found[letter] = found.get(letter, 0) + server.command("MEMORY", "USAGE", key, "SAMPLES", 0)
    return found


def test_index_bytes_a_document(connection: Connection, valkey_server: ValkeyServer) -> None:
    source = random.Random(5)
    for _ in range(0, DOCUMENTS, 1000):
        notes = [Footnote(agent_id="a", content=text(source, 22)) for _ in range(1000)]
        assert all(Footnote.save_many(notes))
    sizes = usage(valkey_server)
    index = sum(size for letter, size in sizes.items() if letter != "r") / DOCUMENTS
    bare = index - sizes["f"] / DOCUMENTS
    by_key = {letter: round(size / DOCUMENTS, 1) for letter, size in sorted(sizes.items())}
    # A term costs a fixed amount however often it occurs: fewer documents bear more of it each.
    most, most_bare = (500, 300) if DOCUMENTS == 20_000 else (700, 500)
    assert index <= most, f"{index:.0f} bytes a document, by key {by_key}"
    assert bare <= most_bare, f"{bare:.0f} bytes a document without the footprint, by key {by_key}"


def test_a_whole_record_of_a_hundred_words(connection: Connection, valkey_server: ValkeyServer) -> None:
    source = random.Random(7)
    count = 500
    memories = [
        DefaultMemory(agent_id="a", content=text(source, 100), tags={"work"}, session_id="s", author="Ann")
        for _ in range(count)
    ]
    assert all(DefaultMemory.save_many(memories))
    each = sum(usage(valkey_server).values()) / count
    assert each <= 4096, f"{each:.0f} bytes a record, by key {usage(valkey_server)}"


def test_updates_do_not_grow_the_index_without_end(
    connection: Connection, valkey_server: ValkeyServer
) -> None:
    """Erased rows leave a null posting and a dead row, nothing else."""
    source, rounds = random.Random(9), 3
    notes = [Footnote(agent_id="a", content=text(source, 22)) for _ in range(200)]
    Footnote.save_many(notes)
    before = usage(valkey_server)
    for _ in range(rounds):
        for note in notes:
            note.content = text(source, 22)
        assert all(Footnote.save_many(notes))
    after = usage(valkey_server)
    dead = rounds * len(notes)
    grown = {letter: size - before.get(letter, 0) for letter, size in after.items()}
    assert grown["a"] <= dead * 32 * 2 + 4096
    assert sum(size for letter, size in grown.items() if letter not in "ax") < dead * 22 * 8 + 100_000, grown
