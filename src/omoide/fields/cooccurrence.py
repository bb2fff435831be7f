"""The association graph of a partition: which memories were used, or named the same things, together.

Edges are undirected and weighted. A weight w carries w / (1 + w) of a score, so that no edge passes
on more than it gets. Deleting a record removes its edges on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from omoide.model.draft import Draft
from omoide.model.field import Field
from omoide.model.instance import Instance, spec_of


class Associations(Protocol):
    """The edges of one record. `other` is a record of the same partition, or its id."""

    def link(self, other: Any, weight: float | None = None) -> float:
        """Add `weight` (default 1.0) to the edge; its new weight. Cost: one round trip."""
        ...

    async def alink(self, other: Any, weight: float | None = None) -> float: ...

    def strengthen(self, other: Any, by: float | None = None) -> float:
        """Add to the edge, making it where there is none; its new weight. Cost: one round trip."""
        ...

    async def astrengthen(self, other: Any, by: float | None = None) -> float: ...

    def weaken(self, other: Any, by: float | None = None) -> float:
        """Take from the edge; its new weight, 0.0 when it is gone. Cost: one round trip."""
        ...

    async def aweaken(self, other: Any, by: float | None = None) -> float: ...

    def neighbours(self, limit: int = 16) -> list[tuple[str, float]]:
        """(id, w / (1 + w)) of linked records, strongest first. Cost: one round trip."""
        ...

    async def aneighbours(self, limit: int = 16) -> list[tuple[str, float]]: ...

    def propagate(
        self,
        hops: int | None = None,
        *,
        fan_out: int | None = None,
        decay: float | None = None,
        limit: int = 64,
    ) -> list[tuple[str, float]]:
        """(id, score) of what paths of at most `hops` edges reach, best path first. Cost: one round trip."""
        ...

    async def apropagate(
        self,
        hops: int | None = None,
        *,
        fan_out: int | None = None,
        decay: float | None = None,
        limit: int = 64,
    ) -> list[tuple[str, float]]: ...


class CoOccurrenceField(Field[Associations]):
    """The association graph of a model; on an instance, its `Associations`.

    Args:
        entities: Names in a text; memories that name the same are linked when they are saved.
            Default: `omoide.core.entities.named_entities`, by form alone. `lambda text: ()`: none.
    """

    stored: ClassVar[bool] = False
    role: ClassVar[str] = "graph"

    def __init__(self, *, entities: Callable[[str], Iterable[str]] | None = None) -> None:
        super().__init__(null=True)
        self.named = entities

    def __set__(self, instance: object, value: Associations) -> None:
        raise self.error(type(instance).__name__, "is changed by its methods: link, strengthen, weaken")

    def absent(self, instance: Instance) -> Associations:
        associations: Associations = instance.__omoide_associations__()
        return associations

    def entries(self, draft: Draft, instance: Instance) -> None:
        spec = spec_of(type(instance))
        if spec.text is None:
            return
        from omoide.core.entities import named_entities

        text = getattr(instance, spec.text.name)
        named = named_entities if self.named is None else self.named
        draft.entities.extend(name for name in dict.fromkeys(named(text)) if name not in draft.entities)
