"""When a memory is true: a half-open interval of valid time, and the versions of one semantic key.

    version 1   [May 1 ───────────── June 9)
    version 2                       [June 9 ──────────── ...      valid now

A record says from when it is valid, and may say until when. Of the records of one key, each is valid until
its own end or until the next one starts, whichever comes first. The store works that out at every write,
whatever the order of arrival: a fact that comes late and starts earlier is history at once. An instance shows
the interval as it was when the record was loaded or saved.

Instants count to the millisecond, rounded down. Two versions of one start are in the order of their ids: the
last one stands, the others are valid at no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

from omoide.errors import FieldError, ModelError
from omoide.fields.instants import from_milliseconds
from omoide.model.defaults import Defaults
from omoide.model.draft import Draft
from omoide.model.field import Field, names_of
from omoide.model.instance import Instance, spec_of
from omoide.model.schema import ValidityIndex
from omoide.types import Milliseconds

_CHAIN_BYTES = 12


class Validity(NamedTuple):
    """A half-open interval; `valid_from` None is not known yet, `valid_to` None is no end."""

    valid_from: datetime | None
    valid_to: datetime | None

    def __contains__(self, instant: object) -> bool:
        """Whether it was valid at an aware datetime."""
        if not isinstance(instant, datetime) or self.valid_from is None:
            return False
        return self.valid_from <= instant and (self.valid_to is None or instant < self.valid_to)


class ValidityField(Field[Validity]):
    """The valid time of a record (read only on an instance: `Validity`).

    Recall, queries and counts then see what is valid now, by the server's clock, or `as_of=` an instant.

    Args:
        key: Name, or names, of the fields whose values say what a record is about. Records of equal values
            are versions of each other; one with None or an empty text among them is not. Without a key,
            only `save(supersedes=)` makes versions.
        start: DatetimeField that says from when; default `valid_from`, where the model has one. Where it has
            no value, the record is valid from the time the model orders it by (when it happened, or was
            created), at the latest from when it was stored.
        end: DatetimeField that says until when; default `valid_to`, where the model has one. Not before the
            start; equal is valid at no time.

    A version that is deleted was never true: the one before lasts until the next. One that expires or is
    evicted was: the one before keeps its end. Beyond a cap, what is over goes first, over longest first.

    Cost: O(log N) at a save; 24 bytes a row, and about 100 more for a record of a key or with an end.
    """

    stored: ClassVar[bool] = False
    role: ClassVar[str] = "validity"

    def __init__(
        self, *, key: str | tuple[str, ...] = (), start: str | None = None, end: str | None = None
    ) -> None:
        super().__init__(default=Validity(None, None))
        self.key = names_of("key of a ValidityField", key)
        self.start = start
        self.end = end

    def __set__(self, instance: object, value: Validity) -> None:
        raise self.error(type(instance).__name__, "is computed by the store; set the fields it is made of")

    def absent(self, instance: Instance) -> Validity:
        interval = instance._omoide.interval
        if interval is not None:
            return Validity(_datetime(interval[0]), _datetime(interval[1]))
        index = index_of(instance)
        return Validity(_held(instance, index.start), _held(instance, index.end))

    def settle(self, model: str, fields: Mapping[str, Field[Any]], partition: tuple[str, ...]) -> None:
        for option, name in (("start", self.start), ("end", self.end)):
            if name is not None and (name not in fields or not fields[name].timed):
                raise ModelError(f"{model}.{self.name}: {option} must name a DatetimeField")
        for name in self.key:
            if name not in fields or not fields[name].stored or {list, dict} & set(fields[name].raw_types):
                raise ModelError(f"{model}.{self.name}: key must name fields that hold single values")
            if name in partition:
                raise ModelError(
                    f"{model}.{self.name}: versions always are of one partition; leave out {name!r}"
                )

    def describe(self, model: str, defaults: Defaults) -> ValidityIndex:
        return ValidityIndex(self.name, self.key, self.start, self.end)

    def entries(self, draft: Draft, instance: Instance) -> None:
        index = index_of(instance)
        start, end = _milliseconds(instance, index.start), _milliseconds(instance, index.end)
        draft.valid_from_ms, draft.valid_to_ms = start, end
        draft.chain = chain_of(instance, index)
        if end is None:
            return
        start = draft.time_ms if start is None else start
        model, name = spec_of(type(instance)).name, index.end or ""
        if start is None:
            raise FieldError(model, name, "an end needs a start", hint="say from when the record is valid")
        if end < start:
            raise FieldError(model, name, "must not be before the start of the validity")


def index_of(instance: Instance) -> ValidityIndex:
    """How the model of an instance has validity.

    Raises:
        ModelError: it has none.
    """
    index = spec_of(type(instance)).validity
    if index is None:
        raise ModelError(f"{type(instance).__name__} has no ValidityField")
    return index


def chain_of(instance: Instance, index: ValidityIndex) -> str | None:
    """What the versions of one semantic key have in common: 17 characters; None without a key.

    k, and blake2b-96 of (length:name length:canonical text) of each field, in base64.
    """
    if not index.key:
        return None
    from base64 import b64encode

    fields = spec_of(type(instance)).fields
    digest = blake2b(digest_size=_CHAIN_BYTES)
    for name in index.key:
        value = getattr(instance, name, None)
        if value is None or value == "":
            return None
        for text in (name, fields[name].to_exact(value)):
            data = text.encode()
            digest.update(b"%d:" % len(data) + data)
    return "k" + b64encode(digest.digest()).decode()


def _held(instance: Instance, name: str | None) -> datetime | None:
    value = None if name is None else getattr(instance, name, None)
    return value if isinstance(value, datetime) else None


def _milliseconds(instance: Instance, name: str | None) -> Milliseconds | None:
    value = _held(instance, name)
    return None if name is None or value is None else spec_of(type(instance)).fields[name].instant_ms(value)


def _datetime(milliseconds: Milliseconds | None) -> datetime | None:
    return None if milliseconds is None else from_milliseconds(milliseconds)


__all__ = ["Validity", "ValidityField"]
