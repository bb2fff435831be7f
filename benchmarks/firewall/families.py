"""Worst cases: texts made to be slow, each a function of a size in characters.

A family repeats what some rule begins with and then never ends it: prefixes without bodies, names
without values, copulas without a password, brackets, quotes, encodings, spaced letters, and runs of
one character. A scan is linear when doubling the size at most doubles the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

_UNITS: Final[dict[str, str]] = {
    "letters": "a",
    "words": "word ",
    "digits": "7",
    "digit_groups": "4111 ",
    "dashes": "-",
    "spaces": " ",
    "newlines": "\n",
    "blank_lines": " \n",
    "equals": "=",
    "quotes": '"',
    "single_quotes": "'",
    "colons": ":",
    "slashes": "/",
    "dots": ".",
    "percent": "%41",
    "percent_bare": "%",
    "entities": "&#65;",
    "entity_heads": "&#",
    "escapes": "\\u0041",
    "hex_escapes": "\\x41",
    "joined_strings": '"a" + ',
    "touching_strings": '"a" "b" ',
    "base64": "QUJD",
    "base64_words": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo= ",
    "hex": "4142",
    "hex_words": "41424344454647484950515253545556 ",
    "hex_pairs": "41 ",
    "spaced_letters": "a b ",
    "mixed_token": "aB3dE5gH7",
    "mixed_words": "aB3dE5gH7jK9mN1pQ3sT5 ",
    "github_heads": "ghp_",
    "openai_heads": "sk-",
    "openai_project_heads": "sk-proj-",
    "aws_heads": "AKIA",
    "jwt_heads": "eyJ",
    "jwt_parts": "eyJabc.",
    "slack_heads": "xoxb-1",
    "gitlab_heads": "glpat-",
    "hashes": "$2b$12$",
    "pem_heads": "-----BEGIN PRIVATE KEY-----",
    "pem_begin": "-----BEGIN ",
    "urls": "https://a ",
    "userinfo": "://a:",
    "userinfo_tight": "://",
    "query": "?token=a&key=b",
    "passwords": "password",
    "passwords_spaced": "password ",
    "passwords_colon": "password: ",
    "passwords_is": "the password is ",
    "passwords_for": "password for the of the for the ",
    "passwords_quoted": '"password": "',
    "pass_numbered": "pass1 pass2 pass3 ",
    "tokens_equal": "token=",
    "keys": "api key ",
    "keys_dotted": "a_b.c-key.",
    "secrets_comma": '"secret", ',
    "tags": "<password>",
    "authorization": "Authorization: Bearer ",
    "cookies": "Cookie: a=b; ",
    "cookies_one_line": "cookie: sess",
    "flags": "--token ",
    "flag_dashes": "--a-",
    "curl": "curl -u ",
    "mysql": "mysql -u root ",
    "docker": "docker login ",
    "machine": "machine a login b ",
    "pgpass": "a:5432:b:c:",
    "kubernetes": "kind: Secret\ndata:\n  a: QUJD\n",
    "json_keys": '{"kty": "d", ',
    "seed_words": "abandon wallet ",
    "seed_short": "seed abc def ",
    "backup_codes": "backup codes ",
    "maiden": "maiden name ",
    "pins": "pin is ",
    "codes": "door code is the ",
    "logins": "login is a / ",
    "as_password": "use x as my password ",
    "off_record": "off the ",
    "do_not": "do not ",
    "do_not_keep": "don't save or store or ",
    "keep_out": "keep what i said about the thing ",
    "forget": "forget what i ",
    "remember": "not remember ",
    "markup": "[[ ",
    "comments": "<!-- ",
    "delete": "delete what i memory ",
    "german": "nicht merken ",
    "french": "ne garde ",
    "curly": "don’t ",
    "zero_width": "a\u200bb",
    "full_width": "ｐａｓｓ",
    "cyrillic": "пароль ",
    "mixed_scripts": "pаss ",
    "chinese": "密码是",
    "emoji": "🙂🙂 ",
    "combining": "e\u0301",
    "cards": "4111 1111 1111 1112 ",
    "ibans": "DE89 3704 0044 ",
    "numbers": "1, 2, ",
    "brackets": "[1,",
    "wrapped": "ghp_aB3dE5gH7\n",
    "wrapped_quoted": "> aB3dE5gH7jK9\n",
    "private_wallet": "private key 0x",
    "long_line_code": "foo(bar, baz=qux['key']) ",
}


def _repeat(unit: str) -> Callable[[int], str]:
    def make(size: int) -> str:
        # Whole units and one more word: a unit cut at the end may mean something, and end the scan early.
        return unit * (size // len(unit)) + " x"

    return make


def _alternating(size: int) -> str:
    """Every unit once, over and over."""
    block = " ".join(_UNITS.values())
    return (block * (size // len(block) + 1))[:size]


def _one_long_name(size: int) -> str:
    return "my_" * (size // 3 - 4) + "password = x"


def _nested_encoding(size: int) -> str:
    import base64

    text = "plain text without any secret in it. " * (size // 140)
    once = base64.b64encode(text.encode()).decode()
    return base64.b64encode(once.encode()).decode()[:size]


FAMILIES: Final[dict[str, Callable[[int], str]]] = {
    **{name: _repeat(unit) for name, unit in _UNITS.items()},
    "alternating": _alternating,
    "one_long_name": _one_long_name,
    "nested_encoding": _nested_encoding,
}


def families() -> Iterator[tuple[str, Callable[[int], str]]]:
    """All families, by name."""
    yield from FAMILIES.items()
