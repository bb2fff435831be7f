"""Lexemes of a term for another analyzer."""

from __future__ import annotations

import pytest

from omoide.core.text import default_analyzer
from omoide.core.text.surface import lexemes, quoted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("went", {"'go'", "'went'", "'gone'"}),
        ("children", {"'child'", "'children'"}),
        ("hiking", {"'hike'"}),
        ("src/app.py", {"'src/app.py'", "'app.py'", "'src'", "'app'", "'py'"}),
        ("成语", {"'成语'"}),
        ("成", {"'成':*"}),
        ("it's O'Brien", {"'o'", "'brien'", "'obrien'"}),
    ],
)
def test_terms_as_lexemes(text: str, wanted: set[str]) -> None:
    found = {one for term in default_analyzer().query_terms(text) for one in lexemes(term)}
    assert found == wanted


def test_every_character_is_quoted() -> None:
    assert quoted("a'b\\c & | ! :* ( )") == "'a''b\\\\c & | ! :* ( )'"
    assert lexemes("=") == ()
    assert lexemes("a\x00") == ()
