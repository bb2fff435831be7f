import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from omoide.core import postings
from omoide.errors import CorruptRecordError

PAIRS = st.lists(st.tuples(st.integers(1, postings.MAX_ROW), st.integers(0, 1023)), max_size=80)


def test_a_posting_is_one_big_endian_word():
    assert postings.encode([(1, 0), (3, 1023)]) == struct.pack(">II", 1024, 3 * 1024 + 1023)
    assert postings.encode([(0, 77)]) == b"\0\0\0\0"


def test_the_highest_row_cannot_be_taken_for_a_header():
    assert postings.encode([(postings.MAX_ROW, 1023)])[0] == 0xFE


@pytest.mark.parametrize("pair", [(postings.MAX_ROW + 1, 0), (-1, 0), (1, 1024), (1, -1)])
def test_what_does_not_fit_is_refused(pair):
    with pytest.raises(ValueError, match="does not fit"):
        postings.encode([pair])


@given(PAIRS, st.lists(st.integers(0, 80), max_size=10))
def test_round_trip_in_both_readers_leaves_nulls_out(pairs, holes):
    data = bytearray(postings.encode(pairs))
    for hole in holes:
        if hole < len(pairs):
            data[hole * 4 : hole * 4 + 4] = bytes(4)
    kept = [pair for place, pair in enumerate(pairs) if place not in holes]
    rows, codes = postings.decode(bytes(data))
    assert (rows.dtype.name, codes.dtype.name) == ("int64", "int16")
    assert list(zip(rows.tolist(), codes.tolist(), strict=True)) == kept
    assert postings.decode_pure(bytes(data)) == kept


@pytest.mark.parametrize("read", [postings.decode, postings.decode_pure, postings.Tail.parse])
def test_half_a_posting_is_corrupt(read):
    with pytest.raises(CorruptRecordError):
        read(b"\0\0\4\0\0")


def test_levels_are_those_of_the_oracle_for_every_length_and_frequency():
    assert [*postings.LENGTH_LEVELS] == oracle.LENGTHS
    assert len(postings.LENGTH_LEVELS) == 128
    for length in range(12_000):
        assert postings.length_of(postings.length_level(length)) == oracle.length_level(length)
    for tf in range(1, 50):
        assert postings.tf_of(postings.code(tf, 1)) == oracle.tf_level(tf)


def test_a_length_is_off_by_at_most_half_a_step():
    assert [postings.length_of(postings.code(1, n)) for n in range(1, 65)] == [*range(1, 65)]
    assert postings.length_level(0) == 0
    longest = postings.LENGTH_LEVELS[-1]
    for length in range(65, longest):
        stored = postings.length_of(postings.length_level(length))
        assert abs(math.log(stored / length)) <= math.log(1.067) / 2 + 0.5 / length
    assert postings.length_level(10**12) == 127


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_code_fits_ten_bits_and_is_its_levels(tf, length):
    code = postings.code(tf, length)
    assert 0 <= code < 1024
    assert code == postings.tf_level(tf) * 128 + postings.length_level(length)
    assert postings.code(postings.tf_of(code), postings.length_of(code)) == code


@given(st.integers(0, 60_000), st.integers(0, 1000), st.integers(1, postings.MAX_ROW), PAIRS)
def test_a_tail_round_trips(sealed, nulls, last, pairs):
    tail = postings.Tail(sealed, nulls if sealed else 0, last if sealed else 0, postings.encode(pairs))
    assert postings.Tail.parse(tail.pack()) == tail
    assert tail.count == sealed * 64 + len(pairs)
    assert tail.df == tail.count - tail.nulls
    assert (tail.pack()[:1] == b"\xff") == (sealed > 0)


def test_a_tail_without_header_counts_its_own_nulls():
    tail = postings.Tail.parse(postings.encode([(1, 5), (0, 0), (9, 5)]))
    assert (tail.sealed, tail.nulls, tail.count, tail.df) == (0, 1, 3, 2)
    assert postings.Tail.parse(b"").df == 0


def test_a_header_cut_short_is_corrupt():
    with pytest.raises(CorruptRecordError):
        postings.Tail.parse(b"\xff\0\0\1\0\0\0\0")


def test_equality_terms_keep_apart_from_words_and_each_other():
    assert postings.exact_term("session", "é") == b"\x01session\x02\xc3\xa9"
    assert postings.exact_term("a", "bc") != postings.exact_term("ab", "c")
