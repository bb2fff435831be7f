"""The accelerator answers which words occur, exactly as the plain gate does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.privacy import scan, scanner
from omoide.privacy.gates import fast_gate, plain_gate
from omoide.privacy.selftest import examples

WORDS = scanner.gate_words()
PLAIN = plain_gate(*WORDS)


@pytest.fixture(scope="module")
def fast():  # type: ignore[no-untyped-def]
    pytest.importorskip("ahocorasick_rs", reason="the accelerator ahocorasick-rs is not installed")
    return fast_gate(*WORDS)


def stems_of(low: str) -> set[str]:
    return {stem for stem in WORDS[2] if stem in low}


@given(
    text=st.lists(
        st.sampled_from([*WORDS[0], *WORDS[1], *WORDS[2], " ", "x", "1", "é", "码", "-", "'"]), max_size=12
    ).map("".join)
)
def test_same_words(fast, text: str) -> None:  # type: ignore[no-untyped-def]
    low = text.lower()
    assert fast(low).words == PLAIN(low).words


@given(text=st.text(max_size=60))
def test_same_words_in_any_text(fast, text: str) -> None:  # type: ignore[no-untyped-def]
    low = text.lower()
    assert fast(low).words == PLAIN(low).words


@pytest.mark.parametrize("example", list(examples())[::3], ids=lambda e: e.rule)
def test_same_verdict(fast, monkeypatch: pytest.MonkeyPatch, example) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(scanner, "gate", lambda: fast)
    with_it = scan(example.text)
    monkeypatch.setattr(scanner, "gate", lambda: PLAIN)
    assert scan(example.text) == with_it


def test_a_word_is_a_run_of_letters() -> None:
    assert "pin" in PLAIN("my pin: 1").words
    assert "pin" in PLAIN("码pin码").words
    assert "pin" in PLAIN("pin2").words
    assert "pin" not in PLAIN("pinned").words
    assert "pin" not in PLAIN("épin").words
