"""Processes that save facts of a mirrored model, or project them, until they are killed.

Run as a program it is a nursery: it forks victims on request, so that each costs a few milliseconds. A victim
tells a log, a line before and a line after each call: what it is about to do, and that it was acknowledged.
"""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from omoide import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    CoOccurrenceField,
    DatetimeField,
    DecayingSortedField,
    KeyField,
    Model,
    PostgresMirror,
    StringField,
    ValidityField,
)
from omoide.connection import Connection
from omoide.errors import StoreError
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops import request as ask

WORDS = ("tea", "deploy", "Tuesday", "Ottawa", "blue", "green", "rollback", "invoice", "garden", "piano")
NAMES = ("Mia Berg", "Ada Stone")
TOPICS = (None, "home", "work")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Sworn(Model):
    """A model with all that a write can touch."""

    sworn_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    key = StringField(null=True)
    token = StringField(default="")
    topic = StringField(null=True)
    valid_from = DatetimeField(null=True)
    relevance = DecayingSortedField()
    confidence = ConfidenceField()
    links = CoOccurrenceField()
    validity = ValidityField(key="topic")
    text = BM25Field(source="content")

    class Meta:
        unique_together = ("key",)
        mirror = PostgresMirror(table="sworn")


SCOPE = Scope(spec_of(Sworn), ("a",))


def work(url: str, postgres: str, log: int, seed: int) -> None:
    """Save, edit, tell outcomes of, link and delete records of its own, until the end of the process."""
    source, number = random.Random(seed), 0
    mine: list[str] = []
    connection = Connection(url, postgres=postgres)
    store = connection.store

    def tell(**line: Any) -> None:
        os.write(log, (json.dumps(line) + "\n").encode())

    with connection.use():
        while True:
            number += 1
            token = f"t{seed}x{number}"
            kind = source.choice(["save", "save", "edit", "outcome", "delete", "link"]) if mine else "save"
            name = f"s{seed}-{number}" if kind == "save" else source.choice(mine)
            tell(does=kind, id=name, token=token)
            try:
                if kind in ("save", "edit"):
                    words = [*source.choices(WORDS, k=8), *source.sample(NAMES, source.randrange(2))]
                    start = START + timedelta(days=source.randrange(1_000))
                    Sworn(
                        sworn_id=name, agent_id="a", content=" ".join(words), key=f"key {name}", token=token,
                        topic=source.choice(TOPICS), valid_from=start,
                    ).save(operation_id=token)  # fmt: skip
                elif kind == "outcome":
                    store.execute(ask.Observe(SCOPE, (ask.Evidence(name, 1.0, 0.0, touch=True),)))
                elif kind == "delete":
                    store.execute(ask.Erase(SCOPE, (name,)))
                else:
                    store.execute(ask.Link(SCOPE, name, source.choice(mine), 1.0))
            except StoreError as error:
                tell(failed=type(error).__name__, id=name)
                raise
            tell(done=kind, id=name, token=token)
            if kind == "save":
                mine.append(name)
            elif kind == "delete":
                mine.remove(name)


def project(url: str, postgres: str) -> None:
    """Be a projector until the end of the process."""
    connection = Connection(url, postgres=postgres)
    from omoide.stores.postgres.projector import Projector

    Projector(connection.mirrored, connection.database, connection.mirror).run()


@dataclass
class Oath:
    """What may be stored under an id: tokens (None: nothing), and how many outcomes."""

    tokens: set[str | None] = field(default_factory=set)
    outcomes: set[int] = field(default_factory=lambda: {0})


def sworn(log: Path) -> dict[str, Oath]:
    """From the log: for each id what was acknowledged, or was under way when its writer died."""
    found: dict[str, Oath] = {}
    begun: dict[str, dict[str, Any]] = {}
    for line in log.read_text().splitlines():
        told = json.loads(line)
        if "does" in told:
            begun[told["id"]] = told
        elif "done" in told:
            _settle(found.setdefault(told["id"], Oath({None})), told["done"], told["token"], sure=True)
            begun.pop(told["id"], None)
    for told in begun.values():
        _settle(found.setdefault(told["id"], Oath({None})), told["does"], told["token"], sure=False)
    return found


def _settle(one: Oath, kind: str, token: str, *, sure: bool) -> None:
    if kind in ("save", "edit"):
        one.tokens = {token} if sure else {*one.tokens, token}
    elif kind == "delete":
        one.tokens = {None} if sure else {*one.tokens, None}
    elif kind == "outcome":
        more = {number + 1 for number in one.outcomes}
        one.outcomes = more if sure else one.outcomes | more


def main() -> None:
    """Fork a victim for each line `writer SEED` or `projector`; `wait PID` gives how it ended."""
    url, postgres, log = sys.argv[1:]
    nothing = os.open(os.devnull, os.O_RDWR)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in sys.stdin:
        kind, _, argument = line.strip().partition(" ")
        if kind == "wait":
            _, status = os.waitpid(int(argument), 0)
            print(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            for stream in (0, 1):
                os.dup2(nothing, stream)
            if kind == "writer":
                work(url, postgres, descriptor, int(argument))
            else:
                project(url, postgres)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
