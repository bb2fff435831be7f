"""The validators that rule files name."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Final

from omoide.privacy.judge import is_reference, is_secret
from omoide.privacy.values import (
    HEX,
    base58check,
    is_degenerate,
    is_documentation,
    is_hexadecimal_secret,
    is_random,
    transitions,
)

PRINTABLE: Final = re.compile(rb"[\x09\x0a\x0d\x20-\x7e]+")
LONGEST_QUERY: Final = 300
"""Characters of a parameter from which on it is a document rather than a token."""
_DIGIT: Final = re.compile(r"\d")


def decode_base64(text: str) -> bytes:
    """Standard or URL-safe base64 with or without padding; b"" when it is neither."""
    core = text.rstrip("=").replace("-", "+").replace("_", "/")
    if len(core) % 4 == 1:
        core = core[:-1]
    try:
        return base64.b64decode(core + "=" * (-len(core) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _dense(value: str) -> bool:
    return _DIGIT.search(value) is not None and is_random(value, 0.35)


def _digits(value: str) -> bool:
    return len(_DIGIT.findall(value)) >= 3 and "xxx" not in value.lower()


def _mixed(value: str) -> bool:
    return len(_DIGIT.findall(value)) >= 2 and not is_degenerate(value)


def _userpass(value: str) -> bool:
    raw = decode_base64(value)
    if b":" not in raw or not PRINTABLE.fullmatch(raw):
        return False
    user, password = raw.decode("ascii").split(":", 1)
    return len(password) >= 4 and bool(user) and not is_documentation(password) and not is_degenerate(value)


def _userinfo(value: str) -> bool:
    return not value.startswith("//") and not is_documentation(value) and not value.isdigit()


def _command(value: str) -> bool:
    value = value.rstrip(";,)`")
    if len(value) < 4 or is_documentation(value) or is_reference(value, quoted=False):
        return False
    if re.search(r"[\d!@#%^&*]", value) and re.search(r"[A-Za-z]", value):
        return not re.fullmatch(r"[\d.:/]+(?:px|ms|mb|gb|s|m|k)?", value.lower()) and not value.startswith(
            "-"
        )
    return len(value) >= 16 and transitions(value) > 0.2


def _strong(value: str) -> bool:
    return not is_documentation(value) and is_secret(value, quoted=True, strong=True)


def _query(value: str) -> bool:
    return 16 <= len(value) < LONGEST_QUERY and is_random(value, 0.2)


def _bytes64(value: str) -> bool:
    numbers = [int(part) for part in value.split(",")]
    return max(numbers) < 256 and len(set(numbers)) > 32


def _hash(value: str) -> bool:
    return value.count("$") >= 3 and transitions(value) > 0.2


def _jwt(value: str) -> bool:
    """The header decodes to JSON; the placeholder marks of other tokens occur in honest payloads."""
    head = decode_base64(value.split(".", 1)[0])
    low = value.lower()
    return b'"' in head and "xxxx" not in low and "..." not in low and transitions(value[-320:]) >= 0.18


def _device(value: str) -> bool:
    if is_documentation(value) or is_reference(value, quoted=False):
        return False
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "random": is_random,
    "hex": is_hexadecimal_secret,
    "plain": lambda value: not is_degenerate(value),
    "dense": _dense,
    "digits": _digits,
    "long_id": lambda value: (
        _dense(value) or (HEX.fullmatch(value) is not None and is_hexadecimal_secret(value))
    ),
    "unhex": lambda value: _mixed(value) and is_random(value, 0.25) and HEX.fullmatch(value) is None,
    "either": lambda value: is_random(value) or is_hexadecimal_secret(value),
    "mixed": _mixed,
    "transitions": lambda value: transitions(value) > 0.2,
    "hash": _hash,
    "jwt": _jwt,
    "device": _device,
    "base58check": base58check,
    "userpass": _userpass,
    "userinfo": _userinfo,
    "command": _command,
    "strong": _strong,
    "query": _query,
    "bytes64": _bytes64,
    "pem": lambda value: "..." not in value and len(set(value)) > 6,
    "always": lambda value: True,
}
