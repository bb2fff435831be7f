"""The order of memories within their sessions: who stands just before and just after whom.

    session 7   row 12 ◀──▶ row 13 ◀──▶ row 19        before[13] = 12, after[13] = 19, 0 at the ends

A session is ordered by time, then id. Only visible memories stand in it; one that dies or expires is
taken out, and its neighbours become each other's. `before` and `after` are arrays over rows, so that a
ranking gathers the neighbours of many rows at once; row 0 is nobody, and what is read there must be 0.

The links follow the columns: rows that were added are put in from the end of their session, rows that
died are taken out, each in time of the rows passed over; where that is many, all links are made anew
(a sort, about 0.15 us a row). Columns hold no ids. While the id of a row that ties with another in time
is unknown, rows stand for ids (saved earlier, earlier: nearly always right), and `wanted` names the rows
whose ids have to be learned before the order is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omoide.core.columns import DEAD

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omoide.core.columns import Columns, Mask, Rows

_FEW = 512
_LONGEST_WALK = 4_096
_ID_BYTES = 120
_ROW_BYTES = 21


@dataclass(frozen=True, slots=True)
class Links:
    """`before` and `after` int64[>= rows]: the row one place away in the session, 0 for none."""

    before: Rows
    after: Rows


class Sessions:
    """Links of one partition, kept in step with its columns. The owner of the columns locks."""

    def __init__(self, columns: Columns) -> None:
        import numpy as np

        self.columns = columns
        self.wanted: set[int] = set()
        self._ids: dict[int, bytes] = {}
        self._before: Rows = np.zeros(64, np.int64)
        self._after: Rows = np.zeros(64, np.int64)
        self._linked: Mask = np.zeros(64, np.bool_)
        self._session: NDArray[np.uint32] = np.zeros(64, np.uint32)
        self._last: dict[int, int] = {}
        self._learned: set[int] = set()
        self._done = 0  # rows below this are taken in; 0 makes all links anew
        self._spans = (
            (0.0, 0.0),
            (0.0, 0.0),
        )  # instants (now, validity) at which the visible rows are those linked
        self._ever = True  # whatever the validity
        columns.watch()

    @property
    def nbytes(self) -> int:
        """Bytes held, estimated."""
        return len(self._before) * _ROW_BYTES + len(self._ids) * _ID_BYTES

    def links(self, now_ms: int, valid_ms: int | None = None) -> Links | None:
        """The links among what is visible at these instants; None when no memory has a session.

        Cost: O(changes); O(rows) when something expired since, or validity is asked of another time; O(rows
        log rows) after many changes.
        """
        changed = self.columns.take_changed()
        end = self.columns.next
        if (
            not self._done
            or changed is None
            or end - self._done > _FEW
            or not self._follow(changed, now_ms, valid_ms)
        ):
            self._make(now_ms, valid_ms)
        self._done = end
        self._learned.clear()
        return Links(self._before, self._after) if self._last else None

    def learn(self, ids: Mapping[int, bytes]) -> None:
        """Take in ids of rows that tie in time, b"" for a row that is gone."""
        self.wanted -= ids.keys()
        self._ids.update(ids)
        self._learned.update(ids)

    # ---- step by step

    def _follow(self, changed: list[int], now_ms: int, valid_ms: int | None) -> bool:
        """Take in what changed; False when making all links anew is less work."""
        columns = self.columns
        self._grow(columns.next)
        if columns.has_intervals:
            still = self._seen(now_ms, valid_ms) and not changed and self._done == columns.next
            return (still or self._follow_visibility(now_ms, valid_ms)) and self._settle_ties()
        for row in changed:
            if row < self._done and self._linked[row] and columns.row(row).flags & DEAD:
                self._take_out(row)
                self._ids.pop(row, None)
        fresh = (
            row
            for row in range(self._done, columns.next)
            if (attributes := columns.row(row)).session and not attributes.flags & DEAD
        )
        return all(map(self._put_in, fresh)) and self._settle_ties()

    def _follow_visibility(self, now_ms: int, valid_ms: int | None) -> bool:
        import numpy as np

        columns = self.columns
        here = self._standing(now_ms, valid_ms)
        different = np.flatnonzero(here != self._linked[: columns.next])
        if len(different) > _FEW:
            return False
        for row in different[~here[different]].tolist():
            self._take_out(row)
            self._ids.pop(row, None)
        return all(self._put_in(row) for row in different[here[different]].tolist())

    def _seen(self, now_ms: int, valid_ms: int | None) -> bool:
        """Whether the same rows as at last are visible at these instants."""
        (low, high), (first, last) = self._spans
        if (valid_ms is None) != self._ever:
            return False
        return low <= now_ms < high and (valid_ms is None or first <= valid_ms < last)

    def _standing(self, now_ms: int, valid_ms: int | None) -> Mask:
        """bool[rows]: who has a place. Notes until when that holds."""
        columns = self.columns
        whole = slice(0, columns.next)
        here: Mask = columns.visible(whole, now_ms, valid_ms) & (columns.column("session") > 0)
        here[0] = False
        self._spans, self._ever = columns.unchanged(now_ms, valid_ms), valid_ms is None
        return here

    def _put_in(self, row: int) -> bool:
        """Find a row its place, from the end of its session; False when that is far."""
        columns, before, after = self.columns, self._before, self._after
        attributes = columns.row(row)
        earlier, later = self._last.get(attributes.session, 0), 0
        for _ in range(_LONGEST_WALK):
            if not earlier or columns.row(earlier).time < attributes.time:
                break
            if columns.row(earlier).time == attributes.time:
                self.wanted.update(one for one in (earlier, row) if one not in self._ids)
                if self._precedes(earlier, row):
                    break
            earlier, later = int(before[earlier]), earlier
        else:
            return False
        before[row], after[row] = earlier, later
        if earlier:
            after[earlier] = row
        if later:
            before[later] = row
        else:
            self._last[attributes.session] = row
        self._linked[row], self._session[row] = True, attributes.session
        return True

    def _precedes(self, row: int, other: int) -> bool:
        """Whether a row comes before another of the same time: by id, by row while one is unknown."""
        first, second = self._ids.get(row), self._ids.get(other)
        return row < other if first is None or second is None else first < second

    def _take_out(self, row: int) -> None:
        earlier, later = int(self._before[row]), int(self._after[row])
        if earlier:
            self._after[earlier] = later
        if later:
            self._before[later] = earlier
        elif earlier:
            self._last[int(self._session[row])] = earlier
        else:
            self._last.pop(int(self._session[row]), None)
        self._before[row] = self._after[row] = 0
        self._linked[row] = False
        self.wanted.discard(row)

    def _settle_ties(self) -> bool:
        """Place anew whatever ties with a row whose id was learned; False when that is much."""
        runs: set[int] = set()
        for row in self._learned:
            if row < len(self._linked) and self._linked[row] and row not in runs:
                runs.update(self._run_of(row))
            if len(runs) > _FEW:
                return False
        for row in runs:
            self._take_out(row)
        return all(map(self._put_in, sorted(runs)))

    def _run_of(self, row: int) -> set[int]:
        """The rows of the same session and time."""
        time, run = self.columns.row(row).time, {row}
        for links in (self._before, self._after):
            other = int(links[row])
            while other and len(run) <= _FEW and self.columns.row(other).time == time:
                run.add(other)
                other = int(links[other])
        return run

    def _grow(self, rows: int) -> None:
        import numpy as np

        if rows <= len(self._before):
            return
        capacity = max(rows, 2 * len(self._before))
        for name in ("_before", "_after", "_linked", "_session"):
            held = getattr(self, name)
            larger = np.zeros(capacity, held.dtype)
            larger[: len(held)] = held
            setattr(self, name, larger)

    # ---- all at once

    def _make(self, now_ms: int, valid_ms: int | None) -> None:
        import numpy as np

        columns = self.columns
        self._grow(columns.next)
        self._before.fill(0)
        self._after.fill(0)
        self._linked.fill(False)
        self.wanted.clear()
        rows = np.flatnonzero(self._standing(now_ms, valid_ms))
        self._linked[rows] = True
        sessions, times = columns.column("session")[rows], columns.time[rows]
        order = np.lexsort((rows, times, sessions))
        rows, sessions, times = rows[order], sessions[order], times[order]
        self._session[rows] = sessions
        self._ids = {row: name for row, name in self._ids.items() if self._linked[row]}
        together = sessions[1:] == sessions[:-1]
        equal = together & (times[1:] == times[:-1])
        if equal.any():
            order = self._by_id(rows, sessions, times, equal)
            rows = rows[order]
        self._after[rows[:-1]] = np.where(together, rows[1:], 0)
        self._before[rows[1:]] = np.where(together, rows[:-1], 0)
        ends = np.flatnonzero(np.append(~together, True)) if len(rows) else np.zeros(0, np.int64)
        self._last = dict(zip(sessions[ends].tolist(), rows[ends].tolist(), strict=True))

    def _by_id(self, rows: Rows, sessions: NDArray[np.uint32], times: Rows, equal: Mask) -> NDArray[np.int64]:
        """The order of rows in session order once ties are broken by the ids that are known."""
        import numpy as np

        tied = np.append(equal, False) | np.append(False, equal)
        places = np.flatnonzero(tied)
        names = rows[places].tolist()
        self.wanted.update(row for row in names if row not in self._ids)
        rank = np.zeros(len(rows), np.int64)
        by_id = sorted(range(len(names)), key=lambda place: self._ids.get(names[place], b""))
        rank[places[by_id]] = np.arange(len(names))
        if self.wanted:  # a run of ties in which one is unknown stays in the order of rows
            runs = np.cumsum(~np.append(False, equal))
            unknown = np.fromiter((row not in self._ids for row in names), np.bool_, len(names))
            unsure = np.isin(runs, runs[places[unknown]])
            rank[unsure] = rows[unsure]
        return np.lexsort((rank, times, sessions))
