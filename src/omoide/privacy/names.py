"""Secrets beside a name: assignments in any notation, and sentences about passwords.

    DB_PASSWORD=x   "apiKey": "x"   token := 'x'   <password>x</password>   name: TOKEN / value: x
    the wifi password is x   mot de passe : x   login bob, pw x   use x as my password

The scanner walks over the places where a stem such as `pass` or `token` occurs, widens each to the
identifier around it, and tries patterns anchored at its end; nothing is searched from the start of
the text. An identifier is classified once: it says password (`strong`), it says token or key (the
value must look random), or it says something else (`token_count`, `public_key`, `keyboard`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from functools import cache, lru_cache
from typing import Final, NamedTuple

from omoide.privacy.judge import is_literal_name, is_reference, is_secret, is_words, tidy
from omoide.privacy.rulefiles import read, words
from omoide.privacy.values import (
    HEX,
    UUID,
    is_degenerate,
    is_random,
    is_vocabulary,
    placeholders,
    transitions,
)
from omoide.privacy.verdict import Finding

SUBSTRING_STEMS: Final = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "psk")
"""Stems that count inside a longer word: dbPassword, accesstoken."""

_BEFORE_NAME: Final = 48
_AFTER_NAME: Final = re.compile(r"[A-Za-z0-9_\-À-ɏ]{1,48}")
_NO_SEPARATOR: Final = frozenset("./(@;&%#!~^[{}+<")
"""After these no value follows, unless an equals sign comes next."""
_BEFORE_WIFI: Final = ("code ", "clé ", "clave del ", "senha do ", "mot de passe ")
_TWO_MEANINGS: Final = frozenset(("pass", "passe", "clave", "passwords"))
_HEADER: Final = re.compile(
    r"(?:\| ?)?[\w \-]{1,24}(?P<mark> ?[|,;] ?|\t)[\w \-]{1,24}(?:(?P=mark)[\w \-]{1,24}){0,12}(?: ?\|)?"
)
"""Names in the columns of a table."""
_WIDEST: Final = 200
"""Characters of a row of a table."""
_MATTER: Final = frozenset(
    (
        *("key", "keys", "token", "secret", "code", "wifi", "wi-fi"),
        *("login", "credentials", "creds", "account", "logins", "bearer", "cookie", "set-cookie"),
    )
)
"""Names that other rules go by, or that a word before them makes the name of a secret."""
_IN_NAME: Final = "abcdefghijklmnopqrstuvwxyz0123456789_-.$"

_ASSIGNED: Final = re.compile(
    r"(?P<q1>[\\\"'`\])*]{0,4})"
    r"(?P<sep>:\s?&?(?:'static )?[A-Za-z_.?]{2,24}\s{0,2}=(?!=)\s{0,2}"
    r"|\s?\{ ?get; ?(?:\w{4,9} )?set; ?\} ?= ?"
    r"|(?:\s{1,2}(?:string|str|String|char\*|String\?))?\s{0,3}(?:=>|:{1,3}=|\?\?=|[?.+]=|={1,3}|:"
    r"|->|→|\|\|)\s{0,8}(?:[|>]-?\s|new )?\s{0,8}"
    r"|\s{0,2},\s{0,2}|>\s{0,8}|\\?\"?\s{1,3}value=|\"?\s{0,2}\{\s{0,12}default\s{0,3}=\s{0,3}"
    r"|\s{0,2},?\s{0,3}\n?\s{0,16}(?:- )?[\"']?value[\"']?\s?:\s{0,3})"
    r"(?P<q2>(?:[bfru]{1,2}(?=[\"']))?(?:q[qw]?[{(|\[/](?=\S{4}))?[\\\"'`*]{0,4})(?P<v>[^\s\"'`<>]{4,512})",
)
_QUOTED_TEXT: Final = re.compile(r"\\?[\"'](?P<v>[^\"'\n]{8,128})\\?[\"']")
_SPACED: Final = re.compile(
    r"[\"'`)\]]{0,2}(?:[ :\-=]{1,4}|[ :]{0,2}\r?\n {0,4})(?:\d{1,2}[ :=]{1,5})?[\"'`]?"
    r"(?P<v>[A-Za-z0-9_\-+/=.]{20,200})(?![A-Za-z0-9_\-+/=])"
)
_ANY_TOKEN: Final = re.compile(
    r"[^\n]{0,60}?(?<![A-Za-z0-9_\-/+=.])(?P<v>[A-Za-z0-9_\-+/=.]{20,200})(?![A-Za-z0-9_\-+/=])"
)
_HASH_NEAR: Final = re.compile(
    r"sha\d*|md5|hash|digest|commit|checksum|fingerprint|integrity|etag|uuid|request|trace|rev(?:ision)?"
    r"|public|publishable|\bid\b",
    re.I,
)
_KEY_VALUE: Final = re.compile(r"key$|login$|(?<![a-z])pat(?![a-z])|salt$|signature$|cookie$")
_KEY_SURE: Final = re.compile(
    r"(?:api|access|private|secret|encryption|signing|master|auth|account|app|admin|service|license|deploy"
    r"|webhook|subscription|storage|client|consumer|sdk|rest|personal|security|application|integration"
    r"|server|product|instrumentation|ingest)_?key$"
)
_ITEM: Final = re.compile(r"[a-z_][a-z0-9_]{0,80},")
"""A variable beside a quoted name: JSON would quote a text."""
_HEX24: Final = re.compile(r"(?=[0-9a-fA-F]{0,40}\d)(?=[0-9a-fA-F]{0,40}[a-fA-F])[0-9a-fA-F]{24,128}")
_ENV_VALUE: Final = re.compile(r"[\w!@#%^*+\-]{6,64}")
_REFERENCE_NAME: Final = re.compile(r"[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,12}")


class Strength(IntEnum):
    """What a name says about the value beside it."""

    NONE = 0
    WEAK = 1
    STRONG = 2


class _Rules(NamedTuple):
    strong: re.Pattern[str]
    weak: re.Pattern[str]
    denied: re.Pattern[str]
    alone: frozenset[str]
    nouns: frozenset[str]
    codes: frozenset[str]
    before_key: tuple[str, ...]
    before_wifi: tuple[str, ...]
    vendors: frozenset[str]


@cache
def _rules() -> _Rules:
    names, speech = read("names"), read("speech")
    return _Rules(
        strong=re.compile("|".join(names["strong"])),
        weak=re.compile("|".join(names["weak"])),
        denied=re.compile("|".join(names["denied"])),
        alone=frozenset(names["alone"]) | frozenset(words(speech["nouns"])) | frozenset(speech["codes"]),
        nouns=frozenset(words(speech["nouns"])) | {"passkey"},
        codes=frozenset(speech["codes"]),
        before_key=tuple(f"{word} " for word in names["before_key"]),
        before_wifi=tuple(f"{word} " for word in names["before_wifi"]),
        vendors=frozenset(words(names["vendors"])),
    )


@cache
def vocabulary() -> tuple[str, ...]:
    """The words of the gate that start a look at a name."""
    names, speech = read("names"), read("speech")
    return tuple(
        dict.fromkeys(
            (
                *names["stems"],
                *words(speech["nouns"]),
                *speech["codes"],
                "wifi",
                "credentials",
                "creds",
                "account",
                "authorization",
            )
        )
    )


@cache
def _stems() -> frozenset[str]:
    return frozenset(vocabulary())


def classify(name: str) -> Strength:
    """What an identifier, lower-cased, says about the value beside it."""
    return _classify(name) if len(name) <= 32 else _classify.__wrapped__(name)


@lru_cache(4096)
def _classify(name: str) -> Strength:
    name = name.replace("-", "_").replace(".", "_").replace("$", "_")
    rules = _rules()
    if rules.denied.search(name):
        return Strength.NONE
    if rules.strong.search(name):
        return Strength.STRONG
    return Strength.WEAK if rules.weak.search(name) else Strength.NONE


class Name(NamedTuple):
    """One identifier in the text."""

    start: int
    end: int
    text: str
    strength: Strength
    spoken: bool
    """It is a noun of a sentence rather than only an identifier."""
    before: str
    """Up to 16 lower-case characters before it."""


def names(text: str, low: str, found: set[str]) -> Iterator[Name]:
    """Yield the identifiers that may name a secret, in the order of the text.

    Cost: linear; an identifier is looked at once, however many stems it holds.
    """
    rules = _rules()
    places: list[tuple[int, str]] = []
    for stem in found & _stems():
        size, place = len(stem), low.find(stem)
        while place >= 0:
            places.append((place, stem))
            place = low.find(stem, place + size)
    places.sort()
    done = -1
    for place, stem in places:
        if place < done:
            continue
        if (
            stem in rules.alone
            and stem not in SUBSTRING_STEMS
            and place
            and low[place - 1].isalpha()
            and low[place - 1] < "\u0250"
        ):
            continue
        start = max(0, place - _BEFORE_NAME)
        start += len(low[start:place].rstrip(_IN_NAME))
        if low[start - 1 : start + 1] == "\\-":  # a dash in a manual page
            before = low[max(0, start - 1 - _BEFORE_NAME) : start - 1]
            start -= 1 + len(before) - len(before.rstrip(_IN_NAME))
        match = _AFTER_NAME.match(text, place)
        done = end = match.end() if match else place + len(stem)
        if low[end : end + 1] not in _NO_SEPARATOR or low[end + 1 : end + 2] == "=":
            name = low[start:end].replace("\\", "")
            kind = _kind(name) if end - start <= 32 else _kind.__wrapped__(name)
            if kind.matters:
                yield _named(low, start, end, kind)


class _Kind(NamedTuple):
    """What an identifier says by itself, without the words around it."""

    text: str
    spoken: bool
    strength: Strength
    matters: bool
    """It may name a secret, a code, a login or a header, here or after some word."""


@lru_cache(4096)
def _kind(name: str) -> _Kind:
    rules = _rules()
    text = name.strip("-.$")
    spoken = text in rules.nouns or text.endswith(
        ("passwort", "kennwort", "-password", "-pw", "-pass", "-pin")
    )
    strength = classify(text)
    if strength is Strength.NONE and text in rules.nouns and text not in _TWO_MEANINGS:
        strength = Strength.STRONG
    matters = (
        strength is not Strength.NONE
        or text in _MATTER
        or text in rules.codes
        or text.endswith(("-pin", "-code"))
        or "authorization" in text
    )
    return _Kind(text, spoken, strength, matters)


def _named(low: str, start: int, end: int, kind: _Kind) -> Name:
    rules = _rules()
    text, spoken, strength, _ = kind
    before = low[max(0, start - 16) : start]
    if before.endswith("::") or (before.endswith(":") and before[-2:-1].isdigit()):
        strength = Strength.NONE
    if text in ("key", "keys", "token", "secret"):
        if before.endswith(rules.before_key):
            strong = text == "secret" or before.endswith(("secret ", "client ", "encryption ", "private "))
            strength, spoken = (Strength.STRONG if strong else max(strength, Strength.WEAK)), True
        elif before.endswith(rules.before_wifi):
            strength, spoken = Strength.STRONG, True
        elif text.startswith("key"):
            strength = Strength.NONE
        if strength is Strength.NONE and _vendor_before(before):
            strength, spoken = Strength.WEAK, True
    elif (text == "code" and before.endswith(rules.before_wifi)) or (
        text in ("wifi", "wi-fi") and before.endswith(_BEFORE_WIFI)
    ):
        strength, spoken = Strength.STRONG, True
    return Name(start, end, text, strength, spoken, before)


def _vendor_before(before: str) -> bool:
    """The last word before a name is a vendor's, as in `hunter key`."""
    words = before.rsplit(None, 1)
    return bool(words) and words[-1].strip("\"'`(.") in _rules().vendors


def _is_of_vendor(name: Name) -> bool:
    """The name has a vendor in it, or stands beside one."""
    vendors = _rules().vendors
    return any(part in vendors for part in _parts(name.text)) or any(
        word in vendors for word in re.findall(r"[a-z0-9]+", name.before)
    )


def assigned(text: str, name: Name) -> Finding | None:
    """A value after `=`, `:`, `=>`, a comma, a closing tag and the like."""
    match = _ASSIGNED.match(text, name.end)
    if match is None or name.text == "authorization":
        return None
    value, quote, separator = match["v"], match["q2"], match["sep"].strip()
    quoted = not {'"', "'", "`", "q"}.isdisjoint(quote)
    if (separator == "," and value.isalpha()) or value.strip("\"'`,;").lower() == name.text:
        return None
    if not quoted:
        if match["q1"][:1] in ('"', "'") and _ITEM.fullmatch(value):
            return None
        value = _cut(value, name, separator)
        if separator == "," or (separator == ":" and text[name.start - 1 : name.start] == ":"):
            return None
        if separator.startswith(">") and not _is_tag(text, name, match.end()):
            return None
    elif separator == ">":
        return None
    if name.strength is Strength.WEAK and _is_too_weak(value, name) and not _is_of_vendor(name):
        return None
    if _is_environment(text, name, separator, value, quoted=quoted) or _is_assigned_secret(
        value, name, quoted=quoted
    ):
        return Finding("credential", "assignment", name.start, match.end())
    return None


def _cut(value: str, name: Name, separator: str) -> str:
    if "=" in value:
        value = value.split(",", 1)[0]
    for mark in (
        ";",
        "\\n",
        "\\r",
        "&" if name.strength is Strength.WEAK or "=" in value else ";",
        "," if separator == "," else ";",
    ):
        value = value.split(mark, 1)[0]
    return value


def _is_tag(text: str, name: Name, end: int) -> bool:
    """The name closes an opening tag, and another tag follows the value."""
    before = text[max(0, name.start - 1) : name.start]
    return before in ("<", '"', "'", ":", "/") and text[end : end + 40].lstrip()[:1] == "<"


def _is_too_weak(value: str, name: Name) -> bool:
    """`key`-like names that name other things as often: the value must be long and dense."""
    canonical = name.text.replace("-", "_").replace(".", "_")
    if not _KEY_VALUE.search(canonical) or _KEY_SURE.search(canonical):
        return False
    core = value.rstrip("\"',;.)")
    return len(core) < 20 or transitions(core) < 0.3 or UUID.search(core) is not None


def _is_environment(text: str, name: Name, separator: str, value: str, *, quoted: bool) -> bool:
    """`DB_PASSWORD=swordfish`: an upper-case password variable set to a plain word."""
    if name.strength is not Strength.STRONG or separator != "=" or quoted:
        return False
    if not text[name.start : name.end].isupper() or not is_literal_name(name.text):
        return False
    if (
        len(value) < 6
        or value.lower() in placeholders().words
        or is_vocabulary(value)
        or is_degenerate(value)
    ):
        return False
    if is_reference(value, quoted=False):
        return False
    return _ENV_VALUE.fullmatch(value) is not None and not _REFERENCE_NAME.fullmatch(value)


def _is_assigned_secret(value: str, name: Name, *, quoted: bool) -> bool:
    strong = name.strength is Strength.STRONG
    if not is_secret(value, quoted=quoted, strong=strong, name=name.text):
        return _is_short_hex(value, name, quoted=quoted) or _is_known_form(value, name)
    return strong or not is_words(value.rstrip(".,;")) or transitions(value) > 0.3


def _is_known_form(value: str, name: Name) -> bool:
    """A UUID or hex of some length is a credential beside a vendor's name."""
    value = tidy(value)
    form = UUID.fullmatch(value) or _HEX24.fullmatch(value)
    return form is not None and _is_of_vendor(name) and not is_degenerate(value)


def _is_short_hex(value: str, name: Name, *, quoted: bool) -> bool:
    """Some vendors' tokens are 10 to 15 characters: believed when quoted beside the vendor's name."""
    value = tidy(value)
    vendor = _rules().vendors
    if not quoted or not 10 <= len(value) <= 64 or not any(part in vendor for part in _parts(name.text)):
        return False
    return value.isalnum() and any(map(str.isdigit, value)) and is_random(value, 0.25)


@lru_cache(1024)
def _parts(name: str) -> tuple[str, ...]:
    """`adafruit_api_key` and `adafruittoken` both begin with `adafruit`, as does `-Dadafruit.key`."""
    pieces = tuple(re.split(r"[^a-z0-9]+", name))
    stripped = tuple(
        re.sub(r"(?:api|access|auth|private)?(?:token|key|secret|password|private|login)?$", "", piece)
        for piece in pieces
    )
    return pieces + stripped + (pieces[0][1:],)


def in_column(text: str, name: Name) -> Finding | None:
    """A value below its name, in a table or in comma-separated rows of up to five lines."""
    if name.strength is not Strength.STRONG or not is_literal_name(name.text):
        return None
    end = text.find("\n", name.end, name.end + _WIDEST)
    begin = text.rfind("\n", max(0, name.start - _WIDEST), name.start) + 1
    header = _HEADER.fullmatch(text, begin, end) if end >= 0 else None
    if header is None:
        return None
    mark = header["mark"].strip() or "\t"
    place, width = text.count(mark, begin, name.start), text.count(mark, begin, end)
    for row in text[end + 1 : end + 5 * _WIDEST].split("\n")[:5]:
        values = row.split(mark)
        if row[:1].isspace() or len(values) != width + 1:
            continue
        if is_secret(values[place].strip(" \"'`*"), quoted=False, strong=True, name=name.text):
            return Finding("credential", "column", name.start, end + 1 + 5 * _WIDEST)
    return None


def beside(text: str, name: Name) -> Finding | None:
    """A random token a space, a dash or a few words after the name."""
    if name.strength is Strength.NONE or "pass" in name.text:
        return None
    canonical = name.text.replace("-", "_")
    sure = name.strength is Strength.STRONG or "token" in name.text or _KEY_SURE.search(canonical)
    if sure or name.spoken:
        match = _SPACED.match(text, name.end)
        if match is not None and _is_bare_token(match["v"].rstrip("."), name):
            return Finding("credential", "token_beside_name", name.start, match.end())
    return None


def _is_bare_token(value: str, name: Name) -> bool:
    if is_degenerate(value) or _REFERENCE_NAME.fullmatch(value) or is_reference(value, quoted=False):
        return False
    if UUID.fullmatch(value):
        return _is_of_vendor(name)
    if HEX.fullmatch(value.replace("-", "")):
        if any(map(str.isdigit, value)) and _is_of_vendor(name):
            return True
        return (name.strength is Strength.STRONG or name.spoken) and len(value) in (32, 40, 48, 64)
    return transitions(value) >= 0.3 and any(map(str.isdigit, value))


def near(text: str, name: Name) -> Finding | None:
    """`use this API key for maps -> x`: a random token later on the line of a spoken key."""
    if not name.spoken or name.text not in ("key", "token", "secret", "keys"):
        return None
    match = _ANY_TOKEN.match(text, name.end)
    if match is None:
        return None
    value = match["v"]
    if transitions(value) < 0.25 or is_degenerate(value) or not any(map(str.isdigit, value)):
        return None
    between = text[name.end : match.start("v")]
    if (
        HEX.fullmatch(value.replace("-", ""))
        or _HASH_NEAR.search(between)
        or "://" in between
        or "/" in value[:1]
        or value.count("/") > 2
    ):
        return None
    return Finding("natural_language", "token_near_name", name.start, match.end())
