"""Credentials in HTTP headers: Authorization, bearer tokens, session cookies."""

from __future__ import annotations

import re
from typing import Final

from omoide.privacy.checks import PRINTABLE, decode_base64
from omoide.privacy.judge import is_reference
from omoide.privacy.names import Name
from omoide.privacy.values import is_degenerate, is_random, placeholders
from omoide.privacy.verdict import Finding

COOKIES: Final = ("cookie", "set-cookie")
MOST_COOKIES: Final = 400
"""Characters of a cookie header that are looked through."""
_HEADER: Final = re.compile(
    r"[\\\"']{0,2}\s{0,2}[:=,]\s{0,2}[fb]?\\?[\"'`]?(?P<s>basic|bearer|token|ssws|apikey|api-key|digest"
    r"|hmac|negotiate|key)?[ :=]{0,3}(?P<v>[A-Za-z0-9_\-+/=.~%:]{12,2000})",
    re.I,
)
_AUTHORIZATION: Final = re.compile(r"(?:[a-z0-9]{1,16}[-_]){0,3}authorization(?:[-_]?header)?")
_BEARER: Final = re.compile(r"\s{1,2}(?P<v>[A-Za-z0-9_\-+/=.~]{16,2000})")
_COOKIE: Final = re.compile(
    r"(?:set-)?cookie[\"']?:\s{0,2}[\"']?[^\n]{0,400}?(?:sess|auth|token|sid|jwt|remember"
    r"|login)[A-Za-z_\-.]{0,16}=(?P<v>[A-Za-z0-9_\-%.+/=:]{16,400})",
    re.I,
)


def header(text: str, name: Name) -> Finding | None:
    """`Authorization: Bearer x`, `Bearer x`."""
    if _AUTHORIZATION.fullmatch(name.text):
        match = _HEADER.match(text, name.end)
        if (
            match is None
            or (match.group(0).lstrip("\"' ")[:1] == "," and match.group(0)[0] not in "\"'\\")
            or text[match.end() : match.end() + 1] in ("(", "[")
        ):
            return None
        scheme, value = (match["s"] or "").lower(), match["v"]
        if scheme == "basic":
            return Finding("credential", "basic_header", name.start, match.end()) if _is_pair(value) else None
        if len(value) >= 16 and is_random(value) and not is_reference(value, quoted=True):
            return Finding("credential", "authorization_header", name.start, match.end())
    elif name.text == "bearer":
        match = _BEARER.match(text, name.end)
        if match is not None and is_random(match["v"]) and not is_reference(match["v"], quoted=False):
            return Finding("credential", "bearer", name.start, match.end())
    return None


def _is_pair(value: str) -> bool:
    raw = decode_base64(value)
    if b":" not in raw or not PRINTABLE.fullmatch(raw):
        return False
    secret = raw.split(b":", 1)[1].decode()
    return (
        len(secret) >= 4
        and secret.lower() not in placeholders().documentation
        and not is_degenerate(secret)
        and not is_degenerate(value)
    )


def reach(text: str, name: Name) -> int:
    """Where the look at one cookie header ends: within its line, and not far away."""
    line = text.find("\n", name.end, name.start + MOST_COOKIES)
    return line if line >= 0 else name.start + MOST_COOKIES


def cookie(text: str, name: Name) -> Finding | None:
    """`Cookie: sessionid=x`."""
    if name.text not in COOKIES or text[name.end : name.end + 2].strip("\"'")[:1] != ":":
        return None
    match = _COOKIE.match(text, name.start)
    if match is not None and is_random(match["v"]):
        return Finding("credential", "cookie", name.start, match.end())
    return None
