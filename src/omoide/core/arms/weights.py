"""The numbers of the ranking, in one frozen value, and the arms they drive."""

from __future__ import annotations

from dataclasses import dataclass, fields

from omoide.errors import ModelError

MOST_LENT = 2.0


@dataclass(frozen=True, slots=True)
class Arm:
    """One reason for a score: its `name` in explanations, its `weight`, and what it `says`.

    `on` is False where the weight leaves every score as it is.
    """

    name: str
    weight: float
    says: str
    on: bool


@dataclass(frozen=True, slots=True)
class RankWeights:
    """What each arm adds; `BM25Field(ranking=)` sets them for a model, `assemble(ranking=)` for a call.

    Attributes:
        near, far: Share of a neighbour's weight lent to the memory one, two places away, in [0, 1].
        answer: The same for the memory right after one that asks something, of another author; from `near` to
            2. Above 1 an answer comes before its question.
        gate: Length in terms beyond which a memory borrows less, by gate / length.
        asking: Factor for a memory that mostly asks, in (0, 1]; 1 is off.
        author: Factor for the memories of the one author whom the query names, 1..16; 1 is off.
        date: Share of the best text score for a memory of the day the query names, 0..16; 0 is off.
        cue: Factor for memories that tell a time, place or number the query asks for, 1..16; 1 is off.
        importance, confidence: How far the lowest value lowers a score, in [0, 1).
        graph: Share of a best memory's score for what was put to use together with it, 0..1; 0 is off.
        meaning: Share of a score that is what a memory means and not its words, in [0, 1); 0 is off.
        meaning_near, meaning_far: Share of its cosine that a neighbour one, two places away adds.
        back_off: Whether words that no memory holds are stood in for by similar ones.
    """

    near: float = 0.5
    far: float = 0.3
    answer: float = 1.2
    gate: int = 40
    asking: float = 0.8
    author: float = 1.75
    date: float = 1.0
    cue: float = 1.2
    importance: float = 0.15
    confidence: float = 0.2
    graph: float = 0.5
    back_off: bool = True
    meaning: float = 0.35
    meaning_near: float = 0.3
    meaning_far: float = 0.15

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name != "back_off" and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ModelError(f"RankWeights.{each.name} must be a number")
        shares = (self.near, self.far, self.importance, self.confidence, self.graph)
        factors = (self.author, self.cue, self.date + 1)
        if not all(0 <= share <= 1 for share in shares):
            raise ModelError("RankWeights.near, far, importance, confidence and graph are shares of 1")
        if not self.near <= self.answer <= MOST_LENT:
            raise ModelError("RankWeights.answer is at least near and at most 2")
        if not 0 < self.asking <= 1:
            raise ModelError("RankWeights.asking is above 0 and at most 1")
        meant = (self.meaning, self.meaning_near, self.meaning_far)
        if not all(0 <= share <= 1 for share in meant) or self.meaning == 1:
            raise ModelError(
                "RankWeights.meaning, meaning_near and meaning_far are shares of 1, meaning below 1"
            )
        if self.importance == 1 or self.confidence == 1:
            raise ModelError("RankWeights.importance and confidence must be below 1")
        if not all(1 <= factor <= 17 for factor in factors):
            raise ModelError("RankWeights.author and cue are 1..16, date is 0..16")
        if isinstance(self.gate, bool) or not isinstance(self.gate, int) or self.gate < 1:
            raise ModelError("RankWeights.gate is a whole number of terms, at least 1")

    @property
    def borrows(self) -> bool:
        """Whether neighbours lend at all."""
        return self.answer > 0 or self.far > 0

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Every arm, in the order in which they apply."""
        return (
            Arm("text", 1.0, "words of the query in the memory, weighed by BM25", True),
            Arm(
                "neighbours",
                self.near,
                "words of the query just before or after, in its session",
                self.near > 0,
            ),
            Arm(
                "answer",
                self.answer,
                "words of the query in another's question right before it",
                self.answer > self.near,
            ),
            Arm("asking", self.asking, "it asks more than it tells", self.asking != 1),
            Arm("meaning", self.meaning, "how near it is to what the query means", self.meaning != 0),
            Arm("author", self.author, "the query names its author, and no other", self.author != 1),
            Arm("date", self.date, "it is of a date that the query names", self.date != 0),
            Arm(
                "cue",
                self.cue,
                "it tells a time, place or number, as the query asks",
                self.cue != 1,
            ),
            Arm("importance", self.importance, "how much it matters", self.importance != 0),
            Arm("confidence", self.confidence, "how far it proved right", self.confidence != 0),
            Arm("graph", self.graph, "it was put to use together with one of the best", self.graph != 0),
        )


DEFAULT_WEIGHTS = RankWeights()

__all__ = ["DEFAULT_WEIGHTS", "Arm", "RankWeights"]
