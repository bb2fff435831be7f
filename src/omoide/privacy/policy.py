"""What a deployment may change about the firewall, and what it may not.

A policy can let exact values through (kept only as keyed hashes), switch rules off by name, switch
the personal class off, and add rules of its own. It cannot weaken a rule, and an added rule can
only block more. Added rules are linted when the policy is made: see `lint`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from omoide.errors import RuleError
from omoide.privacy.options import Options
from omoide.privacy.verdict import Finding

MAX_CHARS = 1_000_000
"""Characters of the longest text that is scanned; a longer one is refused."""

REACH = 24_576
"""Characters of the longest match of a built-in rule with white space in it."""

_ID = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


@dataclass(frozen=True, slots=True)
class UserRule:
    """A rule that adds drops; redaction takes out what it matches, to the ends of its words.

    Attributes:
        id: Name of the rule in verdicts and counters, as `user:<id>`; letters, digits, `.-_`, at most 64.
        literals: Lower case; one must occur in the text before the pattern is tried.
        pattern: What RE2 could run: no look-around, no back-reference, every repeat bounded.
    Raises:
        RuleError: the rule cannot work, or could be slow.
    """

    id: str
    literals: tuple[str, ...]
    pattern: str
    reach: int = field(init=False, repr=False, compare=False)
    """Characters of the longest match."""
    _compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        from omoide.privacy.lint import check_pattern, runs_away, width

        if not isinstance(self.id, str) or not _ID.fullmatch(self.id):
            raise RuleError(self.id, "an id is 1 to 64 letters, digits, dots, dashes and underscores")
        if not isinstance(self.literals, tuple | list):
            raise RuleError(self.id, "literals are a tuple of texts")
        if not self.literals or any(len(part) < 2 or part != part.lower() for part in self.literals):
            raise RuleError(self.id, "needs lower-case literals of two characters or more")
        object.__setattr__(self, "literals", tuple(self.literals))
        problem = check_pattern(self.pattern)
        if problem:
            raise RuleError(self.id, problem)
        compiled = re.compile(self.pattern, re.IGNORECASE)
        if runs_away(compiled, self.literals):
            raise RuleError(self.id, "takes far more than twice as long on twice the text")
        object.__setattr__(self, "_compiled", compiled)
        object.__setattr__(self, "reach", width(self.pattern))

    def __call__(self, text: str, low: str) -> Iterator[Finding]:
        """Yield where the rule matches."""
        if any(part in low for part in self.literals):
            for match in self._compiled.finditer(text):
                yield Finding("credential", f"user:{self.id}", match.start(), match.end(), whole=False)


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of one deployment, immutable.

    Attributes:
        disabled: Names of built-in rules that are switched off. What they would have blocked is counted.
        personal: Whether cards, social security numbers and bank accounts block.
        rules: Rules that add drops, each with an id of its own.
        max_chars: Characters of the longest text that is scanned.
        allow_key: Key of the allow-list's hashes; any bytes, kept by the deployment.
        allow: Hashes made by `allow_hash`. A value on it does not block, and is counted.
    Raises:
        RuleError: a setting that cannot work.
    """

    disabled: frozenset[str] = frozenset()
    personal: bool = True
    rules: tuple[UserRule, ...] = ()
    max_chars: int = MAX_CHARS
    allow_key: bytes = field(default=b"", repr=False)
    allow: frozenset[str] = frozenset()
    options: Options = field(init=False, repr=False, compare=False)
    """The settings as the scanner takes them."""

    def __post_init__(self) -> None:
        if not isinstance(self.disabled, frozenset | set):
            raise RuleError("", "disabled is a set of names of rules")
        object.__setattr__(self, "disabled", frozenset(self.disabled))
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "allow", frozenset(self.allow))
        if self.disabled:
            from omoide.privacy.reference import rules

            unknown = self.disabled - {row.id for row in rules()}
            if unknown:
                raise RuleError("", f"disabled names no rule: {', '.join(sorted(map(str, unknown)))}")
        ids = [rule.id for rule in self.rules]
        if len(ids) != len(set(ids)):
            raise RuleError("", "rules have to differ in their ids")
        if self.max_chars < 1:
            raise RuleError("", "max_chars must be positive")
        if self.allow and not self.allow_key:
            raise RuleError("", "an allow-list needs allow_key")
        allows = self.allows if self.allow else None
        options = Options(personal=self.personal, disabled=self.disabled, extra=self.rules, allows=allows)
        object.__setattr__(self, "options", options)

    @property
    def reach(self) -> int:
        """Characters of the longest match, disguises written letter by letter included."""
        return max([REACH, *(rule.reach for rule in self.rules)])

    def allows(self, value: str) -> bool:
        """Whether this exact value is on the allow-list."""
        return bool(self.allow) and allow_hash(self.allow_key, value) in self.allow


def allow_hash(key: bytes, value: str) -> str:
    """The keyed hash under which a value is put on an allow-list: hex HMAC-SHA-256."""
    import hmac
    from hashlib import sha256

    return hmac.new(key, value.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def allow_values(key: bytes, values: Iterable[str]) -> frozenset[str]:
    """Hashes of several values."""
    return frozenset(allow_hash(key, value) for value in values)


_DEFAULT = Policy()


def default_policy() -> Policy:
    """Everything on, nothing allowed."""
    return _DEFAULT
