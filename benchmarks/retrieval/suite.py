"""The retrieval run: every turn stored as one memory, every question asked, the gold turns looked for.

Every system ranks the same questions to the same depth (20) in a partition per conversation. Systems
without a field for the author are given "author: text"; what a system does with time and session is up
to it. No model is in the loop. `all` leaves out the category `adversarial`, whose questions have no true
answer; its scores stand among the categories.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import rivals
from benchmarks.report import emit, markdown, progress
from benchmarks.retrieval.dialogue import Conversation, read
from benchmarks.retrieval.metrics import DEPTH, NAMES, Scores, mean, score
from benchmarks.rivals import MissingSystemError, Ranker
from benchmarks.server import Server

UNANSWERABLE = "adversarial"

Summary = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite from a command line; 0, or 2 when the data or a system is not usable."""
    options = _options(argv)
    try:
        conversations = read(options.data)
        systems = {name: evaluate(name, conversations, queries=options.queries) for name in options.systems}
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
        {"all": Scores, "categories": {category: Scores}}.
    Raises:
        MissingSystemError: the system is not installed.
        ValueError: no question is left to ask.
    """
    asked: dict[str, list[Scores]] = {}
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


def summarize(asked: dict[str, list[Scores]]) -> Summary:
    """Average per category, and over all questions that have an answer."""
    answerable = [one for category, scores in asked.items() if category != UNANSWERABLE for one in scores]
    if not answerable:
        raise ValueError("no answerable question was asked")
    return {
        "all": mean(answerable),
        "categories": {category: mean(asked[category]) for category in sorted(asked)},
    }


def _ask(
    name: str, ranker: Ranker, conversation: Conversation, queries: int | None, asked: dict[str, list[Scores]]
) -> None:
    began = time.perf_counter()
    questions = conversation.questions[:queries]
    for question in questions:
        ranked = ranker.rank(conversation.id, question.text, DEPTH)
        asked.setdefault(question.category, []).append(score(ranked, question.gold))
    took = f"{time.perf_counter() - began:.1f} s"
    progress(f"{name} {conversation.id}: {len(questions)} questions, {len(conversation.turns)} turns, {took}")


def _table(systems: dict[str, Summary]) -> str:
    rows: list[list[str | float]] = []
    for name, summary in systems.items():
        for category, scores in {"all": summary["all"], **summary["categories"]}.items():
            rows.append([name, category, *(scores[metric] for metric in NAMES)])
    return markdown(["system", "category", *NAMES], rows)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="omoide bench retrieval", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="JSON file of conversations and questions")
    parser.add_argument("--systems", type=_names, default=["omoide"], help=", ".join(rivals.NAMES))
    parser.add_argument("--queries", type=int, default=None, help="questions per conversation; default all")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    return parser.parse_args(argv)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
