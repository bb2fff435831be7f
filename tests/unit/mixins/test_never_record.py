"""What the firewall at the door counts, tells, takes out and survives."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from omoide.errors import ModelError
from omoide.fields import AutoKeyField, BM25Field, DictField, KeyField, StringField
from omoide.mixins import NeverRecordMixin, never_record
from omoide.mixins.never_record import Tombstone
from omoide.ops.model import Model
from omoide.ops.prepare import Prepared, prepare
from omoide.privacy import Policy, UserRule, allow_values, self_test, tokens
from omoide.privacy.samples import Maker
from omoide.privacy.scanner import Scan

TOKEN = "gh" + "p_" + Maker(31).body("an", 36)
KEY = b"a key of the deployment"


class RedactedNote(NeverRecordMixin, Model):
    never_record_mode = "redact"

    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    password = StringField(default="")
    project = StringField(default="", index=True)
    document = DictField(default={})
    search = BM25Field(source="content")


class DroppedNote(NeverRecordMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="", max_bytes=400)


@pytest.fixture
def blocks() -> Iterator[list[Tombstone]]:
    seen: list[Tombstone] = []
    remove = never_record.on_block(seen.append)
    yield seen
    remove()


def _reasons(prepared: Prepared) -> dict[str, int]:
    return never_record.by_reason(dict(prepared.counters))


def _prepare(kind: type[Model], **values: Any) -> Prepared:
    return prepare(kind(agent_id="a", **values))


# ---- redaction -------------------------------------------------------------------------------------


def test_the_rest_of_a_text_is_stored_in_every_form(
    blocks: list[Tombstone], caplog: pytest.LogCaptureFixture
) -> None:
    note = RedactedNote(
        agent_id="a", content=f"The staging box\nuses {TOKEN} since May", project=f"x {TOKEN}"
    )
    prepared = prepare(note)
    assert prepared.put is not None
    assert TOKEN not in repr(prepared.put)
    assert note.content == prepared.put.values["content"] == "The staging box\nuses since May"
    assert "stage" in " ".join(prepared.put.terms)
    assert dict(prepared.put.exact)["project"] == "x"
    assert _reasons(prepared) == {"redacted": 1}
    assert never_record.by_rule(dict(prepared.counters)) == {"github": 2}
    (tombstone,) = blocks
    assert (tombstone.reason, tombstone.rule) == ("redacted", "github")
    assert "stored without its blocked parts" in caplog.text
    assert TOKEN not in caplog.text


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"content": "Off the record, Mark is leaving.\nThe deploy is on Tuesday."}, "off_the_record"),
        ({"content": TOKEN}, "credential"),
        ({"password": "Blue-Kettle-" + "97"}, "credential"),
        ({"document": {"deep": [TOKEN]}, "content": f"fine\n{TOKEN}"}, "credential"),
        ({"note_id": TOKEN, "content": f"fine\n{TOKEN}"}, "credential"),
    ],
    ids=["off the record", "nothing is left", "only beside its name", "in a document", "an id"],
)
def test_what_cannot_be_isolated_is_dropped(values: dict[str, Any], reason: str) -> None:
    note = RedactedNote(agent_id="a", **values)
    prepared = prepare(note)
    assert prepared.put is None
    assert prepared.refusal is not None
    assert prepared.refusal.reason == reason
    assert note.content == values.get("content", ""), "what is dropped is left as it was"


def test_a_text_that_grows_beyond_its_field_is_dropped() -> None:
    class RedactedShort(DroppedNote):
        never_record_mode = "redact"

    grows = "\ufdfa" * 100  # one character of three bytes that stands for eighteen
    assert _prepare(RedactedShort, content=f"{grows}\n{TOKEN}").put is None
    assert _prepare(RedactedShort, content=f"short\n{TOKEN}").put is not None


def test_no_part_of_a_secret_is_left_in_many_records() -> None:
    maker = Maker(5)
    for number in range(60):
        secret = "gl" + "pat-" + maker.body("url", 20 + number % 12)
        note = RedactedNote(
            agent_id="a", content=f"Line one {number}.\nrun it with {secret} please\nLine three."
        )
        prepared = prepare(note)
        left = repr(prepared.put.values) if prepared.put is not None else ""
        pieces = {secret[i : i + 6] for i in range(6, len(secret) - 5)}
        assert not [piece for piece in pieces if piece in left]


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ModelError, match="never_record_mode"):

        class RedactedWrong(DroppedNote):
            never_record_mode = "redcat"


# ---- counting and telling --------------------------------------------------------------------------


def test_counters_have_reason_and_rule() -> None:
    before = never_record.process_counts().get("DroppedNote", {}).get("credential", 0)
    prepared = _prepare(DroppedNote, content=f"use {TOKEN}")
    assert dict(prepared.counters) == {"never_record:credential": 1, "never_record_rule:github": 1}
    assert never_record.process_counts()["DroppedNote"]["credential"] == before + 1
    assert never_record.kept_out(dict(prepared.counters)) == 1


def test_what_is_stored_anyway_is_counted_apart() -> None:
    class DroppedAllowing(DroppedNote):
        never_record_policy = Policy(allow_key=KEY, allow=allow_values(KEY, [TOKEN]))

    class DroppedDisabled(DroppedNote):
        never_record_policy = Policy(disabled=frozenset({"github"}))

    for kind in (DroppedAllowing, DroppedDisabled):
        prepared = _prepare(kind, content=f"use {TOKEN}")
        assert prepared.put is not None
        assert _reasons(prepared) == {"allowed": 1}
        assert never_record.kept_out(dict(prepared.counters)) == 0
    prepared = _prepare(DroppedNote, content=f"build {Maker(3).body('an', 30)} is out")
    assert prepared.put is not None
    assert prepared.put.suspect
    assert _reasons(prepared) == {"suspect": 1}


def test_a_rule_of_the_user_drops_and_is_counted() -> None:
    class DroppedByUser(DroppedNote):
        never_record_policy = Policy(rules=(UserRule("ticket", ("acme-",), r"acme-[0-9]{6}"),))

    prepared = _prepare(DroppedByUser, content="see ACME-123456")
    assert dict(prepared.counters) == {"never_record:credential": 1, "never_record_rule:user:ticket": 1}


def test_totals_add_up_partitions_by_model() -> None:
    one = {"never_record:credential": 2, "never_record:suspect": 1, "evicted": 9, "never_record_rule:x": 2}
    assert never_record.totals([("A", one), ("A", one), ("B", {"evicted": 1})]) == {
        "A": {"credential": 4, "suspect": 2}
    }
    assert never_record.kept_out(one) == 2


def test_a_callback_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(tombstone: Tombstone) -> None:
        raise RuntimeError("of the callback")

    remove = never_record.on_block(broken)
    try:
        prepared = _prepare(DroppedNote, content=f"use {TOKEN}")
    finally:
        remove()
    assert prepared.put is None
    assert _reasons(prepared) == {"credential": 1}
    assert "RuntimeError" in caplog.text


def test_tombstones_of_a_model_are_reachable_and_random() -> None:
    for _ in range(3):
        _prepare(DroppedNote, content=f"use {TOKEN}")
    _prepare(RedactedNote, content=TOKEN)
    mine = DroppedNote.never_record_tombstones()
    assert {one.model for one in mine} == {"DroppedNote"}
    assert len({one.id for one in mine}) == len(mine) >= 3
    assert not any(TOKEN in repr(one) for one in mine)


# ---- failing closed --------------------------------------------------------------------------------


def test_an_exception_in_the_scan_refuses_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    self_test()

    def broken(self: Scan, text: str, depth: int = 0) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(Scan, "find", broken)
    for kind in (DroppedNote, RedactedNote):
        prepared = _prepare(kind, content="a heron by the river")
        assert prepared.put is None
        assert _reasons(prepared) == {"error": 1}
    assert "heron" not in caplog.text


def test_a_spent_budget_refuses_and_is_counted() -> None:
    class DroppedSmall(DroppedNote):
        never_record_policy = Policy(max_chars=60)

    assert _reasons(_prepare(DroppedSmall, content="x " * 60)) == {"budget": 1}


def test_a_broken_rule_refuses_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tokens.formats()
    broken = whole._replace(heads={head: made for head, made in whole.heads.items() if head != "ghp_"})
    monkeypatch.setattr(tokens, "formats", lambda: broken)
    self_test.cache_clear()
    try:
        prepared = _prepare(DroppedNote, content="a heron by the river")
        assert prepared.put is None
        assert dict(prepared.counters) == {"never_record:self_test": 1, "never_record_rule:github": 1}
    finally:
        monkeypatch.undo()
        self_test.cache_clear()
    assert _prepare(DroppedNote, content="a heron by the river").put is not None


def test_importing_the_recipes_loads_no_rules() -> None:
    import subprocess
    import sys

    code = (
        "import sys, omoide.recipes as r; r.DefaultMemory, r.SubconsciousMemory;"
        "print([name for name in sys.modules if name.startswith('omoide.privacy') or name == 'tomllib'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_policy_is_checked_when_the_class_is_made() -> None:
    with pytest.raises(ModelError, match="never_record_policy"):

        class Loose(DroppedNote):
            never_record_policy = {"rules": []}  # type: ignore[assignment]


# ---- settings that are made later ------------------------------------------------------------------


def test_a_policy_may_be_set_later(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = UserRule("later", ("zanzibar",), "zanzibar-[0-9]{4}")
    assert _prepare(DroppedNote, content="zanzibar-4711").put is not None
    monkeypatch.setattr(DroppedNote, "never_record_policy", Policy(rules=(rule,)))
    assert _prepare(DroppedNote, content="zanzibar-4711").put is None


@pytest.mark.parametrize(
    ("name", "value"), [("never_record_policy", "strict"), ("never_record_mode", "sometimes")]
)
def test_a_setting_that_is_none_is_told_whenever_it_was_made(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DroppedNote, name, value)
    with pytest.raises(ModelError, match=f"DroppedNote.{name} must be"):
        _prepare(DroppedNote, content="hello")
