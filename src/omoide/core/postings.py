"""The posting format: which memories hold a term, how often, and how long they are.

A posting is one big-endian u32, `row x 1024 + code`; the word 0 is a null (an erased posting:
positions never move, so what a cache holds stays where it is).

    bit 31                        10 9        7 6             0
       +----------------------------+----------+---------------+
       | row, 1..4,177,919          | tf level | length level  |
       +----------------------------+----------+---------------+

    tf level      0..7    1, 2, 3, 4, 5, 6, 8 (for 7..9), 12 (for 10 and more)
    length level  0..127  1..64 exactly, then 64 steps of 6.7 %, up to about 4,060 terms

Levels keep the raw tf and length, not a weight: weights come from a table of 1,024 entries at query
time (`bm25`), so k1, b and pivot can change and nothing stored goes stale. What levels cost, as top-10
overlap with unquantised BM25 on texts of 10 to 2,000 words: length levels at most .02; tf levels nothing
while words repeat rarely, but up to .14 on long texts that repeat their topic, where with an absolute
pivot a weight still grows beyond tf 12.

A term lives in two places. Its tail holds at most SEAL (64) postings; a full tail is sealed, that is
moved behind the sealed segments of SEGMENT (1,024) postings, 4 KiB each. Once sealed blocks exist, the
tail starts with a header of 12 bytes; its first byte 0xFF cannot start a posting:

    | u32 0xFF000000 + sealed blocks of 64 | u32 nulls | u32 row of the last sealed posting | postings |

`nulls` counts the null words of the whole term, sealed or not. A tail without header has only itself.

A term of the text is its UTF-8 bytes, none below 0x20. An equality term (a tag, a session, an indexed
value) is `exact_term(field, value)`; it shares the structure, its postings have code 0, and its first
byte 0x01 keeps it apart from every term of a text.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from omoide.errors import CorruptRecordError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEAL = 64
SEGMENT = 1024
CODES = 1024
MAX_ROW = 4_177_919
TAIL_MARK = 0xFF000000
TAIL_HEADER = 12

TF_LEVELS: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 12)
LENGTH_LEVELS: tuple[int, ...] = (
    *range(1, 65),
    *(int(64 * 1.067**step + 0.5) for step in range(1, 65)),
)

_TF_LEVEL = (0, 0, 1, 2, 3, 4, 5, 6, 6, 6)
# Nearest in log space, in integers: a length above the geometric mean of two levels goes up.
_MEAN_SQUARES = tuple(low * high for low, high in pairwise(LENGTH_LEVELS))


def tf_level(tf: int) -> int:
    """0..7 for a term frequency >= 1."""
    return _TF_LEVEL[tf] if tf < 10 else 7


def length_level(length: int) -> int:
    """0..127: the level nearest to `length` in log space, the lower of two; 0 for a length of 0."""
    return max(length - 1, 0) if length <= 64 else bisect_left(_MEAN_SQUARES, length * length)


def code(tf: int, length: int) -> int:
    """The 10-bit code of a term that occurs `tf` >= 1 times in `length` >= 0 terms."""
    return tf_level(tf) * 128 + length_level(length)


def tf_of(code: int) -> int:
    """The term frequency a code stands for."""
    return TF_LEVELS[code >> 7]


def length_of(code: int) -> int:
    """The length, in terms, a code stands for."""
    return LENGTH_LEVELS[code & 127]


def exact_term(field: str, value: str) -> bytes:
    """The equality term of `field` = `value`. Field names are identifiers, so it is unambiguous."""
    return b"\x01" + field.encode() + b"\x02" + value.encode()


def encode(pairs: Iterable[tuple[int, int]]) -> bytes:
    """Postings of (row, code) pairs, in the order given; row 0 gives a null.

    Raises:
        ValueError: a row beyond MAX_ROW or a code beyond 1,023.
    """
    words = []
    for row, posting_code in pairs:
        if not 0 <= row <= MAX_ROW or not 0 <= posting_code < CODES:
            raise ValueError(f"row {row} or code {posting_code} does not fit a posting")
        words.append(row * 1024 + posting_code if row else 0)
    return struct.pack(f">{len(words)}I", *words)


def decode(data: bytes) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Rows (int64[n]) and codes (int16[n]) of whole postings without header, nulls left out.

    Raises:
        CorruptRecordError: not a whole number of postings.
    Cost: about 1 ns a posting.
    """
    import numpy as np

    _whole(data)
    words = np.frombuffer(data, dtype=">u4").astype(np.int64)
    if not words.all():
        words = words[words != 0]
    return words >> 10, (words & 1023).astype(np.int16)


def decode_pure(data: bytes) -> list[tuple[int, int]]:
    """The same as (row, code) pairs, without numpy."""
    _whole(data)
    words = struct.unpack(f">{len(data) // 4}I", data)
    return [(word >> 10, word & 1023) for word in words if word]


def _whole(data: bytes) -> None:
    if len(data) % 4:
        raise CorruptRecordError("a posting list is not a whole number of postings", hint="omoide doctor")


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a term, taken apart: the header's three numbers and the postings after it.

    `sealed` counts blocks of SEAL postings, `nulls` null words of the whole term, `last` is the row of
    the last sealed posting (0 when nothing is sealed).
    """

    sealed: int = 0
    nulls: int = 0
    last: int = 0
    postings: bytes = b""

    @classmethod
    def parse(cls, data: bytes) -> Tail:
        """Read a stored tail, with or without header.

        Raises:
            CorruptRecordError: a broken header or half a posting.
        """
        _whole(data)
        if data[:1] != b"\xff":
            return cls(nulls=struct.unpack(f">{len(data) // 4}I", data).count(0), postings=data)
        if len(data) < TAIL_HEADER:
            raise CorruptRecordError("the header of a posting list is cut short", hint="omoide doctor")
        mark, nulls, last = struct.unpack_from(">III", data)
        return cls(mark - TAIL_MARK, nulls, last, data[TAIL_HEADER:])

    def pack(self) -> bytes:
        """The stored form; no header while nothing is sealed."""
        if not self.sealed:
            return self.postings
        return struct.pack(">III", TAIL_MARK + self.sealed, self.nulls, self.last) + self.postings

    @property
    def count(self) -> int:
        """Words of the whole term, nulls included: how far a cache that holds all of it has read."""
        return self.sealed * SEAL + len(self.postings) // 4

    @property
    def df(self) -> int:
        """Live memories with the term."""
        return self.count - self.nulls
