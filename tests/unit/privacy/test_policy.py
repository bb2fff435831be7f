"""What a deployment may change, and that failures block."""

from __future__ import annotations

from typing import Any

import pytest

import omoide.privacy as privacy
from omoide.privacy import Policy, RuleError, UserRule, allow_hash, allow_values, default_policy, redact, scan
from omoide.privacy.rulefiles import read
from omoide.privacy.samples import Maker
from omoide.privacy.scanner import Scan

TOKEN = "gh" + "p_" + Maker(8).body("an", 36)
KEY = b"a key of the deployment"


def test_an_allowed_value_passes_and_is_counted() -> None:
    policy = Policy(allow_key=KEY, allow=allow_values(KEY, [TOKEN]))
    verdict = scan(f"use {TOKEN} here", policy=policy)
    assert not verdict.blocked
    assert verdict.allowed
    other = "gh" + "p_" + Maker(9).body("an", 36)
    assert scan(f"use {TOKEN} and {other}", policy=policy).blocked


def test_the_allow_list_holds_hashes_only() -> None:
    policy = Policy(allow_key=KEY, allow=allow_values(KEY, [TOKEN]))
    assert TOKEN not in repr(policy)
    assert KEY.decode() not in repr(policy)
    assert allow_hash(KEY, TOKEN) != allow_hash(b"another", TOKEN)


def test_an_allow_list_needs_a_key() -> None:
    with pytest.raises(ValueError, match="allow_key"):
        Policy(allow=frozenset({"x"}))


def test_a_rule_can_be_switched_off() -> None:
    assert not scan(f"use {TOKEN} here", policy=Policy(disabled=frozenset({"github"}))).blocked
    off = Policy(disabled=frozenset({"off_the_record"}))
    assert not scan("Off the record, he left.", policy=off).blocked


def test_a_rule_switched_off_is_counted_and_off_in_every_view() -> None:
    policy = Policy(disabled=frozenset({"github"}))
    for text in (f"use {TOKEN} here", f"agent: a\ntext: {TOKEN}", f"agent: a\n{TOKEN[:20]}\n{TOKEN[20:]}"):
        assert scan(text).blocked
        verdict = scan(text, policy=policy)
        assert (verdict.blocked, verdict.allowed) == (False, True)
    off = Policy(disabled=frozenset({"off_the_record"}))
    assert scan("Off the record, he left.", policy=off).allowed
    assert scan(f"Off the record, use {TOKEN}", policy=off).rule == "github"
    assert not scan("hello", policy=off).allowed


def test_an_allowed_value_lets_no_other_pass_beside_it() -> None:
    policy = Policy(allow_key=KEY, allow=allow_values(KEY, [TOKEN]))
    other = "gh" + "p_" + Maker(9).body("an", 36)
    assert not scan(f"agent: a\ntext: {TOKEN}", policy=policy).blocked
    assert scan(f"use {TOKEN}\nand {other[:18]}\n{other[18:]}", policy=policy).blocked


def test_the_personal_class_has_a_switch() -> None:
    text = "my visa is 4539 1488 " + "0343 6467"
    assert scan(text).blocked
    assert not scan(text, policy=Policy(personal=False)).blocked


def test_a_user_rule_adds_drops() -> None:
    policy = Policy(rules=(UserRule("ticket", ("acme-",), r"acme-[0-9]{6}"),))
    verdict = scan("see ACME-123456", policy=policy)
    assert (verdict.reason, verdict.rule) == ("credential", "user:ticket")
    assert not scan("see ACME-123456").blocked


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a+)+b",
        r"a*",
        r"(?:a{1,300}){1,300}b{1,300}",
        r"(a)\1",
        r"(?<=a)b",
        r"a(?=b)",
        r".{2,}",
        r"[",
        r"(?:x{0,9}){0,9}",
        r"(?:(?:ab){1,500}){1,500}",
    ],
)
def test_a_slow_or_empty_user_rule_is_refused(pattern: str) -> None:
    with pytest.raises(RuleError):
        UserRule("bad", ("ab",), pattern)


@pytest.mark.parametrize("name", ["", "two words", "x" * 65, "a:b"])
def test_a_user_rule_needs_a_plain_name(name: str) -> None:
    with pytest.raises(RuleError):
        UserRule(name, ("acme-",), r"acme-[0-9]{6}")


@pytest.mark.parametrize("literals", [(), ("a",), ("AB",)])
def test_a_user_rule_needs_literals(literals: tuple[str, ...]) -> None:
    with pytest.raises(RuleError):
        UserRule("bad", literals, "abc")


def test_a_text_over_the_cap_is_refused_unscanned() -> None:
    verdict = scan("x" * 101, policy=Policy(max_chars=100))
    assert (verdict.blocked, verdict.reason) == (True, "budget")
    assert redact("x" * 101, policy=Policy(max_chars=100)).text == ""


def test_an_internal_error_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    privacy.self_test()

    def broken(self: Scan, text: str, depth: int = 0) -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(Scan, "find", broken)
    verdict = scan("anything at all")
    assert (verdict.blocked, verdict.reason) == (True, "error")
    assert "anything" not in repr(verdict)
    assert redact("anything at all").text == ""


def test_a_failed_self_test_blocks_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omoide.privacy.selftest.failures", lambda: [next(iter(privacy_examples()))])
    privacy.self_test.cache_clear()
    try:
        assert scan("hello").reason == "self_test"
        assert redact("hello").text == ""
    finally:
        privacy.self_test.cache_clear()


def test_rules_that_do_not_load_block_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise OSError("no rule file")

    monkeypatch.setattr("omoide.privacy.selftest.failures", broken)
    privacy.self_test.cache_clear()
    try:
        assert scan("hello").reason == "self_test"
    finally:
        privacy.self_test.cache_clear()


def privacy_examples():  # type: ignore[no-untyped-def]
    from omoide.privacy.selftest import examples

    return examples()


def test_a_spent_budget_blocks() -> None:
    text = ("gl" + "pat-" + "a" * 20 + " ") * 3000
    assert scan(text).reason == "budget"


def test_policies_are_values() -> None:
    assert default_policy() is default_policy()
    assert Policy() == Policy()
    with pytest.raises(AttributeError):
        Policy().personal = False  # type: ignore[misc]


def test_importing_reads_no_rule_file() -> None:
    import subprocess
    import sys

    code = "import sys, omoide.privacy; print('tomllib' in sys.modules, 'ahocorasick_rs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_rule_of_the_user_takes_out_what_it_matches_and_no_more() -> None:
    policy = Policy(rules=(UserRule("ticket", ("acme-",), r"acme-[0-9]{6}"),))
    assert redact("launch ACME-123456 site", policy=policy).text == "launch site"
    assert redact("ACME-123456 needs a deploy", policy=policy).text == "needs a deploy"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"disabled": frozenset({"githib"})}, "githib"),
        ({"disabled": "mapbox"}, "set of names"),
        ({"rules": (UserRule("x", ("ab",), "abc"), UserRule("x", ("cd",), "cde"))}, "differ"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Policy(**settings)


def test_settings_are_frozen() -> None:
    rules = [UserRule("house", ["zanzibar"], "zanzibar-[0-9]{4}")]  # type: ignore[arg-type]
    policy = Policy(disabled={"mapbox"}, rules=rules, allow_key=b"k", allow={"x"})  # type: ignore[arg-type]
    rules.clear()
    assert (len(policy.rules), policy.rules[0].literals) == (1, ("zanzibar",))
    assert hash(policy) == hash(
        Policy(disabled=frozenset({"mapbox"}), rules=policy.rules, allow_key=b"k", allow=frozenset({"x"}))
    )


def test_a_policy_that_is_none_is_an_error_and_lets_nothing_through() -> None:
    assert scan("hello", policy="strict").reason == "error"  # type: ignore[arg-type]
    assert redact("hello", policy="strict").text == ""  # type: ignore[arg-type]


def test_no_rule_with_white_space_reaches_further_than_is_said() -> None:
    from omoide.privacy.lint import width
    from omoide.privacy.policy import REACH

    assert UserRule("wide", ("ab",), "ab[a-z ]{1,40000}").reach == 40_002
    assert Policy(rules=(UserRule("wide", ("ab",), "ab[a-z ]{1,40000}"),)).reach == 40_002
    assert Policy().reach == REACH
    for row in read("shapes")["shape"]:
        if row.get("over") not in ("tokens", "long"):
            assert width(row["pattern"]) <= REACH
