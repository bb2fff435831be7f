"""Budget: never exceeded, rank order kept, nothing dropped without a reason."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.budget import CUT_MARK, NO_ROOM, OVER_BUDGET, estimate_tokens, pack

texts = st.lists(st.text(max_size=120), max_size=12)


def compose(pairs: Sequence[tuple[int, str]]) -> str:
    return "\n".join(["HEAD", *(f"- {text}" for _, text in pairs)])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("word " * 8, 10), ("成語しりとり", 6), ("한국어", 3)],
)
def test_estimate(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_estimate_is_conservative_for_dense_text() -> None:
    blob = base64.b64encode(bytes(range(256)) * 4).decode()
    assert estimate_tokens(blob) >= 0.7 * len(blob)
    assert estimate_tokens("Привет мир") >= 4


@given(texts, st.integers(0, 200), st.sampled_from(["estimate", "chars", "square", "words"]))
def test_never_exceeds_the_budget(items: list[str], most: int, kind: str) -> None:
    counters = {
        "estimate": estimate_tokens,
        "chars": len,
        "square": lambda text: len(text) ** 2 // 40,
        "words": lambda text: len(text.split()),
    }
    packed = pack(items, compose, max_tokens=most, count=counters[kind])
    assert counters[kind](packed.text) <= most or packed.text == ""
    assert list(packed.kept) == sorted(set(packed.kept))
    assert sorted([*packed.kept, *(position for position, _ in packed.dropped)]) == list(range(len(items)))
    if packed.text and not packed.cut:
        assert packed.text == compose([(position, items[position]) for position in packed.kept])


def test_what_does_not_fit_is_skipped_and_the_rest_stays_in_rank_order() -> None:
    packed = pack(["one", "x" * 400, "three"], compose, max_tokens=30, count=len)
    assert packed.kept == (0, 2)
    assert packed.dropped == ((1, OVER_BUDGET),)
    assert packed.text == "HEAD\n- one\n- three"
    assert packed.tokens == len(packed.text)


def test_a_first_item_too_large_is_cut_with_a_mark() -> None:
    packed = pack(["word " * 500, "b" * 90], compose, max_tokens=60, count=len)
    assert packed.cut
    assert packed.kept == (0,)
    assert packed.text.endswith(CUT_MARK)
    assert 50 <= len(packed.text) <= 60
    assert packed.dropped == ((1, OVER_BUDGET),)


@pytest.mark.parametrize("item", ["語" * 5_000, "QUJD" * 20_000, "😀" * 3_000])
def test_worst_case_text_keeps_the_budget(item: str) -> None:
    packed = pack([item, item], compose, max_tokens=100)
    assert packed.cut
    assert 0 < packed.tokens <= 100


def test_no_room_at_all_says_so() -> None:
    packed = pack(["some text", "more"], compose, max_tokens=5, count=len)
    assert (packed.text, packed.kept, packed.cut) == ("", (), False)
    assert packed.dropped == ((0, NO_ROOM), (1, NO_ROOM))


def test_the_cut_looks_only_at_what_can_fit() -> None:
    seen: list[int] = []

    def count(text: str) -> int:
        seen.append(len(text))
        return len(text)

    pack(["x" * 1_000_000], compose, max_tokens=100, count=count)
    whole = [size for size in seen if size > 1_000]
    assert len(whole) <= 3
    assert len(seen) < 30
