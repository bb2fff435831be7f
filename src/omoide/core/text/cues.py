"""What a text tells and asks for by form: times, places and numbers; and the dates that a query names.

A memory has cues, each one bit of its flags; a query asks for some of them. Where a query asks for a time, a
memory that tells one is the likelier answer, and the same holds of places ("where", "which city") and
numbers ("how many"). Times are known in several languages; places by their English form only, a preposition
before a capital; numbers by digits and by English words.

Dates are `(year | None, month | None, day | None)`; a part that was not said is None. The patterns are
compiled at first use, each linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import cache

PartialDate = tuple[int | None, int | None, int | None]

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH_NUMBER = {name: number for number, name in enumerate(_MONTHS, 1)}
_MONTH_NUMBER |= {name[:3]: number for name, number in _MONTH_NUMBER.items()} | {"sept": 9}
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

_PREPOSITIONS = "in during of since by until early late mid last next this"
_BEFORE_MAY = frozenset(_PREPOSITIONS.split())

TIME, PLACE, NUMBER = 4, 64, 128
CUES = {TIME: "time", PLACE: "place", NUMBER: "number"}
"""The cues, as flags of the attribute column, and what they tell."""

SAME = 1.0
WITHIN_A_WEEK = 0.5
NEXT_MONTH = 0.4
SAME_YEAR = 0.3


def cues_of(text: str) -> int:
    """The cues of a memory: some of TIME, PLACE and NUMBER."""
    return (
        TIME * has_time_cue(text)
        | PLACE * (_place().search(text) is not None)
        | NUMBER * (_number().search(text) is not None)
    )


def asked_for(query: str) -> int:
    """The cues that a query asks for."""
    return (
        TIME * asks_when(query)
        | PLACE * (_where().search(query) is not None)
        | NUMBER * (_how_many().search(query) is not None)
    )


def has_time_cue(text: str) -> bool:
    """Whether a memory names a time: a day, a month, a year, a clock time, `yesterday`, `last`, 昨天."""
    return _cue().search(text) is not None


def asks_when(query: str) -> bool:
    """Whether a query asks for a time or a duration: when, how long, what year, 什么时候."""
    return _question().search(query) is not None


def dates_named(query: str) -> list[PartialDate]:
    """The dates a query names, in order; a bare year only when nothing finer is named.

    Understands `8 May 2023`, `May 8th, 2023`, `May 2023`, `in May`, `2023-05-08`, `2023年5月8日`, `2023`.
    """
    text = query.lower()
    found = [_partial(*match.groups()) for match in _iso().finditer(text)]
    found += [_partial(*match.groups()) for match in _east_asian().finditer(text)]
    for match in _english().finditer(text):
        day_before, month, day_after, year = match.groups()
        day = day_before or day_after
        if month == "may" and not (day or year) and not _introduces_may(text, match.start(2)):
            continue
        found.append((int(year) if year else None, _MONTH_NUMBER[month], int(day) if day else None))
    if not found:
        found = [(int(match.group()), None, None) for match in _year().finditer(text)]
    return [named for named in dict.fromkeys(found) if _exists(named)]


def match(dates: Sequence[PartialDate], day: date) -> float:
    """How well a memory's day fits the dates named, the best of them.

    Returns:
        1 for the day named or the one beside it (time zones; told on the morrow) and for the month
        named, .5 within a week of the day, .4 in the month after the one named (it is told later),
        .3 for the year, else 0.
    """
    return max((_fit(named, day) for named in dates), default=0.0)


def _fit(named: PartialDate, day: date) -> float:
    year, month, day_of_month = named
    if month is None:
        return SAME_YEAR if year == day.year else 0.0
    if day_of_month is not None:
        years = [year] if year else [day.year - 1, day.year, day.year + 1]
        candidates = [date(y, month, day_of_month) for y in years if _exists((y, month, day_of_month))]
        return max((_day_fit(abs((day - candidate).days)) for candidate in candidates), default=0.0)
    if day.month == month:
        return SAME if year in (None, day.year) else 0.0
    told = day.year if day.month > 1 else day.year - 1
    return NEXT_MONTH if (day.month - month) % 12 == 1 and year in (None, told) else 0.0


def _day_fit(days: int) -> float:
    if days <= 1:
        return SAME
    return WITHIN_A_WEEK if days <= 7 else 0.0


def _exists(named: PartialDate) -> bool:
    year, month, day = named
    try:
        date(2000 if year is None else year, month or 1, day or 1)  # 2000 has a 29 February
    except ValueError:
        return False
    return True


def _partial(year: str | None, month: str, day: str | None) -> PartialDate:
    return (int(year) if year else None, int(month), int(day) if day else None)


@cache
def _cue() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:yesterday|today|tonight|tomorrow|ago|since|last|next|recently"
        r"|this (?:morning|afternoon|evening|week|weekend|month|year|spring|summer|fall|autumn|winter)"
        rf"|days?|week|weekend|month|years?|{_WEEKDAYS}|{'|'.join(_MONTHS)}"
        r"|\d{4}|\d{1,2}(?:st|nd|rd|th)|\d{1,2}(?::\d\d)? ?[ap]m)\b"
        r"|[今昨明前后後去]天|[今昨明]日|[今昨明去来]年|[上下这先今来]个?[周週月]|星期|礼拜|\d[年月日点時]"
        r"|오늘|어제|내일|작년|지난",
        re.IGNORECASE,
    )


@cache
def _question() -> re.Pattern[str]:
    return re.compile(
        r"^\s*+(?:when|what (?:date|day|month|year|time)|(?:in|on) (?:what|which) (?:date|day|month|year)"
        r"|which (?:date|day|month|year)|on what)\b|\bhow long\b"
        r"|什么时候|甚麼時候|何时|何時|哪[年月天]|多久|いつ|언제",
        re.IGNORECASE,
    )


@cache
def _place() -> re.Pattern[str]:
    return re.compile(r"\b(?:in|at|to|from|near) (?:the )?[A-Z][a-z]")


@cache
def _number() -> re.Pattern[str]:
    return re.compile(
        r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|couple"
        r"|several|once|twice)\b",
        re.IGNORECASE,
    )


@cache
def _where() -> re.Pattern[str]:
    return re.compile(
        r"^\s*+where\b|\b(?:what|which) (?:city|country|state|place|town)\b|哪[里裡儿兒]|何处|何處|どこ|어디",
        re.IGNORECASE,
    )


@cache
def _how_many() -> re.Pattern[str]:
    return re.compile(
        r"\bhow (?:many|much|often|old)\b|\bwhat (?:age|number|amount)\b|多少|[几幾][个個次岁歲只]|いくつ|몇",
        re.IGNORECASE,
    )


@cache
def _english() -> re.Pattern[str]:
    names = "|".join(sorted(_MONTH_NUMBER, key=len, reverse=True))
    return re.compile(
        rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s++(?:of\s++)?)?({names})\b\.?"
        r"(?:\s++(\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s*+(\d{4})\b)?"
    )


@cache
def _iso() -> re.Pattern[str]:
    return re.compile(r"\b((?:19|20)\d\d)-(\d{1,2})(?:-(\d{1,2}))?\b")


@cache
def _east_asian() -> re.Pattern[str]:
    return re.compile(
        r"(?:((?:19|20)\d\d)\s?[年년]\s?)?(?<!\d)(\d{1,2})\s?[月월](?:\s?(\d{1,2})\s?[日号號일])?"
    )


def _introduces_may(text: str, start: int) -> bool:
    """Whether the word before makes `may` a month; it is looked for in the 12 characters before."""
    before = text[max(0, start - 12) : start].split()
    return bool(before) and before[-1] in _BEFORE_MAY


@cache
def _year() -> re.Pattern[str]:
    return re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
