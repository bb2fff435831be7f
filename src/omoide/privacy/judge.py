"""Whether the value beside a secret-bearing name is a secret.

The name decides how much the value must prove. Beside `password` a word with a digit is enough;
beside `token` it must look machine-made. References to code, types, paths and calls are neither.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from omoide.privacy.rulefiles import read
from omoide.privacy.values import (
    UUID,
    is_degenerate,
    is_vocabulary,
    placeholders,
    rare_pairs,
    transitions,
)

_EDGES: Final = ".,;:!?)]}'\"`*>"
_REFERENCE: Final = re.compile(
    r"(?:[\[\](){}*.\-_/\\|,;:!?#=<>~+&^%$@]+|\$[a-z_{(\[].{0,200}|\$|%[a-z_]{1,60}%|<.{0,200}|\{.{0,200}"
    r"|@[a-z_]{1,60}@?"
    r"|!(?:vault|ref|sub|getatt|secret)\b.{0,200}|[\w.\-]{1,80}\.(?:txt|json|pem|key|ya?ml|py|ts|js|md|toml"
    r"|env|crt|cfg|ini|html?|php|rb|go|rs|sh|png|svg|css)"
    r"|/[\w./\-]{1,200}|v?\d{1,4}(?:\.\d{1,6}){1,4}\w{0,8})$"
    r"|(?:os|process|settings|self|secrets?|this|args|opts|options|params|req|request|data|response|res"
    r"|event|ctx|context|app|env|body|user|props|state|payload|result|"
    r"session|cookies|headers|credentials?|creds|vars|values|input|form|account|client|obj|item|row"
    r"|import\.meta|config|cfg|conf|environment|module|window|global|local|var|each|data)\.[a-z_$]"
    r"|(?:config|env|environ|params|settings|session|headers|cookies|data|secrets|getenv|vault"
    r"|os\.environ)[\[(:_]"
    r"|(?:str|string|bool|boolean|int|integer|float|bytes|optional|none|null|nil|true|false|undefined|any"
    r"|object|dict|list|union|secretstr|field|varchar|char|text|number|uuid|buffer|uint8array)(?![a-z0-9])"
    r"|https?://[^:@/\s]{1,200}(?:/|$)|\.{1,2}/|~/|arn:|op://|ssm:|kms:|ref\+|vault:|sm://|keyvault"
    r"|@microsoft\.keyvault"
    r"|(?:sealed|base64|bcrypt|argon2|md5|sha\d{1,3}|hashed|encrypted|protected|hidden|masked|pbkdf2"
    r"|scrypt)(?![a-z0-9])"
)
_ESCAPES: Final = re.compile(r"\\f[A-Z(]|\\x[0-9a-f]{2}\\x")
"""Fonts of a manual page, bytes of a program."""
_CODE: Final = re.compile(
    r"[(){}\[\]]|=>|::|^[A-Za-z_.!]{1,60}(?:\|\||&&)[A-Za-z_.!]{1,60}$|->|\.(?:get|env|environ|read|strip|encode|decode|value|hex|from|to|text|json"
    r"|trim)(?![a-z])"
)
_TEMPLATE: Final = re.compile(
    r"\(\?[:=!<P]|^\?:|\$\{|\{\{|%\(\w{1,40}\)s|\(\)$|\$\(|#\{|<%|^\$[A-Za-z_]+$|^\{\w{0,40}\}$"
)
_IDENTIFIER: Final = re.compile(
    r"[A-Z][A-Z0-9]{0,40}(?:_[A-Z0-9]{1,40}){1,12}"
    r"|[A-Za-z][A-Za-z0-9]{1,48}(?:Form|Type|Request|Response|Config|Settings|Manager|Provider|Client"
    r"|Service|Factory|Error|"
    r"Exception|Str|String|Model|Schema|Field|Class|Handler|Callback|Token|Secret|Password|Key|Credentials?"
    r"|Input|Options|"
    r"Params|Props|Dict|List|Auth|Base|Bearer|Header|Depends|Name|Value|Data|Info|Result|Id|Path|File|Url"
    r"|Map|Set|Hash|Encoder|View|Button|Label|Text)"
    r"|_{0,2}[A-Z]{0,5}(?:[A-Z][a-z]{2,20}\d?){2,7}[A-Z][a-z]{2,20}"
    r"|[A-Za-z_]{1,40}(?:\.[A-Za-z_]{1,40}){1,6}|_\w{1,40}(?:\.\w{1,40}){1,6}|[a-z]{1,30}(?:[A-Z][a-z]{1,30}){1,6}\d?"
    r"|[a-z]{1,30}(?:_[a-z]{1,30}){1,8}"
    r"|[a-z_]{1,30}\d{0,6}(?:\.(?:[A-Z][a-z]{1,20}\d{0,6}){1,6}){1,4}"
)
_LONG: Final = 24
_AS_RANDOM: Final = 0.45
_CAMEL: Final = re.compile(r"_{0,2}[A-Za-z]{0,5}(?:[A-Z][a-z]{2,20}){2,8}")
_MEASURE: Final = re.compile(
    r"v?\d{1,9}(?:\.\d{1,9}){1,6}\w{0,8}|\d{1,8}(?:st|nd|rd|th|px|em|rem|ms|kb|mb|gb|s|m|h|d|k|min|chars?"
    r"|hours?|days?|bits?|bytes?|x)|\d{1,4}-\d{1,4}-\d{1,4}.{0,20}"
)
_NUMERIC: Final = re.compile(r"[\d.,:/\-]+")
_SYMBOL: Final = re.compile(r"[!@#$%^&*?]")
_HEX32: Final = re.compile(r"(?=[0-9a-fA-F]{0,40}\d)[0-9a-fA-F]{32,128}")
_WORDS: Final = re.compile(r"[a-z]{1,30}(?:[-_.:/][a-z]{1,30}){0,8}")


@cache
def _names() -> tuple[re.Pattern[str], re.Pattern[str]]:
    data = read("names")
    return re.compile(data["literal"]), re.compile(data["uuid"])


def is_literal_name(name: str) -> bool:
    """The name is `password`, `pwd`, `secret_key` and not a compound that only contains it."""
    return _names()[0].search(name) is not None


def tidy(value: str) -> str:
    """The value without the punctuation of the sentence or code around it."""
    return value[:160].rstrip(_EDGES).lstrip("*`'\"(")


def is_reference(value: str, *, quoted: bool) -> bool:
    """Code, a path, a type, a template or an identifier rather than a literal."""
    if _REFERENCE.match(value.lower()):
        return True
    if quoted:
        return _TEMPLATE.search(value) is not None
    return _CODE.search(value) is not None or _is_identifier(value)


def _is_identifier(value: str) -> bool:
    """A name of code; what is long and changes class all the time is none, whatever it ends in."""
    if _IDENTIFIER.fullmatch(value) is None:
        return False
    return len(value) < _LONG or transitions(value) < _AS_RANDOM


def is_secret(value: str, *, quoted: bool, strong: bool, name: str = "") -> bool:
    """Decide on one value. `strong`: the name says password, not only token or key."""
    value = tidy(value)
    size = len(value)
    if size < 5 or value.lower() in placeholders().words:
        return False
    if is_reference(value, quoted=quoted) or is_vocabulary(value) or _ESCAPES.search(value):
        return False
    if not strong and _CAMEL.fullmatch(value):
        return False
    if not _looks_secret(value, size, strong=strong, name=name):
        return False
    return not is_degenerate(value)


def _looks_secret(value: str, size: int, *, strong: bool, name: str) -> bool:
    if UUID.fullmatch(value):
        return strong or (bool(name) and _names()[1].search(name) is not None)
    if _NUMERIC.fullmatch(value):
        return _is_numeric_secret(value, size, strong=strong, name=name)
    if size >= 16 and (transitions(value) >= 0.2 or _HEX32.fullmatch(value)):
        return True
    if size >= 20 and value.isalnum() and rare_pairs(value) >= 0.25:
        return True
    return strong and _looks_chosen(value, size)


def _is_numeric_secret(value: str, size: int, *, strong: bool, name: str) -> bool:
    if not value.isdigit():
        return False
    if strong and 5 <= size <= 12:
        return not name or is_literal_name(name)
    return 15 <= size <= 40 and bool(name) and name.endswith(("token", "secret", "password"))


def _looks_chosen(value: str, size: int) -> bool:
    """A password as people make them: letters with digits, symbols or odd capitals."""
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    if digits and letters and size >= 6:
        return not _MEASURE.fullmatch(value.lower())
    if letters and size >= 8 and _SYMBOL.search(value):
        return True
    mixed = letters == size and not value.istitle() and not value.isupper() and not value.islower()
    return size >= 8 and mixed and transitions(value) >= 0.2


def is_words(value: str) -> bool:
    """Lower-case words joined by dashes, dots or colons: a slug, a module, a file."""
    return _WORDS.fullmatch(value) is not None
