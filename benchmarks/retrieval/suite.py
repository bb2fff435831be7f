"""The retrieval run: every turn stored as one memory, every question asked, the gold turns looked for.

Every system ranks the same questions to the same depth (20) in a partition per conversation. Systems
without a field for the author are given "author: text"; what a system does with time and session is up
to it. No model is in the loop. `all` leaves out the category `adversarial`, whose questions have no true
answer; its scores stand among the categories. `low` and `high` are the 95 % interval of a mean over
questions (`benchmarks.intervals`), `tokens@10` what the first ten turns cost in a prompt by omoide's own
estimate, `p50_ms` the median wall time of a call.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks import rivals
from benchmarks.intervals import interval
from benchmarks.report import emit, markdown, progress
from benchmarks.retrieval.dialogue import Conversation, read
from benchmarks.retrieval.metrics import DEPTH, NAMES, Scores, mean, score
from benchmarks.rivals import MissingSystemError, Ranker
from benchmarks.server import Server
from omoide.core.budget import estimate_tokens

UNANSWERABLE = "adversarial"
PROMPT = 10
BOUNDED = ("R@10", "nDCG@10")
COLUMNS = (*NAMES, *(f"{name} {end}" for name in BOUNDED for end in ("low", "high")), "tokens@10", "p50_ms")

Summary = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question brought: scores, tokens of the first ten turns, and wall time."""

    scores: Scores
    tokens: int
    ms: float


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite from a command line; 0, or 2 when the data or a system is not usable."""
    options = _options(argv)
    try:
        conversations = read(options.data)
        names = options.systems or _installed()
        systems = {name: evaluate(name, conversations, queries=options.queries) for name in names}
    except (MissingSystemError, OSError, ValueError) as error:
        progress(f"error: {error}")
        return 2
    emit({"systems": systems}, _table(systems), as_json=options.json)
    return 0


def evaluate(name: str, conversations: Sequence[Conversation], *, queries: int | None = None) -> Summary:
    """Score one system.

    Args:
        name: Out of `rivals.NAMES`.
        queries: At most this many questions of each conversation, from its start; all by default.
    Returns:
        {"all": {column: number}, "categories": {category: the same}}, the columns those of COLUMNS.
    Raises:
        MissingSystemError: the system is not installed.
        ValueError: no question is left to ask.
    """
    asked: dict[str, list[Answer]] = {}
    with ExitStack() as stack:
        ranker = rivals.ranker(name)
        server = stack.enter_context(Server()) if ranker.served else None
        stack.callback(ranker.close)
        ranker.open(server.url if server else "")
        for conversation in conversations:
            ranker.add(conversation.id, conversation.turns)
        for conversation in conversations:
            _ask(name, ranker, conversation, queries, asked)
    return summarize(asked)


def summarize(asked: dict[str, list[Answer]]) -> Summary:
    """Average per category, and over all questions that have an answer."""
    answerable = [one for category, answers in asked.items() if category != UNANSWERABLE for one in answers]
    if not answerable:
        raise ValueError("no answerable question was asked")
    return {
        "all": _summary(answerable),
        "categories": {category: _summary(asked[category]) for category in sorted(asked)},
    }


def _summary(answers: Sequence[Answer]) -> dict[str, float]:
    found: dict[str, float] = dict(mean([answer.scores for answer in answers]))
    for name in BOUNDED:
        bounds = interval([answer.scores[name] for answer in answers])
        found |= {f"{name} low": bounds.low, f"{name} high": bounds.high}
    tokens = fmean(answer.tokens for answer in answers)
    return found | {
        "tokens@10": round(tokens, 1),
        "p50_ms": round(median(answer.ms for answer in answers), 3),
    }


def _ask(
    name: str, ranker: Ranker, conversation: Conversation, queries: int | None, asked: dict[str, list[Answer]]
) -> None:
    began = time.perf_counter()
    questions = conversation.questions[:queries]
    tokens = {turn.id: estimate_tokens(f"{turn.author}: {turn.text}") for turn in conversation.turns}
    for question in questions:
        start = time.perf_counter()
        ranked = ranker.rank(conversation.id, question.text, DEPTH)
        ms = 1000 * (time.perf_counter() - start)
        prompt = sum(tokens[id] for id in ranked[:PROMPT])
        answer = Answer(score(ranked, question.gold), prompt, ms)
        asked.setdefault(question.category, []).append(answer)
    took = f"{time.perf_counter() - began:.1f} s"
    progress(f"{name} {conversation.id}: {len(questions)} questions, {len(conversation.turns)} turns, {took}")


def _table(systems: dict[str, Summary]) -> str:
    rows: list[list[str | float]] = []
    for name, summary in systems.items():
        for category, scores in {"all": summary["all"], **summary["categories"]}.items():
            rows.append([name, category, *(scores[column] for column in COLUMNS)])
    return markdown(["system", "category", *COLUMNS], rows)


def _installed() -> list[str]:
    """The systems that can run here; the others are named on stderr."""
    found = []
    for name in rivals.NAMES:
        try:
            rivals.ranker(name)
        except MissingSystemError as error:
            progress(f"{name} is left out: {error}")
        else:
            found.append(name)
    return found


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="omoide bench retrieval", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="JSON file of conversations and questions")
    parser.add_argument(
        "--systems",
        type=_names,
        default=[],
        help=f"{', '.join(rivals.NAMES)}; default: all that are installed",
    )
    parser.add_argument("--queries", type=int, default=None, help="questions per conversation; default all")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
