"""Redaction leaves no part of a secret, or nothing at all."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omoide.privacy import redact, scan
from omoide.privacy.rulefiles import read
from omoide.privacy.samples import Maker

ROWS = read("tokens")["tokens"]
CASES = 1000 if os.environ.get("OMOIDE_FULL") else 150
TEXTS = [
    "can you check {s} for me please",
    "{s}",
    "two things: {s}\nand lunch at noon",
    "key=({s}), next",
    "see\n{s}\nthanks",
    'token = "{s}"; do it',
    "the old {s} and again {s} here",
]


def pieces(secret: str, size: int = 8) -> set[str]:
    return {secret[i : i + size] for i in range(len(secret) - size + 1)}


@settings(max_examples=CASES, deadline=None)
@given(
    row=st.sampled_from(ROWS), text=st.sampled_from(TEXTS), seed=st.integers(1, 10**6), cut=st.integers(0, 30)
)
def test_no_part_of_a_token_is_left(row: dict[str, object], text: str, seed: int, cut: int) -> None:
    least, most = row["size"]  # type: ignore[misc]
    body = Maker(seed).body(str(row["body"]), min(most, max(least, 24)))
    secret = row["prefixes"][0] + body  # type: ignore[index]
    whole = secret if cut < 20 or len(secret) < 30 else secret[:20] + "\n" + secret[20:]
    result = redact(text.format(s=whole))
    if result.verdicts:
        left = result.text.replace("\n", "")
        assert not any(piece in left for piece in pieces(body))
        assert not scan(result.text).blocked


@settings(max_examples=CASES, deadline=None)
@given(
    text=st.sampled_from(
        [
            "my password is {s} ok",
            "DB_PASSWORD={s}\nPORT=1",
            "the wifi password is {s}, and lunch",
            "login as bob pw {s}\nthanks",
            "a://u:{s}@h.io/x",
        ]
    ),
    seed=st.integers(1, 10**6),
)
def test_no_part_of_a_password_is_left(text: str, seed: int) -> None:
    secret = "Otter" + Maker(seed).body("an", 9) + "7!"
    result = redact(text.format(s=secret))
    assert result.verdicts
    assert not any(piece in result.text for piece in pieces(secret, 6))


@settings(max_examples=CASES, deadline=None)
@given(
    rows=st.lists(st.sampled_from(ROWS), min_size=1, max_size=3),
    line=st.sampled_from(
        ["{n}={s}", "{n} = {s}", "{n}: {s}", '  "{n}": "{s}",', "export {n}='{s}'", "{n} {s}"]
    ),
    seed=st.integers(1, 10**6),
)
def test_no_secret_is_left_without_its_name(rows: list[dict[str, object]], line: str, seed: int) -> None:
    """Taking one secret out must not take away the name by which the next is known."""
    maker = Maker(seed)
    bodies = [maker.body("an", 40) for _ in range(2)]
    lines = []
    for place, row in enumerate(rows):
        least, most = row["size"]  # type: ignore[misc]
        kind = "an" if row["body"] == "word" else str(row["body"])
        body = maker.body(kind, min(most, max(least, 24)))
        lines.append(line.format(n=f"VALUE_{place}", s=row["prefixes"][0] + body))  # type: ignore[index]
        bodies.append(body)
    lines[1:1] = [line.format(n="aws_secret_access_key", s=bodies[0])]
    lines += [line.format(n="CLIENT_SECRET", s=bodies[1])]
    known = [body for body in bodies if any(body in one and scan(one).blocked for one in lines)]
    assert known
    left = redact("\n".join(lines)).text
    assert not any(piece in left for body in known for piece in pieces(body))


def test_what_is_added_to_a_piece_goes_with_it() -> None:
    first, second = "xox" + "b-427688398976-2785092093", "643-" + Maker(6).body("an", 24)
    assert second[:8] not in redact(f'use "{first}" + "{second}" thanks').text


def test_the_words_of_a_wallet_go() -> None:
    words = "silver cobalt mango harbor river pumpkin piano meadow otter ember amber tiger"
    left = redact(f"my seed phrase is: {words}\nNot on Fridays, says Mia.").text
    assert not set(words.split()) & set(left.split())
    assert "Mia" in left


def test_what_is_around_the_secret_stays() -> None:
    secret = "gh" + "p_" + Maker(5).body("an", 36)
    result = redact(f"why does {secret} fail with 401?")
    assert result.text == "why does fail with 401?"
    assert result.removed == 1
    assert result.verdicts[0].rule == "github"


def test_a_clean_text_is_returned_as_it_is() -> None:
    result = redact("what did  Bob say about ‘tea’?")
    assert result.text == "what did  Bob say about ‘tea’?"
    assert (result.verdicts, result.removed) == ((), 0)


def test_off_the_record_drops_everything() -> None:
    assert redact("Off the record: Mark is leaving. What is for lunch?").text == ""


def test_a_key_block_goes_as_a_whole() -> None:
    begin, end = ("-" * 5 + f"{word} PRIV" + "ATE KEY" + "-" * 5 for word in ("BEGIN", "END"))
    body = "\n".join(Maker(line).body("an", 64) for line in range(1, 9))
    result = redact(f"look:\n{begin}\n{body}\n{end}\nthanks")
    assert not any(piece in result.text for piece in pieces(body.replace("\n", "")))


@pytest.mark.parametrize(
    "disguise", [lambda s: s.encode().hex(), lambda s: "".join(f"&#{ord(c)};" for c in s), " ".join]
)
def test_a_disguise_goes_with_its_secret(disguise) -> None:  # type: ignore[no-untyped-def]
    secret = "gl" + "pat-" + Maker(5).body("an", 24)
    assert disguise(secret)[:12] not in redact(f"use {disguise(secret)} thanks").text
