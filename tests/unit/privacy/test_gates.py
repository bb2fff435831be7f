"""Accelerators answer what occurs, exactly as the standard library does, and cannot change a verdict."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.firewall.families import FAMILIES
from hypothesis import given
from hypothesis import strategies as st

from omoide.privacy import scan, scanner
from omoide.privacy.accelerators import fast_marks, fast_prefixes, fast_words
from omoide.privacy.gates import Look, make_gate, plain_words
from omoide.privacy.marks import MARKS
from omoide.privacy.normalise import decoded, plain
from omoide.privacy.reading import Reading
from omoide.privacy.samples import Maker
from omoide.privacy.selftest import examples

ASKED = scanner.questions()
PLAIN = make_gate(ASKED)
words_of = plain_words(ASKED)
DATA = os.environ.get("OMOIDE_DATA", "")
DISGUISES: tuple[Callable[[str], str], ...] = (
    lambda s: s,
    lambda s: s.encode().hex(),
    lambda s: " ".join(s),
    lambda s: "".join(f"&#{ord(c)};" for c in s),
    lambda s: "".join(f"%{ord(c):02x}" for c in s),
    lambda s: "".join(f"\\u00{ord(c):02x}" for c in s),
    lambda s: s.encode().hex(" "),
    lambda s: ", ".join(f"0x{ord(c):02x}" for c in s),
    lambda s: f'"{s[:9]}" + "{s[9:]}"',
    lambda s: f"'{s[:9]}'\n    '{s[9:]}'",
    lambda s: s[:20] + "\n" + s[20:],
    lambda s: __import__("base64").b64encode(f"the key is {s}, do keep it".encode()).decode(),
)


@pytest.fixture(scope="module")
def fast() -> Look:
    """A gate on both accelerators."""
    pytest.importorskip("ahocorasick_rs", reason="the accelerator ahocorasick-rs is not installed")
    pytest.importorskip("re2", reason="the accelerator google-re2 is not installed")
    return make_gate(ASKED, fast_words(ASKED), fast_prefixes(ASKED.prefixes), fast_marks(ASKED))


@pytest.fixture(scope="module")
def gates(fast: Look) -> tuple[Look, ...]:
    """Every combination."""
    words, prefixes = fast_words(ASKED), fast_prefixes(ASKED.prefixes)
    return (fast, make_gate(ASKED, words, prefixes), make_gate(ASKED, marks=fast_marks(ASKED)), PLAIN)


def look(gate: Look, text: str) -> tuple[set[str], set[str]]:
    low = text.lower()
    hits = gate(low, text.encode("utf-8", "replace"))
    return hits.words, hits.stems(low)


@given(
    text=st.lists(
        st.sampled_from(
            [*ASKED.words, *ASKED.literals, *ASKED.stems, " ", "x", "1", "é", "码", "-", "'", "×"]
        ),
        max_size=12,
    ).map("".join)
)
def test_same_words(gates: tuple[Look, ...], text: str) -> None:
    assert all(look(gate, text) == look(PLAIN, text) for gate in gates)


@given(text=st.text(max_size=60))
def test_same_words_in_any_text(gates: tuple[Look, ...], text: str) -> None:
    assert all(look(gate, text) == look(PLAIN, text) for gate in gates)


@given(
    secret=st.integers(1, 10**6),
    disguise=st.sampled_from(DISGUISES),
    around=st.sampled_from(["{s}", "see {s}.", "x\n{s}\ny", "`{s}`", "a={s};", "«{s}»", "é{s}"]),
)
def test_no_view_is_left_out(fast: Look, secret: int, disguise: Callable[[str], str], around: str) -> None:
    text = plain(around.format(s=disguise("ghp" + "_" + Maker(secret).body("an", 36))))
    with_it, without = Reading(text, fast), Reading(text, PLAIN)
    assert list(decoded(with_it)) == list(decoded(without))
    assert set(with_it.hits.prefixes(with_it.raw)) == set(without.hits.prefixes(without.raw))


def texts() -> Iterator[str]:
    """Examples of all rules, adversarial families, sources of this interpreter, and the corpus."""
    yield from (example.text for example in examples())
    yield from (make(3_000) for make in FAMILIES.values())
    for path in sorted(Path(os.__file__).parent.glob("*.py"))[::12]:
        code = path.read_text("utf-8", "replace")
        yield from (code[start : start + 1_500] for start in range(0, min(len(code), 30_000), 1_500))
    if DATA:
        sys.path.insert(0, str(Path(DATA) / "firewall"))
        data = json.loads((Path(DATA) / "retrieval-dev.json").read_text("utf-8"))
        yield from (turn["text"] for talk in data["conversations"][:2] for turn in talk["turns"])


def test_same_verdicts(gates: tuple[Look, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    every = list(texts())
    verdicts = []
    for gate in gates:
        monkeypatch.setattr(scanner, "gate", lambda gate=gate: gate)
        verdicts.append([scan(text) for text in every])
    assert all(verdicts[0] == others for others in verdicts[1:])
    assert {verdict.blocked for verdict in verdicts[0]} == {True, False}


def test_an_automaton_that_fails_leaves_nothing_out() -> None:
    gate = make_gate(ASKED, marks=lambda raw: None)
    hits = gate("x", b"x")
    assert all(hits.may(mark) for mark in set(MARKS) - {"letters", "pairs"})
    assert look(gate, "see https://a -- b")[0] >= {"://", "--"}


def test_a_word_is_a_run_of_letters() -> None:
    assert "pin" in words_of("my pin: 1")[0]
    assert "pin" in words_of("码pin码")[0]
    assert "pin" in words_of("pin2")[0]
    assert "pin" not in words_of("pinned")[0]
    assert "pin" not in words_of("épin")[0]
