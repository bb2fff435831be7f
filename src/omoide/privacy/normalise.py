"""Views of a text in which a disguised secret shows.

`plain` is the view every rule reads: invisible, bidi and variation characters removed, NFKC,
Cyrillic and Greek look-alikes folded in words that mix scripts, curly quotes straightened. It is
the text itself for ASCII.

`decoded` yields further views, each behind a cheap marker: percent, HTML entities, `\\uXXXX` and
`\\xXX`, `"a" + "b"`, tokens broken over lines, single-spaced letters, base64 and hex that decode to
printable text. Each names the part of the text it was decoded from, or the whole of it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

from omoide.privacy.checks import PRINTABLE, decode_base64
from omoide.privacy.gates import beyond_ascii, is_spelled, letters_only, occurs
from omoide.privacy.reading import Reading

MOST_DECODED: Final = 65_536
"""Characters of the longest base64 or hex run that is decoded."""

_INVISIBLE: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-"
    "\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\U0001d173-\U0001d17a\U000e0000-\U000e01ef]"
)
_LOOKALIKES: Final = str.maketrans(
    "аеорсухкмтнвіјѕһԁԛԝАЕОРСУХКМТНВІЈЅοανρτυικεΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxkmthbijshdqwAEOPCYXKMTHBIJSoavptuikeABEZHIKMNOPTYX",
)
_STRAIGHT: Final = tuple(zip("’‘‛“”„‟‐‑‒–", '\'\'\'""""----', strict=True))
_BEYOND_LATIN: Final = re.compile("[\u0370-\u1fff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefe]")
_OTHER_SCRIPT: Final = re.compile("[\u0370-\u052f]")
_MIXED: Final = re.compile(r"[A-Za-z][\u0370-\u03ff\u0400-\u052f]|[\u0370-\u03ff\u0400-\u052f][A-Za-z]")

_PERCENT: Final = re.compile(r"(?:%[0-9A-Fa-f]{2}[A-Za-z0-9_\-.~]{0,24}){3,4000}")
_ESCAPE: Final = re.compile(r"\\u00([0-9A-Fa-f]{2})|\\x([0-9A-Fa-f]{2})|\\u\{0{0,4}([0-9A-Fa-f]{2})\}")
_OCTAL: Final = re.compile(r"\\(1[0-7]{2}|0[4-7][0-7])")
_QUOTED: Final = re.compile(r"(?:=[0-9A-F]{2}){12,4000}")
_FEWEST_QUOTED: Final = 12
_CODES: Final = re.compile(
    r"(?<!\d)\d{2,3}(?!\d)\)?(?:[ \n]{0,2}[,+][ \n]{0,2}(?:(?:chr|char)\([ ]?)?\d{2,3}(?!\d)\)?){15,4000}"
)
_AS_ZERO: Final = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
_ROW_OF_CODES: Final = (b"00,00", b"00, 00", b"00,\n00")
_NUMBER: Final = re.compile(r"\d+")
_FEWEST_CODES: Final = 15
_FEWEST_PARTED: Final = 23
_JOINT: Final = re.compile(
    r"(?<![\"'`])[\"'`][ \t\r\n]{0,3}(?:\+|\.{1,2}|~|\|\||&)?[ \t\r\n]{0,3}(?:\\?\n[ \t\r\n]{0,12})?"
    r"(?:\+[ \t\r\n]{0,3})?[\"'`](?=[A-Za-z0-9_\-+/=])"
)
_TOUCHING: Final = ('" "', '"\n', '" .', '" &', '" \\', '".."')
_TOUCHING_SINGLE: Final = ("' '", "'\n", "' .")
_BETWEEN: Final = b" \t\n\r\\+.~|&"
"""What may stand between the quotes of two literals that make one."""
_LITERALS: Final = bytes(
    113 if byte in b"\"'`" else 97 if byte < 128 and (chr(byte).isalnum() or byte in b"_-+/=") else 98
    for byte in range(256)
)
_TOUCH: Final = (b"aqqa", b"bqqa")
"""The end of a literal and the beginning of another, after `_LITERALS`."""
_ROW_OF_ONES: Final = b" x" * 10 + b" "
_ROW_OF_PAIRS: Final = b" xx" * 14 + b" "
_HEX_SHAPE: Final = bytes(
    104 if chr(byte) in "0123456789abcdefABCDEF" else 32 if byte in b" :," else byte for byte in range(256)
)
_PAIRS: Final = (
    b"hh hh hh hh hh ",
    b"hh  hh  hh  hh ",
    b"hxhh hxhh hxhh",
    b"hxhh  hxhh  hxhh",
    b"xhh \\xhh \\xhh",
)
_SPACED: Final = re.compile(r"(?<!\S)(?:\S[ \n]){11,4000}\S(?!\S)")
_BASE64: Final = bytes(
    byte if byte < 128 and (chr(byte).isalnum() or byte in b"+/_-") else 32 for byte in range(256)
)
_SHORTEST_BASE64: Final = 20
_FIRST_OF_FOUR: Final = "CDIJKLMNOPQRSTUVWXYZabcdef"
"""What every fourth character of printable text in base64 is one of: six bits of its first byte."""
_HEX: Final = re.compile(r"(?:0x)?(?:[0-9A-Fa-f]{2}){16,32768}")
_HEX_PAIRS: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ :,]{1,2}){16,4000}(?:0x"
    r"|\\x)?[0-9A-Fa-f]{2}(?![0-9A-Za-z])"
)


class View(NamedTuple):
    """A decoded view and the part of the text, start to end, that it was decoded from."""

    kind: str
    text: str
    start: int
    end: int


def plain(text: str) -> str:
    """The text without its disguises. Length and offsets may change; ASCII is returned as it is."""
    if text.isascii():
        return text
    rest = beyond_ascii(text)
    if _INVISIBLE.search(rest):
        text = _INVISIBLE.sub("", text)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
        rest = beyond_ascii(text)
    for curly, straight in _STRAIGHT:
        if curly in rest:
            text = text.replace(curly, straight)
    if _OTHER_SCRIPT.search(rest) and _MIXED.search(text):
        text = text.translate(_LOOKALIKES)
    return text


def has_other_script(text: str) -> bool:
    """Letters beyond Latin occur."""
    return not text.isascii() and _BEYOND_LATIN.search(beyond_ascii(text)) is not None


def decoded(reading: Reading) -> Iterator[View]:
    """Yield the views whose marker is present."""
    text, may = reading.text, reading.hits.may
    size = len(text)
    if may("percent") and reading.blob.count("%") >= 3:
        yield from _percent(text, reading.blob)
    if "&" in text and may("html") and "&#" in text:
        yield View("html", _changed(text, html.unescape(text)), 0, size)
    if "\\" in text and may("escape") and ("\\u" in text or "\\x" in text):
        yield View("escape", _changed(text, _ESCAPE.sub(_unescape, text)), 0, size)
    if may("joined") and _may_be_joined(text, reading.raw):
        joined = _JOINT.sub("", text)
        if joined != text:
            yield View("joined", _changed(text, joined), 0, size)
    if "\\" in text and may("octal") and "\\1" in text:
        octal = _OCTAL.sub(_from_octal, text)
        if octal != text:
            yield View("octal", _changed(text, octal), 0, size)
    if may("quoted") and reading.blob.count("=") >= _FEWEST_QUOTED:
        yield from _quoted(text, reading.blob)
    if may("codes") and _may_be_codes(text, reading.raw):
        yield from _codes(text)
    yield from _parted(text, reading.long)
    yield from _spaced(reading)
    if may("hex") or may("base64"):
        yield from _encoded(text, reading.blob)


def _percent(text: str, blob: str) -> Iterator[View]:
    done = 0
    for match in _PERCENT.finditer(blob):
        if match.start() < done:
            continue
        word = _word_around(blob, match.start(), match.end())
        done = match.start() + len(word)
        yield _view("percent", unquote(word, errors="replace"), text, word)


def _from_octal(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 8))


def _quoted(text: str, blob: str) -> Iterator[View]:
    """`=67=68=70`, as quoted-printable mail has it."""
    for match in _QUOTED.finditer(blob):
        yield _view(
            "quoted", unquote(match.group(0).replace("=", "%"), errors="replace"), text, match.group(0)
        )


def _may_be_codes(text: str, raw: bytes) -> bool:
    if text.count(",") >= _FEWEST_CODES and occurs(raw.translate(_AS_ZERO), _ROW_OF_CODES):
        return True
    return "chr(" in text


def _codes(text: str) -> Iterator[View]:
    """`chr(103)+chr(104)`, `[103, 104, 112]`: codes of characters."""
    for match in _CODES.finditer(text):
        codes = [int(code) for code in _NUMBER.findall(match.group(0))]
        if all(32 <= code < 127 for code in codes):
            yield View("codes", "".join(map(chr, codes)), match.start(), match.end())


def _parted(text: str, words: list[str]) -> Iterator[View]:
    """`g.h.p._.4`: one mark after every character."""
    for word in words:
        if len(word) < _FEWEST_PARTED or not (
            word[5] == word[7] == word[9] == word[11] or word[6] == word[8] == word[10] == word[12]
        ):
            continue
        core = word.strip("\"'`()[],;")
        marks = core[1::2]
        if len(core) >= _FEWEST_PARTED and marks[0] in ".-_|/*+,~:" and marks == marks[0] * len(marks):
            yield _view("parted", core[::2], text, core)


def _changed(text: str, made: str) -> str:
    """The lines of a view that are not in the text: the others have been read already."""
    known = set(text.split("\n"))
    return "\n".join([line for line in made.split("\n") if line not in known])


def _view(kind: str, made: str, text: str, source: str) -> View:
    start = text.find(source)
    return View(kind, made, start, start + len(source)) if start >= 0 else View(kind, made, 0, len(text))


def _word_around(blob: str, start: int, end: int) -> str:
    stop = blob.find("\n", end)
    return blob[blob.rfind("\n", 0, start) + 1 : stop if stop >= 0 else len(blob)]


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match.group(1) or match.group(2) or match.group(3), 16))


def _spaced(reading: Reading) -> Iterator[View]:
    """Written letter by letter, as `g h p _ 4` or `67 68 5f`: letters stand alone that seldom do."""
    text, may = reading.text, reading.hits.may
    ones = may("letters") and _is_row(reading.solid, 2, _ROW_OF_ONES)
    pairs = may("pairs") and (
        _is_row(reading.solid, 3, _ROW_OF_PAIRS) or text.count(":") >= 16 or text.count("0x") >= 16
    )
    if pairs and not occurs(reading.raw.translate(_HEX_SHAPE), _PAIRS):
        pairs = False
    if not (ones or pairs):
        return
    if not is_spelled(letters_only(reading.low).split()):
        return
    if ones:
        for match in _SPACED.finditer(text):
            yield View(
                "spaced", match.group(0).replace(" ", "").replace("\n", ""), match.start(), match.end()
            )
    if pairs:
        for match in _HEX_PAIRS.finditer(text):
            made = _from_pairs(match.group(0))
            if made:
                yield View("hex", made, match.start(), match.end())


def _is_row(solid: bytes, step: int, row: bytes) -> bool:
    """A row of words of one length is in the outline: every so many bytes there is a space.

    The search for a row that repeats itself is slow, the search for spaces only is fast.
    """
    spaces = b" " * (len(row) // step)
    return any(spaces in solid[start::step] for start in range(step)) and row in solid


def _may_be_joined(text: str, raw: bytes) -> bool:
    """Two string literals may touch or be added up."""
    if not occurs(text, "\"'") or not occurs(raw.translate(_LITERALS, _BETWEEN), _TOUCH):
        return False
    if "+" in text:
        return True
    if '"' in text and occurs(text, _TOUCHING):
        return True
    return "'" in text and occurs(text, _TOUCHING_SINGLE)


def _from_pairs(text: str) -> str:
    digits = re.sub(r"0x|\\x|[ :,]", "", text)
    if len(digits) % 2 or not re.fullmatch(r"[0-9A-Fa-f]{2,65536}", digits):
        return ""
    raw = bytes.fromhex(digits)
    return raw.decode("ascii") if PRINTABLE.fullmatch(raw) else ""


def _encoded(text: str, blob: str) -> Iterator[View]:
    runs = blob.encode("utf-8", "replace").translate(_BASE64).split()
    for run in [run for run in runs if len(run) >= _SHORTEST_BASE64]:
        for start in range(0, len(run), MOST_DECODED):
            source = run[start : start + MOST_DECODED].decode("ascii")
            if len(source) >= 32 and _HEX.fullmatch(source):
                raw = bytes.fromhex(source.removeprefix("0x"))
                if PRINTABLE.fullmatch(raw):
                    yield _view("hex", raw.decode("ascii"), text, source)
            elif not source[:24:4].strip(_FIRST_OF_FOUR):
                yield from _from_base64(text, source)


def _from_base64(text: str, source: str) -> Iterator[View]:
    # Text in base64 always mixes cases; most identifiers and paths do not.
    if source.islower() or source.isupper():
        return
    start = decode_base64(source[:24])
    if start and PRINTABLE.fullmatch(start):
        raw = decode_base64(source)
        if raw and PRINTABLE.fullmatch(raw):
            yield _view("base64", raw.decode("ascii"), text, source)


def rejoined(text: str) -> list[str]:
    """Tokens that were broken over lines, put together again.

    The last word of a line goes on with the first word of the next one; quote marks, backslashes
    and indentation between them are dropped.
    """
    joined: list[str] = []
    current = ""
    for line in text.split("\n"):
        parts = line.split()
        if parts and parts[0] in (">", "#", "//", "*", "|"):
            parts = parts[1:]
        if not parts:
            if current:
                joined.append(current)
            current = ""
            continue
        if current:
            if len(parts) > 1:
                joined += (current, current + parts[0].rstrip("\\"))
                current = ""
            else:
                current += parts[0].rstrip("\\")
        if not current and len(parts[-1]) >= 6:
            current = parts[-1].rstrip("\\")
    if current:
        joined.append(current)
    return [word for word in joined if len(word) >= 20]
