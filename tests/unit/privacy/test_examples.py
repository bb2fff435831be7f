"""Every rule finds its own examples and leaves its look-alikes alone."""

from __future__ import annotations

import pytest

from omoide.privacy import scan, self_test
from omoide.privacy.rulefiles import RULE_FILES, read
from omoide.privacy.selftest import Example, examples, failures

ALL = list(examples())
MADE_ELSEWHERE = ("bitcoin_wif", "docker_auth", "kubernetes_secret", "solana_keypair", "htpasswd")
"""Shapes whose examples need a checksum or an encoding; test_credentials.py makes them."""


def test_self_test_passes() -> None:
    assert failures() == []
    assert not self_test().blocked


@pytest.mark.parametrize("example", [e for e in ALL if e.reason], ids=lambda e: e.rule)
def test_example_is_blocked_with_its_reason(example: Example) -> None:
    verdict = scan(example.text)
    assert verdict.blocked
    assert verdict.reason == example.reason


@pytest.mark.parametrize("example", [e for e in ALL if not e.reason], ids=lambda e: e.rule)
def test_look_alike_passes(example: Example) -> None:
    assert not scan(example.text).blocked


def test_every_rule_has_an_example_and_a_look_alike() -> None:
    found = {example.rule for example in ALL if example.reason}
    near = {example.rule for example in ALL if not example.reason}
    for row in (*read("shapes")["shape"], *read("offrecord")["rule"]):
        assert row["id"] in near
        assert row["id"] in found or row["id"] in MADE_ELSEWHERE


def test_about_a_hundred_and_fifty_vendors_are_known() -> None:
    assert len({row["id"] for row in read("tokens")["tokens"]}) >= 150


@pytest.mark.parametrize("name", RULE_FILES)
def test_rule_file_is_readable(name: str) -> None:
    assert read(name)
