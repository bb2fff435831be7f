"""What a client reader keeps of a partition: posting lists and attribute columns, validated at each use.

    columns          attribute rows 1..next - 1, as of write `v`
    terms            per term: its postings up to row `since`, its live count, and the write it is known as of
    known_since      every term that is not in `terms` has no posting up to this row (0: unknown)

A posting list is append only and rows ascend, so "all above the row I hold" brings a list up to date,
whatever was nulled, dropped or refilled meanwhile; erased rows are dead in the columns.

A list is current when the write it is known as of is at least `floor`, the last write that may have
changed a list unseen. A write of this process that found the cache current is added to it and moves no
floor: it knows the terms of what it stored and of what it erased.

The words of a partition are known where every list is, else read in pages; they serve until a row comes
from elsewhere, those of more than 256 rows or 4,096 words until the partition has grown by an eighth.

A list of which only dead rows are left goes with its word: at once when this process erased the last of
them, else after 64 rows died.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from omoide.core.accumulator import TermList
from omoide.core.arms.authors import Witnesses
from omoide.core.arms.sessions import Links, Sessions
from omoide.core.columns import DEAD, OPEN, Columns
from omoide.core.postings import decode
from omoide.core.text.vocabulary import Vocabulary
from omoide.core.vectors import Vectors
from omoide.stores.redis.linked import HeldEdges

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_BUDGET = 256 * 1024 * 1024
_POSTING_BYTES = 14
_PARTITION_BYTES = 1000
_TERM_BYTES = 300
_WORD_BYTES = 400
_SWEEP_AFTER = 64
_MANY_WORDS = 4_096
_MANY_ROWS = 256


@dataclass(slots=True)
class Postings:
    """One list. `pending` are postings of this process that are not in the arrays yet."""

    rows: NDArray[np.int64] | None = None
    codes: NDArray[np.int16] | None = None
    df: int = 0
    since: int = 0
    as_of: int = 0
    pending: list[tuple[int, int]] = field(default_factory=list)
    witnesses: Witnesses | None = None

    @property
    def count(self) -> int:
        return (0 if self.rows is None else len(self.rows)) + len(self.pending)

    def add(self, data: bytes) -> None:
        """Append the postings above `since`."""
        import numpy as np

        rows, codes = decode(data)
        if self.since:
            new = rows > self.since
            rows, codes = rows[new], codes[new]
        if not len(rows):
            return
        self.settle()
        if self.rows is None or self.codes is None:
            self.rows, self.codes = rows, codes
        else:
            self.rows, self.codes = np.concatenate([self.rows, rows]), np.concatenate([self.codes, codes])

    def settle(self) -> None:
        """Move what is pending into the arrays."""
        if not self.pending:
            return
        import numpy as np

        rows = np.array([row for row, _ in self.pending], dtype=np.int64)
        codes = np.array([code for _, code in self.pending], dtype=np.int16)
        if self.rows is not None and self.codes is not None:
            rows, codes = np.concatenate([self.rows, rows]), np.concatenate([self.codes, codes])
        self.rows, self.codes = rows, codes
        self.pending = []

    def only_dead(self, flags: NDArray[np.uint16]) -> bool:
        """Whether there are postings, and all of dead rows."""
        if any(not flags[row] & DEAD for row, _ in self.pending):
            return False
        if self.rows is None or not len(self.rows):
            return bool(self.pending)
        last = self.rows[-1]
        return bool(last < len(flags) and flags[last] & DEAD and (flags[self.rows] & DEAD).all())

    def as_terms(self, weight: float, name: str, stands_for: str = "") -> TermList:
        """The list as ranking takes it."""
        self.settle()
        if self.rows is None or self.codes is None:
            import numpy as np

            return TermList(np.zeros(0, np.int64), np.zeros(0, np.int16), 0, weight, name, stands_for)
        return TermList(self.rows, self.codes, self.df, weight, name, stands_for)

    def authors(self, columns: Columns) -> frozenset[int]:
        """Up to two ordinals of the authors of the live rows."""
        self.settle()
        if self.rows is None:
            return frozenset()
        if self.witnesses is None:
            self.witnesses = Witnesses()
        return self.witnesses.of(self.rows, columns)


@dataclass(frozen=True, slots=True)
class Known:
    """The words of the first `rows` rows of a partition, maybe of later ones; some may have died since."""

    gen: bytes
    rows: int
    words: Vocabulary

    def serves(self, gen: bytes, rows: int) -> bool:
        """Whether no row came since; where there are many rows or words, fewer than an eighth."""
        grown = rows - self.rows
        many = self.rows > _MANY_ROWS or len(self.words) > _MANY_WORDS
        return gen == self.gen and (grown <= 0 or (many and grown * 8 < self.rows))


Gone: TypeAlias = tuple[int, tuple[str, ...]]
"""An erased record: its row and its terms."""

Mended: TypeAlias = tuple[int, bytes]
"""A version whose end changed: its row and its interval, 24 bytes."""


@dataclass(slots=True)
class Written:
    """What a save reported: enough to bring a current cache to its state."""

    gen: bytes
    v: int
    row: int
    n: int
    sdl: int
    log: int
    attributes: bytes
    interval: bytes
    erased: tuple[Gone, ...]
    terms: Sequence[str]
    codes: Sequence[int]
    mended: tuple[Mended, ...] = ()
    slot: bytes = b""


class Partition:
    """The cache of one partition. The owner's lock guards every method."""

    def __init__(self) -> None:
        self.reset(b"", intervals=False)

    def reset(self, gen: bytes, *, intervals: bool) -> None:
        """Forget everything; `gen` names the row numbering that follows."""
        self.gen = gen
        self._columns: Columns | None = None
        self._timed = intervals
        self.terms: dict[str, Postings] = {}
        self.v = self.n = self.sdl = self.log = 0
        self.floor = 0
        self.known_since = self.known_as_of = 0
        self.postings_held = 0
        self.clock_offset = 0
        self._span: tuple[int, bool, float, float] = (-1, False, 0, 0)
        self.steady = 0
        self.died = 0
        self.fingerprint = ""
        self.sessions: Sessions | None = None
        self.everyone = Witnesses()
        self.vocabulary: Known | None = None
        self.edges = HeldEdges()
        self.vectors: Vectors | None = None
        self.kind = ""
        self.without_meaning = ""

    @property
    def columns(self) -> Columns:
        """The attribute rows; made at first use, so that the server reader never imports numpy."""
        if self._columns is None:
            self._columns = Columns(intervals=self._timed)
        return self._columns

    @columns.setter
    def columns(self, columns: Columns) -> None:
        self._columns = columns

    @property
    def nbytes(self) -> int:
        """Bytes held, estimated: 14 a posting, 300 a list, 1,000 for the rest, and the columns."""
        sessions = 0 if self.sessions is None else self.sessions.nbytes
        words = 0 if self.vocabulary is None else len(self.vocabulary.words) * _WORD_BYTES
        lists = self.postings_held * _POSTING_BYTES + len(self.terms) * _TERM_BYTES
        columns = 0 if self._columns is None else self._columns.nbytes
        vectors = 0 if self.vectors is None else self.vectors.nbytes
        return _PARTITION_BYTES + columns + lists + sessions + words + vectors

    def held(self, term: str) -> Postings | None:
        """The list of a term: known, or known to be empty; None when nothing is known of it."""
        found = self.terms.get(term)
        if found is None and self.known_since:
            return Postings(since=self.known_since, as_of=self.known_as_of)
        return found

    def current(self, terms: Iterable[str]) -> bool:
        """Whether every list is known as of write `v`."""
        get, floor = self.terms.get, self.floor
        empties = self.known_since > 0 and self.known_as_of >= floor
        for term in terms:
            held = get(term)
            if not empties if held is None else held.as_of < floor:
                return False
        return self.v > 0

    def since(self, term: str) -> int:
        """The row up to which the list of a term is known."""
        held = self.terms.get(term)
        return self.known_since if held is None else held.since

    def knows_meaning(self, kind: str, stride: int) -> bool:
        """Whether all vectors of this kind are held, or it is known why there are none to be had."""
        if self.v == 0 or self.kind != kind:
            return False
        held = self.vectors
        return bool(self.without_meaning) or (
            held is not None and held.stride == stride and held.next == self.columns.next
        )

    def embedded(
        self, v: int, n: int, sdl: int, log: int, rows: Sequence[int], slots: Sequence[bytes], kind: str
    ) -> None:
        """Add vectors that this process stored, when nothing else was written since `v`."""
        if v != self.v + 1:
            return
        self.v, self.n, self.sdl, self.log = v, n, sdl, log
        if self.vectors is None or self.kind != kind:
            self.forget_meaning()
            return
        near = [place for place, row in enumerate(rows) if row < self.vectors.next]
        self.vectors.put([rows[place] for place in near], b"".join(slots[place] for place in near))

    def forget_meaning(self) -> None:
        """Let vectors be read anew."""
        self.vectors, self.kind, self.without_meaning = None, "", ""

    def links(self, now_ms: int, valid_ms: int | None) -> tuple[Links | None, frozenset[int]]:
        """Who stands beside whom in the sessions, and the rows whose ids are wanted to be certain of it."""
        if self.sessions is None or self.sessions.columns is not self.columns:
            self.sessions = Sessions(self.columns)
        links = self.sessions.links(now_ms, valid_ms)
        return links, frozenset(self.sessions.wanted)

    def span(self, now_ms: int, *, clocked: bool) -> tuple[int, int]:
        """The half-open span of instants, `now_ms` among them, at which the same rows are visible.

        clocked: validity counts, and is that of now. Cost: O(rows) after a write, else O(1).
        """
        v, kind, low, high = self._span
        if (v, kind) != (self.v, clocked) or not low <= now_ms < high:
            (low, high), (first, last) = self.columns.unchanged(now_ms, now_ms if clocked else None)
            low, high = max(low, first, -OPEN), min(high, last, OPEN)
            self._span = (self.v, clocked, low, high)
        return int(low), int(high)

    @property
    def behind_its_words(self) -> bool:
        """Whether the words are of a later state than the lists, which then cannot say what has died."""
        known = self.vocabulary
        return known is not None and known.gen == self.gen and known.rows > self.columns.next

    def known_words(self) -> Vocabulary | None:
        """The words of the partition; None when they have to be read."""
        known = self.vocabulary
        if known is not None and known.serves(self.gen, self.columns.next):
            return known.words
        if not self.known_since or self.known_since != self.columns.next - 1:
            return None
        words = Vocabulary(name for name, held in self.terms.items() if held.df or not held.since)
        self.vocabulary = Known(self.gen, self.columns.next, words)
        return words

    def take_list(self, term: str, df: int, data: bytes, *, since: int, upto: int, as_of: int) -> None:
        """Bring one list up to row `upto` and write `as_of`, by its postings above row `since`.

        One that was dropped after that was asked for lacks what came before: it stays unknown.
        """
        held = self.held(term) or Postings()
        if held.since < since:
            return
        before = held.count
        if data:
            held.add(data)
        if as_of >= held.as_of:
            held.df, held.as_of = df, as_of
        held.since = max(held.since, upto)
        self.terms[term] = held
        self.postings_held += held.count - before
        if held.count > 4 * held.df + 1000:  # mostly dead rows: cheaper to read again
            self.drop_list(term)

    def replace_list(self, term: str, held: Postings | None) -> None:
        """Put a list in the place of the one held; None only takes that out."""
        before = self.terms.pop(term, None)
        self.postings_held += (0 if held is None else held.count) - (0 if before is None else before.count)
        if held is not None:
            self.terms[term] = held

    def drop_list(self, term: str) -> None:
        held = self.terms.pop(term, None)
        if held is not None:
            self.postings_held -= held.count
            self.known_since = self.known_as_of = 0

    def bury(self, count: int) -> None:
        """Take note of rows that died, and sweep when it is time. Cost of a sweep: O(lists)."""
        self.died += count
        if self.died < _SWEEP_AFTER:
            return
        self.vocabulary = None
        self.died, flags = 0, self.columns.flags
        for name in [name for name, held in self.terms.items() if held.only_dead(flags)]:
            held = self.terms.pop(name)
            self.postings_held -= held.count
            if held.since < self.known_since:
                self.known_since = self.known_as_of = 0

    def written(self, write: Written) -> None:
        """Add a write of this process, when nothing else was written since `v`."""
        if write.gen != self.gen or write.v != self.v + 1 or write.row != self.columns.next:
            if write.erased:
                self.vocabulary = None
            return
        if self.without_meaning:
            self.forget_meaning()
        self.columns.extend(write.attributes, write.interval)
        if self.vectors is not None and len(write.slot) in (0, self.vectors.stride):
            self.vectors.extend(write.row, write.row + 1, write.slot)
        vocabulary_known = self.known_since > 0 and self.known_as_of >= self.floor
        known = self.vocabulary
        words = (
            known.words if known is not None and (known.gen, known.rows) == (self.gen, write.row) else None
        )
        for term, code in zip(write.terms, write.codes, strict=True):
            held = self.terms.get(term)
            if words is not None:
                words.add(term)
            if held is None and vocabulary_known:
                held = self.terms[term] = Postings(as_of=self.floor)
            if held is None or held.as_of < self.floor:
                continue
            held.pending.append((write.row, code))
            held.df, held.since = held.df + 1, write.row
            self.postings_held += 1
        if vocabulary_known:
            self.known_since = write.row
        if words is not None:
            self.vocabulary = Known(write.gen, write.row + 1, words)
        self._take_out(write.erased)
        self._mend(write.mended)
        self.v, self.n, self.sdl, self.log = write.v, write.n, write.sdl, write.log

    def erased(
        self,
        gen: bytes,
        v: int,
        n: int,
        sdl: int,
        log: int,
        gone: Sequence[Gone],
        mended: Sequence[Mended] = (),
    ) -> None:
        """Add an erasure of this process, when nothing else was written since `v`."""
        if gen != self.gen or v != self.v + 1 or any(row >= self.columns.next for row, _ in (*gone, *mended)):
            self.vocabulary = None
            return
        if self.without_meaning:
            self.forget_meaning()
        self._take_out(gone)
        self._mend(mended)
        self.v, self.n, self.sdl, self.log = v, n, sdl, log

    def _mend(self, mended: Sequence[Mended]) -> None:
        if mended:
            self.columns.bound([row for row, _ in mended], b"".join(interval for _, interval in mended))

    def _take_out(self, gone: Sequence[Gone]) -> None:
        """Kill rows and count them out of their lists, which stay current. Cost: O(their terms)."""
        if not gone:
            return
        self.columns.kill([row for row, _ in gone])
        for _, terms in gone:
            for term in terms:
                held = self.terms.get(term)
                if held is None:
                    continue
                held.df -= 1
                if held.df <= 0 or held.as_of < self.floor:  # empty, or not certain to be more
                    self._drop_word(term, held)

    def _drop_word(self, term: str, held: Postings) -> None:
        """Forget a list. One that is known to be empty takes its word along; else all is asked anew."""
        self.replace_list(term, None)
        if held.as_of < self.floor:
            self.known_since = self.known_as_of = 0
            self.vocabulary = None
        elif self.vocabulary is not None:
            self.vocabulary.words.discard(term)


_caches: weakref.WeakSet[Cache] = weakref.WeakSet()


def _after_fork() -> None:
    """A lock that another thread held at the fork would stay locked for ever in the child."""
    for cache in list(_caches):
        cache.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Cache:
    """Partitions by head key, least recently used first out, within a byte budget."""

    def __init__(self, budget: int = DEFAULT_BUDGET) -> None:
        self.budget = budget
        self._history = 0
        self.clear()
        _caches.add(self)

    def clear(self) -> None:
        """Forget everything, and whoever held the lock: for a child after a fork, too."""
        self.lock = threading.Lock()
        self._partitions: OrderedDict[bytes, Partition] = OrderedDict()
        self._sizes: dict[bytes, int] = {}
        self._total = 0

    def witness(self, history: int) -> None:
        """Forget everything when a server turned out to be another process: writes may have been lost."""
        if history != self._history:
            with self.lock:
                if history != self._history:
                    self._history = history
                    self._partitions.clear()
                    self._sizes.clear()
                    self._total = 0

    @contextmanager
    def changing(self, head: bytes) -> Iterator[Partition | None]:
        """The cache of a partition, locked and accounted for afterwards; None when there is none."""
        with self.lock:
            partition = self._partitions.get(head)
            yield partition
            if partition is not None:
                self.settle(head, partition)

    def peek(self, head: bytes) -> Partition | None:
        """The cache of a partition, if there is one."""
        return self._partitions.get(head)

    def open(self, head: bytes) -> Partition:
        """The cache of a partition, begun if there is none."""
        partition = self._partitions.get(head)
        if partition is None:
            partition = self._partitions[head] = Partition()
        self._partitions.move_to_end(head)
        return partition

    def forget(self, head: bytes) -> None:
        """Drop a partition."""
        self._partitions.pop(head, None)
        self._total -= self._sizes.pop(head, 0)

    def settle(self, head: bytes, partition: Partition) -> None:
        """Account for a partition that was used, and keep within the budget.

        The others go first, least recently used; a partition beyond the budget on its own starts anew.
        """
        size = partition.nbytes
        if size > self.budget:
            partition.reset(b"", intervals=False)
            size = 0
        self._total += size - self._sizes.get(head, 0)
        self._sizes[head] = size
        while self._total > self.budget and len(self._partitions) > 1:
            oldest = next(iter(self._partitions))
            self.forget(oldest)

    @property
    def nbytes(self) -> int:
        """Bytes held, estimated."""
        return self._total

    def stats(self) -> dict[str, Any]:
        """Number of partitions and bytes held."""
        return {"partitions": len(self._partitions), "bytes": self._total}
