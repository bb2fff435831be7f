"""Entities: names by their form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.core.entities import LIMIT, named_entities


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("We met Ann Lee at the Blue Note Cafe yesterday.", ["ann lee", "blue note cafe"]),
        ("Yesterday Ann called.", ["ann"]),
        ("Deploys are blue-green.", []),
        ("ping @maria.k about ACME-1234", ["@maria.k", "acme-1234"]),
        ("the flag max_retries lives in src/app/config.py", ["max_retries", "src/app/config.py"]),
        ("call getUserName() or HttpClient", ["getusername", "httpclient"]),
        ('She read "Charlotte\'s Web" to the kids', ["charlotte's web"]),
        ("The Bank of England raised rates. It was late.", ["bank of england"]),
        ("I think I will go on Monday.", []),
        ("Melanie's dog met Paul. Today's plan is open.", ["melanie", "paul"]),
        ("«Война и мир» понравилась", ["война и мир"]),
        ("「千と千尋」を見た", ["千と千尋"]),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    assert list(named_entities(text)) == names


def test_case_and_repeats_fold() -> None:
    assert named_entities("with Ann Lee, with ANN LEE, with Ann\u00a0Lee's") == ("ann lee",)


@given(st.text(max_size=400))
def test_any_text_gives_few_clean_names(text: str) -> None:
    names = named_entities(text)
    assert len(names) <= LIMIT
    assert len(set(names)) == len(names)
    assert all(1 < len(name) <= 80 and "\n" not in name for name in names)
