"""What other programs write: one JSON object a memory, its names mapped to fields of a model.

jsonl   an object a line; every name has to be a field, or be mapped to one
mem0    what `get_all` of mem0 gives, saved as JSON, or one of its objects a line; names without a place
        in the model are left out and counted

A record without an id gets one made of what it says, so that the same file gives the same records. It
begins as if it were saved now: with the prior of its model, touched now, under the time its fields tell.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any
from uuid import UUID

import msgspec

from omoide.errors import FieldError, QueryError, TransferError
from omoide.fields import BytesField, DateField, DecimalField, DictField, EnumField, TagField, UUIDField
from omoide.model.field import Field
from omoide.model.instance import Instance, spec_of
from omoide.model.naming import shown_name
from omoide.model.schema import ModelSpec
from omoide.ops.transfer.incoming import Incoming
from omoide.ops.transfer.lines import MOST_BYTES
from omoide.ops.transfer.own import Source

LEAVE_OUT = ""
"""In the place of a field: the name is known, and left out."""

MEM0_LISTS = ("results", "memories")
_MEM0_OWN = ("hash", "score", "updated_at")
"""Of mem0 alone: a checksum, a rank, the time of a change."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the values of objects go.

    Attributes:
        names: Name in the source -> field; a name with a dot is one inside an object.
        partition: Values for records that name none.
        strict: A name without a place is an error.
    """

    model: type[Instance]
    names: Mapping[str, str]
    partition: Mapping[str, Any]
    strict: bool = True

    def take(self, found: Mapping[str, Any], place: str, salt: str = "") -> Incoming:
        """The record of an object; `salt` stands for it where it has no id.

        Raises:
            TransferError: a name without a field, or a value that no such field has.
        """
        spec = spec_of(self.model)
        values: dict[str, Any] = {}
        ignored = []
        for name, value in self._flat(found):
            field = self.names.get(name, name if name in spec.fields else None)
            if field is None and self.strict:
                raise TransferError(
                    f"{spec.name} has no field {shown_name(name)!r}",
                    place=place,
                    hint="map the name to a field, or to nothing to leave it out",
                )
            if field and field in values:
                raise TransferError(f"two values for {spec.name}.{field}", place=place)
            if field:
                values[field] = _converted(spec, field, value, place)
            elif field is None and value not in (None, "", [], {}):
                ignored.append(shown_name(name))
        for name, value in self.partition.items():
            values.setdefault(name, value)
        if values.get(spec.id_field) is None:
            values[spec.id_field] = _made_id(spec, values, salt or found)
        try:
            instance = self.model(**values)
        except FieldError as error:
            raise TransferError(str(error), place=place, hint=error.hint) from None
        return Incoming(place, instance, ignored=tuple(ignored))

    def _flat(self, found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Names and values; those inside an object under `object.name`, where such a name is mapped."""
        inside = {name.partition(".")[0] for name in self.names if "." in name}
        for name, value in found.items():
            if name in inside and isinstance(value, dict):
                yield from ((f"{name}.{inner}", part) for inner, part in value.items())
            elif value is not None or self.strict:
                yield name, value


def destination(
    model: type[Instance], file_format: str, field_map: Mapping[str, str] | None, partition: Mapping[str, Any]
) -> Destination:
    """Where records of a format go, by what it is known to hold and what the caller maps.

    Raises:
        QueryError: a mapping to no field, or a partition field that the model does not have.
    """
    spec = spec_of(model)
    for name in partition:
        if name not in spec.partition_by:
            raise QueryError(f"{spec.name} has no partition field {name!r}")
    if field_map is not None and not isinstance(field_map, Mapping):
        raise QueryError("field_map maps names of the file to fields")
    own, given = _own_names(spec, file_format), field_map or {}
    names = {name: field for name, field in own.items() if not field or field not in given.values()} | dict(
        given
    )
    for name, field in names.items():
        settable = field in spec.fields and (
            spec.fields[field].stored or spec.fields[field].role == "certainty"
        )
        if field != LEAVE_OUT and not settable:
            raise QueryError(f"{name!r} is mapped to {field!r}, which is no field of {spec.name} to set")
    return Destination(model, names, partition, strict=file_format == "jsonl")


def _own_names(spec: ModelSpec, file_format: str) -> dict[str, str]:
    """What a format calls the parts of a memory -> the fields of a model that stand for the same."""
    if file_format != "mem0":
        return {"id": spec.id_field}
    text = spec.text.source[0] if spec.text is not None else "content"
    if text not in spec.fields:
        raise QueryError(f"{spec.name} has no text field", hint="map memory to a field")
    fields = spec.fields
    names = {"id": spec.id_field, "memory": text, **dict.fromkeys(_MEM0_OWN, LEAVE_OUT)}
    if spec.session is not None:
        names["run_id"] = spec.session
    if spec.author is not None:
        names["actor_id"] = spec.author
    if "created_at" in fields and fields["created_at"].timed:
        names["created_at"] = "created_at"
    if isinstance(fields.get("tags"), TagField):
        names["categories"] = "tags"
    if "metadata" in fields and not isinstance(fields["metadata"], DictField):
        names["metadata"] = LEAVE_OUT
    return names


# ---- values --------------------------------------------------------------------------------------


def _converted(spec: ModelSpec, name: str, value: Any, place: str) -> Any:
    """A value of a field from its JSON form."""
    field = spec.fields[name]
    if value is None:
        return None
    try:
        return _from_json(field, value)
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError):
        rule = f"must be {_forms(field)}"
        raise TransferError(str(FieldError(spec.name, name, rule)), place=place) from None


def _from_json(field: Field[Any], value: Any) -> Any:
    if isinstance(value, date | bytes):
        return value
    if field.timed:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, UTC)
        return datetime.fromisoformat(value)
    if isinstance(field, DateField):
        return date.fromisoformat(value)
    if isinstance(field, DecimalField):
        return Decimal(str(value))
    if isinstance(field, UUIDField):
        return UUID(value)
    if isinstance(field, BytesField):
        return b64decode(value, validate=True)
    if isinstance(field, EnumField):
        return field.members[value]
    if isinstance(field, TagField) and isinstance(value, str):
        return {value}
    return value


def _forms(field: Field[Any]) -> str:
    """What JSON says of a value of a field."""
    if field.timed:
        return "an ISO 8601 instant with a time zone, or seconds since the epoch"
    if isinstance(field, DateField):
        return "an ISO 8601 date"
    if isinstance(field, DecimalField):
        return "a decimal number"
    if isinstance(field, UUIDField):
        return "a UUID"
    if isinstance(field, BytesField):
        return "base64"
    return "the name of a member"


def _made_id(spec: ModelSpec, values: Mapping[str, Any], found: object) -> str:
    """An id that is the same for the same object in the same partition."""
    place = [spec.name, *(str(values.get(name)) for name in spec.partition_by)]
    text = json.dumps([place, found], sort_keys=True, ensure_ascii=True)
    digest = blake2b(text.encode(), digest_size=16, person=b"omoide import").digest()
    number = int.from_bytes(digest, "big") & ~(0xF000 << 64) & ~(0xC000 << 48)
    return str(UUID(int=number | 0x8000 << 64 | 0x8000 << 48))


# ---- files ---------------------------------------------------------------------------------------


def read_jsonl(target: Destination, source: Source) -> Iterator[Incoming]:
    """The record of every line that is not empty."""
    with source() as file:
        number = 0
        while data := file.readline(MOST_BYTES):
            number += 1
            if data.strip():
                place = f"line {number}"
                yield target.take(_object(_decoded(data, place), place), place)


def read_mem0(target: Destination, source: Source) -> Iterator[Incoming]:
    """The records of a list, of an object with one, or of lines; but for lines the file is in memory."""
    with source() as file:
        first = file.readline(MOST_BYTES)
        lines = first.lstrip().startswith(b"{") and _is_memory(first)
        rest = b"" if lines else file.read(MOST_BYTES - len(first))
    if lines:
        yield from read_jsonl(target, source)
        return
    data = first + rest
    if len(data) >= MOST_BYTES:
        raise TransferError("the file is too large", hint="write one memory a line")
    found = _decoded(data, "")
    if isinstance(found, dict):
        found = next((found[name] for name in MEM0_LISTS if isinstance(found.get(name), list)), None)
    if not isinstance(found, list):
        raise TransferError("this is no list of memories of mem0", hint="save what get_all() gives")
    for number, one in enumerate(found, 1):
        place = f"memory {number}"
        memory = _object(one, place)
        if not isinstance(memory.get("memory"), str) and target.names.get("memory"):
            raise TransferError("an object without a memory", place=place)
        yield target.take(memory, place)


def _is_memory(data: bytes) -> bool:
    """Whether a line is one memory of mem0."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return isinstance(found, dict) and "memory" in found


def _decoded(data: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        raise TransferError("this is not JSON, or cut short", place=place) from None


def _object(found: Any, place: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TransferError("a JSON object is needed", place=place)
    return found


__all__ = ["LEAVE_OUT", "Destination", "destination", "read_jsonl", "read_mem0"]
