"""Whom a query names, and whether that is one author among several.

A memory is filed under the names its author may be called by, as equality terms of the reserved field
`@`: the whole name and its first word, lower case, accents folded, neither stemmed nor stopped. A query
looks up each of its words. An author counts as named when the memories so found are all theirs, and the
partition holds memories of another author too.

    Witnesses    ordinal -> a row that has it

says which ordinals the live rows of a growing list have, in time of what was added: an ordinal counts
while its witness lives, and only the death of a witness makes the list be read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from omoide.core.columns import DEAD
from omoide.core.text import apostrophes, scripts

if TYPE_CHECKING:
    from omoide.core.columns import Columns, Rows

FIELD = "@"
"""Reserved field of the equality terms that name an author; no field of a model can be called so."""

MOST_NAMES = 64
"""Words of a query that may name an author."""

_SHORTEST_RUN, _LONGEST_RUN = 2, 4
_LONGEST_NAME = 200
_ENOUGH = 2
_FEW = 32


def called(author: str) -> tuple[str, ...]:
    """What an author may be called: the whole name and its first word. Names over 200 bytes are not filed."""
    words = _words(author)
    names = dict.fromkeys((" ".join(words), words[0])) if words else {}
    return tuple(name for name in names if len(name.encode()) <= _LONGEST_NAME)


def words_of(query: str) -> list[str]:
    """The distinct words of a query, as names are filed; where no spaces part words, runs of 2 to 4 too."""
    found: dict[str, None] = {}
    for word in _words(query):
        found[word] = None
        if not word.isascii():
            for run in scripts.UNSPACED_RUN.finditer(word):
                found.update(dict.fromkeys(_pieces(run.group())))
        if len(found) > MOST_NAMES:
            break
    return list(found)[:MOST_NAMES]


def _words(text: str) -> list[str]:
    found = []
    for chunk in text.split():
        for word in scripts.words(scripts.normalise(chunk)):
            folded = scripts.fold(apostrophes.resolve(word).casefold())
            if folded:
                found.append(folded)
    return found


def _pieces(run: str) -> Iterable[str]:
    for size in range(_SHORTEST_RUN, _LONGEST_RUN + 1):
        for start in range(len(run) - size + 1):
            yield run[start : start + size]


class Witnesses:
    """Up to two author ordinals of the live rows of a list that grows at its end: none, one or several."""

    __slots__ = ("_columns", "_held", "_seen")

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._seen = 0
        self._held: dict[int, int] = {}

    def of(self, rows: Rows, columns: Columns) -> frozenset[int]:
        """Ordinals, 0 (none) left out, of the live ones of `rows`, which only ever grows at its end.

        Cost: O(rows added since); O(rows) after the death of a witness.
        """
        self._renew(columns, len(rows))
        if len(rows) > self._seen:
            self._take(rows[self._seen :], columns)
            self._seen = len(rows)
        return frozenset(self._held)

    def of_all(self, columns: Columns) -> frozenset[int]:
        """The same of every row of the columns."""
        import numpy as np

        end = columns.next - 1
        self._renew(columns, end)
        if end > self._seen:
            self._take(np.arange(self._seen + 1, end + 1), columns)
            self._seen = end
        return frozenset(self._held)

    def _renew(self, columns: Columns, size: int) -> None:
        other = self._columns is not columns or size < self._seen
        if other or any(columns.row(row).flags & DEAD for row in self._held.values()):
            self._columns, self._seen, self._held = columns, 0, {}

    def _take(self, rows: Rows, columns: Columns) -> None:
        if len(self._held) >= _ENOUGH:
            return
        if len(rows) <= _FEW:
            for row in rows.tolist():
                attributes = columns.row(row)
                if attributes.author and not attributes.flags & DEAD:
                    self._held.setdefault(attributes.author, row)
        else:
            live = rows[columns.live_mask(rows)]
            authors = columns.column("author")[live]
            for author in (authors.max(initial=0), authors[authors > 0].min(initial=authors.max(initial=0))):
                if author:
                    self._held.setdefault(int(author), int(live[(authors == author).argmax()]))
        while len(self._held) > _ENOUGH:
            self._held.popitem()


def named_author(named: Iterable[frozenset[int]], everyone: frozenset[int]) -> int:
    """The ordinal of the one author that all the names found point to, 0 unless there is another one."""
    found: frozenset[int] = frozenset().union(*named)
    return next(iter(found)) if len(found) == 1 and len(everyone) > 1 else 0
