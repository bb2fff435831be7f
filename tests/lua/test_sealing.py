"""Lists of every length: sealing, nulls in every region, dropping and refilling, next to the oracle."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from memories import Keys, Mirror

from omoide.core.postings import Tail


def fill(held: Mirror, count: int, *, start: int = 1) -> None:
    for number in range(start, start + count):
        extra = " rare" if number % 100 == 0 else ""
        held.save(str(number), "fish" + " cat" * (number % 5) + extra, importance=number % 7 / 6)


@pytest.mark.parametrize("count", [64, 65, 128, 1024, 1025, 1100])
def test_erasing_in_every_region(count: int, mirror: Callable[..., Mirror]) -> None:
    held = mirror()
    fill(held, count)
    held.agrees("fish", "cat", "rare fish")
    sealed = (count - 1) // 64 * 64
    regions = {1, 2, 64, min(1024, count), sealed // 2 + 1, max(sealed, 1), sealed + 1, count - 1, count}
    for row in sorted(regions):
        held.erase(str(row))
        held.agrees("fish", limit=5)
    held.agrees("fish cat", "cat", "rare")


def test_two_whole_segments(mirror: Callable[..., Mirror], full: bool) -> None:
    held = mirror()
    fill(held, 2_050)
    held.agrees("fish", "cat rare")
    for row in (1, 512, 1024, 1025, 1500, 2047, 2048, 2049, 2050):
        held.erase(str(row))
    held.agrees("fish", "cat rare")
    names = [str(row) for row in range(2, 1024) if str(row) in held.documents]
    for at in range(0, len(names), 16):  # the first segment holds nothing but nulls now
        held.erase(*names[at : at + 16])
    held.agrees("fish", "cat rare")
    held.save("1026", "fish again")  # an update beside the segment of nulls
    held.erase("1027")
    held.agrees("fish", "again", "cat")
    fill(held, 130 if not full else 2_000, start=3_000)
    held.agrees("fish", "cat rare")


@pytest.mark.parametrize("count", [3, 64, 65, 200])
def test_a_term_that_is_dropped_and_filled_again(
    count: int, mirror: Callable[..., Mirror], keys: Keys
) -> None:
    held = mirror()
    fill(held, count)
    held.save("stays", "meat")
    held.agrees("fish", "cat")
    names = [name for name in held.documents if name != "stays"]
    for at in range(0, len(names), 16):
        held.erase(*names[at : at + 16])
    assert keys.redis.hget(keys.name(held.scope, "t"), "fish") is None
    assert keys.redis.hlen(keys.name(held.scope, "s")) == 0
    held.agrees("fish", "cat", "meat")
    fill(held, count + 3, start=500)
    held.agrees("fish", "cat", "meat")


def test_nulls_that_are_sealed_still_count(mirror: Callable[..., Mirror], keys: Keys) -> None:
    held = mirror()
    fill(held, 60)
    held.erase("2", "59", "60")
    fill(held, 70, start=100)
    tail = Tail.parse(keys.redis.hget(keys.name(held.scope, "t"), "fish"))
    assert (tail.sealed, tail.nulls, tail.df) == (2, 3, 127)
    held.agrees("fish", "cat")


def test_a_block_whose_postings_are_all_null_is_sealed(mirror: Callable[..., Mirror], keys: Keys) -> None:
    """The header keeps the last row of the block before, and newer rows are still found behind it."""
    held = mirror()
    fill(held, 128)
    names = [str(row) for row in range(65, 128)]
    for at in range(0, len(names), 16):
        held.erase(*names[at : at + 16])
    held.save("new", "fish")
    held.agrees("fish", "cat")
    held.erase("128")
    fill(held, 64, start=200)
    held.agrees("fish", "cat", limit=50)
    held.erase("200", "64", "new")
    held.agrees("fish", limit=50)


@pytest.mark.parametrize("pivot", [32, None])
def test_updates_of_sealed_rows(pivot: int | None, mirror: Callable[..., Mirror]) -> None:
    held = mirror(pivot=pivot)
    fill(held, 200)
    for row in (1, 64, 65, 128, 129, 192, 193, 200):
        held.save(str(row), f"fish moved{row} cat cat")
        held.save(str(row), f"fish moved{row}")
        held.agrees("fish", f"moved{row}", "cat")


def test_a_list_that_a_cache_holds_grows_by_other_hands(mirror: Callable[..., Mirror]) -> None:
    """The client reader asks for what is above the last row it holds, over sealed and open parts."""
    held = mirror()
    stale = held.server
    fill(held, 50)
    held.agrees("fish")
    for number in range(10):
        other = Mirror(held.scope, stale, stale, held.documents)  # the cache of `client` does not see these
        fill(other, 40, start=1000 + 100 * number)
        other.erase(str(1000 + 100 * number))
        held.agrees("fish", "cat", "rare")


def test_two_thousand_terms_of_one_text(mirror: Callable[..., Mirror]) -> None:
    held = mirror()
    held.save("long", " ".join(f"w{number}" for number in range(2_048)))
    held.save("long", " ".join(f"w{number}" for number in range(1, 2_049)))
    held.save("short", "w5 w2048")
    held.agrees("w5", "w0", "w2048 w7")
    held.erase("long")
    held.agrees("w5", "w7")
