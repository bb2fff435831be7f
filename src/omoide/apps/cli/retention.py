"""Upkeep of long-term memory: `omoide.recipes.maintain`."""

from __future__ import annotations

from omoide.apps.cli.output import Answer, Meter

REASONS = {
    "age": "older than {days:g} days",
    "per_resource": "beyond the newest {per_resource:,} of a resource",
    "in_all": "beyond the newest {in_all:,} of all",
}


def maintain(*, dry_run: bool, days: float, per_resource: int, in_all: int | None) -> Answer:
    """Erase the episodes that are due. Cost: as `omoide.recipes.maintain`."""
    from omoide.recipes import maintain as erase

    meter = Meter("erased")
    done = erase(
        dry_run=dry_run,
        episode_days=days,
        episodes_per_resource=per_resource,
        episodes_in_all=in_all,
        progress=meter,
    )
    meter.close()
    lines = [f"{done.erased:,} episodes " + ("would go" if dry_run else "erased")]
    for reason, number in sorted(done.counts.items()):
        told = REASONS[reason].format(days=days, per_resource=per_resource, in_all=in_all or 0)
        lines.append(f"  {number:,} {told}")
    data = {
        "erased": done.erased,
        "counts": dict(done.counts),
        "missed": done.missed,
        "run_id": done.run_id,
        "dry_run": done.dry_run,
    }
    return Answer(data, "\n".join(lines))
