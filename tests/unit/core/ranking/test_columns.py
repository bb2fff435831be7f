import math
import struct

import numpy as np
import pytest

from omoide.core import columns as attributes
from omoide.core.columns import DEAD, OPEN, SUSPECT, Columns, Filter, Ranges
from omoide.errors import CorruptRecordError


def filled(*rows: bytes, spans: bytes | None = None) -> Columns:
    columns = Columns(intervals=spans is not None)
    columns.extend(b"".join(rows), spans or b"")
    return columns


def index(*rows: int) -> np.ndarray:
    return np.array(rows, dtype=np.int64)


def test_a_row_has_32_bytes_in_the_order_drawn():
    data = attributes.pack(
        flags=SUSPECT, confidence=0.5, length=7, importance=0.25, session=1, author=2, version=3, time=-4
    )
    expected = struct.pack("<HHIfIIIq", 8, 32768, 7, 0.25, 1, 2, 3, -4)
    assert data == expected
    assert len(data) == attributes.ATTRIBUTE_BYTES
    assert attributes.unpack(b"x" + data, 1) == (8, 32768, 7, 0.25, 1, 2, 3, -4)
    assert np.dtype(attributes._ATTRIBUTE_TYPE).itemsize == attributes.ATTRIBUTE_BYTES
    assert np.dtype(attributes._INTERVAL_TYPE).itemsize == attributes.INTERVAL_BYTES


def test_rows_append_grow_and_keep_their_place():
    columns = Columns()
    for row in range(1, 1000):
        columns.extend(attributes.pack(importance=row / 1024, time=row, confidence=row / 65535))
    assert columns.next == 1000
    assert columns.time.tolist() == [0, *range(1, 1000)]
    assert columns.confidence.tolist() == [0, *range(1, 1000)]
    assert columns.row(999).importance == 999 / 1024 == columns.importance[999]
    assert columns.nbytes >= 1000 * 32
    assert not columns.live_mask(index(0))[0]


def test_changes_replace_rows_and_death_shows():
    columns = filled(*(attributes.pack(time=row) for row in range(1, 6)))
    columns.assign([4, 2], attributes.pack(time=40, importance=0.5) + attributes.pack(time=20, flags=DEAD))
    columns.kill(index(5, 5))
    assert columns.time.tolist() == [0, 1, 20, 3, 40, 5]
    assert columns.row(4).importance == 0.5
    assert columns.live_mask(index(1, 2, 3, 4, 5)).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("rows", [[0], [3], [-1]])
def test_a_change_of_a_row_that_is_not_there_is_corrupt(rows):
    columns = filled(attributes.pack(), attributes.pack())
    with pytest.raises(CorruptRecordError):
        columns.assign(rows, attributes.pack())
    with pytest.raises(CorruptRecordError):
        columns.kill(rows)


def test_bytes_that_are_no_rows_are_corrupt():
    columns = filled(attributes.pack(), attributes.pack())
    for data in (b"x" * 31, attributes.pack() * 2):
        with pytest.raises(CorruptRecordError):
            columns.assign([1], data)
    with pytest.raises(CorruptRecordError):
        columns.extend(b"x" * 33)
    with pytest.raises(CorruptRecordError):
        columns.extend(attributes.pack(), b"x" * 24)
    assert columns.next == 3


def test_expiry_and_validity_are_half_open():
    spans = b"".join(
        struct.pack("<qqq", *span)
        for span in [(0, -9, OPEN), (10, -9, OPEN), (0, 5, OPEN), (0, -9, 10), (0, 5, 10), (0, -9, 0)]
    )
    columns = filled(*[attributes.pack()] * 6, spans=spans)
    rows = index(1, 2, 3, 4, 5, 6)

    def seen(now: int, valid: int | None) -> list[int]:
        return rows[columns.visible(rows, now, valid)].tolist()

    assert seen(9, None) == [1, 2, 3, 4, 5, 6]
    assert seen(10, None) == [1, 3, 4, 5, 6]
    assert seen(9, -10) == []
    assert seen(9, -1) == [1, 2, 4, 6]
    assert seen(9, 0) == seen(9, 4) == [1, 2, 4]
    assert seen(9, 5) == seen(9, 9) == [1, 2, 3, 4, 5]
    assert seen(9, 10) == [1, 2, 3]
    assert seen(10, 5) == [1, 3, 4, 5]
    columns.assign([6], attributes.pack(flags=DEAD), struct.pack("<qqq", 0, -9, OPEN))
    columns.assign([1], attributes.pack(), struct.pack("<qqq", 7, -9, OPEN))
    columns.bound([3, 4], struct.pack("<qqqqqq", 0, 8, OPEN, 0, -9, 7))
    assert seen(7, 7) == [2, 5]
    with pytest.raises(CorruptRecordError):
        columns.bound([1, 2], bytes(24))


def test_a_visible_row_stays_so_until_the_next_bound():
    spans = b"".join(struct.pack("<qqq", *span) for span in [(20, -9, OPEN), (30, 5, 12), (0, 0, 0)])
    columns = filled(*[attributes.pack()] * 3, spans=spans)
    assert columns.unchanged(25, 7) == ((20, 30), (5, 12))
    assert columns.unchanged(3, -20) == ((0, 20), (-math.inf, -9))
    assert columns.unchanged(99, OPEN - 1) == ((30, math.inf), (12, OPEN))
    assert columns.unchanged(99) == ((30, math.inf), (-math.inf, math.inf))


def test_range_bounds_are_rounded_as_stored_values_are():
    columns = filled(*(attributes.pack(importance=x, confidence=x) for x in (0.1, 0.7, 0.9)))
    rows = index(1, 2, 3)
    for name in ("importance", "confidence"):
        assert columns.within(rows, Ranges(**{name: (0.9, None)})).tolist() == [False, False, True]
        assert columns.within(rows, Ranges(**{name: (0.1, 0.7)})).tolist() == [True, False, False]
        assert columns.within(rows, Ranges(**{name: (float("-inf"), 9.0)})).all()


def test_filters_combine():
    columns = filled(*(attributes.pack(time=row) for row in range(1, 9)))
    columns.kill([3])
    rule = Filter(columns, 0, index(2, 3, 4, 6, 8), {4}, Ranges(time=(None, 8)))
    assert rule.matching().tolist() == [2, 6]
    assert rule.keep(index(8, 6, 5, 4, 2)).tolist() == [6, 2]
    assert Filter(columns, 0, index()).matching().tolist() == []
    assert Filter(columns).plain
    assert not rule.plain


def test_an_allowed_row_beyond_the_columns_is_corrupt():
    with pytest.raises(CorruptRecordError):
        Filter(filled(attributes.pack()), 0, index(1, 2))
