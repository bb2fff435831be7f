from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from uuid import UUID

import pytest

from omoide.fields import (
    AutoKeyField,
    BytesField,
    DictField,
    FloatField,
    KeyField,
    StringField,
    TagField,
    UUIDField,
)
from omoide.mixins import NeverRecordMixin, WriteFilterMixin, never_record
from omoide.mixins.never_record import Tombstone
from omoide.ops.model import Model
from omoide.ops.save import prepare
from omoide.privacy import Policy, Verdict

SECRET = "ghp_" + "a8F3kL9mQ2xR7vT4wY6zB1cD5eG0hJ" + "NpSu4K"
"""Looks like a token of a code host; made up, and joined here so that no scanner of repositories trips."""


class GateGuarded(NeverRecordMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    tags = TagField()
    document = DictField(default={})
    data = BytesField(default=b"")
    reference = UUIDField(null=True)


class GateBoth(WriteFilterMixin, GateGuarded):
    importance = FloatField(default=1.0)
    write_threshold = 0.5


@pytest.fixture
def blocks() -> Iterator[list[Tombstone]]:
    seen: list[Tombstone] = []
    remove = never_record.on_block(seen.append)
    yield seen
    remove()
    remove()


@pytest.mark.parametrize(
    "values",
    [
        {"content": f"the token is {SECRET}"},
        {"tags": {SECRET}},
        {"document": {"deep": [{"er": SECRET}]}},
        {"document": {SECRET: 1}},
        {"data": SECRET.encode()},
        {"note_id": SECRET},
        {"agent_id": SECRET},
    ],
    ids=["text", "tag", "nested", "key", "bytes", "own id", "partition"],
)
def test_a_secret_is_kept_out_wherever_it_sits(
    values: dict[str, object], blocks: list[Tombstone], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    prepared = prepare(GateGuarded(**{"agent_id": "a", **values}))
    assert prepared.put is None
    assert prepared.refusal is not None
    assert prepared.refusal.reason == "credential"
    counted = ("never_record:credential", 1) in prepared.refusal.counters
    assert counted is ("agent_id" not in values), "a counter's key would hold the name of its partition"
    (tombstone,) = blocks
    assert (tombstone.model, tombstone.reason) == ("GateGuarded", "credential")
    assert never_record.tombstones()[-1] == tombstone
    assert SECRET not in caplog.text + repr(tombstone) + repr(prepared.refusal)
    assert "reason=credential" in caplog.text


def test_clean_records_pass_and_generated_ids_are_not_scanned(blocks: list[Tombstone]) -> None:
    for _ in range(200):
        assert prepare(GateGuarded(agent_id="a", content="We deploy blue-green on Mondays.")).put is not None
    assert blocks == []


def test_the_deployment_can_switch_the_firewall_off(
    monkeypatch: pytest.MonkeyPatch, blocks: list[Tombstone]
) -> None:
    note = GateGuarded(agent_id="a", content=SECRET)
    assert prepare(note).put is None
    monkeypatch.setenv("OMOIDE_NEVER_RECORD_DISABLE", "1")
    assert prepare(note).put is not None
    assert len(blocks) == 1


def test_only_so_many_tombstones_are_kept() -> None:
    for _ in range(never_record.KEPT + 5):
        prepare(GateGuarded(agent_id="a", content=SECRET))
    assert len(never_record.tombstones()) == never_record.KEPT
    assert len({tombstone.id for tombstone in never_record.tombstones()}) == never_record.KEPT


def test_a_model_may_have_a_policy_of_its_own() -> None:
    class GateStrict(GateGuarded):
        never_record_policy = Policy(max_chars=10)

    refusal = prepare(GateStrict(agent_id="a", content="longer than ten characters")).refusal
    assert refusal is not None
    assert refusal.reason == "budget"


def test_every_gate_of_a_class_is_asked() -> None:
    low = prepare(GateBoth(agent_id="a", importance=0.1)).refusal
    assert low is not None
    assert (low.reason, low.counters) == ("below_threshold", (("filtered", 1),))
    secret = prepare(GateBoth(agent_id="a", content=SECRET)).refusal
    assert secret is not None
    assert secret.reason == "credential"
    assert prepare(GateBoth(agent_id="a", content="fine")).put is not None


def test_a_score_that_is_no_number_is_below_every_threshold() -> None:
    class GateScored(GateBoth):
        def write_score(self) -> float:
            return float("nan")

    assert prepare(GateScored(agent_id="a")).put is None


def test_specs_say_which_mixins_a_model_has() -> None:
    spec = GateBoth.__omoide_spec__
    assert spec is not None
    assert (spec.never_record, spec.tracks_access) == (True, False)


def test_all_text_is_scanned_and_nothing_omoide_made(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []

    def scan(values: Mapping[str, object], policy: Policy | None = None) -> Verdict:
        seen.append(set(values))
        return Verdict(False, "", "")

    monkeypatch.setattr("omoide.privacy.scan_values", scan)
    text = {"agent_id", "content", "tags", "document", "data"}
    prepare(GateBoth(agent_id="a", reference=UUID(int=7)))
    prepare(GateBoth(agent_id="a", note_id="mine"))
    assert seen == [text, text | {"note_id"}]
