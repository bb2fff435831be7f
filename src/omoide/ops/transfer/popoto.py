"""Records of a popoto 1.10 keyspace, as they were copied out of it, on their way into a model.

What popoto keeps beside a record goes where omoide keeps the same:

    decay order     the last touch; the order is computed anew, by the half-life of the model
    confidence      mean c after n signals: alpha = c m, beta = (1 - c) m, m = min(n + 1, cap); its counts
    access tracker  count and last access
    associations    weight p (at most 1, what an edge passes on): p / (1 - p), p at most .95
    expiry          the deadline

Values are decoded from MessagePack, popoto's tags for decimals, dates and sets included; a datetime
without an offset is UTC, as popoto takes it. `created_at` is the last save, where nothing else is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec

from omoide.errors import TransferError
from omoide.model.instance import single, spec_of
from omoide.model.schema import Certainty, ModelSpec
from omoide.ops.request import Kept, Statistics
from omoide.ops.transfer.foreign import LEAVE_OUT, Destination
from omoide.ops.transfer.incoming import Incoming, base_of, order_for

MOST_WEIGHT = 0.95
_PLAIN = (str, int, float, bool, type(None))
_NOT_POPOTO = (
    msgspec.MsgspecError,
    AttributeError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    OSError,
    RecursionError,
)
"""What decoding bytes that popoto did not write may raise."""


class Frame(msgspec.Struct, array_like=True):
    """One record as it was read: its key, its hash, and what other keys say of it.

    `touched` in seconds, `expires` in milliseconds (0: never), `edges` to keys of records before it.
    """

    key: str
    fields: dict[str, bytes]
    expires: int = 0
    touched: float | None = None
    confidence: bytes | None = None
    accesses: int = 0
    accessed: float = 0.0
    edges: list[tuple[str, float]] = []


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frame).decode


def write_frame(file: BinaryIO, frame: Frame) -> None:
    """Append a record to a copy."""
    data = _encode(frame)
    file.write(len(data).to_bytes(4, "big") + data)


def read_frames(file: BinaryIO) -> Iterator[Frame]:
    """The records of a copy, from its start."""
    file.seek(0)
    while head := file.read(4):
        yield _decode(file.read(int.from_bytes(head, "big")))


def roles_of(spec: ModelSpec, field_map: Mapping[str, str]) -> dict[str, str]:
    """What popoto calls the fields that hold decay, confidence, associations and text: role -> name there."""
    named = {
        "decay": None if spec.decay is None else spec.decay.name,
        "certainty": None if spec.certainty is None else spec.certainty.name,
        "graph": spec.graph,
        "text": None if spec.text is None else spec.text.name,
    }
    theirs = {field: name for name, field in field_map.items()}
    return {role: theirs.get(name, name) for role, name in named.items() if name is not None}


def read_popoto(target: Destination, roles: Mapping[str, str], file: BinaryIO) -> Iterator[Incoming]:
    """The records of a copy, with what is kept of them."""
    spec = spec_of(target.model)
    ids: dict[str, str] = {}
    times = {"created_at", *(name for name, field in target.names.items() if field == "created_at")}
    if "created_at" not in spec.fields or not spec.fields["created_at"].timed:
        times = set()
    for number, frame in enumerate(read_frames(file), 1):
        place = f"record {number}"
        try:
            item = _incoming(target, roles, frame, times, ids, place)
        except TransferError:
            raise
        except _NOT_POPOTO:
            raise TransferError("a value is not what popoto writes", place=place) from None
        yield item


def _incoming(
    target: Destination,
    roles: Mapping[str, str],
    frame: Frame,
    times: set[str],
    ids: dict[str, str],
    place: str,
) -> Incoming:
    """One record; `times`: what tells when it was made, `ids`: key -> id of the records before."""
    spec = spec_of(target.model)
    derived = set(roles.values())
    values = {name: _value(data) for name, data in frame.fields.items() if name not in derived}
    values = {name: value for name, value in values.items() if value is not None}
    saved = _saved_at(frame, roles)
    if saved is not None and times and times.isdisjoint(values):
        values["created_at"] = datetime.fromtimestamp(saved, UTC)
    item = target.take(values, place, salt=frame.key)
    ids[frame.key] = str(getattr(item.instance, spec.id_field))
    return replace(item, kept=_kept(spec, frame, item, saved, ids, place))


def _saved_at(frame: Frame, roles: Mapping[str, str]) -> float | None:
    """When it was last saved, by its decay field; else its last touch."""
    data = frame.fields.get(roles.get("decay", LEAVE_OUT))
    value = None if data is None else _value(data)
    return float(value) if isinstance(value, int | float) else frame.touched


def _kept(
    spec: ModelSpec, frame: Frame, item: Incoming, saved: float | None, ids: Mapping[str, str], place: str
) -> Kept:
    touched = frame.touched if frame.touched is not None else saved
    base = base_of(spec, item.instance)
    return Kept(
        time_ms=None if saved is None else round(saved * 1_000),
        statistics=_statistics(spec.certainty, frame),
        order=None if touched is None else order_for(spec.decay, base, round(touched, 3), place),
        expires_ms=frame.expires,
        edges=tuple((ids[key], _weight(p)) for key, p in frame.edges if key in ids and p > 0.0)[:64],
        entities=None,
    )


def _weight(passed_on: float) -> float:
    share = min(passed_on, MOST_WEIGHT)
    return single(share / (1.0 - share))


def _statistics(certainty: Certainty | None, frame: Frame) -> Statistics | None:
    told = _value(frame.confidence) if frame.confidence is not None else {}
    count = int(told.get("evidence_count", 0))
    if not count and not frame.accesses:
        return None
    accessed = round(frame.accessed * 1_000)
    if certainty is None:
        return Statistics(1.0, 0.0, access_count=frame.accesses, accessed_ms=accessed)
    mean, evidence = certainty.initial, certainty.prior_weight
    if count:
        mean = min(1.0, max(0.0, float(told.get("confidence", 0.5))))
        evidence = min(count + 1.0, certainty.cap)
    return Statistics(
        mean * evidence,
        (1.0 - mean) * evidence,
        int(told.get("corroborations", 0)),
        int(told.get("contradictions", 0)),
        frame.accesses,
        accessed,
    )


# ---- values --------------------------------------------------------------------------------------


def _value(data: bytes) -> Any:
    """A value from its bytes. Raises: what `_NOT_POPOTO` lists."""
    return _plain(msgspec.msgpack.decode(data, strict=False), outer=True)


def _plain(found: Any, *, outer: bool = False) -> Any:
    """A decoded value without popoto's tags; inside lists and dicts as JSON has it."""
    if isinstance(found, dict):
        tag = next((name for name in _TAGS if found.get(name) is True and "as_encodable" in found), None)
        if tag is None:
            return {str(name): _plain(part) for name, part in found.items()}
        value = _TAGS[tag](found["as_encodable"])
        return value if outer or isinstance(value, list) else str(value)
    if isinstance(found, list):
        return [_plain(part) for part in found]
    if isinstance(found, _PLAIN) or (outer and isinstance(found, bytes)):
        return found
    raise ValueError("no value of a field")


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _sorted(parts: list[Any]) -> list[Any]:
    plain = [_plain(part) for part in parts]
    return sorted(plain) if all(isinstance(part, str) for part in plain) else sorted(plain, key=repr)


_TAGS: dict[str, Any] = {
    "__Decimal__": Decimal,
    "__datetime__": _moment,
    "__date__": lambda text: date(int(text[:4]), int(text[4:6]), int(text[6:8])),
    "__time__": str,
    "__set__": _sorted,
    "__tuple__": lambda parts: [_plain(part) for part in parts],
}


__all__ = ["Frame", "read_frames", "read_popoto", "roles_of", "write_frame"]
