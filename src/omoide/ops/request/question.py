"""What every request is."""

from __future__ import annotations

from typing import Generic, TypeVar

R = TypeVar("R", covariant=True)


class Request(Generic[R]):
    """A question whose reply has type R."""

    __slots__ = ()
