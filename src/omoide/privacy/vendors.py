"""Keys without a mark of their own, beside the name of who issued them: `deepgram = 6c8b...`.

A vendor's name, at most a few words of an identifier, an assignment, and a long value that only a
machine makes. Words that name other things such values are (`id`, `commit`, `image`) rule it out, and
so do vendors whose names are words or whose values are hashes as a matter of course.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from omoide.privacy.rulefiles import read, words
from omoide.privacy.values import HEX, UUID, is_degenerate, transitions
from omoide.privacy.verdict import Finding

_ASSIGNED: Final = re.compile(
    r"[\w .\-]{0,20}[\"'`]{0,2}\s{0,3}(?:=>|:{1,3}=|[?.+]?=|\|\||[:>,])\s{0,3}[\"'`]{0,2}"
    r"(?:(?:oauth|bearer|token|basic|key)\s{1,2})?(?P<v>[A-Za-z0-9_\-]{20,128})(?![\w\-./@])",
    re.I,
)
_OTHERWISE: Final = re.compile(
    r"(?<![a-z])(?:ids?|uuid|guid|hash|sha\d*|md5|digest|checksum|commit|rev|revision|ref|version|page|url|uri"
    r"|image|build|channel|user|account|tag|index|file|folder|path|cert|certs|etag|integrity|trace|span|session"
    r"|event|team|workspace|project|board|issue|doc|database|block|org|space|public|publishable|fingerprint"
    r"|address|tx|node|release|snapshot|layer|docs?|plugin|module|package|client|app|application|tenant)(?![a-z])"
)
_HASH_SIZES: Final = (32, 40, 48, 64, 80, 96, 128)


@cache
def vocabulary() -> frozenset[str]:
    """The vendors that a value alone is believed beside."""
    data = read("names")
    return frozenset(
        vendor for vendor in words(data["vendors"]) if vendor.isalpha() and len(vendor) > 3
    ) - frozenset(words(data["vendors_as_words"]))


def keyed(text: str, low: str, found: set[str]) -> Finding | None:
    """The first value that is assigned to a vendor's name. Cost: one match per place of a vendor found."""
    for vendor in sorted(vocabulary() & found):
        place = low.find(vendor)
        while place >= 0:
            end = place + len(vendor)
            match = _ASSIGNED.match(text, end) if not "a" <= low[place - 1 : place] <= "z" else None
            if (
                match is not None
                and not _OTHERWISE.search(low, place, match.start("v"))
                and _is_key(match["v"])
            ):
                return Finding("credential", "vendor_key", place, match.end())
            place = low.find(vendor, end)
    return None


def _is_key(value: str) -> bool:
    if is_degenerate(value) or not any(map(str.isdigit, value)):
        return False
    if HEX.fullmatch(value):
        return len(value) in _HASH_SIZES and transitions(value) >= 0.2
    return UUID.fullmatch(value) is None and transitions(value) >= 0.3
