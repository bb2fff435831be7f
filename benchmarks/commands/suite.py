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

from benchmarks.corpus import VOCABULARY, synthesize, word
from benchmarks.report import emit, machine, markdown, progress
from benchmarks.server import Server

BATCH = 1000
INDEXED = 2_048
BEYOND = 6_000
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
        rows = [row for phase in _phases(server, options.size, options.repeats) for row in phase]
    emit(
        {"commands": [dict(zip(HEADER, row, strict=True)) for row in rows]},
        markdown(HEADER, rows),
        as_json=options.json,
    )
    return 1 if any(row[-1] for row in rows) else 0


def _phases(server: Server, size: int, repeats: int) -> Iterator[list[list[Any]]]:
    import omoide
    from omoide.recipes import DefaultMemory, SubconsciousMemory

    class CommandMemory(DefaultMemory):
        max_records_per_partition = 0

    class CappedMemory(CommandMemory):
        max_records_per_partition = size

    class PassingMemory(CommandMemory):
        class Meta:
            ttl = 3

    corpus = synthesize(size, queries=repeats, arrivals=4 * repeats)
    chance = random.Random("long texts")
    common, words = _distribution(), [word(rank) for rank in range(VOCABULARY)]

    def long_text(distinct: int) -> str:
        found: dict[str, None] = {}
        while len(found) < distinct:
            found.update(dict.fromkeys(chance.choices(words, cum_weights=common, k=distinct)))
        return " ".join(list(found)[:distinct])

    server.log_above(NOTED_US)
    names = _script_names()

    def during(phase: str, work: Callable[[], Any]) -> list[list[Any]]:
        server.forget_slow()
        began = time.perf_counter()
        work()
        rows = [[phase, *row] for row in _table(server, names)]
        progress(f"{phase}: {time.perf_counter() - began:.1f} s, {len(rows)} scripts")
        return rows

    def fill(model: Any, agent: str) -> None:
        for start in range(0, size, BATCH):
            model.save_many(
                [model(agent_id=agent, content=text) for text in corpus.documents[start : start + BATCH]]
            )

    def writes(model: Any, agent: str, texts: Sequence[str]) -> None:
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            memory = model(agent_id=agent, content=old)
            memory.save()
            memory.content = new
            memory.save()
            memory.delete()

    def pushed_out(texts: Sequence[str]) -> None:
        for text in texts:
            CappedMemory(agent_id="b", content=text, importance=1e-6).save()
        for text in corpus.arrivals[: len(texts)]:
            CappedMemory(agent_id="b", content=text).save()

    def expired(texts: Sequence[str]) -> None:
        for start in range(0, len(texts), 50):
            PassingMemory.save_many(
                [PassingMemory(agent_id="c", content=t) for t in texts[start : start + 50]]
            )
        time.sleep(3.1)
        PassingMemory(agent_id="c", content="one more").save()
        omoide.prune(PassingMemory)

    def recalls(agent: str, reader: Any) -> None:
        with omoide.connect(server.url, reader=reader):
            memory = SubconsciousMemory(agent_id=agent, model=CommandMemory)
            assembler = omoide.ContextAssembler(CommandMemory, max_items=8, max_tokens=2000)
            for query in corpus.queries:
                memory.report_outcomes(assembler.assemble(query, agent_id=agent), "acted")
                CommandMemory.query.filter(agent_id=agent).top_by_decay(n=10)

    long = [long_text(INDEXED) for _ in range(2 * repeats)]
    longer = [long_text(BEYOND) for _ in range(2 * max(1, repeats // 10))]
    with omoide.connect(server.url):
        yield during("load", lambda: fill(CommandMemory, "a"))
        yield during("ordinary writes", lambda: writes(CommandMemory, "a", corpus.arrivals[: 2 * repeats]))
        yield during(f"{INDEXED:,} distinct words", lambda: writes(CommandMemory, "a", long))
        yield during(f"{BEYOND:,} distinct words", lambda: writes(CommandMemory, "a", longer))
        fill(CappedMemory, "b")
        yield during("pushed out by the cap", lambda: pushed_out(long[:repeats]))
        yield during("expired", lambda: expired([*long[:repeats], *corpus.documents[:1000]]))
    for reader in ("client", "server"):
        yield during(f"recall, {reader} reader", lambda reader=reader: recalls("a", reader))
    with omoide.connect(server.url):
        CommandMemory.save_many([CommandMemory(agent_id="a", content=text) for text in long])
        yield during("rebuild", lambda: omoide.reindex(CommandMemory, agent_id="a"))
        yield during("drop", lambda: omoide.forget(CommandMemory, agent_id="a"))


def _distribution() -> list[float]:
    from itertools import accumulate

    from benchmarks.corpus import SHIFT

    return list(accumulate(1 / (rank + 1 + SHIFT) for rank in range(VOCABULARY)))


def _script_names() -> dict[str, str]:
    from omoide.lua import load, names

    return {load(name).sha.decode(): name for name in names()}


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
