"""All strings of a record, wherever they sit, as one text to scan.

Every leaf becomes a line `name: value`, so that a value that is harmless alone is judged beside
the name it is stored under. Names are scanned as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

MOST_DEPTH: Final = 32
"""Containers inside containers that are followed; a deeper record is refused."""


class DepthError(Exception):
    """The record nests deeper than what is scanned."""


def lines(values: Mapping[str, object]) -> list[str]:
    """The lines of a record. Fractions, None and bytes that are no UTF-8 give none."""
    return [line for name, value in values.items() for line in _leaves(str(name), value, 0)]


def _leaves(name: str, value: object, depth: int) -> Iterator[str]:
    if depth > MOST_DEPTH:
        raise DepthError
    if isinstance(value, str):
        yield f"{name}: {value}"
    elif isinstance(value, bytes | bytearray | memoryview):
        text = _decode(bytes(value))
        if text is not None:
            yield f"{name}: {text}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str | bytes):
                inner = key if isinstance(key, str) else (_decode(key) or "")
                yield from _leaves(inner, item, depth + 1)
                if not isinstance(item, str):
                    yield inner
            else:
                yield from _leaves(name, key, depth + 1)
                yield from _leaves(name, item, depth + 1)
    elif isinstance(value, list | tuple | Set):
        for item in value:
            yield from _leaves(name, item, depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 128:
        yield f"{name}: {value}"


def _decode(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
