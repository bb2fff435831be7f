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


def check_pattern(pattern: str, *, re2: bool = True, runs: bool = False) -> str:
    """What is wrong with a pattern, "" when nothing is.

    Args:
        pattern: The expression.
        re2: Also refuse what RE2 cannot parse: look-around, back-references, atomic groups.
        runs: Allow an unbounded repeat of one character class that is not inside another repeat, as a
            tokeniser has it.
    """
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"does not parse ({type(error).__name__})"
    if tree.getwidth()[0] == 0 and not runs:
        return "may match nothing"
    for problem in _problems(tree, 1, re2=re2, runs=runs):
        return problem
    return ""


def width(pattern: str) -> int:
    """Characters of the longest match of a pattern whose repeats are bounded."""
    return int(parser.parse(pattern).getwidth()[1])


def _problems(tree: Any, outer: int, *, re2: bool, runs: bool) -> Iterator[str]:
    for code, argument in tree:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            _, high, inner = argument
            if high is codes.MAXREPEAT and runs and outer == 1 and not _repeats(inner) and len(inner) == 1:
                continue
            if high is codes.MAXREPEAT:
                yield "has an unbounded repeat"
                return
            if high > MOST_REPEATS:
                yield "has a repeat with too high a bound"
            if re2 and high > 1 and _is_ambiguous(inner):
                yield "repeats a repeat with nothing fixed between"
            if _repeats(inner) and high > 1 and outer * high * _largest(inner) > MOST_NESTED:
                yield "nests repeats too deeply"
            yield from _problems(inner, outer * max(int(high), 1), re2=re2, runs=runs)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from _problems(branch, outer, re2=re2, runs=runs)
        elif code is codes.SUBPATTERN:
            yield from _problems(argument[3], outer, re2=re2, runs=runs)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            if re2:
                yield "looks around, which RE2 cannot"
            yield from _problems(argument[1], outer, re2=re2, runs=runs)
        elif code in (codes.GROUPREF, codes.GROUPREF_EXISTS) and re2:
            yield "refers back, which RE2 cannot"
        elif code is codes.ATOMIC_GROUP and re2:
            yield "has an atomic group, which RE2 cannot"


def _is_ambiguous(tree: Any) -> bool:
    """Nothing but repeats inside: the same text can be split among them in many ways."""
    repeats = (codes.MAX_REPEAT, codes.MIN_REPEAT)
    for code, argument in tree:
        if code is codes.SUBPATTERN:
            if not _is_ambiguous(argument[3]):
                return False
        elif code is codes.BRANCH:
            if not any(_is_ambiguous(branch) for branch in argument[1]):
                return False
        elif code not in repeats or argument[0] == argument[1]:
            return False
    return True


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
    bounds = [
        int(argument[1]) for code, argument in _children(tree) if code in (codes.MAX_REPEAT, codes.MIN_REPEAT)
    ]
    return max(bounds, default=1)


def runs_away(compiled: re.Pattern[str], literals: tuple[str, ...]) -> bool:
    """Try the pattern on growing repetitions of what it begins with: does doubling cost far more?

    Cost: some milliseconds. It finds what a static look may miss.
    """
    from time import process_time

    for unit in (*literals, "a", "0", "a0", " ", "-", "aB3-"):
        times = []
        for size in (2_000, 4_000, 8_000):
            text = (unit * (size // len(unit) + 1))[:size] + "\x00"
            start = process_time()
            compiled.search(text)
            times.append(process_time() - start)
        if times[-1] > 0.05 and times[-1] > 2.8 * times[-2]:
            return True
    return False
