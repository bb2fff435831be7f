"""One history: questions asked of an agent, and what came of the memories it was given.

Every turn is one memory, every conversation one agent. Half of the answerable questions, by chance, are
asked first, as an agent asks: eight memories, the default budget. Of the memories delivered, those that
are gold evidence are reported as `acted`, the rest as `dismissed`; with noise, each outcome is the wrong
one with that chance. The other half is never asked before it is measured.

Questions are measured to depth 20 without noting the delivery, so that measuring changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.retrieval.dialogue import Conversation, Question
from benchmarks.retrieval.metrics import DEPTH, Scores, score
from benchmarks.rivals.omoide import BATCH, PLENTY, answered, memory_model, saved_as

UNANSWERABLE = "adversarial"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a conversation, by a name unique in the run."""

    name: str
    conversation: int
    question: Question


def questions_of(conversations: Sequence[Conversation], most: int | None) -> list[Asked]:
    """All questions that have an answer, at most `most` of each conversation."""
    found = []
    for number, conversation in enumerate(conversations):
        answerable = [one for one in conversation.questions if one.category != UNANSWERABLE]
        for place, question in enumerate(answerable[:most]):
            found.append(Asked(f"{conversation.id}/{place}", number, question))
    return found


def halves(questions: Sequence[Asked], seed: int) -> tuple[list[Asked], list[Asked]]:
    """Those that give outcomes, and those that are only measured."""
    order = random.Random(seed).sample(range(len(questions)), len(questions))
    middle = len(order) // 2
    return [questions[i] for i in sorted(order[:middle])], [questions[i] for i in sorted(order[middle:])]


def shortened(question: Question, seed: int) -> str:
    """The question in fewer words: one of those that tell something left out, as when it is put anew."""
    from omoide.core.text import default_analyzer

    words = question.text.split()
    telling = [place for place, word in enumerate(words) if default_analyzer().query_terms(word)]
    if len(telling) < 3:
        return question.text
    left_out = random.Random(f"{seed} {question.text}").choice(telling)
    return " ".join(word for place, word in enumerate(words) if place != left_out)


class Agents:
    """The conversations of one history as agents of one server."""

    def __init__(self, conversations: Sequence[Conversation], prefix: str) -> None:
        from omoide import ContextAssembler

        self._conversations, self._prefix = conversations, prefix
        self._model = memory_model()
        self._turns: dict[str, str] = {}
        self._asking = ContextAssembler(self._model)
        self._measuring = ContextAssembler(self._model, max_items=DEPTH, max_tokens=PLENTY, track=False)
        for number, conversation in enumerate(conversations):
            self._save(number, conversation)

    def _save(self, number: int, conversation: Conversation) -> None:
        for start in range(0, len(conversation.turns), BATCH):
            turns = conversation.turns[start : start + BATCH]
            batch = [saved_as(self._model, self._agent(number), turn) for turn in turns]
            self._model.save_many(batch)
            self._turns |= {memory.memory_id: turn.id for memory, turn in zip(batch, turns, strict=True)}

    def _agent(self, number: int) -> str:
        return f"{self._prefix}-{self._conversations[number].id}"

    def live(self, questions: Iterable[Asked], noise: float, seed: int) -> None:
        """Ask each question once and report what came of it."""
        from omoide.recipes import SubconsciousMemory

        chance = random.Random(seed)
        for asked in questions:
            agent = self._agent(asked.conversation)
            result = answered(self._asking.assemble(asked.question.text, agent_id=agent))
            gold = set(asked.question.gold)
            outcomes = {
                id: "acted" if (self._turns[id] in gold) != (chance.random() < noise) else "dismissed"
                for id in result.ids
            }
            if outcomes and not SubconsciousMemory(agent_id=agent, model=self._model).report_outcomes(
                result, outcomes
            ):
                raise RuntimeError("the outcomes were not applied")

    def measure(
        self, texts: Mapping[str, str], questions: Iterable[Asked], ranking: Any = None
    ) -> dict[str, Scores]:
        """The scores of each question, by name; `texts` says how each is put."""
        found = {}
        for asked in questions:
            result = answered(
                self._measuring.assemble(
                    texts[asked.name], agent_id=self._agent(asked.conversation), ranking=ranking
                )
            )
            ranked = [self._turns[id] for id in result.ids]
            found[asked.name] = score(ranked, asked.question.gold)
        return found
