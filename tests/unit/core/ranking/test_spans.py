"""Spans of days say the same as the fit of each day."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from omoide.core.arms.dates import spans
from omoide.core.text.cues import PartialDate, dates_named, match

YEARS = range(2019, 2026)

named = st.one_of(
    st.tuples(st.integers(1990, 2040), st.none(), st.none()),
    st.tuples(st.one_of(st.none(), st.integers(2017, 2027)), st.integers(1, 12), st.none()),
    st.dates(date(2017, 1, 1), date(2027, 12, 31)).map(lambda day: (day.year, day.month, day.day)),
    st.dates(date(2020, 1, 1), date(2020, 12, 31)).map(lambda day: (None, day.month, day.day)),
)


@given(st.lists(named, max_size=4), st.dates(date(2019, 1, 1), date(2025, 12, 31)))
def test_a_day_fits_as_the_best_span_it_is_in(dates: list[PartialDate], day: date) -> None:
    fits = [fit for first, end, fit in spans(dates, YEARS) if first <= day < end]
    assert max(fits, default=0.0) == match(dates, day)


def test_spans_stay_within_the_calendar() -> None:
    for year in (1, 2, 9_998, 9_999):
        assert all(first < end for first, end, _ in spans([(year, 12, 31)], YEARS))
    assert spans([(9_999, 12, None), (1, 1, 1)], YEARS) == []
    assert spans([], YEARS) == []
    assert spans([(2023, 2, 29)], YEARS) == []


def test_a_leap_day_without_a_year_is_looked_for_in_leap_years() -> None:
    (leap,) = dates_named("on 29 February")
    days = {first + timedelta(days=1) for first, end, fit in spans([leap], YEARS) if fit == 1.0}
    assert days == {date(2020, 2, 29), date(2024, 2, 29)}
