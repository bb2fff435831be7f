"""The page about privacy lists the rules there are."""

from __future__ import annotations

import re
from pathlib import Path

from omoide.privacy import reference
from omoide.privacy.selftest import examples

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "privacy.md"


def test_the_page_has_the_table_as_it_is() -> None:
    text = PAGE.read_text("utf-8")
    assert text == reference.filled(text), "python -m omoide.privacy.reference docs/how-to/privacy.md"
    assert text.count(reference.BEGIN) == text.count(reference.END) == 1


def test_every_rule_in_code_and_data_is_listed_with_its_reason() -> None:
    listed = {(row.id, row.reason) for row in reference.rules()}
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src/omoide/privacy").glob("*.py"))
    found = re.findall(r'Finding\(\s*"(\w+)", "([a-z_]+)"', source)
    found += re.findall(r'Finding\(\s*\n?\s*"(\w+)",\s*\n?\s*"([a-z_]+)"', source)
    assert len(found) > 15
    assert {(rule, reason) for reason, rule in found} <= listed
    assert {(one.rule, one.reason) for one in examples() if one.reason} <= listed
    assert len({row.id for row in reference.rules()}) == len(reference.rules())


def test_the_notice_of_ported_facts_comes_with_the_rules() -> None:
    from importlib.resources import files

    notice = files("omoide.privacy").joinpath("rules", "NOTICE").read_text("utf-8")
    assert "gitleaks" in notice
    assert "Betterleaks" in notice
