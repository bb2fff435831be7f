"""The feedback run: recall before and after a history of outcomes, on questions asked later.

| questions | what is measured |
| --- | --- |
| `others` | the half that gave no outcomes |
| `related` | those of them with evidence that a question of the first half has too |
| `unrelated` | the rest of them |
| `again` | the half that gave outcomes, each put in fewer words than before |

`noise` is the chance that an outcome is the wrong one. `by` says what of the feedback counts in the
ranking. Differences are of nDCG@10 and R@10, after less before, with the 95 % interval over questions
(`benchmarks.intervals`); `splits` counts the splits of the questions in which nDCG@10 rose.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.feedback.history import Agents, Asked, halves, questions_of, shortened
from benchmarks.intervals import interval, per_question
from benchmarks.report import emit, machine, markdown, progress
from benchmarks.retrieval.dialogue import Conversation, read
from benchmarks.retrieval.metrics import Scores
from benchmarks.server import Server

METRICS = ("nDCG@10", "R@10")
COLUMNS = (
    "questions", "noise", "by", "n", "nDCG@10 before", "nDCG@10 after", "diff", "low", "high", "sign",
    "splits", "R@10 diff", "R@10 low", "R@10 high",
)  # fmt: skip

Measured = dict[tuple[str, str], list[tuple[dict[str, Scores], dict[str, Scores]]]]
"""(questions, by) -> before and after of each split, by question."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite from a command line; 0, or 2 when the data is not usable."""
    options = _options(argv)
    try:
        conversations = read(options.data)
    except (OSError, ValueError) as error:
        progress(f"error: {error}")
        return 2
    rows = []
    for noise in options.noise:
        measured = run(conversations, splits=options.splits, noise=noise, most=options.queries)
        rows += [summary(questions, noise, by, pairs) for (questions, by), pairs in measured.items()]
    table = markdown(COLUMNS, [[row[name] for name in COLUMNS] for row in rows])
    emit({"machine": machine(), "splits": options.splits, "rows": rows}, table, as_json=options.json)
    return 0


def run(
    conversations: Sequence[Conversation], *, splits: int, noise: float, most: int | None = None
) -> Measured:
    """Live one history per split and measure before and after; each split has agents of its own."""
    import omoide

    questions, measured = questions_of(conversations, most), Measured()
    with Server() as server:
        omoide.connect(server.url)
        for seed in range(splits):
            progress(f"noise {noise:g}, split {seed + 1} of {splits}")
            _split(conversations, questions, seed, noise, measured)
            server.empty()
    return measured


def _split(
    conversations: Sequence[Conversation],
    questions: Sequence[Asked],
    seed: int,
    noise: float,
    measured: Measured,
) -> None:
    first, second = halves(questions, seed)
    agents = Agents(conversations, f"split-{seed}")
    texts = {one.name: one.question.text for one in second}
    texts |= {one.name: shortened(one.question, seed) for one in first}
    before = agents.measure(texts, questions, None)
    agents.live(first, noise, seed)
    seen = {(one.conversation, id) for one in first for id in one.question.gold}
    related = {one.name for one in second if any((one.conversation, id) in seen for id in one.question.gold)}
    groups = {
        "others": {one.name for one in second},
        "related": related,
        "unrelated": {one.name for one in second} - related,
        "again": {one.name for one in first},
    }
    for by, ranking in variants().items():
        after = agents.measure(texts, questions, ranking)
        for group, names in groups.items():
            pair = tuple({name: held[name] for name in names} for held in (before, after))
            measured.setdefault((group, by), []).append(pair)  # type: ignore[arg-type]


def variants() -> dict[str, Any]:
    """What of the feedback counts, and the weights of the ranking that make it so."""
    from omoide import RankWeights

    return {"all": None, "confidence": RankWeights(graph=0), "graph": RankWeights(confidence=0)}


def summary(
    questions: str, noise: float, by: str, pairs: Sequence[tuple[Mapping[str, Scores], Mapping[str, Scores]]]
) -> dict[str, Any]:
    """One row of the table."""
    row: dict[str, Any] = {"questions": questions, "noise": noise, "by": by}
    row["n"] = sum(len(before) for before, _ in pairs)
    asked = [pair for pair in pairs if pair[0]]
    for metric in METRICS:
        differences: dict[str, list[float]] = {}
        for before, after in asked:
            for name in before:
                differences.setdefault(name, []).append(after[name][metric] - before[name][metric])
        prefix = "" if metric == METRICS[0] else f"{metric} "
        found = interval(per_question(differences)) if differences else None
        row[f"{prefix}diff"], row[f"{prefix}low"], row[f"{prefix}high"] = found or (None, None, None)
        if metric == METRICS[0]:
            row["sign"] = found.sign if found else None
            row[f"{metric} before"], row[f"{metric} after"] = _means(asked, metric)
            rises = sum(_mean(after, metric) > _mean(before, metric) for before, after in asked)
            row["splits"] = f"{rises}/{len(asked)}"
    return row


def _means(
    pairs: Sequence[tuple[Mapping[str, Scores], Mapping[str, Scores]]], metric: str
) -> tuple[float | None, float | None]:
    if not pairs:
        return None, None
    before, after = zip(*pairs, strict=True)
    return round(fmean(_mean(one, metric) for one in before), 4), round(
        fmean(_mean(one, metric) for one in after), 4
    )


def _mean(scores: Mapping[str, Scores], metric: str) -> float:
    return fmean(one[metric] for one in scores.values())


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="omoide bench feedback",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="JSON file of conversations and questions")
    parser.add_argument("--splits", type=int, default=5, help="random halves of the questions; default 5")
    parser.add_argument(
        "--noise",
        type=_chances,
        default=[0.0, 0.2],
        help="chances that an outcome is wrong, comma-separated; default 0,0.2",
    )
    parser.add_argument("--queries", type=int, default=None, help="questions per conversation; default all")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    return parser.parse_args(argv)


def _chances(text: str) -> list[float]:
    return [float(part) for part in text.split(",") if part.strip()]
