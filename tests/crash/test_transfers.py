"""An import that is killed is taken up by the next one, which makes it the same to the last byte."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from victims import Victim

import omoide
from omoide.model.instance import spec_of
from omoide.model.schema import Scope
from omoide.ops.request import Evidence, Observe

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

FULL = os.environ.get("OMOIDE_FULL") == "1"
KILLS = 100 if FULL else 3
IMPORTER = """
import sys
sys.path.insert(0, sys.argv[1])
from victims import Victim
import omoide
omoide.connect(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
omoide.import_memories(Victim, sys.argv[3], lift_cap=True)
print("done", flush=True)
"""


def _fill(count: int) -> None:
    made = [
        Victim(agent_id="ab"[number % 2], content=f"Mia deploys walrus number {number}", token=f"{number}")
        for number in range(count)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Victim, "max_records_per_partition", 0)
        assert all(Victim.save_many(made))
    for agent in "ab":
        mine = [one.victim_id for one in made if one.agent_id == agent]
        for start in range(0, len(mine), 9):
            ids = tuple(mine[start : start + 6])
            evidence = tuple(Evidence(name, 1.0, 0.5, True, True) for name in ids)
            omoide.ops.port.current().store.execute(
                Observe(Scope(spec_of(Victim), (agent,)), evidence, linked=ids, link=0.5)
            )


def _exported() -> bytes:
    out = io.BytesIO()
    omoide.export_memories(Victim, out)
    return out.getvalue()


def _wipe() -> None:
    for agent in "ab":
        Victim.delete_partition(agent_id=agent)


def test_a_killed_import_is_taken_up(store_url: str, tmp_path: Path) -> None:
    source = random.Random(11)
    with omoide.connect(store_url):
        _fill(290)
        first = _exported()
        (tmp_path / "file").write_bytes(first)
        cut_short = 0
        for _ in range(KILLS):
            _wipe()
            arguments = [str(Path(__file__).parent), store_url, str(tmp_path / "file")]
            process = subprocess.Popen(
                [sys.executable, "-c", IMPORTER, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(source.random() * 0.4)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            for health in omoide.doctor():
                assert health.findings == (), health
            there = sum(Victim.count(agent_id=agent) for agent in "ab")
            done = omoide.import_memories(Victim, tmp_path / "file")
            assert done.present >= there - 256  # what was on its way to the server may still arrive
            assert done.present + done.stored == 290
            assert _exported() == first
            cut_short += 0 < there < 290
        assert not FULL or cut_short > 0


def test_importers_at_once_store_each_record_once(store_url: str) -> None:
    with omoide.connect(store_url) as connection:
        _fill(290)
        first = _exported()
        _wipe()
        told: list[Any] = []

        def work() -> None:
            with connection.use():
                told.append(omoide.import_memories(Victim, io.BytesIO(first)))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(one.stored for one in told) == 290
        assert sum(one.present for one in told) == 7 * 290
        assert _exported() == first
