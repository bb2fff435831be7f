"""What a text says about time."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omoide.core.text import cues
from omoide.core.text.cues import PartialDate, asks_when, dates_named, has_time_cue, match

PARTIAL = st.tuples(
    st.none() | st.integers(1990, 2030), st.none() | st.integers(1, 12), st.none() | st.integers(1, 28)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened on 8 May 2023?", [(2023, 5, 8)]),
        ("on May 8th, 2023", [(2023, 5, 8)]),
        ("the 3rd of June", [(None, 6, 3)]),
        ("in Sept. 2022 or January", [(2022, 9, None), (None, 1, None)]),
        ("Where did she go in May?", [(None, 5, None)]),
        ("May I ask what may be", []),
        ("the mayor marched, augustly", []),
        ("between 2023-05-08 and 2023-06", [(2023, 5, 8), (2023, 6, None)]),
        ("2023年5月8日や7月", [(2023, 5, 8), (None, 7, None)]),
        ("in 2022", [(2022, None, None)]),
        ("room 20223, 1066", []),
        ("31 June or 2023-13-01", []),
        ("29 February", [(None, 2, 29)]),
        ("29 February 2023", []),
        ("May 2023, 2023", [(2023, 5, None)]),
        ("", []),
    ],
)
def test_dates_named(text: str, expected: list[PartialDate]) -> None:
    assert dates_named(text) == expected


@pytest.mark.parametrize(
    ("named", "day", "expected"),
    [
        ((2023, 5, 8), date(2023, 5, 8), 1.0),
        ((2023, 5, 8), date(2023, 5, 9), 1.0),
        ((2023, 5, 8), date(2023, 5, 15), 0.5),
        ((2023, 5, 8), date(2023, 5, 16), 0.0),
        ((2023, 5, 8), date(2022, 5, 8), 0.0),
        ((None, 5, 8), date(2019, 5, 8), 1.0),
        ((None, 1, 1), date(2023, 12, 30), 0.5),
        ((None, 2, 29), date(2023, 2, 28), 0.0),
        ((2023, 5, None), date(2023, 5, 31), 1.0),
        ((2023, 5, None), date(2023, 6, 1), 0.4),
        ((2023, 5, None), date(2023, 4, 30), 0.0),
        ((2023, 12, None), date(2024, 1, 31), 0.4),
        ((2023, 12, None), date(2023, 1, 1), 0.0),
        ((None, 12, None), date(2024, 1, 31), 0.4),
        ((2023, None, None), date(2023, 9, 1), 0.3),
        ((2023, None, None), date(2024, 9, 1), 0.0),
        ((None, None, None), date(2024, 9, 1), 0.0),
    ],
)
def test_match(named: PartialDate, day: date, expected: float) -> None:
    assert match([named], day) == expected


def test_the_best_date_counts() -> None:
    assert match([(2023, None, None), (2023, 5, None)], date(2023, 5, 2)) == 1.0
    assert match([], date(2023, 5, 2)) == 0.0


@given(st.lists(PARTIAL, max_size=4), st.dates())
@example([(None, 1, 1)], date.min)
@example([(None, 12, 31)], date.max)
def test_match_is_one_of_its_steps(dates: list[PartialDate], day: date) -> None:
    assert match(dates, day) in (0.0, 0.3, 0.4, 0.5, 1.0)


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    for named in dates_named(text):
        assert match([named], date(2024, 2, 29)) >= 0
    assert has_time_cue(text) in (True, False)
    assert asks_when(text) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "I went YESTERDAY",
        "in 2022",
        "at 5pm",
        "at 10:30 am",
        "the 3rd",
        "last time",
        "this summer",
        "昨天去了",
        "去年",
        "어제",
    ],
)
def test_cue(text: str) -> None:
    assert has_time_cue(text)


@pytest.mark.parametrize("text", ["", "I like lasting peace", "room 12", "12345", "我喜欢猫"])
def test_no_cue(text: str) -> None:
    assert not has_time_cue(text)


@pytest.mark.parametrize(
    "text",
    [
        "When did she go?",
        "how long",
        "For how long did it run?",
        "What year was it",
        "In which month",
        "什么时候",
        "いつ",
    ],
)
def test_asks_when(text: str) -> None:
    assert asks_when(text)


@pytest.mark.parametrize("text", ["", "Who was there when it fell?", "What kind", "whenever", "how longing"])
def test_asks_something_else(text: str) -> None:
    assert not asks_when(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("We moved to Oslo", cues.PLACE),
        ("We met near the Tate", cues.PLACE),
        ("I have 3 of them", cues.NUMBER),
        ("a couple of dogs", cues.NUMBER),
        ("since Monday, in Rome, twice", cues.TIME | cues.PLACE | cues.NUMBER),
        ("to me, at home", 0),
        ("someone at work", 0),
    ],
)
def test_what_a_memory_tells(text: str, told: int) -> None:
    assert cues.cues_of(text) == told


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("Where does Ann live?", cues.PLACE),
        ("Which city did she visit?", cues.PLACE),
        ("他住在哪里？", cues.PLACE),
        ("How many dogs has Bob?", cues.NUMBER),
        ("In what age group is he? What age is he?", cues.NUMBER),
        ("多少钱？", cues.NUMBER),
        ("When did she move, and how many came?", cues.TIME | cues.NUMBER),
        ("Who knows where it is?", 0),
        ("What did Ann say?", 0),
    ],
)
def test_what_a_query_asks_for(query: str, wanted: int) -> None:
    assert cues.asked_for(query) == wanted
