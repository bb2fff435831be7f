import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omoide.core import listing
from omoide.core.columns import DEAD, Columns, Ranges, pack
from omoide.errors import QueryError


def partition(seed: int, size: int) -> tuple[Columns, dict[int, tuple[float, int, int]]]:
    """Columns, and row -> (importance, confidence in steps, time) of the live rows; many ties."""
    rng = random.Random(seed)
    columns, live = Columns(), {}
    for row in range(1, size + 1):
        importance, steps, time = rng.choice([0.25, 0.5]), rng.choice([10, 60_000]), rng.randint(1, 4)
        dead = rng.random() < 0.3
        columns.extend(
            pack(flags=DEAD if dead else 0, importance=importance, confidence=steps / 65535, time=time)
        )
        if not dead:
            live[row] = (importance, steps, time)
    return columns, live


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 30]),
    st.sampled_from(["time", "importance", "confidence"]),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 12)),
    st.integers(0, 25),
    st.booleans(),
)
def test_pages_are_those_of_a_sorted_list(seed, size, order, descending, limit, offset, filtered):
    columns, live = partition(seed, size)
    options = {}
    if filtered:
        options["allowed"] = np.arange(2, size + 1, 2)
        options["excluded"] = {4, 6}
        options["ranges"] = Ranges(time=(2, None))
        live = {row: v for row, v in live.items() if row % 2 == 0 and row not in (4, 6) and v[2] >= 2}
    column = {"importance": 0, "confidence": 1, "time": 2}[order]
    sign = -1 if descending else 1

    def place(row: int) -> tuple[float, int]:
        value = live[row]
        return sign * value[column], sign * value[2] if order == "time" else -value[2]

    expected = sorted(live, key=lambda row: (*place(row), -row))
    end = None if limit is None else offset + limit
    page = listing.select(columns, limit=limit, offset=offset, order=order, descending=descending, **options)
    resolved = sorted(page.rows, key=lambda row: (*place(row), -row))
    stop = None if limit is None else page.skip + limit
    assert resolved[page.skip : stop] == expected[offset:end]
    assert [place(row) for row in page.rows] == sorted(place(row) for row in page.rows)
    assert listing.count(columns, **options) == len(live)


def test_a_page_carries_no_more_than_its_ties():
    columns = Columns()
    columns.extend(b"".join(pack(time=row // 3) for row in range(1, 31)))
    page = listing.select(columns, limit=4, offset=10)
    assert sorted(page.rows, reverse=True)[page.skip :][:4] == [20, 19, 18, 17]
    assert len(page.rows) <= 8


def test_an_unknown_order_is_refused():
    with pytest.raises(QueryError):
        listing.select(Columns(), limit=1, order="length")
