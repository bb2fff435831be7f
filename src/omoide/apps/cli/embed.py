"""`omoide embed`: vectors of memories that have none.

embed    omoide.ops.embedding.embed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, Answer, Meter
from omoide.apps.cli.target import check_found

if TYPE_CHECKING:
    from omoide.ops.model import Model


def embed(model: type[Model], partition: dict[str, Any], *, again: bool) -> Answer:
    """Embed the memories of a model, or of one partition, that have no vector; with `again` all of them.

    Code 1 when some could not be embedded. A run that was cut short is taken up by the next.
    """
    from omoide.ops.embedding import embed as run

    meter = Meter("looked at")
    try:
        done = run(model, again=again, progress=meter, **partition)
    finally:
        meter.close()
    check_found(model, partition, done.looked)
    data = {
        "looked": done.looked,
        "embedded": done.embedded,
        "failed": done.failed,
        "withheld": done.withheld,
        "again": again,
    }
    notes = []
    if done.failed:
        notes.append(f"omoide: {done.failed} memories were refused by the provider and have no vector")
    if done.withheld:
        notes.append(f"omoide: {done.withheld} memories are blocked by the firewall today: see omoide scan")
    text = f"{done.looked:,} memories looked at, {done.embedded:,} embedded"
    return Answer(data, text, FAILED if done.failed else 0, tuple(notes))
