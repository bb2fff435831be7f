"""Verbs on memories of one partition.

retain    Model.save                         forget    Model.delete_many, Model.delete_partition
recall    ContextAssembler.assemble          list      Model.query.filter(...).all
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import FAILED, OK, Answer, shown, silenced
from omoide.apps.cli.target import Narrowing, split_pair, text_field, value_of
from omoide.errors import QueryError
from omoide.model.instance import id_of, spec_of

if TYPE_CHECKING:
    from omoide.context import AssemblyResult
    from omoide.ops.model import Model

STDIN = "-"
EVERYTHING = Narrowing()
CONTENT = "content"

_LEFT_OUT = {"over_budget": "beyond --max-tokens", "no_room": "beyond --max-tokens"}
"""Why a memory is not in the block, where the reason's own name says too little."""


def retain(
    model: type[Model],
    text: str,
    partition: dict[str, Any],
    *,
    values: Sequence[str],
    tags: Sequence[str],
    supersedes: str | None = None,
) -> Answer:
    """Store one memory.

    Args:
        text: What to remember; `-` reads stdin, without its last line break.
        values: Further fields, NAME=VALUE.
        tags: For the model's `tags` field.
        supersedes: Id of the version that this one follows.
    Raises:
        ConflictError: that version is not there, has an end, or another key.
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
        outcome = instance.save(supersedes=supersedes)
    data = {
        "stored": outcome.stored,
        "id": outcome.id if outcome else None,
        "reason": outcome.reason,
        "version": outcome.version,
        "created": outcome.created,
        "evicted": outcome.evicted,
        "duplicate_of": outcome.duplicate_of,
        "left_out": outcome.left_out,
        "closed": outcome.closed,
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
    query: str | None,
    partition: dict[str, Any],
    *,
    limit: int,
    max_tokens: int | None,
    format: str | None,
    fallback: str | None,
    explain: bool,
    deliver: bool,
    order: str | None = None,
    narrowing: Narrowing = EVERYTHING,
) -> Answer:
    """Rank the memories of a partition for a query, or in an order without one.

    Args:
        order: `recent`, `important` or `relevant`, in the place of a query.
        narrowing: Which memories count.
        format: Print the block for a prompt in this format, instead of one line a memory.
        deliver: Count it as given to a prompt; the answer then has the turn id for outcomes.
    Raises:
        QueryError: neither a query nor an order, or both.
    Cost: one or two round trips, one more with `deliver`.
    """
    from omoide.context import ContextAssembler

    if (query is None) == (order is None):
        raise QueryError("recall takes a query, or --order", hint="omoide recall --order recent")

    assembler = ContextAssembler(
        model,
        max_items=limit,
        max_tokens=max_tokens,
        format=CONTENT if format is None else format,
        fallback=fallback,
        track=deliver,
    )
    asked = {"exclude": narrowing.exclude, **narrowing.lookups(), **partition}
    result = assembler.assemble(query or "", order=order, explain=explain, **asked)
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
    gone = bool(told.records or told.quarantined)
    notes = () if gone else ("omoide: nothing was stored there",)
    return Answer(data, "\n".join(lines), OK if gone or certify else FAILED, notes)


def listed(
    model: type[Model],
    partition: dict[str, Any],
    *,
    limit: int,
    offset: int,
    order: str,
    narrowing: Narrowing = EVERYTHING,
    history: bool = False,
) -> Answer:
    """Memories of a partition in an order an index has.

    Args:
        order: `time`, `importance`, `confidence` or `valid_from`; descending with a leading `-`.
        narrowing: Which memories count.
        history: Every version, valid or not.
    Raises:
        QueryError: both an instant and the history.
    Cost: two round trips, and the memories listed.
    """
    if history and narrowing.as_of is not None:
        raise QueryError("list takes --as-of or --history, not both")
    query = model.query.filter(**partition, **narrowing.lookups()).exclude(narrowing.exclude)
    query = (query.history() if history else query).order_by(order)
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
    if spec.validity is not None:
        validity = getattr(instance, spec.validity.name)
        data[spec.validity.name] = {"valid_from": validity.valid_from, "valid_to": validity.valid_to}
    if spec.tracks_access:
        data["access_count"] = record.access_count
    return {"id": record.id, "version": record.version, **data}
