"""Vectors of texts: how they are stored, kept, and compared with that of a query, exactly.

A vector is stored as its direction in int8 (the format is drawn in `lua/lib/vectors.lua`):

    q = round(127 x v / max |v|)         i8 x dimensions
    scale = 1 / |q|                      f32, so that scale x q has length 1

A query is rounded as finely as its dot products stay below 2^24. Sums of products of whole numbers below
that are exact in float32 in any order, so BLAS gives the same cosine on every machine, whatever kernel and
block size it uses: |q| <= 127 sqrt(n) and |sum over any part| <= |q| |query| (Cauchy-Schwarz), hence

    query = round(f x u),  f = 2^24 / (127 sqrt(n)) - sqrt(n)        u of length 1

Vectors are kept as int8 and widened to float32 in blocks that fit a processor's cache: a quarter of the
memory of float32, and half the time, since what is multiplied is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from omoide.core.columns import DEAD
from omoide.errors import CorruptRecordError, EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.columns import Rows

    Floats = NDArray[np.float64]
    Matrix = NDArray[np.float32]

DIGEST_BYTES = 8
HEADER_BYTES = 12
MOST_DIMENSIONS = 8_192
MOST_BYTES = 32 * 1024 * 1024
"""Bytes of the vectors of live memories up to which they are compared: 86,000 of 384 dimensions."""

_STEPS = 127
_EXACT = 2.0**24
_BLOCK = 512


def digest(kind: str, text: str) -> bytes:
    """8 bytes that stand for a text as a kind of vector sees it; never all zeros."""
    hashed = blake2b(digest_size=DIGEST_BYTES, person=b"omoide vector")
    hashed.update(b"%s\0%s" % (kind.encode(), text.encode("utf-8", "surrogatepass")))
    return hashed.digest()


def directions(vectors: Any, count: int) -> Matrix:
    """float32[count, dimensions] of length 1 each, of what a provider returned.

    Raises:
        EmbeddingError: another shape, or a number that is not finite. A vector of zeros stays one.
    """
    import numpy as np

    try:
        found = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError):
        found = np.zeros(0, np.float32)
    if found.ndim != 2 or len(found) != count or not 1 <= found.shape[1] <= MOST_DIMENSIONS:
        raise EmbeddingError(
            f"a provider did not return {count} vectors of the same 1 to {MOST_DIMENSIONS} numbers",
            reason="answer",
        )
    if not np.isfinite(found).all():
        raise EmbeddingError("a provider returned a number that is not finite", reason="answer")
    lengths = np.linalg.norm(found.astype(np.float64), axis=1, keepdims=True)
    unit: Matrix = (found / np.maximum(lengths, 1e-30)).astype(np.float32)
    return unit


def slots(units: Matrix, digests: Sequence[bytes]) -> list[bytes]:
    """Each vector as it is stored, with the digest of its text; b"" for a vector of zeros."""
    import numpy as np

    greatest = np.abs(units).max(axis=1, keepdims=True)
    steps = np.rint(units * (_STEPS / np.maximum(greatest, 1e-30))).astype(np.int8)
    lengths = np.sqrt((steps.astype(np.float64) ** 2).sum(axis=1))
    scales = (1 / np.maximum(lengths, 1)).astype("<f4")
    return [
        name + scale.tobytes() + step.tobytes() if length else b""
        for name, scale, step, length in zip(digests, scales, steps, lengths.tolist(), strict=True)
    ]


def levels(unit: NDArray[np.float32]) -> tuple[Matrix, float]:
    """(float32[dimensions] of whole numbers, their length) of a query of length 1."""
    import numpy as np

    size = len(unit)
    fineness = _EXACT / (_STEPS * size**0.5) - size**0.5
    rounded = np.rint(unit.astype(np.float64) * fineness)
    length = float(np.sqrt((rounded**2).sum()))
    return rounded.astype(np.float32), length or 1.0


class Vectors:
    """The vectors of one partition, of one stride, in the order in which they came. The owner locks.

    `next`: rows below have been read; some of them may have none.
    """

    __slots__ = ("_asked", "_held", "_matrix", "_rows", "_scales", "next", "size", "stride")

    def __init__(self, stride: int) -> None:
        import numpy as np

        self.stride = stride
        self.next = 1
        self.size = 0
        self._rows: Rows = np.zeros(0, np.int64)
        self._scales: NDArray[np.float32] = np.zeros(0, np.float32)
        self._matrix: NDArray[np.int8] = np.zeros((0, stride - HEADER_BYTES), np.int8)
        self._held: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._asked: tuple[Any, Matrix] = (None, np.zeros(0, np.float32))

    @property
    def nbytes(self) -> int:
        """Bytes held, spare capacity included."""
        return self._matrix.nbytes + self._rows.nbytes + self._scales.nbytes + self._held.nbytes

    def extend(self, first: int, following: int, data: bytes) -> None:
        """Take in the slots of rows `first`..`following` - 1; what `data` does not reach is empty."""
        import numpy as np

        if first > self.next or following <= self.next:
            return
        data = data[: (following - first) * self.stride]
        data = data[: len(data) - len(data) % self.stride]
        self.put(np.arange(first, first + len(data) // self.stride, dtype=np.int64), data)
        self.next = following

    def put(self, rows: Sequence[int] | Rows, data: bytes) -> None:
        """Take in the slots of some rows; those that are empty, or held already, are passed over.

        Raises:
            CorruptRecordError: another number of slots.
        """
        import numpy as np

        index = np.asarray(rows, dtype=np.int64)
        if len(data) != len(index) * self.stride:
            raise CorruptRecordError("vectors are not what was written", hint="omoide embed --all")
        if not len(index):
            return
        self._reach(int(index.max()) + 1)
        table = np.frombuffer(data, np.uint8).reshape(len(index), self.stride)
        scales = table[:, DIGEST_BYTES:HEADER_BYTES].copy().view("<f4")[:, 0]
        new = (scales > 0) & ~self._held[index]
        count = int(new.sum())
        self._grow(self.size + count)
        there = slice(self.size, self.size + count)
        self._rows[there], self._scales[there] = index[new], scales[new]
        self._matrix[there] = table[new, HEADER_BYTES:].view(np.int8)
        self._held[index[new]] = True
        self.size += count

    def cosines(self, query: NDArray[np.float32], rows: int) -> tuple[Floats, NDArray[np.bool_]]:
        """(float64[rows] of cosines with a query of length 1, 0 without a vector; bool[rows] who has one).

        Cost: about 0.4 ns a vector and dimension; of a query asked again, for vectors that came since.
        """
        import numpy as np

        whole, length = levels(query)
        products = self._products(query, whole)
        found = np.zeros(rows)
        held = np.zeros(rows, np.bool_)
        known = self._rows[: self.size]
        within = known < rows
        places = known[within]
        found[places] = (products.astype(np.float64) / length * self._scales[: self.size])[within]
        held[places] = True
        return found, held

    def _products(self, query: NDArray[np.float32], whole: Matrix) -> Matrix:
        import numpy as np

        before, done = self._asked
        products = np.empty(self.size, np.float32)
        known = len(done) if before is query else 0
        products[:known] = done[:known]
        block = np.empty((min(_BLOCK, self.size), len(query)), np.float32)
        for start in range(known, self.size, _BLOCK):
            part = self._matrix[start : min(start + _BLOCK, self.size)]
            wide = block[: len(part)]
            wide[...] = part
            np.matmul(wide, whole, out=products[start : start + len(part)])
        self._asked = (query, products)
        return products

    def bury(self, flags: NDArray[np.uint16]) -> None:
        """Let go of the vectors of dead rows. Cost: O(vectors x dimensions)."""
        known = self._rows[: self.size]
        alive = (known >= len(flags)) | ((flags[known.clip(max=len(flags) - 1)] & DEAD) == 0)
        self._rows, self._scales = known[alive], self._scales[: self.size][alive]
        self._matrix = self._matrix[: self.size][alive]
        self.size = len(self._rows)
        self._asked = (None, self._asked[1][:0])

    def _grow(self, size: int) -> None:
        import numpy as np

        if size <= len(self._rows):
            return
        capacity = max(size, len(self._rows) + len(self._rows) // 4 + 64)
        for name in ("_rows", "_scales", "_matrix"):
            held = getattr(self, name)
            larger = np.zeros((capacity, *held.shape[1:]), held.dtype)
            larger[: self.size] = held[: self.size]
            setattr(self, name, larger)

    def _reach(self, rows: int) -> None:
        import numpy as np

        if rows > len(self._held):
            larger = np.zeros(max(rows, 2 * len(self._held), 64), np.bool_)
            larger[: len(self._held)] = self._held
            self._held = larger


__all__ = [
    "DIGEST_BYTES",
    "HEADER_BYTES",
    "MOST_BYTES",
    "MOST_DIMENSIONS",
    "Vectors",
    "digest",
    "directions",
    "levels",
    "slots",
]
