"""Secrets told in a sentence: passwords, pins, codes, answers and wallet words.

The grammar is noun, optional place ("for the nas"), copula ("is", "lautet", ":"), value. A value
that is an ordinary word of such sentences ("required", "falsch", "too short") is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from omoide.privacy.gates import occurs
from omoide.privacy.judge import is_secret
from omoide.privacy.names import Name, Strength
from omoide.privacy.rulefiles import read, words
from omoide.privacy.values import has_rare_pair, is_degenerate, is_vocabulary, placeholders
from omoide.privacy.verdict import Finding

_CODE_LIKE: Final = re.compile(r"[=(){}\[\]<>/\\|]|^\$|^[\w.]+\.[a-z]\w+$|://")
_COMPARED: Final = ("-style", "-like", "-based", "-ish", "-protected", "-only")
_ESCAPED: Final = re.compile(r"\\[&\-fe(.*\[]")
"""Marks of a manual page or an expression, never of a password."""
_SYMBOLS: Final = re.compile(r"[!@#%^&*?$]")
_PHRASE: Final = re.compile(r"[a-z]{2,16}(?:[ \-][a-z]{2,16}){2,11}", re.IGNORECASE)
_DIGITS_AFTER: Final = re.compile(
    r"(?P<mid>[^.!?\n\d]{0,40}?)(?:['’]s|(?<![a-z])(?:is|are|was|ist|lautet|est|es|to|é)(?![a-z])|:|=|->|→"
    r"|(?<![(\[])#)(?: (?:now|still|set to|jetzt|always))?\s{0,2}[\"'`*]{0,2}"
    r"(?P<v>\d{3,10}|\d{3}[ \-]\d{3}|\d(?:[ \-]\d){3,7}|\d{1,2}-\d{1,2}-\d{1,2})(?![.,/:\-]{0,2}\d)"
    r"(?!\s{0,3}(?:digits?|characters|chars|seconds?|secs?|minutes?|mins?|hours?|days?|times|lines?|%|th|st"
    r"|nd|means|forbidden|errors?|not found|ok|bytes|ms|years?|€|\$|usd|dollars?|percent|stellig|zeichen))",
    re.I,
)
_DIGITS_BESIDE: Final = re.compile(
    r"\s{0,2}[:=#?]?\s{0,2}(?P<v>\d{3,8})(?![\d.,/\-]{0,3}\d)(?!\s{0,2}(?:digits?|chars|-))"
)
_DIGITS: Final = frozenset("0123456789")
_REACH: Final = 72
"""Characters after a name within which its digits must begin."""
_LINKS: Final = (", that", " as ", " for ", " is ", " was ", "= ")
_NUMBER_NAMES: Final = frozenset(("code", "combination", "combo", "tan", "codice", "código", "codigo", "nip"))
_LOG_IN: Final = re.compile(
    r"(?:log|logged|sign|signed|logging|signing) ?(?:in|on)(?:to)?[^.!?\n]{0,32}? (?:with|as"
    r"|using):? [\"'`]?[\w.@\-+]{2,48}"
    r"[\"'`]?\s{0,2}(?:/|,? (?:and|und|with)(?: (?:the )?(?:password|pw|pass))? "
    r"|:)\s{0,2}[\"'`]?(?P<v>[^\s/\"'`]{5,64})"
)
_TEXTED: Final = re.compile(
    r" (?:that )?(?:they|it|you|he|she|we|i)(?:'ve| just| have)? (?:just )?(?:texted|sent|emailed|gave|got"
    r"|received|messaged)[^.!?\n\d]{0,24}(?: is|:|->)? ?(?P<v>\d{3}[ \-]?\d{3}|\d{4,8})(?!\d)",
    re.I,
)
_AS_PASSWORD: Final = re.compile(
    r"(?:use|using|used|uses|set|enter|type|try|put|with|took|chose"
    r"|picked) [\"'`]?(?P<v>[^\s\"'`]{6,64})[\"'`]? (?:as|for|is) (?:my|the|our|his|her|a"
    r"|your)? ?(?:[\w\-]{1,16} ){0,2}$",
    re.I,
)
_CLOSED: Final = re.compile(
    r"[\"'`*)]{0,2}(?:\s{0,2}(?:$|[.,;:!?)\n\-–(])"
    r"|\s{1,2}(?:for|of|to|on|at|and|now|in|btw|thanks|but|so|again|here|there|there's|from|i|we|you"
    r"|he|she|they|it"
    r"|if|since|because|please|pls|ok|right|today|then|when|as|is|was|with|until|everywhere)(?![a-z]))",
    re.I,
)
"""What may follow "x is the password": not the rest of a compound."""
_IS_PASSWORD: Final = re.compile(
    r"(?:^|[\s\"'`(*/#;])(?P<v>[^\s\"'`]{6,64})[\"'`]?(?: (?:is|was|=)|, ?(?:that['’]?s|that is|is))"
    r" (?:my|the|our|his|her|your) (?:[\w\-]{1,16} ){0,2}$",
    re.I,
)
_SLASHED: Final = re.compile(
    r"[^.!?\n]{0,32}?(?:(?<![a-z])(?:is|are|with|as)(?![a-z])|:|="
    r"|->)\s{0,2}[\"'`]?(?P<u>[\w.@\-+]{2,48})\s{0,2}(?:/|\||,? (?:and|und) "
    r"|:)\s{0,2}(?P<v>[^\s/\"'`]{5,64})",
    re.I,
)
_MAIDEN: Final = re.compile(
    r"(?:security question|security answer|secret question|maiden name|first pet"
    r"|secret answer)[^.!?\n]{0,60}?(?:is|was|:|=)\s{1,2}[\"']?(?P<v>[A-ZÀ-Ý][a-zà-ÿ]{2,20})(?![a-zA-Z])(?!"
    r" (?:is|was|on|for|of))",
    re.I,
)
_SPLIT_CODE: Final = re.compile(
    r"(?<![\w\-])(?=[a-z0-9\-]{0,24}\d)[a-z0-9]{3,8}(?:-[a-z0-9]{3,8}){1,4}(?![\w\-])"
    r"|(?<![\d\-])\d{8}(?![\d\-])|(?<![\w\-])(?=[a-z]{0,9}\d)[a-z0-9]{8,10}(?![\w\-])",
    re.I,
)
_BACKUP: Final = re.compile(
    r"(?:backup|recovery|rescue|scratch|emergency|2fa|bypass)[ \-](?:codes?|keys?)(?![a-z])"
)
_WORD: Final = re.compile("[a-z]+")
_FEWEST_OF_A_WALLET: Final = 12
_SEED: Final = re.compile(
    r"(?<![a-z'])(?:(?:\d{1,2}[.):] ?)?[a-z]{3,8}[ ,\n]{1,3}){11,23}(?:\d{1,2}[.):] ?)?[a-z]{3,8}(?![a-z])"
)


class _Rules(NamedTuple):
    said: tuple[re.Pattern[str], re.Pattern[str]]
    nouns_elsewhere: re.Pattern[str]
    ordinary: frozenset[str]
    endings: re.Pattern[str]
    code_kinds: tuple[str, ...]
    code_places: re.Pattern[str]
    code_not: re.Pattern[str]
    codes: frozenset[str]
    function_words: frozenset[str]


def _any(items: list[str]) -> str:
    return "|".join(re.escape(item) for item in sorted(items, key=len, reverse=True))


@cache
def _rules() -> _Rules:
    data = read("speech")
    copula, after = _any(data["copulas"]), _any(data["after_copula"])
    place = (
        rf"(?:,? (?:{_any(data['prepositions'])}) (?:(?:{_any(data['articles'])}) )?"
        r"[\w.\-@'/+]{1,32}(?: [\w.\-@']{1,24}){0,3}?|,? ?\([^()\n]{1,40}\))"
    )
    now = "(?: here| now| again| hier| ici| aquí)?"
    explicit = (
        r"[\"'`*)]{0,2}\s{0,2}[:=]{1,2}\s{0,3}|\s{0,2}(?:->|→|=>|-|–|—|~)\s{1,2}|['’]s (?:now )?"
        r"|\? ?(?:it['’]s|it is)? ?"
        r"| (?:(?:is|was|were|got|has been|had been|wurde|a été) )?(?:changed|reset|updated|set"
        r"|switched) (?:to|auf|en) ?:? ?"
        rf"|[,;]? ?(?:which )?(?:(?<=[\s,;])(?:{copula}))(?: (?:{after}))? ?:? ?"
        r"| (?:to|auf|en) ?:? ?|,? ?(?:it['’]s|it is|that['’]s|here it is:?|here you go:?) "
    )
    value = r"(?P<q>[\"'`“”„«*]{0,2})\s?(?P<v>[^\s\"`”“»„«]{4,128})(?P<end>.?)"
    return _Rules(
        said=(
            re.compile(f"{now}(?P<sep>{explicit}| ){value}", re.I | re.S),
            re.compile(f"{place}{now}(?P<sep>{explicit}){value}", re.I | re.S),
        ),
        nouns_elsewhere=re.compile(
            f"(?:{_any(data['nouns_elsewhere'])})"
            r"[^\x21-\x7e\n]{0,12}[:=]{0,1}[^\x21-\x7e\n]{0,4}[\"'`]?(?P<v>[\x21-\x7e]{5,64})",
            re.I,
        ),
        ordinary=frozenset(words(data["ordinary"])),
        endings=re.compile(data["ordinary_endings"]),
        code_kinds=tuple(f"{kind}{joint}" for kind in data["code_kinds"] for joint in " -"),
        code_places=re.compile(rf"(?<![a-z])(?:{_any(data['code_places'])})(?![a-z])"),
        code_not=re.compile("|".join(data["code_not"])),
        codes=frozenset(data["codes"]),
        function_words=frozenset(data["function_words"]),
    )


def told(text: str, name: Name) -> Finding | None:
    """`the password for the nas is x`, `pw: x`, `passphrase: "a b c d"`."""
    if not name.spoken:
        return None
    rules = _rules()
    end = name.end
    if name.text in ("clave", "passe", "wifi", "palavra"):
        end = _skip_tail(text, end)
    for pattern in rules.said:
        match = pattern.match(text, end)
        if match is not None:
            found = _told(text, name, match)
            if found is not None:
                return found
    return None


def _told(text: str, name: Name, match: re.Match[str]) -> Finding | None:
    rules = _rules()
    value, separator = match["v"], match["sep"]
    core = value.rstrip(".,;:!?)#'\"*’")
    found = Finding("natural_language", "told", name.start, match.end("v"))
    if match["q"] or (name.text == "passphrase" and separator != " "):
        phrase = _PHRASE.match(text, match.start("v"))
        if phrase is not None and _is_passphrase(text, name, phrase):
            return found
    if (
        not core
        or core.lower() in rules.ordinary
        or core.endswith(_COMPARED)
        or _ESCAPED.search(core)
        or (_CODE_LIKE.search(core) and not _SYMBOLS.search(core))
    ):
        return None
    weak = separator == " "
    if weak and not _may_stand_beside(name, core):
        return None
    if is_secret(core, quoted=bool(match["q"]), strong=name.strength is Strength.STRONG) and not (
        weak and not _is_mixed(core)
    ):
        return found
    if not weak and name.strength is Strength.STRONG and _is_plain_password(text, name, match, core):
        return found
    return None


def _is_passphrase(text: str, name: Name, phrase: re.Match[str]) -> bool:
    """Several words that make no sentence: at least four, or three in quotes."""
    rules = _rules()
    parts = set(phrase.group(0).lower().split())
    if parts & rules.function_words:
        return False
    if text[phrase.end() : phrase.end() + 1] in ('"', "'", "`"):
        return not parts & rules.ordinary
    return name.text == "passphrase" and len(phrase.group(0).split()) > 3


def _skip_tail(text: str, end: int) -> int:
    match = re.compile(r"(?: (?:de acceso|de acesso|wi-?fi|passe))?(?: wi-?fi)?").match(text, end)
    return match.end() if match else end


def _may_stand_beside(name: Name, core: str) -> bool:
    """`pw x` with nothing between: only for words that mean a password, and values with a digit."""
    if name.strength is not Strength.STRONG:
        return False
    return name.text not in ("pass", "clave", "secret", "key", "passe", "keys") or any(map(str.isdigit, core))


def _is_mixed(core: str) -> bool:
    return (any(map(str.isdigit, core)) and any(map(str.isalpha, core))) or re.search(
        r"[!@#$%^&*]", core
    ) is not None


def _is_plain_password(text: str, name: Name, match: re.Match[str], core: str) -> bool:
    """A bare word as a password: after an explicit copula and at the end of the clause."""
    if (
        name.text in ("secret", "key", "keys", "clave", "token")
        or match["sep"].strip() in ("=", "to")
        or match["sep"].startswith(("'s", "’s"))
        or '"' in match["sep"]
    ):
        return False
    if is_vocabulary(core) or core.lower() in placeholders().words:
        return False
    closes = match["q"] or match["v"] != core or match["end"] in ("", "\n")
    if not closes or not core.isalpha() or not core.islower() or len(core) < 8:
        return False
    rules = _rules()
    return core not in rules.ordinary and not rules.endings.search(core)


def elsewhere(text: str, low: str) -> Finding | None:
    """Passwords told in scripts that write no spaces, and in Cyrillic, Greek, Arabic and others."""
    if not occurs(low, read("speech")["nouns_elsewhere"]):
        return None
    keys = tuple(read("speech")["keys_elsewhere"])
    for match in _rules().nouns_elsewhere.finditer(text):
        value = match["v"].rstrip(".,;:!?)]}'\"`")
        strong = not match.group(0).lower().startswith(keys)
        if is_secret(value, quoted=True, strong=strong) and not re.search(r"[<>(){}]|://", value):
            return Finding("natural_language", "told", match.start(), match.end())
    return None


def used_as(text: str, low: str, name: Name) -> Finding | None:
    """`I used x as my password`, `x is the wifi password`."""
    if name.strength is not Strength.STRONG or not name.spoken:
        return None
    if not _CLOSED.match(text, name.end):
        return None
    first = max(0, name.start - 120)
    if not occurs(low[first : name.start], _LINKS):
        return None
    head = text[first : name.start]
    for pattern in (_AS_PASSWORD, _IS_PASSWORD):
        match = pattern.search(head)
        if match is not None and is_secret(match["v"], quoted=False, strong=True) and _is_mixed(match["v"]):
            return Finding("natural_language", "used_as", first + match.start("v"), name.end)
    return None


def digits(text: str, low: str, name: Name) -> Finding | None:
    """Pins, door codes, card codes, one-time codes."""
    rules = _rules()
    if name.text not in rules.codes and not name.text.endswith(("-pin", "-code")):
        return None
    if _DIGITS.isdisjoint(text[name.end : name.end + _REACH]):
        return None
    is_code = name.text in _NUMBER_NAMES
    known = not is_code or low[max(0, name.start - 18) : name.start].endswith(rules.code_kinds)
    match = (_DIGITS_BESIDE.match(text, name.end) if known else None) or _DIGITS_AFTER.match(text, name.end)
    if match is not None and not known:
        # "the code for the front door is 2214": the place is said after the noun.
        match = match if rules.code_places.search(match["mid"].lower()) else None
    if match is None and name.text == "code":
        match = _TEXTED.match(text, name.end)
    if match is not None and len(match["v"]) > 5 and is_degenerate(match["v"]):
        return None
    if match is None or rules.code_not.search((match.groupdict().get("mid") or "").lower()):
        return None
    if rules.code_not.search(low[max(0, name.start - 9) : name.end]):
        return None
    return Finding("natural_language", "code", name.start, match.end())


def pair(text: str, name: Name) -> Finding | None:
    """`the login is bob / x`."""
    if name.text not in ("login", "credentials", "creds", "account", "logins"):
        return None
    match = _SLASHED.match(text, name.end)
    if match is None or not is_secret(match["v"], quoted=False, strong=True) or "://" in match.group(0):
        return None
    return Finding("natural_language", "user_and_password", name.start, match.end())


def logging_in(text: str, low: str) -> Finding | None:
    """`log in with bob / x`."""
    match = next(_logins(low), None)
    if match is None:
        return None
    value = text[match.start("v") : match.end("v")]
    if not is_secret(value, quoted=False, strong=True) or not _is_mixed(value.rstrip(".,;:")):
        return None
    return Finding("natural_language", "user_and_password", match.start(), match.end())


def _logins(low: str) -> Iterator[re.Match[str]]:
    for verb in ("log", "sign"):
        place = low.find(verb)
        while place >= 0:
            if not place or not "a" <= low[place - 1] <= "z":
                match = _LOG_IN.match(low, place)
                if match is not None:
                    yield match
            place = low.find(verb, place + 3)


def wallet_words(low: str) -> Finding | None:
    """Twelve to twenty-four words of a wallet in a row. Called where the text speaks of a wallet."""
    function_words = _rules().function_words
    if not _has_row(low, function_words):
        return None
    for match in _SEED.finditer(low):
        row: list[re.Match[str]] = []
        for word in (*_WORD.finditer(low, match.start(), match.end()), None):
            if word is not None and word.group(0) not in function_words:
                row.append(word)
            elif _are_of_a_wallet([one.group(0) for one in row]):
                return Finding("credential", "seed_phrase", row[0].start(), row[-1].end())
            else:
                row = []
    return None


def _are_of_a_wallet(words: list[str]) -> bool:
    """Twelve words or more of a language, in no order."""
    if len(words) < _FEWEST_OF_A_WALLET or sum(map(has_rare_pair, words)) * 6 > len(words):
        return False
    return not _is_sorted(words)


def _is_sorted(words: list[str]) -> bool:
    """Words of a list or an index, which the words of a wallet are not."""
    rising = sum(map(str.__le__, words, words[1:]))
    return not 2 < rising < len(words) - 3


def _has_row(low: str, function_words: frozenset[str]) -> bool:
    row = 0
    for word in low.replace(",", " ").split():
        if word.isalpha() and 3 <= len(word) <= 8 and word not in function_words:
            row += 1
            if row == 12:
                return True
        elif not word[:1].isdigit():
            row = 0
        elif word[-1:].isalpha():
            row += 1
    return False


def backup_codes(text: str, low: str) -> Finding | None:
    """Two or more recovery codes in a row."""
    match = _BACKUP.search(low) if " code" in low or " key" in low or "-code" in low else None
    if match is None:
        return None
    codes = _SPLIT_CODE.findall(text, match.end(), match.end() + 400)
    return (
        Finding("natural_language", "backup_codes", match.start(), match.end() + 400)
        if len(codes) >= 2
        else None
    )


def security_answer(text: str) -> Finding | None:
    """`my mother's maiden name is X`."""
    match = _MAIDEN.search(text)
    if match is None or not match["v"][0].isupper():
        return None
    return Finding("natural_language", "security_answer", match.start(), match.end())
