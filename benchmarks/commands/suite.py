"""How long each command holds the server, by script, while one partition does all that it ever does.

One partition is filled with long-tailed text; then memories of ordinary length and memories of 2,048 and
6,000 distinct words are saved, updated, deleted, pushed out by the cap and left to expire; it is recalled
through both readers, reported on, rebuilt and dropped. The server's slow log tells every command with its
time by the clock, so the figures need a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import omoide
from benchmarks.corpus import distribution, synthesize
from benchmarks.report import emit, machine, markdown, progress
from benchmarks.server import Server
from omoide.lua import load, names
from omoide.recipes import DefaultMemory, SubconsciousMemory

BATCH = 1000
INDEXED = 2_048
BEYOND = 6_000
TTL_SECONDS = 3
HEADER = ("phase", "script", "noted", "median_ms", "longest_ms", "over_limit")
NOTED_US = 1_000
LIMIT_MS = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite from a command line; 0, or 1 when a command took longer than the limit."""
    parser = argparse.ArgumentParser(prog="omoide bench commands", description=__doc__)
    parser.add_argument("--size", type=int, default=100_000, help="documents in the partition")
    parser.add_argument("--repeats", type=int, default=50, help="calls of each kind of write")
    parser.add_argument("--json", action="store_true", help="one object instead of a table")
    options = parser.parse_args(argv)
    progress(machine())
    with Server() as server:
        run = _Run(server, options.size, options.repeats)
        rows = [row for phase in run.phases() for row in phase]
    emit(
        {"commands": [dict(zip(HEADER, row, strict=True)) for row in rows]},
        markdown(HEADER, rows),
        as_json=options.json,
    )
    return 1 if any(row[-1] for row in rows) else 0


class _Run:
    """One server, the models whose partitions are on it, and the texts that go in."""

    def __init__(self, server: Server, size: int, repeats: int) -> None:
        self.server, self.size = server, size
        self.corpus = synthesize(size, queries=repeats, arrivals=4 * repeats)
        self.plain, self.capped, self.passing = _models(size)
        self.names = {load(name).sha.decode(): name for name in names()}
        chance = random.Random("long texts")
        self.ordinary = self.corpus.arrivals[: 2 * repeats]
        self.long = [_long_text(chance, INDEXED) for _ in range(2 * repeats)]
        self.longer = [_long_text(chance, BEYOND) for _ in range(2 * max(1, repeats // 10))]
        server.log_above(NOTED_US)

    def phases(self) -> Iterator[list[list[Any]]]:
        """Rows of the table, a phase after the other."""
        half = self.long[: len(self.long) // 2]
        with omoide.connect(self.server.url):
            yield self._during("load", lambda: self._fill(self.plain, "a"))
            yield self._during("ordinary writes", lambda: self._write(self.ordinary))
            yield self._during(f"{INDEXED:,} distinct words", lambda: self._write(self.long))
            yield self._during(f"{BEYOND:,} distinct words", lambda: self._write(self.longer))
            self._fill(self.capped, "b")
            yield self._during("pushed out by the cap", lambda: self._push_out(half))
            yield self._during("expired", lambda: self._expire([*half, *self.corpus.documents[:1000]]))
        for reader in ("client", "server"):
            yield self._during(f"recall, {reader} reader", lambda reader=reader: self._recall(reader))
        with omoide.connect(self.server.url):
            self.plain.save_many([self.plain(agent_id="a", content=text) for text in self.long])
            yield self._during("rebuild", lambda: omoide.reindex(self.plain, agent_id="a"))
            yield self._during("drop", lambda: omoide.forget(self.plain, agent_id="a"))

    def _during(self, phase: str, work: Callable[[], Any]) -> list[list[Any]]:
        self.server.forget_slow()
        began = time.perf_counter()
        work()
        rows = [[phase, *row] for row in _table(self.server, self.names)]
        progress(f"{phase}: {time.perf_counter() - began:.1f} s, {len(rows)} scripts")
        return rows

    def _fill(self, model: Any, agent: str) -> None:
        for start in range(0, self.size, BATCH):
            texts = self.corpus.documents[start : start + BATCH]
            model.save_many([model(agent_id=agent, content=text) for text in texts])

    def _write(self, texts: Sequence[str]) -> None:
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            memory = self.plain(agent_id="a", content=old)
            memory.save()
            memory.content = new
            memory.save()
            memory.delete()

    def _push_out(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.capped(agent_id="b", content=text, importance=1e-6).save()
        for text in self.corpus.arrivals[: len(texts)]:
            self.capped(agent_id="b", content=text).save()

    def _expire(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), 50):
            part = texts[start : start + 50]
            self.passing.save_many([self.passing(agent_id="c", content=text) for text in part])
        time.sleep(TTL_SECONDS + 0.1)
        self.passing(agent_id="c", content="one more").save()
        omoide.prune(self.passing)

    def _recall(self, reader: Any) -> None:
        with omoide.connect(self.server.url, reader=reader):
            memory = SubconsciousMemory(agent_id="a", model=self.plain)
            assembler = omoide.ContextAssembler(self.plain, max_items=8, max_tokens=2000)
            for query in self.corpus.queries:
                memory.report_outcomes(assembler.assemble(query, agent_id="a"), "acted")
                self.plain.query.filter(agent_id="a").top_by_decay(n=10)


def _models(size: int) -> tuple[Any, Any, Any]:
    """Without a cap, with one that a full partition has reached, and with memories that pass."""

    class CommandMemory(DefaultMemory):
        max_records_per_partition = 0

    class CappedMemory(CommandMemory):
        max_records_per_partition = size

    class PassingMemory(CommandMemory):
        class Meta:
            ttl = TTL_SECONDS

    return CommandMemory, CappedMemory, PassingMemory


def _long_text(chance: random.Random, distinct: int) -> str:
    """A text of so many distinct words, drawn as those of the corpus are."""
    vocabulary, weights = distribution()
    found: dict[str, None] = {}
    while len(found) < distinct:
        found.update(dict.fromkeys(chance.choices(vocabulary, cum_weights=weights, k=distinct)))
    return " ".join(list(found)[:distinct])


def _table(server: Server, names: dict[str, str]) -> list[list[Any]]:
    """Per script the commands over 1 ms: how many, their times, how many took longer than the limit."""
    taken: dict[str, list[float]] = {}
    for parts, ms in server.logged():
        if parts[0].upper().startswith("EVALSHA"):
            taken.setdefault(names.get(parts[1], parts[1]), []).append(ms)
    return [
        [name, len(times), statistics.median(times), max(times), sum(one > LIMIT_MS for one in times)]
        for name, times in sorted(taken.items(), key=lambda item: -max(item[1]))
    ]
