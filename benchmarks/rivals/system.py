"""What a system must offer to be measured. An adapter says how a user of that system does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

AGENT = "agent-1"
OBSERVED = 7
RECALLED = 10
TOKENS = 4000


class MissingSystemError(LookupError):
    """The system is not installed here, or not measured this way."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One remembered line of a conversation. `time` is ISO 8601 with an offset."""

    id: str
    session: str
    author: str
    time: str
    text: str


class Store(Protocol):
    """A system as a store of one agent's memories.

    Attributes:
        operations: Which of `speed.suite.OPERATIONS` it can do.
        served: Whether it keeps its data on a server; one without lives in this process.
    """

    operations: tuple[str, ...]
    served: bool

    def open(self, url: str) -> None:
        """Connect to an empty server of its own."""

    def load(self, texts: Sequence[str]) -> None:
        """Store all texts for the agent under test, the fastest way the system documents."""

    def crowd(self, texts: Sequence[str], neighbours: int) -> None:
        """Store all texts for each of so many other agents."""

    def warm(self, queries: Sequence[str]) -> None:
        """Bring client-side caches to the state they have in a running agent."""

    def cool(self) -> None:
        """Forget client-side caches, keeping the connection."""

    def save(self, text: str) -> Any:
        """Store one text; returns what `delete` takes."""

    def recall_noted(self, query: str) -> Any:
        """Recall, and note in the store what was given to the prompt."""

    def recall(self, query: str) -> Any:
        """Assemble at most RECALLED memories for a prompt."""

    def witness(self, query: str) -> Any:
        """Recall OBSERVED memories, for `observe` to report on; not timed."""

    def observe(self, recalled: Any) -> None:
        """Report that all recalled memories were acted on."""

    def delete(self, saved: Any) -> None:
        """Remove one memory."""

    def decay_top(self) -> Any:
        """The ten memories with the highest decayed score."""

    def used_bytes(self) -> int:
        """Bytes of the index in this process; for a served system the server knows."""

    def close(self) -> None:
        """Let go of connections."""


class Ranker(Protocol):
    """A system as a ranking of the turns of one conversation, or several beside each other.

    Attributes:
        served: As for Store.
    """

    served: bool

    def open(self, url: str) -> None:
        """Connect to an empty server of its own."""

    def add(self, conversation: str, turns: Sequence[Turn]) -> None:
        """Store every turn as one memory of the partition `conversation`."""

    def rank(self, conversation: str, question: str, depth: int) -> list[str]:
        """Ids of at most `depth` turns of that conversation, best first."""

    def close(self) -> None:
        """Let go of connections."""
