"""Said off the record: what a person asks not to be kept.

The same words occur in ordinary speech ("I don't remember that", "the minister said off the
record", "don't save the file yet"), so each rule names the conditions under which it does not
apply. A pattern is tried only in a window around one of its words, which bounds the work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from omoide.privacy.gates import occurs
from omoide.privacy.normalise import has_other_script
from omoide.privacy.rulefiles import read
from omoide.privacy.verdict import Finding

_WINDOW: Final = (72, 96)

_SUBJECT: Final = re.compile(
    r"(?:(?<![a-z])(?:i|he|she|we|they|who|you|it|people|nobody|someone|users?|guys?|folks|mom|dad|ich|er"
    r"|sie|wir|man|je|tu|il|elle|on|nous|eu|ele|io|lui|ik|hij|yo)"
    r"(?: (?:really|just|still|even|honestly|also|would|could|can|will|usually|actually|probably|definitely"
    r"|do|did|sometimes|often|always|kinda|literally|simply|maybe|might|may|kann|konnte|will|werde|habe))?"
    r"|(?<![a-z])(?:ich|er|sie|wir|man|kann|konnte|will|wollte)(?: (?:kann|konnte|könnte|will|muss|darf"
    r"|werde|würde|habe|hab|mir|sich|uns|es|das|den|die|ihn|so|gut)){1,4}"
    r"|(?<![a-z])(?:i|we|you|they|he|she)['’](?:d|ll|ve|m|re|s))\s{1,2}(?:$)"
)
_ASKED: Final = re.compile(
    r"(?:please|pls|plz|rather|prefer|but|so|could|can|would|will|want|need|hope|wish|ask(?:ing)?|must"
    r"|should|if|make sure|ensure|promise)(?: that)?\s+(?:you|u|we)?\s?$"
)
_ADDRESSED: Final = re.compile(
    r"(?:^|[.,;:!?()\[\]{}*_>\"'`\-~…/|]\s*|\n\s*|(?<![a-z])(?:please|pls|plz|kindly|just|and|but|so|or"
    r"|then|also|ok|okay|hey|hi|hello|listen|look|well|"
    r"seriously|honestly|actually|now|anyway|though|however|again|really|btw|fyi|you|u|this|that|it"
    r"|conversation|chat|message|part|session|to|would|"
    r"should|could|can|rather|prefer|if|because|since|while|today|thing|one|once|me|here|yet|secret|private"
    r"|personal|sensitive|confidential|assistant|claude|chatgpt|gpt|bot|buddy|dude|man|friend)\s+)$"
)
_ASKING: Final = (
    "möchte nicht",
    "will nicht",
    "wünsche nicht",
    "rather",
    "you to not",
    "you not to",
    "u to not",
    "no need",
    "can you",
    "could you",
    "would you",
    "do not want",
    "don't want",
    "dont want",
    "do not need",
    "don't need",
    "don't have",
)
"""Forms that can only be said to whoever listens."""
_NEEDED: Final = re.compile("(?:do not|don't|dont) (?:need|have) to")
_OF_OTHERS: Final = re.compile(r"(?<![a-z])(?:i|we|they|he|she|it|one|clients?|servers?|callers?)\s+$")
_MODAL: Final = re.compile(
    r"(?<![a-zäöü])(?:kann|kannst|konnte|können|könnte|darf|darfst|dürfen|will|wollte|muss|müssen"
    r"|konnten)(?![a-zäöü])"
)
_ONLY_TALK: Final = re.compile(
    r"(?:conversation|chat|message|session|discussion|anything|what (?:i|we)|in your|(?:this"
    r"|that)\s*(?:[.,;:!\n)]|$))"
)
_MUST: Final = re.compile(
    r"(?<![a-z])(?:you|u) (?:must|should|may|are) ?(?:not|n't)?|rather (?:you|u)|(?:don't|do not) (?:need"
    r"|have|want you) to|no need to"
)
_REPORTED: Final = re.compile(
    r"(?<![a-z])(?:told|said|says|speaking|spoke|reporters?|journalists?|interview(?:ed)?|sources?"
    r"|officials?|minister|spokes\w{1,8}|newspaper|press)(?![a-z])"
)
_OWN_WORDS: Final = re.compile(
    r"(?<![a-z])(?:i tell you|i say|i'm telling|i am telling|i told you|what i said|i said"
    r"|i just said)(?![a-z])"
)
_OPENING: Final = re.compile(
    r"[^a-z]*(?:(?:this|that|it)(?:'s| is) |strictly |completely |totally |and |so |ok |okay |hey |well "
    r"|just |fully |all )*$"
)
_THING: Final = re.compile(
    r"(?:th(?:is|at|ese|ose)) (?:file|table|row|image|photo|picture|draft|document|doc|page|branch|commit"
    r"|value|variable|song|show|game|book|episode|day|night|moment|feeling|time|year|trip|place|person|guy"
    r"|girl|as )|th(?:ese|ose) (?:parts|files|tables|rows|values|flags|bits|lines|fields|objects)(?![a-z])"
)
_PLACED: Final = re.compile(
    r"(?:this|that|it|these|those) ?(?:as|to|in|into|on|under|at|with|inside|outside|near|over|until|yet"
    r"|twice|again|locally|before|after|like)(?![a-z])"
    r"(?! (?:your|any|the|long-term|long term|my)? ?(?:memor|record|log|note|history|profile))"
)
_TECHNICAL: Final = re.compile(
    r"(?<![a-z])(?:subscribe|unsubscribe|pointer|thread|process|array|list|dict|object|node|tree|graph"
    r"|data ?frame|tensor|model|dataset|repo|git|api|sql|json|password|passwords|token|tokens|key|keys|hash"
    r"|field|column|row|database|table|heap|cache|disk|kernel|buffer|variable|file|ram|gb|mb|overcommit"
    r"|leak|swap|docker|container|server|redis|gpu|cpu|config|setting|cluster|session storage|cookie"
    r"|browser|transaction|function|class|query|changes|commit|state|tests?|build|module|worker)(?![a-z])"
)


class _Rule(NamedTuple):
    name: str
    words: frozenset[str]
    pattern: re.Pattern[str]
    unless: tuple[Callable[[str, re.Match[str]], bool], ...]
    also: frozenset[str]
    needs: tuple[str, ...]
    marks: frozenset[str]
    reach: int
    before: int
    after: int


class _Rules(NamedTuple):
    rules: tuple[_Rule, ...]
    by_word: dict[str, tuple[int, ...]]
    elsewhere: tuple[tuple[tuple[str, ...], _Rule], ...]


def _said_of_somebody(low: str, match: re.Match[str]) -> bool:
    """Somebody is said to do it: "I don't remember that"."""
    before = low[max(0, match.start() - 32) : match.start()]
    if match.group(0).startswith(_ASKING):
        return _NEEDED.match(match.group(0)) is not None and _OF_OTHERS.search(before) is not None
    if not _SUBJECT.search(before) or _ASKED.search(before):
        return False
    return not _MUST.search(low[max(0, match.start() - 24) : match.end()])


def _not_addressed(low: str, match: re.Match[str]) -> bool:
    """Not an order at the start of a clause: "the tables do not store that"."""
    if match.group(0).startswith(("without", "avoid", "stop", "refrain")):
        return _ONLY_TALK.search(low, match.start(), match.end() + 2) is None
    if match.group(0).startswith(_ASKING):
        return False
    return _ADDRESSED.search(low[max(0, match.start() - 32) : match.start()]) is None


def _reported(low: str, match: re.Match[str]) -> bool:
    """The words of a third person, or a thing that fell or was taken off a record."""
    start, end = _sentence(low, match.start(), match.end())
    before = low[start : match.start()]
    if re.search(
        r"(?:fell|fall|falls|tak(?:e|es|en|ing)|took|came|comes|is|peel\w{0,3}|kept) ?$", before
    ) and re.search(r"(?:fell|fall|falls|tak(?:e|es|en|ing)|took|peel\w{0,3})\s?(?:[a-z]{1,8} )?$", before):
        return True
    if not _REPORTED.search(low, start, end) or _OPENING.match(before):
        return False
    return not _OWN_WORDS.search(low, start, end)


def _sentence(low: str, start: int, end: int) -> tuple[int, int]:
    first = max(low.rfind(mark, max(0, start - 400), start) for mark in ".!?\n") + 1
    marks = [place for place in (low.find(mark, end, end + 400) for mark in ".!?\n") if place >= 0]
    return max(first, start - 400), min(marks) if marks else min(len(low), end + 400)


def _ordinary_object(low: str, match: re.Match[str]) -> bool:
    """The thing not to be kept is a file, a photo, a value: "don't save this file"."""
    return (
        _THING.search(low, match.start(), match.end() + 16)
        or _PLACED.search(low, match.start(), match.end() + 24)
    ) is not None


def _able(low: str, match: re.Match[str]) -> bool:
    """Somebody cannot or may not: "Ich kann mir das Passwort nicht merken"."""
    start, _ = _sentence(low, match.start(), match.end())
    return _MODAL.search(low, start, match.start()) is not None


def _technical(low: str, match: re.Match[str]) -> bool:
    """Memory of a machine, records of a database."""
    start, end = _sentence(low, match.start(), match.end())
    return _TECHNICAL.search(low, start, end) is not None


_CONDITIONS: Final[dict[str, Callable[[str, re.Match[str]], bool]]] = {
    "subject": _said_of_somebody,
    "not_addressed": _not_addressed,
    "reported": _reported,
    "ordinary_object": _ordinary_object,
    "technical": _technical,
    "able": _able,
}


@cache
def _rules() -> _Rules:
    data = read("offrecord")
    rules = tuple(_compile(row, data) for row in data["rule"])
    by_word: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        for word in rule.words:
            by_word.setdefault(word, []).append(index)
    elsewhere = tuple((tuple(row["literals"]), _compile(row, data)) for row in data["elsewhere"])
    return _Rules(rules, {word: tuple(found) for word, found in by_word.items()}, elsewhere)


def expand(pattern: str, data: dict[str, Any]) -> str:
    """Fill in the shared parts of a pattern."""
    for part in ("do_not", "keep", "object"):
        pattern = pattern.replace(f"@{part}", f"(?:{data[part]})")
    return pattern


def _compile(row: dict[str, Any], data: dict[str, Any]) -> _Rule:
    return _Rule(
        row["id"],
        frozenset(row.get("words", ())),
        re.compile(expand(row["pattern"], data)),
        tuple(_CONDITIONS[name] for name in row.get("unless", ())),
        frozenset(row.get("also", ())),
        tuple(row.get("needs", ())),
        frozenset(row.get("marks", "")),
        row.get("reach", 0),
        *row.get("window", _WINDOW),
    )


def vocabulary() -> Iterable[str]:
    """The words of the gate."""
    known = _rules()
    return {*known.by_word, *(word for rule in known.rules for word in rule.also)}


def off_the_record(low: str, found: set[str], disabled: frozenset[str]) -> Finding | None:
    """The first request in the text not to keep it.

    Args:
        low: The text, lower-cased, curly quotes straightened.
        found: Words of the gate that occur.
        disabled: Names of rules that are switched off.
    Cost: linear: a window of 170 characters per occurrence and rule.
    """
    known = _rules()
    for word in sorted(found & known.by_word.keys()):
        rules = [
            rule
            for rule in (known.rules[index] for index in known.by_word[word])
            if not rule.also or not rule.also.isdisjoint(found)
        ]
        size, place = len(word), low.find(word) if rules else -1
        while place >= 0:
            for rule in rules if _is_word(low, place, place + size) else ():
                start, end = max(0, place - rule.before), place + size + rule.after
                if _may_apply(rule, low[start:end], place - start) and rule.name not in disabled:
                    finding = _try(low, rule, start, end)
                    if finding is not None:
                        return finding
            place = low.find(word, place + size)
    if has_other_script(low):
        return _elsewhere(low, known, disabled)
    return None


def _is_word(low: str, start: int, end: int) -> bool:
    """No letter of the alphabet touches it."""
    return not ((start and "a" <= low[start - 1] <= "z") or (end < len(low) and "a" <= low[end] <= "z"))


def _may_apply(rule: _Rule, window: str, place: int) -> bool:
    if rule.marks and rule.marks.isdisjoint(window[max(0, place - 16) : place]):
        return False
    if rule.reach:
        window = window[max(0, place - rule.reach) : place]
    return not rule.needs or occurs(window, rule.needs)


def _try(low: str, rule: _Rule, start: int, end: int) -> Finding | None:
    for match in rule.pattern.finditer(low, start, end):
        if not any(condition(low, match) for condition in rule.unless):
            return Finding("off_the_record", rule.name, match.start(), match.end())
    return None


def _elsewhere(low: str, known: _Rules, disabled: frozenset[str]) -> Finding | None:
    for literals, rule in known.elsewhere:
        if rule.name not in disabled and occurs(low, literals):
            match = rule.pattern.search(low)
            if match is not None:
                return Finding("off_the_record", rule.name, match.start(), match.end())
    return None
