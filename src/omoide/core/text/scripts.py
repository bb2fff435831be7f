"""Unicode: which characters make words, which stand alone, which are one and the same.

A text is cut at white space first; what follows happens to one chunk, in this order:

    clean      invisible characters (joiners, variation selectors, skin tones, bidi marks, lone
               surrogates) deleted, quotes and hyphens unified, any decimal digit made ASCII
    bound      runs of more than 30 combining characters cut to 30: canonical ordering is an
               insertion sort, quadratic on such a run (30 is the bound of UAX #15, Stream-Safe)
    NFKC       one spelling for full-width, half-width, ligatures, decomposed letters
    separate   everything that is no letter, mark, digit, `_` or `'` becomes a space;
               a pictograph gets spaces around it, so it is a word of its own

`fold` then makes words equal that differ in accents, vowel points or letter variants. Each step is
one pass over the text in C. The tables fill themselves by Unicode category as characters are met,
so an import builds none; characters beyond a table's bound are classified again each time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Scripts written without spaces, Hangul (whose words carry their particles), and the regional
# indicators, two of which make a flag: indexed as overlapping pairs of characters.
UNSPACED = (  # Kana and Bopomofo, Han, Hangul, Thai and Lao, Myanmar, Khmer, regional indicators
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\uac00-\ud7a3"
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\uaa60-\uaa76\uaa7a-\uaa7f"
    "\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\U0001f1e6-\U0001f1ff"
)
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")

_MARK_RUN_MAX = 30
_TABLE_MAX = 20_000

_PICTOGRAPHS = (
    (0x2300, 0x23FF),
    (0x2600, 0x27BF),
    (0x2B00, 0x2BFF),
    (0x1F000, 0x1F1E5),
    (0x1F200, 0x1F3FA),
    (0x1F400, 0x1FAFF),
)
_REGIONAL = range(0x1F1E6, 0x1F200)
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x180B, 0x180E))
_UNIFIED = {0x2018: "'", 0x2019: "'", 0x201B: "'", 0x02BC: "'", 0xFF07: "'", 0x2010: "-", 0x2011: "-"}

# Accents and vowel points; the Hebrew and Arabic punctuation between them is not among these.
_POINTS = (
    (0x0300, 0x036F), (0x0483, 0x0487), (0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2),
    (0x05C4, 0x05C5), (0x05C7, 0x05C7), (0x0610, 0x061A), (0x0640, 0x0640), (0x064B, 0x065F),
    (0x0670, 0x0670), (0x06D6, 0x06DC), (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED),
    (0x08D3, 0x08E1), (0x08E3, 0x08FF), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0),
    (0xFE20, 0xFE2F),
)  # fmt: skip
_LETTERS = {
    "ð": "d", "đ": "d", "þ": "th", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "ı": "i", "ħ": "h",
    "ŧ": "t", "ŋ": "n",
    "ٱ": "ا", "ى": "ي", "ی": "ي", "ة": "ه", "ہ": "ه", "ە": "ه", "ک": "ك",
}  # fmt: skip
_FOLDED: dict[int, str | None] = {ord(letter): plain for letter, plain in _LETTERS.items()}
_FOLDED.update((point, None) for first, last in _POINTS for point in range(first, last + 1))

_Entry = int | str | None


class _Table(dict[int, _Entry]):
    """A table for `str.translate` that classifies a character when it first meets it."""

    def __init__(self, classify: Callable[[int], _Entry]) -> None:
        super().__init__()
        self._classify = classify

    def __missing__(self, point: int) -> _Entry:
        entry = self._classify(point)
        if len(self) < _TABLE_MAX:
            self[point] = entry
        return entry


def _cleaned(point: int) -> _Entry:
    if point in _UNIFIED:
        return _UNIFIED[point]
    category = unicodedata.category(chr(point))
    if category == "Nd":
        return str(unicodedata.decimal(chr(point)))
    if category in ("Cf", "Cs") or point in _SKIN_TONES:
        return None
    return None if any(point in selectors for selectors in _VARIATION_SELECTORS) else point


def _separated(point: int) -> _Entry:
    character = chr(point)
    if character in "_'" or point in _REGIONAL or unicodedata.category(character)[0] in "LMN":
        return point
    if any(first <= point <= last for first, last in _PICTOGRAPHS):
        return f" {character} "
    return " "


def _ordering(point: int) -> _Entry:
    return "m" if unicodedata.combining(chr(point)) else "."


_CLEAN = _Table(_cleaned)
_SEPARATE = _Table(_separated)
_ORDERING = _Table(_ordering)
_LONG_MARK_RUN = re.compile(f"m{{{_MARK_RUN_MAX + 1},}}")


def normalise(chunk: str) -> str:
    """One spelling of a chunk, case and accents kept. Linear; at most 18 characters for one (U+FDFA)."""
    if chunk.isascii():
        return chunk
    return unicodedata.normalize("NFKC", _bound_marks(chunk.translate(_CLEAN)))


def _bound_marks(text: str) -> str:
    if len(text) <= _MARK_RUN_MAX:
        return text
    kept: list[str] = []
    end = 0
    for run in _LONG_MARK_RUN.finditer(text.translate(_ORDERING)):
        kept.append(text[end : run.start() + _MARK_RUN_MAX])
        end = run.end()
    kept.append(text[end:])
    return "".join(kept)


def words(normal: str) -> list[str]:
    """The words and pictographs of a normalised chunk, in order. Apostrophes and `_` are still in them."""
    if normal.isascii() and normal.isalnum():
        return [normal]
    return normal.translate(_SEPARATE).split()


def fold(word: str) -> str:
    """A lower-case word without accents, vowel points and letter variants."""
    if word.isascii():
        return word
    bare = unicodedata.normalize("NFD", word).translate(_FOLDED)
    return unicodedata.normalize("NFC", bare)


_ARABIC = re.compile("[\u0621-\u064a\u0671-\u06d3]")
_ARABIC_PREFIXES = ("وال", "فال", "بال", "كال", "لل", "ال")
_ARABIC_SUFFIXES = ("ها", "ات", "ان", "ين", "ون", "يه", "ه", "ي")
_ARABIC_STEM_MIN = 3


def is_arabic(word: str) -> bool:
    return _ARABIC.search(word) is not None


def light_arabic(word: str) -> str:
    """A folded Arabic word without article, attached preposition and one ending, if 3 letters stay.

    Source: Larkey, Ballesteros & Connell 2002, "light8".
    """
    for prefix in _ARABIC_PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= _ARABIC_STEM_MIN:
            word = word[len(prefix) :]
            break
    for suffix in _ARABIC_SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _ARABIC_STEM_MIN:
            return word[: -len(suffix)]
    return word
