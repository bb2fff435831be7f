"""A static look at a regular expression: can it be slow?

Python's engine backtracks. A pattern is safe for any input when no unbounded repeat holds another
repeat, every other repeat is bounded, and a bounded repeat of a bounded repeat stays small. The
lint reads the parsed pattern, so that nothing is missed that the engine would do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MOST_REPEATS = 70_000
"""Largest upper bound of one repeat."""
MOST_NESTED = 200_000
"""Largest product of the bounds of nested repeats."""


def check_pattern(pattern: str, *, re2: bool = True) -> str:
    """What is wrong with a pattern, "" when nothing is.

    Args:
        pattern: The expression.
        re2: Also refuse what RE2 cannot parse: look-around, back-references, atomic groups.
    """
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"does not parse ({type(error).__name__})"
    if tree.getwidth()[0] == 0:
        return "may match nothing"
    for problem in _problems(tree, 1, re2=re2):
        return problem
    return ""


def _problems(tree: Any, outer: int, *, re2: bool) -> Iterator[str]:
    for code, argument in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, high, inner = argument
            if high is codes.MAXREPEAT:
                yield "has an unbounded repeat"
                return
            if high > MOST_REPEATS:
                yield "has a repeat with too high a bound"
            if _repeats(inner) and high > 1 and outer * high * _largest(inner) > MOST_NESTED:
                yield "nests repeats too deeply"
            yield from _problems(inner, outer * max(int(high), 1), re2=re2)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from _problems(branch, outer, re2=re2)
        elif code is codes.SUBPATTERN:
            yield from _problems(argument[3], outer, re2=re2)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            if re2:
                yield "looks around, which RE2 cannot"
            yield from _problems(argument[1], outer, re2=re2)
        elif code in (codes.GROUPREF, codes.GROUPREF_EXISTS):
            yield "refers back, which RE2 cannot"
        elif code is codes.ATOMIC_GROUP and re2:
            yield "has an atomic group, which RE2 cannot"


def _children(tree: Any) -> Iterator[tuple[Any, Any]]:
    for code, argument in tree:
        yield code, argument
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _children(argument[2])
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from _children(branch)
        elif code is codes.SUBPATTERN:
            yield from _children(argument[3])


def _repeats(tree: Any) -> bool:
    return _largest(tree) > 1


def _largest(tree: Any) -> int:
    bounds = [int(argument[1]) for code, argument in _children(tree) if code in (codes.MAX_REPEAT, codes.MIN_REPEAT)]
    return max(bounds, default=1)
