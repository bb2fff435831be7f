"""Requests that find records, and what they find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omoide.core.arms.weights import RankWeights
from omoide.core.explanation import Part
from omoide.core.text.cues import PartialDate
from omoide.model.schema import Scope
from omoide.ops.request.question import Request
from omoide.ops.request.record import Kept, Record


@dataclass(frozen=True, slots=True)
class Get(Request["tuple[Record | None, ...]"]):
    """Records by id, in the order asked.

    `settled`: of a mirrored model as its rows say, whatever the store shows of them yet.
    """

    scope: Scope
    ids: tuple[str, ...]
    settled: bool = False


@dataclass(frozen=True, slots=True)
class GetUnique(Request["Record | None"]):
    """The record that holds a uniqueness digest."""

    scope: Scope
    digest: bytes


@dataclass(frozen=True, slots=True)
class Match:
    """Filters that indexes answer. All must hold; an empty Match holds for every live record.

    `exact`: (field, value). `exclude`: ids. Ranges are half-open `[low, high)`, None for open;
    `time` in milliseconds. Where records have validity, only those count that are valid `as_of` (ms; None:
    now, by the server's clock), or with `history` every version.
    """

    exact: tuple[tuple[str, str], ...] = ()
    exclude: tuple[str, ...] = ()
    time: tuple[int | None, int | None] | None = None
    importance: tuple[float | None, float | None] | None = None
    confidence: tuple[float | None, float | None] | None = None
    as_of: int | None = None
    history: bool = False

    @property
    def selects(self) -> bool:
        """Whether there is a filter beside validity."""
        return replace(self, as_of=None, history=False) != EVERYTHING


EVERYTHING = Match()


@dataclass(frozen=True, slots=True)
class Search(Request["SearchReply"]):
    """Rank a partition by text and by what else the query tells.

    `terms`: query term -> weight, at most 64. `explain` asks for the parts of each score. `names`: words
    of the query that may name an author. `dates`: (year, month, day), None for what was not said. `cues`
    it asks for, as in `core.text.cues`. `ranking`: weights of the arms, None for the model's. `about`: an
    id of which to tell why it does not come. `vector`: float32[dimensions] of length 1 of what the query
    means, or None.

    Cost: one round trip, two where nothing is cached; one more for a word that no memory has when the words
    of the partition are not known (a page of 10,000 a round trip), and one more with `about`. Vectors
    beyond the first MiB that are not cached take two more.
    """

    scope: Scope
    terms: Mapping[str, float]
    limit: int = 10
    match: Match = EVERYTHING
    explain: bool = False
    names: tuple[str, ...] = ()
    dates: tuple[PartialDate, ...] = ()
    cues: int = 0
    ranking: RankWeights | None = None
    about: str | None = None
    vector: Any = None


@dataclass(slots=True)
class Hit:
    """One ranked record, not to be changed. `score` is final, `text` the sum over terms before other arms.

    Only when explained: `tree` holds the parts that make the score, `parts` the value of each by name
    (terms are `term:<term>`), `place` among all that match, and `place_by_text` by the words of its own
    alone (1 is best, 0 for none).
    """

    record: Record
    score: float
    text: float
    parts: Mapping[str, float] = field(default_factory=dict)
    tree: Part | None = None
    place: int = 0
    place_by_text: int = 0


@dataclass(frozen=True, slots=True)
class Absence:
    """Why a record is not among the hits.

    `reason`: `found` (it is among them), `missing` (never stored, or erased), `expired` (or not valid
    then), `filtered`, `unmatched` (nothing of the query applies to it), `outranked` (`score` is below
    `least`, that of the last hit, or ties with it and comes later). `tree` explains a score.
    """

    reason: str
    score: float = 0.0
    least: float = 0.0
    tree: Part | None = None


@dataclass(frozen=True, slots=True)
class SearchReply:
    """Best first. `reader` is `client` or `server`; `round_trips` what it took; `live` all records.

    `skipped` names arms that would have cost too much. `stand_ins`: word that no memory has -> the similar
    ones searched instead. `about`: of the record asked about. `without_meaning`: why a search with a vector
    was answered by words alone, "" when it was not. `unembedded`: live records without a vector.
    """

    hits: tuple[Hit, ...]
    reader: str
    round_trips: int
    live: int
    skipped: tuple[str, ...] = ()
    stand_ins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    about: Absence | None = None
    without_meaning: str = ""
    unembedded: int = 0


@dataclass(frozen=True, slots=True)
class Top(Request["tuple[Record, ...]"]):
    """The first `limit` records of the decay order (oldest-last without a decay field).

    `weigh_confidence` ranks by relevance x (.8 + .2 confidence) instead, exactly.
    """

    scope: Scope
    limit: int
    match: Match = EVERYTHING
    weigh_confidence: bool = False


@dataclass(frozen=True, slots=True)
class Find(Request["tuple[Record, ...]"]):
    """Records that match, ordered by `time`, `importance`, `confidence` or `valid_from`.

    Ties by time, then id.
    """

    scope: Scope
    match: Match = EVERYTHING
    order: str = "time"
    descending: bool = True
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Count(Request[int]):
    """How many live records match."""

    scope: Scope
    match: Match = EVERYTHING


@dataclass(frozen=True, slots=True)
class Page(Request["PageReply"]):
    """The next `size` live records in storage order after `cursor` (empty: from the start)."""

    scope: Scope
    cursor: str = ""
    size: int = 500


@dataclass(frozen=True, slots=True)
class PageReply:
    """`cursor` is empty at the end; `restarted` says that storage was reorganised: dedupe by id."""

    records: tuple[Record, ...]
    cursor: str
    restarted: bool = False


@dataclass(frozen=True, slots=True)
class Dump(Request["DumpReply"]):
    """The next `size` (1..128) live records in storage order after `cursor`, and all that is kept of them."""

    scope: Scope
    cursor: str = ""
    size: int = 128


@dataclass(frozen=True, slots=True)
class Dumped:
    """One record: stored forms by field name, and its state; with validity also when it is valid, its end
    None for no end."""

    id: str
    row: int
    values: dict[str, Any]
    kept: Kept
    interval: tuple[int, int | None] | None = None


@dataclass(frozen=True, slots=True)
class DumpReply:
    """`cursor` is empty at the end. `next`: the first row that is not given yet; rows from it on hold what is
    written after this reply. `version` counts the writes of the partition, `live` its records, whatever the
    pages find."""

    records: tuple[Dumped, ...]
    cursor: str
    next: int = 1
    version: int = 0
    live: int = 0


@dataclass(frozen=True, slots=True)
class ReadTurn(Request["tuple[Record, ...] | None"]):
    """The records a turn was given that are still there; None for an unknown or expired turn."""

    scope: Scope
    turn: str
