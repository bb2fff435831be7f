"""What was said of the records of a turn: an outcome counts once a turn and record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omoide.stores.postgres.columns import escaped, unescaped
from omoide.stores.postgres.script import Script, Step

__all__ = ["tell", "told_of"]

TOLD_SECONDS = 172_800


def told_of(at: tuple[str, str], turn: str, ids: Sequence[str]) -> Script[dict[str, int]]:
    """Bits per record of what was said already: 1 by an outcome, 2 by an echo."""
    yield Step("DELETE FROM omoide_told WHERE until < now() AND model = %s AND partition = %s", at)
    rows = yield Step(
        "SELECT id, told FROM omoide_told WHERE model = %s AND partition = %s AND turn = %s AND id = ANY(%s)",
        (*at, escaped(turn), [escaped(id) for id in ids]),
    )
    return {unescaped(id): told for id, told in rows}


def tell(at: tuple[str, str], turn: str, told: Mapping[str, int]) -> Script[None]:
    """Note what was said, for two days."""
    yield Step(
        "INSERT INTO omoide_told (model, partition, turn, id, told, until)"
        " VALUES (%s, %s, %s, %s, %s, now() + make_interval(secs => %s))"
        " ON CONFLICT (model, partition, turn, id) DO UPDATE SET told = excluded.told",
        many=[(*at, escaped(turn), escaped(id), number, TOLD_SECONDS) for id, number in told.items()],
    )
