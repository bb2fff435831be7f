"""The measures behind the verdicts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.privacy.judge import is_reference, is_secret
from omoide.privacy.samples import Maker
from omoide.privacy.values import (
    base58check,
    iban,
    is_degenerate,
    is_random,
    is_vocabulary,
    luhn,
    rare_pairs,
    transitions,
)


@pytest.mark.parametrize("kind", ["an", "hex", "low"])
def test_random_bodies_change_class_often(kind: str) -> None:
    assert min(transitions(Maker(seed).body(kind, 40)) for seed in range(1, 60)) > 0.2


@pytest.mark.parametrize(
    "word", ["AuthenticationManager", "my_database_connection", "internationalization", "/usr/lib/python3"]
)
def test_words_do_not(word: str) -> None:
    assert transitions(word) < 0.18
    assert rare_pairs(word) < 0.2
    assert not is_random(word)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 20,
        "abcdefghijkl",
        "your_api_key",
        "sk-1234567890",
        "<token>",
        "${TOKEN}",
        "EXAMPLEKEY",
        "qwertyuiop",
        "a...b",
    ],
)
def test_placeholders_are_degenerate(value: str) -> None:
    assert is_degenerate(value)


@pytest.mark.parametrize(
    "value", ["mypassword", "my_db_password", "secretKey123", "changeme", "your-api-key-here"]
)
def test_placeholder_vocabulary(value: str) -> None:
    assert is_vocabulary(value) or is_degenerate(value)


@pytest.mark.parametrize("value", ["OtterLantern84", "Xk3!pQ9z", "correct-horse-77"])
def test_passwords_are_not_vocabulary(value: str) -> None:
    assert not is_vocabulary(value)


@given(st.text(max_size=200))
def test_measures_take_any_text(text: str) -> None:
    assert 0.0 <= transitions(text) <= 1.0
    assert 0.0 <= rare_pairs(text) <= 1.0
    is_degenerate(text)
    is_vocabulary(text)


def test_check_digits() -> None:
    assert luhn("4111111111111111")
    assert not luhn("4111111111111112")
    assert iban("DE89 3704 0044 0532 0130 00")
    assert not iban("DE88 3704 0044 0532 0130 00")
    assert not base58check("K" + "x" * 51)


def test_a_random_value_is_no_identifier_whatever_it_ends_in() -> None:
    assert is_reference("PaymentClientRequestId", quoted=False)
    for end in ("Id", "Key", "Url", "Map", "Set"):
        value = Maker(12).body("an", 40 - len(end)) + end
        assert not is_reference(value, quoted=False)
        assert is_secret(value, quoted=False, strong=True)
