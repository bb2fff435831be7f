"""Processes that write until they are killed.

Run as a program it is a nursery: it has everything imported, and for each line `kind seed` on stdin forks a
child that does that kind of work over and over. It answers with the child's pid once the child is about to
begin; a child writes the id of every acknowledged save to the file named by argv[2].
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from omoide import BM25Field, ConfidenceField, CoOccurrenceField, DecayingSortedField, Model, batch
from omoide.connection import Connection
from omoide.fields import AutoKeyField, FloatField, KeyField, StringField, TagField
from omoide.ops.reindex import reindex

WORDS = ("walrus", "tea", "deploy", "blue", "green", "staging", "postgres", "rota")


class Victim(Model):
    """A record whose parts vouch for one another: every field repeats the same token."""

    max_records_per_partition = 300

    victim_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    token = StringField(default="", index=True)
    importance = FloatField(default=1.0)
    tags = TagField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    links = CoOccurrenceField()
    text = BM25Field(source="content")

    @property
    def whole(self) -> bool:
        """Whether all of it comes from one write."""
        return self.content.split(" ", 1)[0] == self.token and self.tags == {self.token}


def victim(agent: str, token: str, source: random.Random, **values: str) -> Victim:
    words = " ".join(source.choices(WORDS, k=source.randint(1, 30)))
    return Victim(
        agent_id=agent,
        content=f"{token} Ann {words}",
        token=token,
        tags={token},
        importance=source.random(),
        **values,
    )


def work(url: str, log: int, kind: str, seed: int) -> None:
    """One kind of work, until the end of the process."""
    source, number = random.Random(seed), 0
    while True:
        connection = Connection(url)
        with connection.use():
            for _ in range(1 if kind == "connect" else 1000):
                number += 1
                token = f"t{seed}x{number}"
                if kind == "save":
                    one = victim("a", token, source, victim_id=f"v{source.randrange(200)}")
                    assert one.save()
                elif kind == "save_many":
                    many = [victim("ab"[n % 2], f"{token}n{n}", source) for n in range(40)]
                    one = many[-1]
                    assert all(Victim.save_many(many))
                elif kind == "batch":
                    with batch():
                        for n in range(10):
                            victim("a", f"{token}n{n}", source).save()
                        for old in Victim.query.filter(agent_id="a").limit(3).all():
                            old.delete()
                    continue
                elif kind == "reindex":
                    reindex(Victim, agent_id="a")
                    one = victim("a", token, source)
                    one.save()
                else:
                    one = victim("c", token, source)
                    assert one.save()
                os.write(log, f"{one.agent_id} {one.victim_id} {one.token}\n".encode())
        connection.close()


class Nursery:
    """The other end: begins victims and kills them."""

    def __init__(self, url: str, log: Path) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, __file__, url, str(log)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, kind: str, seed: int) -> int:
        """Pid of a new victim."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kind} {seed}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def kill(self, pid: int) -> None:
        """SIGKILL; a victim that ended by itself failed."""
        os.kill(pid, signal.SIGKILL)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"wait {pid}\n")
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == -signal.SIGKILL, "a victim ended by itself"

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(20) == 0

    def acknowledged(self) -> list[tuple[str, str, str]]:
        """(agent, id, token) of the saves that were answered, in order."""
        lines = self.log.read_text().split("\n")[:-1] if self.log.exists() else []
        return [(agent, name, token) for agent, name, token in (line.split(" ") for line in lines)]


def main() -> None:
    import hiredis  # noqa: F401
    import msgspec  # noqa: F401
    import numpy  # noqa: F401
    import redis  # noqa: F401

    from omoide.privacy import self_test

    assert not self_test().blocked
    url, log = sys.argv[1:]
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
            for stream in (0, 1):  # the nursery's pipes; the numbers stay taken
                os.dup2(nothing, stream)
            work(url, descriptor, kind, int(argument))
        print(pid, flush=True)


if __name__ == "__main__":
    main()
