"""Verbs on memories of one partition.

retain    Model.save                         forget    Model.delete_many, Model.delete_partition
recall    ContextAssembler.assemble          list      Model.query.filter(...).all
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, Answer, shown, silenced
from omoide.apps.cli.target import split_pair, text_field, value_of
from omoide.errors import QueryError
from omoide.model.instance import id_of, spec_of

if TYPE_CHECKING:
    from omoide.context import AssemblyResult
    from omoide.ops.model import Model

STDIN = "-"
CONTENT = "content"

_LEFT_OUT = {"over_budget": "beyond --max-tokens", "no_room": "beyond --max-tokens"}
"""Why a memory is not in the block, where the reason's own name says too little."""


def retain(
    model: type[Model], text: str, partition: dict[str, Any], *, values: Sequence[str], tags: Sequence[str]
) -> Answer:
    """Store one memory.

    Args:
        text: What to remember; `-` reads stdin, without its last line break.
        values: Further fields, NAME=VALUE.
        tags: For the model's `tags` field.
    Cost: one round trip.
    """
    spec = spec_of(model)
    given: dict[str, Any] = {text_field(spec): _read() if text == STDIN else text, **partition}
    for pair in values:
        name, value = split_pair(pair, "--set")
        given[name] = value_of(spec, name, value)
    if tags:
        given["tags"] = set(tags)
    instance = model(**given)
    with silenced("omoide.never_record"):
        outcome = instance.save()
    data = {
        "stored": outcome.stored,
        "id": outcome.id if outcome else None,
        "reason": outcome.reason,
        "version": outcome.version,
        "created": outcome.created,
        "evicted": outcome.evicted,
        "duplicate_of": outcome.duplicate_of,
        "left_out": outcome.left_out,
    }
    if not outcome:
        return Answer(data, code=FAILED, notes=(f"omoide: not stored: {outcome.reason}",))
    notes = [f"{outcome.left_out} distinct terms are stored but not indexed"] if outcome.left_out else []
    notes += [f"{outcome.evicted} memories beyond the cap were erased for good"] if outcome.evicted else []
    return Answer(data, id_of(instance), notes=tuple(notes))


def _read() -> str:
    """Stdin, without the line break that ends it."""
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def recall(
    model: type[Model],
    query: str,
    partition: dict[str, Any],
    *,
    limit: int,
    max_tokens: int | None,
    format: str | None,
    fallback: str | None,
    explain: bool,
    deliver: bool,
) -> Answer:
    """Rank the memories of a partition for a query.

    Args:
        format: Print the block for a prompt in this format, instead of one line a memory.
        deliver: Count it as given to a prompt; the answer then has the turn id for outcomes.
    Cost: one or two round trips, one more with `deliver`.
    """
    from omoide.context import ContextAssembler

    assembler = ContextAssembler(
        model,
        max_items=limit,
        max_tokens=max_tokens,
        format=CONTENT if format is None else format,
        fallback=fallback,
        track=deliver,
    )
    result = assembler.assemble(query, explain=explain, **partition)
    data = {
        "memories": [
            {"score": item.score, **described(record)}
            for item, record in zip(result.items, result.records, strict=True)
        ],
        "formatted": result.formatted,
        "turn_id": result.turn_id,
        "metadata": dict(result.metadata),
    }
    shown_as = [_ranked(result)] if format is None or explain else []
    block = [result.formatted] if format is not None and result.formatted else []
    return Answer(data, "\n\n".join((*block, *shown_as)), notes=_notes(result))


def _ranked(result: AssemblyResult) -> str:
    lines = []
    for item in result.items:
        lines.append(f"{item.score:6.3f}  {item.id}  {shown(item.text)}")
        parts = result.metadata.get("explain", {}).get(item.id, {}).get("parts", {})
        lines += [f"          {name} = {value:.4f}" for name, value in parts.items()]
    return "\n".join(lines)


def _notes(result: AssemblyResult) -> tuple[str, ...]:
    told = result.metadata
    notes = []
    if not told["considered"]:
        notes.append("nothing matches")
    if told["dropped"]:
        reasons = Counter(_LEFT_OUT.get(reason, reason) for _, reason in told["dropped"])
        why = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
        notes.append(f"{len(told['dropped'])} of {told['considered']} memories were left out: {why}")
    if told["cut"]:
        notes.append("the first memory is cut short in the block")
    if result.metadata.get("fallback_used"):
        notes.append(f"no memory matches: these are the most {result.metadata['fallback_used']} ones")
    if result.metadata.get("query_redacted"):
        notes.append("a part of the query that looks like a secret was not used")
    return tuple(notes)


def forget(
    model: type[Model],
    ids: Sequence[str],
    partition: dict[str, Any],
    *,
    everything: bool,
    certify: bool = False,
) -> Answer:
    """Erase memories by id, or a whole partition, with every trace.

    Args:
        certify: Wait until the files of the embedded store hold nothing of a partition, and say what may.
    Cost: one round trip per 250 ids; two for a partition.
    Raises:
        QueryError: neither ids nor `everything`, or both, or a certificate for ids.
    """
    if bool(ids) == everything:
        raise QueryError("forget takes ids, or --everything", hint="`omoide list` shows ids")
    if everything:
        return _forget_all(model, partition, certify=certify)
    if certify:
        raise QueryError("--certify is for a whole partition", hint="add --everything")
    wanted = list(dict.fromkeys(ids))
    gone = model.delete_many(wanted, **partition)
    missing = len(wanted) - gone
    notes = (f"omoide: {missing} of {len(wanted)} were not there",) if missing else ()
    return Answer({"forgotten": gone, "missing": missing}, f"forgot {gone}", FAILED if missing else 0, notes)


def _forget_all(model: type[Model], partition: dict[str, Any], *, certify: bool) -> Answer:
    from omoide.ops.forget import forget as erase

    told = erase(model, certify=certify, **partition)
    data = {
        "forgotten": told.records,
        "missing": 0,
        "quarantined": told.quarantined,
        "rewritten": told.rewritten,
        "out_of_reach": list(told.out_of_reach),
    }
    lines = [f"forgot {told.records}" + (f", {told.quarantined} in quarantine" if told.quarantined else "")]
    if told.rewritten:
        lines.append("the files of the store were written anew")
    lines += [f"out of reach: {place}" for place in told.out_of_reach]
    return Answer(data, "\n".join(lines))


def listed(
    model: type[Model],
    partition: dict[str, Any],
    *,
    limit: int,
    offset: int,
    order: str,
    tags: Sequence[str],
) -> Answer:
    """Memories of a partition in an order an index has.

    Args:
        order: `time`, `importance` or `confidence`, descending with a leading `-`.
        tags: Only memories with all of these.
    Cost: two round trips, and the memories listed.
    """
    query = model.query.filter(**partition)
    for tag in tags:
        query = query.filter(tags=tag)
    query = query.order_by(order)
    total = query.count()
    found = query.offset(offset).limit(limit).all()
    content = text_field(spec_of(model))
    lines = [f"{id_of(one)}  {shown(getattr(one, content) or '')}" for one in found]
    left = total - offset - len(found)
    notes = (f"{left} more: --limit, --offset",) if left > 0 else ()
    return Answer(
        {"memories": [described(one) for one in found], "total": total}, "\n".join(lines), notes=notes
    )


def described(instance: Model) -> dict[str, Any]:
    """A loaded memory as plain data: every stored field, and what the store keeps beside it."""
    spec = spec_of(type(instance))
    record: Any = instance._omoide.record
    data = {name: getattr(instance, name) for name, field in spec.fields.items() if field.stored}
    if spec.certainty is not None:
        data[spec.certainty.name] = record.confidence
    if spec.decay is not None:
        data[spec.decay.name] = record.relevance
    if spec.tracks_access:
        data["access_count"] = record.access_count
    return {"id": record.id, "version": record.version, **data}
