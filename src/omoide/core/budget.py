"""A token budget: what of a ranked list fits into a prompt.

Packing is greedy in rank order. An item that does not fit is skipped, not the ones behind it, so
one long memory cannot starve the rest; what is kept stays in rank order, and what is left out is
listed with its reason. When not even the first fits alone it is cut, with a visible mark.

A token counter need not be additive (a tokeniser merges across joints), so parts are added up
only to choose; what counts is the count of the whole text, which never passes the budget.

Cost: one count when all fits, which is tried first; else one per item, one or few of the whole, and
a binary search for a cut.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

CUT_MARK = "… [cut]"
OVER_BUDGET = "over_budget"
NO_ROOM = "no_room"

_DENSE = re.compile(r"(?<![!-~])[!-~]{25,}")  # a run is measured once, from its start
_WIDE = 0x1100
_ASTRAL = 0x10000
_WIDEST = 16
"""Characters that a token hardly ever exceeds: what is longer is not tried as a whole."""


class TokenCounter(Protocol):
    """Anything that says how many tokens a text takes, such as `len(tokenizer.encode(text))`."""

    def __call__(self, text: str, /) -> int: ...


def estimate_tokens(text: str) -> int:
    """Tokens of a text, estimated without a tokeniser, rather too many than too few.

    Latin text: four characters a token. Letters of other alphabets and accented ones: two. Han,
    Kana, Hangul and everything from U+1100 on: one token a character, emoji two. An unbroken run
    of 25 ASCII characters or more (base64, hashes, long URLs): four characters take three tokens.
    Not empty: at least 1. Pass a real tokeniser as `token_counter` where the exact number matters.
    Cost: linear; 2 us for 1 kB of ASCII.
    """
    if not text:
        return 0
    dense = sum(len(run) for run in _DENSE.findall(text))
    quarters = len(text) + 2 * dense
    if not text.isascii():
        quarters += sum(_surcharge(ord(char)) for char in text if char > "\x7f")
    return max(1, math.ceil(quarters / 4))


def _surcharge(code: int) -> int:
    """Quarter tokens that a character outside ASCII takes beyond the first."""
    if code < _WIDE:
        return 1
    return 3 if code < _ASTRAL else 7


@dataclass(frozen=True, slots=True)
class Packed:
    """`text` is what fits; `kept` the positions of its items, ascending.

    `dropped`: (position, `over_budget` or `no_room`). `cut`: the first item was shortened.
    `tokens`: the count of `text`.
    """

    text: str
    kept: tuple[int, ...]
    dropped: tuple[tuple[int, str], ...]
    cut: bool
    tokens: int


def pack(
    items: Sequence[str],
    compose: Callable[[Sequence[tuple[int, str]]], str],
    *,
    max_tokens: int,
    count: TokenCounter = estimate_tokens,
) -> Packed:
    """Choose the items whose composed text stays within `max_tokens`.

    Args:
        items: Texts in rank order.
        compose: Makes the whole text, header and labels included, of (position, text) pairs.
        max_tokens: Most tokens of the whole.
    Returns:
        Packed; its text is empty when nothing fits.
    """
    if not items:
        return Packed("", (), (), False, 0)
    if sum(map(len, items)) <= max_tokens * _WIDEST:
        text = compose(list(enumerate(items)))
        tokens = count(text)
        if tokens <= max_tokens:
            return Packed(text, tuple(range(len(items))), (), False, tokens)
    chosen = _choose(items, compose, max_tokens, count)
    while chosen:
        pairs = [(position, items[position]) for position in chosen]
        text = compose(pairs)
        tokens = count(text)
        if tokens <= max_tokens:
            return Packed(text, tuple(chosen), _left_out(items, chosen, OVER_BUDGET), False, tokens)
        if len(chosen) == 1:
            break
        chosen.pop()
    return _cut_first(items, compose, max_tokens, count)


def _choose(
    items: Sequence[str],
    compose: Callable[[Sequence[tuple[int, str]]], str],
    max_tokens: int,
    count: TokenCounter,
) -> list[int]:
    """Positions that fit by the sum of their parts; the first always stays, to be cut if need be."""
    frame = count(compose([]))
    spent = frame
    chosen: list[int] = []
    for position, item in enumerate(items):
        cost = max(0, count(compose([(position, item)])) - frame)
        if spent + cost <= max_tokens:
            chosen.append(position)
            spent += cost
        elif position == 0:
            return [0]
    return chosen


def _cut_first(
    items: Sequence[str],
    compose: Callable[[Sequence[tuple[int, str]]], str],
    max_tokens: int,
    count: TokenCounter,
) -> Packed:
    """The longest beginning of the first item that fits, found by doubling and bisection."""
    first = items[0]

    def attempt(size: int) -> tuple[str, int]:
        text = compose([(0, first[:size].rstrip() + CUT_MARK)])
        return text, count(text)

    low, high = 0, 16
    while high < len(first) and attempt(high)[1] <= max_tokens:
        low, high = high, high * 2
    high = min(high, len(first))
    while high - low > 1:
        middle = (low + high) // 2
        if attempt(middle)[1] <= max_tokens:
            low = middle
        else:
            high = middle
    text, tokens = attempt(low)
    if low == 0 or tokens > max_tokens:
        return Packed("", (), _left_out(items, (), NO_ROOM), False, 0)
    return Packed(text, (0,), _left_out(items, (0,), OVER_BUDGET), True, tokens)


def _left_out(items: Sequence[str], kept: Sequence[int], reason: str) -> tuple[tuple[int, str], ...]:
    """Every position not kept, with the reason."""
    held = set(kept)
    return tuple((position, reason) for position in range(len(items)) if position not in held)


__all__ = ["CUT_MARK", "NO_ROOM", "OVER_BUDGET", "Packed", "TokenCounter", "estimate_tokens", "pack"]
