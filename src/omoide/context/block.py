"""From ranked records to the block of a prompt: texts read, cleaned, fitted and rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omoide.context.render import LABELLED, SIGNED, Entry, clean, frame, render
from omoide.context.result import Item
from omoide.core.budget import TokenCounter, pack
from omoide.errors import CorruptRecordError
from omoide.model.instance import spec_of
from omoide.ops.request import Hit

if TYPE_CHECKING:
    from omoide.model.schema import ModelSpec
    from omoide.ops.model import Model

CORRUPT = "corrupt"
EMPTY = "empty"
KIND = "kind"
"""Field that labels a memory in a prompt, in a model that has it."""


@dataclass(frozen=True, slots=True)
class Block:
    """`text` is what the prompt gets; `dropped`: (id, reason); `cut`: the first memory was shortened."""

    text: str
    records: tuple[Any, ...]
    items: tuple[Item, ...]
    dropped: tuple[tuple[str, str], ...]
    cut: bool
    tokens: int


def build(
    model: type[Model], hits: Sequence[Hit], *, format: str, max_tokens: int, count: TokenCounter
) -> Block:
    """Fit ranked hits into a block, in rank order.

    A record whose text cannot be read is dropped as `corrupt`, one without any as `empty`; the
    rest is not disturbed by it.
    """
    spec = spec_of(model)
    named = text_fields(spec)
    signed = spec.author if format in SIGNED else None
    labelled = KIND if format == LABELLED and KIND in spec.fields else None
    usable: list[tuple[Model, Entry, Item]] = []
    dropped: list[tuple[str, str]] = []
    for hit in hits:
        instance = model.from_record(hit.record)
        try:
            text = said(instance, named)
            author = _text(instance, signed) if signed else None
            label = _text(instance, labelled) if labelled else None
        except CorruptRecordError:
            dropped.append((hit.record.id, CORRUPT))
            continue
        shown = clean(text)
        if not shown:
            dropped.append((hit.record.id, EMPTY))
            continue
        entry = Entry(hit.record.id, shown, hit.score, author, hit.record.time_ms, label)
        usable.append((instance, entry, Item(hit.record.id, hit.score, text)))

    def compose(pairs: Sequence[tuple[int, str]]) -> str:
        entries = [usable[position][1].with_text(text) for position, text in pairs]
        return render(entries, format) if entries else frame(format)

    packed = pack([entry.text for _, entry, _ in usable], compose, max_tokens=max_tokens, count=count)
    dropped += ((usable[position][1].id, reason) for position, reason in packed.dropped)
    kept = [usable[position] for position in packed.kept]
    return Block(
        packed.text,
        tuple(instance for instance, _, _ in kept),
        tuple(item for _, _, item in kept),
        tuple(dropped),
        packed.cut,
        packed.tokens,
    )


def text_fields(spec: ModelSpec) -> tuple[str, ...]:
    """What a record says: the fields its text index reads, else `content`, else every text field."""
    if spec.text is not None:
        return spec.text.source
    if "content" in spec.fields:
        return ("content",)
    hidden = {spec.id_field, *spec.partition_by, spec.session, spec.author}
    return tuple(name for name in spec.fields if name not in hidden)


def text_of(instance: Model) -> str:
    """What a record says. Raises: CorruptRecordError, as `said`."""
    return said(instance, text_fields(spec_of(type(instance))))


def said(instance: Model, fields: Sequence[str]) -> str:
    """The texts of these fields, one a line.

    Raises:
        CorruptRecordError: a stored value is not what its field writes.
    """
    if len(fields) == 1:
        return _text(instance, fields[0]) or ""
    return "\n".join(text for name in fields if (text := _text(instance, name)))


def _text(instance: Model, name: str) -> str | None:
    """A field's text, None without one."""
    value = getattr(instance, name, None)
    return value if isinstance(value, str) and value else None


__all__ = ["CORRUPT", "EMPTY", "KIND", "Block", "build", "said", "text_fields", "text_of"]
