"""The table of rules in the documentation, made from the rules themselves.

python -m omoide.privacy.reference docs/how-to/privacy.md
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final, NamedTuple

from omoide.privacy.rulefiles import read

BEGIN: Final = "<!-- rules: made by python -m omoide.privacy.reference, do not edit -->"
END: Final = "<!-- end of rules -->"


class Row(NamedTuple):
    """One rule as a reader knows it."""

    id: str
    reason: str
    by: str
    """What it goes by."""


_IN_CODE: Final = (
    Row("assignment", "credential", "a secret beside its name"),
    Row("token_beside_name", "credential", "a secret beside its name"),
    Row("column", "credential", "a secret beside its name"),
    Row("vendor_key", "credential", "a secret beside its name"),
    Row("token_near_name", "natural_language", "a secret beside its name"),
    Row("kubernetes_secret", "credential", "place"),
    Row("seed_phrase", "credential", "words of a wallet"),
    Row("basic_header", "credential", "header"),
    Row("authorization_header", "credential", "header"),
    Row("bearer", "credential", "header"),
    Row("cookie", "credential", "header"),
    Row("told", "natural_language", "sentence"),
    Row("used_as", "natural_language", "sentence"),
    Row("code", "natural_language", "sentence"),
    Row("user_and_password", "natural_language", "sentence"),
    Row("backup_codes", "natural_language", "sentence"),
    Row("security_answer", "natural_language", "sentence"),
    Row("payment_card", "personal", "digits"),
    Row("social_security", "personal", "digits"),
    Row("iban", "personal", "digits"),
)
"""Rules whose grammar is code: they have vocabulary in the rule files and no row of their own."""


def rules() -> list[Row]:
    """Every rule, by reason and name."""
    rows = set(_IN_CODE)
    rows.update(Row(row["id"], "credential", "prefix") for row in read("tokens")["tokens"])
    known = {row.id for row in rows}
    rows.update(
        Row(row["id"], row.get("reason", "credential"), "form" if row.get("over") else "place")
        for row in read("shapes")["shape"]
        if row["id"] not in known
    )
    offrecord = read("offrecord")
    rows.update(Row(row["id"], "off_the_record", "sentence") for row in offrecord["rule"])
    rows.update(Row(row["id"], "off_the_record", "sentence") for row in offrecord["elsewhere"])
    return sorted(rows, key=lambda row: (row.reason, row.by, row.id))


def table() -> str:
    """The rules as a Markdown table, those that share a reason and what they go by in one row."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rules():
        groups.setdefault((row.reason, row.by), []).append(f"`{row.id}`")
    lines = ["| reason | goes by | rules |", "| --- | --- | --- |"]
    lines += [f"| `{reason}` | {by} | {', '.join(ids)} |" for (reason, by), ids in groups.items()]
    return "\n".join(lines)


def filled(page: str) -> str:
    """A page with the table between its two marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{tail}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(filled(target.read_text("utf-8")), "utf-8")
