"""The speed run: every system does the same things in turn, each on a server of its own.

For every size: load, beside as many other agents with the same texts as asked for; recall with warm
caches, with cold ones; the ten with the highest decayed score; report outcomes of seven memories; save
new ones; delete those. Within an operation the systems alternate call by call (A B, B A, A B, ...), so a
noisy moment of the machine hits them alike, and the collector runs between calls, never inside one.

A system that builds an index in this process (rank-bm25) rebuilds it for each save, delete and cold
recall; those are done at most REBUILDS times.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from benchmarks import rivals
from benchmarks.corpus import Corpus, synthesize
from benchmarks.report import emit, machine, markdown, progress
from benchmarks.rivals import MissingSystemError, Store
from benchmarks.server import Server
from benchmarks.speed.measure import Run, Sample, Trips, measure, summarize

OPERATIONS = ("recall", "recall_noted", "recall_cold", "decay_top", "observe", "save", "delete")
REBUILDS = 5
HANDFUL = 64


@dataclass(slots=True)
class Contestant:
    """A system in the run, with its server and what it has measured at the present size."""

    name: str
    store: Store
    server: Server | None
    bytes_per_document: float = 0.0
    saved: list[Any] = field(default_factory=list)
    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def may(self, operation: str) -> bool:
        """Whether there is another `operation` to measure on this system."""
        if operation not in self.store.operations or (operation == "delete" and not self.saved):
            return False
        rebuilds = self.server is None and operation != "recall"
        return not rebuilds or len(self.samples.get(operation, ())) < REBUILDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite from a command line; 0, or 2 when a system or option is not usable."""
    options = _options(argv)
    names = ["omoide", *options.rivals] if options.systems is None else options.systems
    try:
        runs = compare(
            names,
            options.sizes,
            queries=options.queries,
            agents=options.agents,
            distinct=options.distinct,
            words=options.words,
        )
    except MissingSystemError as error:
        progress(f"error: {error}")
        return 2
    header = [column.name for column in fields(Run)]
    rows = [[getattr(run, name) for name in header] for run in runs]
    emit({"runs": [asdict(run) for run in runs]}, markdown(header, rows), as_json=options.json)
    return 0


def compare(
    systems: Sequence[str],
    sizes: Sequence[int],
    *,
    queries: int = 200,
    agents: int = 1,
    distinct: int = 22,
    words: int | None = None,
) -> list[Run]:
    """Measure systems side by side.

    Args:
        systems: Names out of `rivals.NAMES`.
        sizes: Documents in the one partition that is measured, one size after the other.
        queries: Calls of every operation.
        agents: Partitions of that size on the server, the measured one among them.
        distinct, words: As `corpus.synthesize`.
    Returns:
        list[Run] by size, operation and system.
    Raises:
        MissingSystemError: a system is not installed.
    Cost: mostly loading; popoto takes about 1.7 ms a document.
    """
    trips = Trips()
    runs: list[Run] = []
    progress(machine())
    with ExitStack() as stack:
        stack.enter_context(trips.counting())
        contestants = [_enter(stack, name) for name in systems]
        for size in sizes:
            corpus = synthesize(size, queries=queries, arrivals=queries, distinct=distinct, words=words)
            for contestant in contestants:
                _load(contestant, corpus, agents - 1)
            _alternate(contestants, corpus, trips)
            for operation in OPERATIONS:
                runs += [_sum_up(c, size, operation) for c in contestants if c.samples.get(operation)]
    return runs


def _enter(stack: ExitStack, name: str) -> Contestant:
    store = rivals.store(name)
    server = stack.enter_context(Server()) if store.served else None
    stack.callback(store.close)
    store.open(server.url if server else "")
    return Contestant(name, store, server)


def _load(contestant: Contestant, corpus: Corpus, neighbours: int) -> None:
    store, server, size = contestant.store, contestant.server, len(corpus.documents)
    contestant.saved.clear()
    contestant.samples.clear()
    if server:
        server.empty()
        server.forget_slow()
        store.cool()
    store.crowd(corpus.documents, neighbours)
    empty = server.used_bytes() if server else 0
    began = time.perf_counter()
    store.load(corpus.documents)
    took = time.perf_counter() - began
    grown = (server.used_bytes() if server else store.used_bytes()) - empty
    contestant.bytes_per_document = grown / size
    progress(f"{contestant.name} {size:,}: loaded in {took:.1f} s, {grown / size:,.0f} bytes a document")
    if server:
        _tell_slowest(contestant, size, "loading")
        _tell_keys(contestant.name, server, size)
        server.forget_slow()
    store.warm(corpus.queries)


def _tell_keys(name: str, server: Server, size: int) -> None:
    """Say what each key of the partition weighs, where a partition is a handful of keys."""
    if server.key_count() > HANDFUL:
        return
    for key, weight in sorted(server.key_bytes().items(), key=lambda item: -item[1]):
        progress(f"{name} {size:,}: {weight / size:,.1f} bytes a document in :{key}")


def _tell_slowest(contestant: Contestant, size: int, phase: str) -> None:
    """Say whether any single command held the server for more than 10 ms."""
    if contestant.server is None:
        return
    slowest = contestant.server.slowest_ms()
    verdict = f"{slowest:.1f} ms" if slowest else "under 10 ms"
    progress(f"{contestant.name} {size:,}: longest command while {phase}: {verdict}")


def _alternate(contestants: Sequence[Contestant], corpus: Corpus, trips: Trips) -> None:
    for operation in OPERATIONS:
        began = time.perf_counter()
        gc.collect()
        gc.disable()
        try:
            for turn, query in enumerate(corpus.queries):
                order = contestants if turn % 2 == 0 else list(reversed(contestants))
                for contestant in order:
                    if contestant.may(operation):
                        _once(contestant, operation, query, corpus.arrivals[turn], trips)
                gc.collect(0)
        finally:
            gc.enable()
        progress(f"{len(corpus.documents):,} {operation}: {time.perf_counter() - began:.1f} s")
    for contestant in contestants:
        _tell_slowest(contestant, len(corpus.documents), "running")


def _once(contestant: Contestant, operation: str, query: str, text: str, trips: Trips) -> None:
    call = _prepare(contestant, operation, query, text)
    answer, sample = measure(call, contestant.server, trips)
    contestant.samples.setdefault(operation, []).append(sample)
    if operation == "save":
        contestant.saved.append(answer)


def _prepare(contestant: Contestant, operation: str, query: str, text: str) -> Callable[[], Any]:
    """Do what must not be timed, and return the call that is."""
    store = contestant.store
    if operation == "save":
        return lambda: store.save(text)
    if operation == "delete":
        saved = contestant.saved.pop()
        return lambda: store.delete(saved)
    if operation == "observe":
        recalled = store.witness(query)
        return lambda: store.observe(recalled)
    if operation == "decay_top":
        return store.decay_top
    if operation == "recall_noted":
        return lambda: store.recall_noted(query)
    if operation == "recall_cold":
        store.cool()
    return lambda: store.recall(query)


def _sum_up(contestant: Contestant, size: int, operation: str) -> Run:
    samples = contestant.samples[operation]
    return summarize(size, operation, contestant.name, samples, contestant.bytes_per_document)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="omoide bench speed", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--sizes", type=_counts, default=[1000, 20_000], help="documents, comma separated")
    parser.add_argument("--rivals", type=_names, default=[], help="popoto, rank-bm25: measured beside omoide")
    parser.add_argument("--systems", type=_names, default=None, help="exactly these, omoide only if named")
    parser.add_argument("--queries", type=int, default=200, help="calls of every operation")
    parser.add_argument("--agents", type=int, default=1, help="partitions of that size on the server")
    parser.add_argument("--distinct", type=int, default=22, help="distinct words of a document")
    parser.add_argument("--words", type=int, default=None, help="words of a document, instead of --distinct")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    return parser.parse_args(argv)


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.replace("_", "").split(",") if part]


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
