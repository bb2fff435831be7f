"""One run: recall per category, false positives, microseconds per turn, worst cases with doubling."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.firewall.corpus import Sample, load
from benchmarks.firewall.detectors import DETECTORS, Worker
from benchmarks.firewall.families import FAMILIES
from benchmarks.report import emit, machine, markdown, progress

TURN = (1_000, 2_000)
"""Characters of a turn whose time is measured; shorter texts are put together."""


def recall(worker: Worker, samples: Sequence[Sample]) -> dict[str, Any]:
    """Blocked and all secrets per category, and the look-alikes that were blocked."""
    hit: dict[str, int] = defaultdict(int)
    every: dict[str, int] = defaultdict(int)
    missed: dict[str, int] = defaultdict(int)
    wrong: dict[str, int] = defaultdict(int)
    clean = 0
    for sample in samples:
        blocked, _ = worker.ask(sample.text)
        if sample.secret:
            every[sample.category] += 1
            hit[sample.category] += blocked
            missed[sample.kind] += not blocked
        else:
            clean += 1
            wrong[sample.kind] += blocked
    return {
        "recall": {name: [hit[name], every[name]] for name in sorted(every)},
        "secrets": [sum(hit.values()), sum(every.values())],
        "false_positives": [sum(wrong.values()), clean],
        "missed_kinds": {kind: count for kind, count in sorted(missed.items()) if count},
        "false_positive_kinds": {kind: count for kind, count in sorted(wrong.items()) if count},
    }


def turns(samples: Sequence[Sample]) -> list[str]:
    """Clean texts put together to turns of 1 to 2 kB."""
    made, current = [], ""
    for sample in samples:
        if not sample.secret and len(sample.text) < TURN[1]:
            current = f"{current}\n{sample.text}" if current else sample.text
            if len(current) >= TURN[0]:
                made.append(current[: TURN[1]])
                current = ""
    return made


def speed(worker: Worker, texts: Sequence[str]) -> dict[str, Any]:
    """Microseconds per turn, best of three scans each."""
    times = sorted(worker.ask(text, 3)[1] * 1e6 for text in texts)
    if not times:
        return {}
    return {
        "turns": len(times),
        "p50_us": round(times[len(times) // 2], 1),
        "p95_us": round(times[int(len(times) * 0.95)], 1),
        "p99_us": round(times[int(len(times) * 0.99)], 1),
    }


def worst(worker: Worker, sizes: Sequence[int], give_up_seconds: float) -> dict[str, Any]:
    """Milliseconds of every family at every size, and the largest growth of a doubling."""
    table: dict[str, list[float]] = {}
    for name, make in FAMILIES.items():
        times: list[float] = []
        for size in sizes:
            seconds = worker.ask(make(size), 2)[1]
            times.append(round(seconds * 1000, 2))
            if seconds > give_up_seconds:
                break
        table[name] = times
        progress(f"  {worker.name} {name}: {times} ms")
    return {
        "sizes": list(sizes),
        "milliseconds": table,
        "slowest_100kB": _slowest(table, sizes),
        "largest_growth": _growth(table),
    }


def _slowest(table: dict[str, list[float]], sizes: Sequence[int]) -> list[Any]:
    at = sizes.index(100_000) if 100_000 in sizes else len(sizes) - 1
    times = [(row[at], name) for name, row in table.items() if len(row) > at]
    return list(max(times, default=(0.0, "")))


def _growth(table: dict[str, list[float]]) -> list[Any]:
    steps = [
        (round(later / earlier, 2), name)
        for name, row in table.items()
        for earlier, later in pairwise(row)
        if later >= 20.0
    ]
    return list(max(steps, default=(0.0, "")))


def _row(name: str, result: dict[str, Any]) -> list[Any]:
    hit, every = result["secrets"]
    wrong, clean = result["false_positives"]
    time, worst_case = result.get("speed", {}), result.get("worst", {})
    return [
        name,
        round(100 * hit / every, 1) if every else None,
        round(1000 * wrong / clean, 1) if clean else None,
        time.get("p50_us"),
        time.get("p95_us"),
        time.get("p99_us"),
        worst_case.get("slowest_100kB", [None])[0],
        worst_case.get("largest_growth", [None])[0],
    ]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.firewall", description=__doc__)
    parser.add_argument(
        "--corpus", action="append", type=Path, default=[], help="JSONL file; may be repeated"
    )
    parser.add_argument("--rivals", default="", help=f"comma-separated, of {', '.join(DETECTORS)}")
    parser.add_argument(
        "--rival-python", default="", help="name=path, comma-separated: run a rival with another Python"
    )
    parser.add_argument("--no-worst", action="store_true", help="leave the worst cases out")
    parser.add_argument("--sizes", default="50000,100000,200000,400000", help="characters of the worst cases")
    parser.add_argument(
        "--give-up", type=float, default=5.0, help="seconds after which a family is not doubled again"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite. Returns 0."""
    options = _arguments(argv)
    samples = load(options.corpus)
    pythons = dict(pair.split("=", 1) for pair in options.rival_python.split(",") if pair)
    names = ["omoide", "omoide-plain", *(name for name in options.rivals.split(",") if name)]
    sizes = [int(size) for size in options.sizes.split(",")]
    results: dict[str, Any] = {}
    for name in names:
        worker = Worker(name, pythons[name]) if name in pythons else Worker(name)
        if not worker.ready:
            progress(f"{name}: not installed, left out")
            continue
        progress(f"{name}: {len(samples)} texts")
        result = recall(worker, samples)
        result["speed"] = speed(worker, turns(samples))
        if not options.no_worst:
            result["worst"] = worst(worker, sizes, options.give_up)
        worker.close()
        results[name] = result
    header = [
        "detector",
        "recall %",
        "false / 1000",
        "p50 us",
        "p95 us",
        "p99 us",
        "worst 100 kB ms",
        "growth",
    ]
    table = markdown(header, [_row(name, result) for name, result in results.items()])
    emit({"machine": machine(), "texts": len(samples), "results": results}, table, as_json=options.json)
    return 0
