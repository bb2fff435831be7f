"""How well the days of memories fit the dates of a query, a whole column at a time.

`core.text.cues.match` says how well one day fits; this says the same of an array of times. Days are
those of UTC, of the years 1 to 9999; a time beyond fits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from omoide.core.text.cues import NEXT_MONTH, SAME, SAME_YEAR, WITHIN_A_WEEK, PartialDate, match

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Days = NDArray[np.int64]
    Floats = NDArray[np.float64]

MOST_DATES = 16
"""Dates of a query that count."""

_DAY_MS = 86_400_000
_FIRST_DAY = -719_162
_LAST_DAY = 2_932_896
_TABLE_DAYS = 40_000
_LAST_YEAR = 9_999
_ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)


def fit_of(dates: Sequence[PartialDate], time_ms: int) -> float:
    """How well one time fits, 0..1."""
    day = time_ms // _DAY_MS
    if not _FIRST_DAY <= day <= _LAST_DAY:
        return 0.0
    return match(dates, (_ORIGIN + timedelta(days=day)).date())


def fits(dates: Sequence[PartialDate], times: NDArray[np.int64]) -> Floats:
    """How well each time (ms) fits, float64[n].

    Cost: about 4 ns a time while they span a century, else 20 ns a time and date.
    """
    return fits_of_days(dates, times // _DAY_MS)


def fits_of_days(dates: Sequence[PartialDate], days: Days) -> Floats:
    """The same of days since the epoch."""
    import numpy as np

    if not len(days) or not dates:
        return np.zeros(len(days))
    low, high = int(days.min()), int(days.max())
    if high - low < min(_TABLE_DAYS, 4 * len(days) + 400):
        return _fits_of_days(dates, np.arange(low, high + 1)).take(days - low)
    return _fits_of_days(dates, days)


def spans(dates: Sequence[PartialDate], years: range) -> list[tuple[date, date, float]]:
    """The same as half-open spans of days, for a store that can look up a range: (first, end, fit).

    The fit of a day of one of these years is the greatest of the spans it is in. Only days of the years 1
    to 9998 are spanned. A date without a year is tried in each of them and the ones beside them.
    """
    found: list[tuple[date, date, float]] = []
    for year, month, day in dates:
        for one in (year,) if year is not None else range(years.start - 1, years.stop + 1):
            if 1 < one < _LAST_YEAR:
                found += _spans(one, month, day)
    return found


def _spans(year: int, month: int | None, day: int | None) -> Iterator[tuple[date, date, float]]:
    if month is None:
        yield date(year, 1, 1), date(year + 1, 1, 1), SAME_YEAR
    elif day is None:
        begins = [
            date(year + (month + ahead - 1) // 12, (month + ahead - 1) % 12 + 1, 1) for ahead in (0, 1, 2)
        ]
        yield begins[0], begins[1], SAME
        yield begins[1], begins[2], NEXT_MONTH
    else:
        try:
            named = date(year, month, day)
        except ValueError:
            return
        yield named - timedelta(days=1), named + timedelta(days=2), SAME
        yield named - timedelta(days=7), named + timedelta(days=8), WITHIN_A_WEEK


def _fits_of_days(dates: Sequence[PartialDate], days: Days) -> Floats:
    import numpy as np

    known = (days >= _FIRST_DAY) & (days <= _LAST_DAY)
    within = np.where(known, days, 0)
    months = within.astype("M8[D]").astype("M8[M]").astype(np.int64)  # since January 1970
    best = np.zeros(len(days))
    for named in dates:
        np.maximum(best, _fit(named, within, months), out=best)
    best[~known] = 0.0
    return best


def _fit(named: PartialDate, days: Days, months: Days) -> Floats:
    import numpy as np

    year, month, day = named
    if month is None:
        return np.where(months // 12 + 1970 == year, SAME_YEAR, 0.0)
    if day is not None:
        return _day_fit(year, month, day, days, months)
    if year is None:
        passed = (months + 1 - month) % 12
        return np.where(passed == 0, SAME, np.where(passed == 1, NEXT_MONTH, 0.0))
    since = months - ((year - 1970) * 12 + month - 1)
    return np.where(since == 0, SAME, np.where(since == 1, NEXT_MONTH, 0.0))


def _day_fit(year: int | None, month: int, day: int, days: Days, months: Days) -> Floats:
    """By the distance to the day named; of every year near when no year is named."""
    import numpy as np

    best = np.zeros(len(days))
    for step in (0,) if year is not None else (-1, 0, 1):
        years = np.full(len(days), year) if year is not None else months // 12 + 1970 + step
        wanted = (years - 1970) * 12 + month - 1
        start = wanted.astype("M8[M]").astype("M8[D]")
        following = (wanted + 1).astype("M8[M]").astype("M8[D]")
        there = (day <= (following - start).astype(np.int64)) & (years >= 1) & (years <= 9999)
        away = np.abs(days - (start.astype(np.int64) + day - 1))
        fit = np.where(away <= 1, SAME, np.where(away <= 7, WITHIN_A_WEEK, 0.0))
        np.maximum(best, np.where(there, fit, 0.0), out=best)
    return best
