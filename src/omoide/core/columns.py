"""The attribute columns: what ranking and filtering need of every row, without its record.

One row is 32 bytes, little endian; row r sits at byte r x 32, row 0 is never used.

    byte  0       2            4          8             12        16       20        24         32
          | flags | confidence | length   | importance  | session | author | version | time     |
          | u16   | u16        | u32      | f32         | u32     | u32    | u32     | i64      |

    flags       bit 0 dead, 1 superseded, 2 time cue, 3 suspect, 4 asks, 5 mostly asks, 6 place cue,
                7 number cue
    confidence  x 65,535, rounded            length   text terms of the memory, with repeats
    session, author  ordinals, 0 for none    time     milliseconds since the epoch, UTC

Models with expiry or validity have a second column of 24 bytes a row, three i64 of milliseconds:
expires (0 for never), valid_from, valid_to (OPEN for no end; the two are 0 without validity). A row is
visible while it is not dead, not expired (now < expires) and, where validity counts, valid at the
instant asked about (valid_from <= instant < valid_to).

A bound of a range filter is rounded the way the stored value was (f32, 1/65,535), so that
`importance >= 0.9` finds what was saved with 0.9.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from omoide.errors import CorruptRecordError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows: TypeAlias = NDArray[np.int64]
    Mask: TypeAlias = NDArray[np.bool_]

ATTRIBUTE = "<HHIfIIIq"
ATTRIBUTE_BYTES = 32
INTERVAL = "<qqq"
INTERVAL_BYTES = 24
CONFIDENCE_STEPS = 65535
OPEN = 1 << 52
"""`valid_to` of what has no end: later than any instant, and exact as a Lua number."""

DEAD = 1
SUPERSEDED = 2
SUSPECT = 8
ASKS = 16
ASKING = 32

DAY_MS = 86_400_000
_MOST_CHANGED = 4_096

Span: TypeAlias = tuple[float, float]
EVER: Span = (-math.inf, math.inf)

_ROW = struct.Struct(ATTRIBUTE)
_named = tuple.__new__  # `_make` without its check of the length
_ATTRIBUTE_TYPE = [
    ("flags", "<u2"),
    ("confidence", "<u2"),
    ("length", "<u4"),
    ("importance", "<f4"),
    ("session", "<u4"),
    ("author", "<u4"),
    ("version", "<u4"),
    ("time", "<i8"),
]
_WHOLE = f"V{ATTRIBUTE_BYTES}"
_INTERVAL_TYPE = [("expires", "<i8"), ("valid_from", "<i8"), ("valid_to", "<i8")]


class Attributes(NamedTuple):
    """One attribute row as stored: `confidence` is 0..65,535, `importance` has f32 precision."""

    flags: int
    confidence: int
    length: int
    importance: float
    session: int
    author: int
    version: int
    time: int


@dataclass(frozen=True, slots=True)
class Ranges:
    """Half-open ranges `[low, high)` that must all hold; None for an open end. Time in milliseconds."""

    time: tuple[int | None, int | None] | None = None
    importance: tuple[float | None, float | None] | None = None
    confidence: tuple[float | None, float | None] | None = None


def stored_confidence(confidence: float) -> int:
    """A confidence in [0, 1] in steps of 1/65,535, rounded, halves up."""
    return math.floor(confidence * CONFIDENCE_STEPS + 0.5)


def pack(
    *,
    flags: int = 0,
    confidence: float = 1.0,
    length: int = 0,
    importance: float = 1.0,
    session: int = 0,
    author: int = 0,
    version: int = 0,
    time: int = 0,
) -> bytes:
    """The 32 bytes of one row; `confidence` as a number in [0, 1]."""
    steps = stored_confidence(confidence)
    return _ROW.pack(flags, steps, length, importance, session, author, version, time)


def unpack(data: bytes, offset: int = 0) -> Attributes:
    """The row at byte `offset`."""
    return Attributes._make(_ROW.unpack_from(data, offset))


class Columns:
    """The attribute rows 0..next - 1 of a partition, in one growable array (and one for intervals).

    Growth doubles, so appending is amortised O(rows). Views are read-only in spirit: they are the
    array itself and go stale when it grows. Not safe for a writer beside readers; the owner locks.
    """

    __slots__ = ("_attributes", "_bytes", "_changed", "_days", "_intervals", "_watched", "next")

    def __init__(self, *, intervals: bool = False) -> None:
        import numpy as np

        self.next = 1
        self._watched = False
        self._changed: list[int] | None = []
        self._days: Rows = np.zeros(0, np.int64)
        self._attributes: NDArray[Any] = np.zeros(64, np.dtype(_ATTRIBUTE_TYPE))
        self._attributes["flags"][0] = DEAD
        self._bytes = self._attributes.view(np.uint8).data
        self._intervals: NDArray[Any] | None = np.zeros(64, np.dtype(_INTERVAL_TYPE)) if intervals else None

    def extend(self, data: bytes, intervals: bytes = b"") -> None:
        """Append whole rows from row `next` on; rows without `intervals` bytes get none.

        Raises:
            CorruptRecordError: not a whole number of rows, or more intervals than rows.
        """
        added = _rows_of(data, _ATTRIBUTE_TYPE)
        end = self.next + len(added)
        self._grow(end)
        self._attributes[self.next : end] = added
        if intervals:
            spans = _rows_of(intervals, _INTERVAL_TYPE)
            if self._intervals is None or len(spans) > len(added):
                raise CorruptRecordError("the interval column is longer than the attribute column")
            self._intervals[self.next : self.next + len(spans)] = spans
        self.next = end

    def assign(self, rows: Sequence[int] | Rows, data: bytes, intervals: bytes = b"") -> None:
        """Replace the rows `rows` (1..next - 1); `data` holds 32 bytes for each, in that order.

        Raises:
            CorruptRecordError: another number of rows, or a row that is not there.
        """
        index = self._index(rows)
        changed = _rows_of(data, _ATTRIBUTE_TYPE)
        spans = _rows_of(intervals, _INTERVAL_TYPE) if intervals else None
        if len(changed) != len(index) or (spans is not None and len(spans) != len(index)):
            raise CorruptRecordError("a change holds another number of attribute rows than it names")
        self._attributes[index] = changed
        if spans is not None and self._intervals is not None:
            self._intervals[index] = spans
        known = index[index < len(self._days)]
        if len(known):
            self._days[known] = self.time[known] // DAY_MS
        self._note(index)

    def bound(self, rows: Sequence[int] | Rows, intervals: bytes) -> None:
        """Replace the intervals of the rows `rows`; 24 bytes for each.

        Raises:
            CorruptRecordError: another number of rows, or a row that is not there.
        """
        index, spans = self._index(rows), _rows_of(intervals, _INTERVAL_TYPE)
        if self._intervals is None or len(spans) != len(index):
            raise CorruptRecordError("a change holds another number of intervals than it names")
        self._intervals[index] = spans
        self._note(index)

    def kill(self, rows: Sequence[int] | Rows) -> None:
        """Flag rows as dead."""
        index = self._index(rows)
        self._attributes["flags"][index] |= DEAD
        self._note(index)

    def watch(self) -> None:
        """Note from now on which rows change, for one follower."""
        self._watched, self._changed = True, []

    def take_changed(self) -> list[int] | None:
        """The rows changed since the last call, maybe repeated; None when they are too many to tell."""
        changed, self._changed = self._changed, []
        return changed

    def _note(self, rows: Rows) -> None:
        if self._watched and self._changed is not None:
            if len(self._changed) + len(rows) > _MOST_CHANGED:
                self._changed = None
            else:
                self._changed += rows.tolist()

    def row(self, row: int) -> Attributes:
        """One row, without numpy's overhead. Cost: about 0.4 us."""
        return _named(Attributes, _ROW.unpack_from(self._bytes, row * ATTRIBUTE_BYTES))

    def at(self, rows: Rows) -> NDArray[Any]:
        """The rows `rows`, copied whole: one reach into memory a row, for all its columns."""
        whole = self._attributes.view(_WHOLE)[rows]
        return whole.view(self._attributes.dtype)

    def interval(self, row: int) -> tuple[int, int]:
        """(valid_from, valid_to) of one row; 0 and OPEN where the columns have no intervals."""
        if self._intervals is None:
            return 0, OPEN
        _, start, end = self._intervals[row].item()
        return start, end

    @property
    def flags(self) -> NDArray[np.uint16]:
        """uint16[next]."""
        view: NDArray[np.uint16] = self._attributes["flags"][: self.next]
        return view

    @property
    def confidence(self) -> NDArray[np.uint16]:
        """uint16[next], confidence x 65,535."""
        view: NDArray[np.uint16] = self._attributes["confidence"][: self.next]
        return view

    @property
    def importance(self) -> NDArray[np.float32]:
        """float32[next]."""
        view: NDArray[np.float32] = self._attributes["importance"][: self.next]
        return view

    @property
    def time(self) -> NDArray[np.int64]:
        """int64[next], milliseconds since the epoch, UTC."""
        view: NDArray[np.int64] = self._attributes["time"][: self.next]
        return view

    @property
    def days(self) -> NDArray[np.int64]:
        """int64[next], days since the epoch, UTC; kept, so that only new rows are divided."""
        import numpy as np

        if len(self._days) < self.next:
            added = self.time[len(self._days) :] // DAY_MS
            self._days = np.concatenate([self._days, added])
        return self._days

    def column(self, name: str) -> NDArray[Any]:
        """Any column by its name in the layout above; zeros for intervals that there are none of."""
        import numpy as np

        if name in ("expires", "valid_from", "valid_to"):
            held = np.zeros(self.next, np.int64) if self._intervals is None else self._intervals[name]
            return held[: self.next]
        view: NDArray[Any] = self._attributes[name][: self.next]
        return view

    @property
    def has_intervals(self) -> bool:
        return self._intervals is not None

    @property
    def nbytes(self) -> int:
        """Bytes held, spare capacity included."""
        return (
            self._attributes.nbytes
            + self._days.nbytes
            + (0 if self._intervals is None else self._intervals.nbytes)
        )

    def live_mask(self, rows: Rows | slice) -> Mask:
        """bool[n]: which of `rows` are not dead."""
        mask: Mask = (self.flags[rows] & DEAD) == 0
        return mask

    def visible(self, rows: Rows | slice, now_ms: int, valid_ms: int | None = None) -> Mask:
        """bool[n]: which of `rows` live, are not expired at `now_ms` and valid at `valid_ms` (None: ever)."""
        mask = self.live_mask(rows)
        if self._intervals is not None:
            spans = self._intervals[: self.next][rows]
            mask &= (spans["expires"] == 0) | (spans["expires"] > now_ms)
            if valid_ms is not None:
                mask &= (spans["valid_from"] <= valid_ms) & (spans["valid_to"] > valid_ms)
        return mask

    def unchanged(self, now_ms: int, valid_ms: int | None = None) -> tuple[Span, Span]:
        """The half-open spans of `now_ms` and of `valid_ms` in which the same rows are visible.

        Cost: O(rows) with intervals.
        """
        expiry = self._span(("expires",), now_ms)
        return expiry, EVER if valid_ms is None else self._span(("valid_from", "valid_to"), valid_ms)

    def _span(self, names: Sequence[str], at_ms: int) -> Span:
        """Between the last of these instants that is not after `at_ms` and the first that is."""
        low, high = EVER
        for name in names if self._intervals is not None else ():
            ends = self.column(name)
            passed = ends <= at_ms
            if passed.any():
                low = max(low, int(ends[passed].max()))
            if not passed.all():
                high = min(high, int(ends[~passed].min()))
        return low, high

    def within(self, rows: Rows | slice, ranges: Ranges) -> Mask:
        """bool[n]: which of `rows` lie in all `ranges`."""
        import numpy as np

        mask: Mask = np.ones(len(self.flags[rows]), dtype=np.bool_)
        if ranges.time is not None:
            _narrow(mask, self.time[rows], *ranges.time)
        if ranges.importance is not None:
            low, high = (None if end is None else np.float32(end) for end in ranges.importance)
            _narrow(mask, self.importance[rows], low, high)
        if ranges.confidence is not None:
            low, high = (
                None if end is None else np.floor(np.float64(end) * CONFIDENCE_STEPS + 0.5)
                for end in ranges.confidence
            )
            _narrow(mask, self.confidence[rows].astype(np.float64), low, high)
        return mask

    def _index(self, rows: Sequence[int] | Rows) -> Rows:
        import numpy as np

        index = np.asarray(rows, dtype=np.int64)
        if len(index) and (index.min() < 1 or index.max() >= self.next):
            raise CorruptRecordError("a change names an attribute row that is not there")
        return index

    def _grow(self, rows: int) -> None:
        import numpy as np

        if rows <= len(self._attributes):
            return
        capacity = max(rows, 2 * len(self._attributes))
        self._attributes = _larger(self._attributes, capacity, self.next)
        self._bytes = self._attributes.view(np.uint8).data
        if self._intervals is not None:
            self._intervals = _larger(self._intervals, capacity, self.next)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows count: visible at `now_ms`, among `allowed` (sorted), not `excluded`, within `ranges`.

    `valid_ms`: valid at that instant, too; None where validity does not count.

    Raises:
        CorruptRecordError: an allowed row that the columns do not have.
    """

    columns: Columns
    now_ms: int = 0
    allowed: Rows | None = None
    excluded: Collection[int] | Rows = ()
    ranges: Ranges | None = None
    valid_ms: int | None = None

    def __post_init__(self) -> None:
        if self.allowed is not None and len(self.allowed) and self.allowed[-1] >= self.columns.next:
            raise CorruptRecordError("an index names a row without attributes", hint="omoide doctor")

    @property
    def plain(self) -> bool:
        """Whether only death can take a row out."""
        chosen = self.allowed is not None or self.ranges is not None or len(self.excluded) > 0
        return not chosen and not self.columns.has_intervals

    def including_excluded(self) -> Filter:
        """The same rule without exclusions."""
        return self if not len(self.excluded) else replace(self, excluded=())

    def matching(self) -> Rows:
        """Every row that counts, ascending. Cost: O(rows), or O(allowed)."""
        import numpy as np

        rows = np.arange(1, self.columns.next, dtype=np.int64) if self.allowed is None else self.allowed
        return self.keep(rows)

    def keep(self, rows: Rows) -> Rows:
        """Those of `rows` that count, in the same order. Cost: O(rows x log allowed)."""
        rows = rows[self.columns.visible(rows, self.now_ms, self.valid_ms)]
        if self.allowed is not None and rows is not self.allowed:
            rows = rows[_among(rows, self.allowed)]
        if self.ranges is not None:
            rows = rows[self.columns.within(rows, self.ranges)]
        if len(self.excluded):
            rows = rows[~_among(rows, _sorted(self.excluded))]
        return rows


def _narrow(mask: Mask, values: NDArray[Any], low: Any, high: Any) -> None:
    if low is not None:
        mask &= values >= low
    if high is not None:
        mask &= values < high


def _rows_of(data: bytes, layout: list[tuple[str, str]]) -> NDArray[Any]:
    import numpy as np

    dtype = np.dtype(layout)
    if len(data) % dtype.itemsize:
        raise CorruptRecordError("an attribute column is not a whole number of rows", hint="omoide doctor")
    return np.frombuffer(data, dtype=dtype)


def _larger(array: NDArray[Any], capacity: int, used: int) -> NDArray[Any]:
    import numpy as np

    larger = np.zeros(capacity, array.dtype)
    larger[:used] = array[:used]
    return larger


def _among(rows: Rows, chosen: Rows) -> Mask:
    import numpy as np

    if not len(chosen):
        return np.zeros(len(rows), dtype=np.bool_)
    places = np.searchsorted(chosen, rows)
    places[places == len(chosen)] = 0
    mask: Mask = chosen[places] == rows
    return mask


def _sorted(rows: Collection[int] | Rows) -> Rows:
    import numpy as np

    return np.array(sorted(rows), dtype=np.int64)
