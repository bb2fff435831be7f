"""The never-record firewall: what must not be stored, logged, embedded or shown to a model.

`scan` is a pure function of a text: no I/O, linear, and closed on failure, which means that an
internal error, a spent budget or a failed self-test is a blocked verdict with its own reason.
Rules are data (`rules/*.toml`), read at the first scan; importing this package loads none of the
machinery, the first scan of a process loads it, compiles the rules and runs the self-test, a
fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from omoide.errors import RuleError
from omoide.privacy.policy import Policy, UserRule, allow_hash, allow_values, default_policy
from omoide.privacy.verdict import CLEAN, BudgetError, Reason, Redaction, Verdict

if TYPE_CHECKING:
    from omoide.privacy.scanner import Scan

__all__ = [
    "Policy",
    "Reason",
    "Redaction",
    "RuleError",
    "UserRule",
    "Verdict",
    "allow_hash",
    "allow_values",
    "default_policy",
    "redact",
    "scan",
    "scan_values",
    "self_test",
]

_BUDGET = Verdict(True, "budget", "max_chars")
_SPENT = Verdict(True, "budget", "views")
_ERROR = Verdict(True, "error", "internal")


def scan(text: str, *, policy: Policy | None = None) -> Verdict:
    """Decide whether a text may be recorded.

    Args:
        text: Any text; `policy.max_chars` characters at most, a longer one is refused unscanned.
        policy: Default: `default_policy()`.
    Returns:
        A verdict. It never raises: a failure inside is a blocked verdict with reason "error".
    Cost: linear; tens of microseconds for a turn of 1 to 2 kB, under a second for 100 kB of anything.
    """
    checked = self_test()
    return checked if checked.blocked else _scan(text, policy or default_policy())


def scan_values(values: Mapping[str, object], *, policy: Policy | None = None) -> Verdict:
    """Scan every string of a record, wherever it sits.

    Strings in dicts, lists, sets and tuples, keys of dicts, and bytes that decode as UTF-8 are
    scanned as `name: value` lines, so that a value is judged beside its name.

    Args:
        values: Field names and values. Leave generated ids out.
        policy: Default: `default_policy()`.
    Returns:
        The verdict over all of them. It never raises.
    """
    from omoide.privacy.records import DepthError, lines

    try:
        text = "\n".join(lines(values))
    except DepthError:
        return Verdict(True, "budget", "depth")
    except Exception:  # noqa: BLE001 - fail closed: whatever a value's own methods do, nothing is stored
        return _ERROR
    return scan(text, policy=policy)


def redact(text: str, *, policy: Policy | None = None) -> Redaction:
    """Take the blocked parts out of a text.

    Args:
        text: Any text.
        policy: Default: `default_policy()`.
    Returns:
        The text that may be used: unchanged when clean, "" when the parts could not be isolated,
        when it was said off the record, or when the scan failed.
    """
    from omoide.privacy.redaction import take_out

    checked = self_test()
    if checked.blocked:
        return Redaction("", (checked,), 1)
    used = policy or default_policy()
    try:
        if len(text) > used.max_chars:
            return Redaction("", (_BUDGET,), 1)
        return take_out(text, used.options)
    except BudgetError:
        return Redaction("", (_SPENT,), 1)
    except Exception:  # noqa: BLE001 - fail closed: an internal error must not let a text through
        return Redaction("", (_ERROR,), 1)


@cache
def self_test() -> Verdict:
    """Run the embedded examples, once; a blocked verdict with reason "self_test" when one fails."""
    from omoide.privacy.selftest import failures

    try:
        wrong = failures()
    except Exception:  # noqa: BLE001 - fail closed: rules that cannot be loaded block everything
        return Verdict(True, "self_test", "load")
    return Verdict(True, "self_test", wrong[0].rule) if wrong else CLEAN


@cache
def _machinery() -> tuple[Callable[[str], str], type[Scan]]:
    from omoide.privacy.normalise import plain
    from omoide.privacy.scanner import Scan

    return plain, Scan


def _scan(text: str, policy: Policy) -> Verdict:
    try:
        if len(text) > policy.max_chars:
            return _BUDGET
        plain, scan_class = _machinery()
        state = scan_class(policy.options)
        finding = state.find(plain(text))
    except BudgetError:
        return _SPENT
    except Exception:  # noqa: BLE001 - fail closed: an internal error must not let a text through
        return _ERROR
    if finding is not None:
        return Verdict(True, finding.reason, finding.rule, state.suspect, state.allowed)
    if not state.suspect and not state.allowed:
        return CLEAN
    return Verdict(False, "", "", state.suspect, state.allowed)
