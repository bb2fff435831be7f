"""A static look at every expression of the firewall: bounded, and never a repeat inside an endless one."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

import omoide.privacy as privacy
from omoide.privacy import names, offrecord, shapes, speech, tokens, values
from omoide.privacy.lint import check_pattern
from omoide.privacy.rulefiles import read


def patterns_in(thing: object, seen: set[int]) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    """Every compiled expression reachable from module globals and loaded rules."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, re.Pattern):
        yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from patterns_in(value, seen)
    elif isinstance(thing, list | tuple | frozenset):
        for value in thing:
            yield from patterns_in(value, seen)


def all_patterns() -> list[str]:
    seen: set[int] = set()
    found = []
    for module in pkgutil.iter_modules(privacy.__path__, "omoide.privacy."):
        found += list(patterns_in(dict(vars(importlib.import_module(module.name))), seen))
    loaded = (
        tokens.formats(),
        shapes._shapes(),
        offrecord._rules(),
        names._rules(),
        speech._rules(),
        values.placeholders(),
    )
    found += list(patterns_in(loaded, seen))
    return [
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        for pattern in found
    ]


@pytest.mark.parametrize("pattern", all_patterns(), ids=lambda pattern: pattern[:40])
def test_pattern_cannot_run_away(pattern: str) -> None:
    assert check_pattern(pattern, re2=False, runs=True) == ""


def test_all_rules_were_seen() -> None:
    assert len(all_patterns()) > 150


@pytest.mark.parametrize("row", read("shapes")["shape"], ids=lambda row: row["id"])
def test_shape_names_what_must_occur(row: dict[str, object]) -> None:
    assert row.get("words") or row.get("literals") or row["over"] == "long"


@pytest.mark.parametrize("name", ["shapes", "offrecord", "names"])
def test_no_word_boundaries_that_fail_beside_other_scripts(name: str) -> None:
    text = str(read(name))
    assert r"\\b" not in text


def test_lint_finds_what_it_is_for() -> None:
    assert check_pattern(r"(?:a+)+", runs=True)
    assert check_pattern(r"(?:a|b+)*c", runs=True)
    assert not check_pattern(r"[a-z]+", re2=False, runs=True)
