"""Recall from rows: the ranking of the Redis index, asked of PostgreSQL in one statement (`recall.sql`).

It answers when Redis cannot. What differs from the index: words are those of the text-search configuration
`english`, and a date without a year is looked for in the years around now. Everything else (validity, idf
over the partition, length, neighbours, author, date, cues, importance, confidence, back-off to similar words)
is the same formula with the same weights. Similar words are looked for in texts of at most 1,024 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from omoide.core.arms import dates
from omoide.core.arms.weights import DEFAULT_WEIGHTS
from omoide.core.columns import ASKING, ASKS, CONFIDENCE_STEPS
from omoide.core.text.surface import lexemes
from omoide.errors import ModelError
from omoide.fields import TagField
from omoide.ops.request import Match, Search
from omoide.stores.postgres.columns import escaped
from omoide.stores.postgres.script import Script, Step, identifier

if TYPE_CHECKING:
    from omoide.core.arms.weights import RankWeights
    from omoide.model.schema import ModelSpec, Scope, TextIndex

__all__ = ["CONFIDENCE", "LINE", "WORDS", "Rows", "conditions", "identifier", "rank", "words_ddl"]

LINE = "text"
"""The migrations of the functions it calls."""

WORDS = "_words"
"""Name of the generated column that holds what a row is found by."""

CONFIDENCE = f"coalesce(m._alpha / nullif(m._alpha + m._beta, 0), m._prior / {CONFIDENCE_STEPS}.0)"

STARTED = "coalesce(m._valid_from, m._time)"
"""From when a row is valid: one of an older class, without validity, since its time."""

YEARS = 10
_AT = "coalesce(%(as_of)s::bigint, floor(extract(epoch FROM now()) * 1000))"
_SHORTEST_SIMILAR = 4
LONGEST_SIMILAR = 1_024
_NO_NESTED_LOOPS = "SELECT set_config('enable_nestloop', 'off', true)"
"""Until a new table is analysed the planner expects one row everywhere, and would join them pairwise."""
_ORIGIN = date(1970, 1, 1)


class Rows:
    """The rows of one partition of a mirrored model, as SQL over the alias `m`."""

    def __init__(self, scope: Scope, partition: str) -> None:
        spec = scope.spec
        self.spec, self.partition = spec, partition
        self.table = identifier(table_name(spec))

    @property
    def text(self) -> str:
        """The texts that are indexed, joined as the index joins them."""
        names = () if self.spec.text is None else self.spec.text.source
        return joined([self.column(name) for name in names]) if names else "''"

    def column(self, field: str | None, alias: str = "m") -> str:
        """The column of a field; NULL for none."""
        return "NULL::text" if field is None else f"{alias}.{identifier(field)}"

    @property
    def live(self) -> str:
        """The condition that keeps to live rows of the partition."""
        unexpired = "m._expires IS NULL OR m._expires > extract(epoch FROM now()) * 1000"
        return f"m._partition = %(partition)s AND ({unexpired})"

    @property
    def importance(self) -> str:
        name = self.spec.importance
        return "1" if name is None else f"coalesce({self.column(name)}, 1)"

    def names(self, filters: Sequence[str], visible: str) -> dict[str, str]:
        """What `recall.sql` has in braces."""
        return {
            "table": self.table,
            "id": identifier(self.spec.id_field),
            "words": WORDS,
            "text": self.text,
            "short": short(self.text),
            "session": self.column(self.spec.session),
            "session_of_h": self.column(self.spec.session, "h"),
            "author": self.column(self.spec.author),
            "importance": self.importance,
            "confidence": CONFIDENCE,
            "partition": self.live,
            "partition_of_h": "h._partition = %(partition)s",
            "filters": " AND ".join(["true", *filters]),
            "visible": visible,
        }


def rank(request: Search, partition: str) -> Script[list[tuple[str, float, float]]]:
    """(id, score, text score) of at most `request.limit` rows of one partition, best first.

    Args:
        partition: Its name in the column `_partition`.
    Cost: one statement; the rows that match, the rows of their sessions, and a count of the partition.
    """
    text = request.scope.spec.text
    if text is None or request.limit < 1:
        return []
    rows = Rows(request.scope, partition)
    filters, values = _filters(rows, request.match)
    visible, instant = _visible(rows, request.match)
    values |= {"partition": partition} | instant | _question(request, text) | _constants(request, text)
    yield Step(_NO_NESTED_LOOPS)
    found = yield Step(_template().format(**rows.names(filters, visible)), values)
    return [(record_id, float(score), float(told)) for record_id, score, told in found]


def words_ddl(spec: ModelSpec) -> tuple[str, ...]:
    """Statements that give the table of a model its generated column and the indexes of `rank`; repeatable.

    They call the functions of the line `text`. None for a model without text.
    """
    if spec.text is None:
        return ()
    names = [identifier(name) for name in spec.text.source]
    words = f"omoide_words({joined(names)})"
    if spec.author is not None:
        words += f" || omoide_words(coalesce({identifier(spec.author)}, ''))"
    name = table_name(spec)
    table = identifier(name)
    return (
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {WORDS} tsvector GENERATED ALWAYS AS ({words}) STORED",
        f"CREATE INDEX IF NOT EXISTS {identifier(name[:50] + WORDS)} ON {table} USING gin ({WORDS})",
        f"CREATE INDEX IF NOT EXISTS {identifier(name[:50] + '_alike')} ON {table}"
        f" USING gin (({joined(names)}) gin_trgm_ops) WHERE {short(joined(names))}",
    )


def table_name(spec: ModelSpec) -> str:
    """The table of a mirrored model."""
    if spec.mirror is None or spec.mirror.table is None:
        raise ModelError(f"{spec.name} has no mirror")
    return spec.mirror.table


def short(text: str) -> str:
    """SQL: whether a text is short enough to look for similar words in it, one by one (0.6 ms for 1 kB)."""
    return f"octet_length({text}) <= {LONGEST_SIMILAR}"


def joined(columns: list[str]) -> str:
    """SQL: texts joined by line ends; one alone as it is."""
    if len(columns) == 1:
        return columns[0]
    return " || E'\\n' || ".join(f"coalesce({column}, '')" for column in columns)


def _question(request: Search, text: TextIndex) -> dict[str, Any]:
    """What is asked, as parameters."""
    wanted = [(place, one) for place, term in enumerate(request.terms) for one in lexemes(term)]
    weights = request.ranking or text.ranking or DEFAULT_WEIGHTS
    similar = [
        (place, term)
        for place, term in enumerate(request.terms)
        if weights.back_off and len(term) >= _SHORTEST_SIMILAR and not term.startswith("=")
    ]
    this_year = datetime.now(UTC).year
    spans = dates.spans(request.dates, range(this_year - YEARS, this_year + 1))
    return {
        "term": [place for place, _ in wanted],
        "lexeme": [one for _, one in wanted],
        "similar_term": [place for place, _ in similar],
        "similar": [term for _, term in similar],
        "since": [_midnight(first) for first, _, _ in spans],
        "until": [_midnight(end) for _, end, _ in spans],
        "fit": [fit for _, _, fit in spans],
        "names": list(request.names),
        "cues": request.cues,
        "asks": ASKS,
        "asking_flag": ASKING,
        "limit": request.limit,
    }


def _constants(request: Search, text: TextIndex) -> dict[str, Any]:
    """The weights of the arms and of BM25, as parameters."""
    weights: RankWeights = request.ranking or text.ranking
    return {
        "k1": text.k1,
        "b": text.b,
        "pivot": text.pivot,
        "near": weights.near,
        "far": weights.far,
        "answer": weights.answer,
        "gate": float(weights.gate),
        "author": weights.author,
        "date": weights.date,
        "cue": weights.cue,
        "asking": weights.asking,
        "importance": weights.importance,
        "confidence": weights.confidence,
    }


def conditions(rows: Rows, match: Match) -> tuple[list[str], dict[str, Any]]:
    """Conditions of a match over the row `m`, and their parameters."""
    held, values = _filters(rows, match)
    visible, instant = _visible(rows, match)
    return [*held, visible], values | instant


def _visible(rows: Rows, match: Match) -> tuple[str, dict[str, Any]]:
    """The condition that the row `m` is valid when a match asks."""
    if rows.spec.validity is None or match.history:
        return "true", {}
    held = f"({STARTED} <= {_AT} AND (m._valid_to IS NULL OR m._valid_to > {_AT}))"
    return held, {"as_of": match.as_of}


def _filters(rows: Rows, match: Match) -> tuple[list[str], dict[str, Any]]:
    """What a match asks beside validity."""
    held, values = [], dict[str, Any]()
    for place, (name, value) in enumerate(match.exact):
        several = isinstance(rows.spec.fields[name], TagField)
        held.append(
            f"%(exact_{place})s = ANY ({rows.column(name)})"
            if several
            else f"{rows.column(name)}::text = %(exact_{place})s"
        )
        values[f"exact_{place}"] = escaped(value)
    if match.exclude:
        held.append(f"NOT {rows.column(rows.spec.id_field)} = ANY (%(exclude)s::text[])")
        values["exclude"] = [escaped(one) for one in match.exclude]
    ranges = {
        "time": ("m._time", match.time),
        "importance": (rows.importance, match.importance),
        "confidence": (CONFIDENCE, match.confidence),
    }
    for role, (expression, bounds) in ranges.items():
        for operator, bound in zip((">=", "<"), bounds or (None, None), strict=True):
            if bound is not None:
                key = f"{role}_{'low' if operator == '>=' else 'high'}"
                held.append(f"{expression} {operator} %({key})s")
                values[key] = bound
    return held, values


def _midnight(day: date) -> int:
    """Milliseconds since the epoch."""
    return (day - _ORIGIN).days * 86_400_000


@cache
def _template() -> str:
    text = (files("omoide.stores.postgres") / "recall.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))
