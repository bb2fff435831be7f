"""`omoide demo`: what the library does, end to end, on a real server and in a folder of its own.

    store the talk ─▶ ask ─▶ tell what was wrong, ask again ─▶ look from next door
                                   ─▶ paste a credential ─▶ restart the server, ask again

The folder is a fresh temporary one, or a given one that is empty or marked as a demo's before; a
user's data is never touched. It is removed at the end unless it is to be kept.
"""

from __future__ import annotations

import secrets
import shutil
import string
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.conversation import CHANGED, CONVERSATION, OUTDATED, QUESTIONS, Question
from omoide.apps.cli.output import FAILED, Answer, shown, silenced, table
from omoide.errors import PolicyError, QueryError, StoreError

if TYPE_CHECKING:
    from omoide.connection import Connection
    from omoide.context import AssemblyResult

MARK = ".omoide-demo"
AGENT = "kawa-team"
NEIGHBOUR = "next-door"
WARM_RECALLS = 100

NEXT = (
    'What next: omoide retain "Deploys are on Tuesdays" --agent ada; omoide recall deploys --agent ada;'
    " then docs/tutorial.md"
)


def demo(folder: Path | None = None, *, keep: bool = False) -> Answer:
    """Run the demo.

    Args:
        folder: Where its store lives; default: a temporary folder.
        keep: Leave the folder where it is.
    Raises:
        QueryError: the folder holds something else.
        CapabilityError: this platform has no embedded server.
    Cost: a few seconds, half of it starting and stopping a server twice.
    """
    with _place(folder, keep) as where, silenced("omoide.never_record"):
        facts = _first_life(f"embedded://{where}") | _second_life(f"embedded://{where}")
        facts["folder"] = str(where) if keep else None
    good = all(
        (
            all(one["found"] for one in facts["questions"]),
            CHANGED.answer in facts["feedback"]["after"][0][1]
            and OUTDATED in facts["feedback"]["before"][0][1],
            facts["next_door"] == 0,
            not facts["credential"]["stored"],
            facts["restart"]["same_answer"],
        )
    )
    return Answer({"ok": good, **facts}, _told(facts), 0 if good else FAILED)


def _first_life(url: str) -> dict[str, Any]:
    import omoide
    from omoide.recipes import DefaultMemory

    with omoide.connect(url) as connection, connection.use():
        for agent in (AGENT, NEIGHBOUR):
            DefaultMemory.delete_partition(agent_id=agent)
        status = omoide.status()["server"]
        return {
            "server": f"{status['server']} {status['version']}",
            "stored": _store(connection),
            "questions": [_ask(question) for question in QUESTIONS],
            "warm_recall": _timed(connection),
            "feedback": _teach(),
            "next_door": len(_recall(CHANGED.text, NEIGHBOUR).items),
            "credential": _paste(),
        }


def _second_life(url: str) -> dict[str, Any]:
    import omoide
    from omoide.recipes import DefaultMemory

    started = perf_counter()
    with omoide.connect(url) as connection, connection.use():
        first = _recall(CHANGED.text).items[:1]
        return {
            "restart": {
                "memories": DefaultMemory.count(agent_id=AGENT),
                "same_answer": bool(first) and CHANGED.answer in first[0].text,
                "ms": _ms(perf_counter() - started),
            }
        }


def _store(connection: Connection) -> dict[str, Any]:
    """Store the conversation turn by turn."""
    from omoide.recipes import DefaultMemory

    before, taken = connection.round_trips, []
    for turn in CONVERSATION:
        memory = DefaultMemory(
            agent_id=AGENT,
            content=turn.text,
            importance=turn.importance,
            author=turn.author,
            session_id=turn.talk,
            occurred_at=turn.when,
        )
        started = perf_counter()
        outcome = memory.save()
        taken.append(perf_counter() - started)
        if not outcome:
            raise PolicyError(f"a turn of the demo was not stored: {outcome.reason}", reason=outcome.reason)
    trips = connection.round_trips - before
    return {"turns": len(CONVERSATION), "round_trips": trips, "p50_ms": _ms(median(taken))}


def _recall(query: str, agent: str = AGENT, *, track: bool = False) -> AssemblyResult:
    from omoide import ContextAssembler
    from omoide.recipes import DefaultMemory

    return ContextAssembler(DefaultMemory, max_items=3, track=track).assemble(query, agent_id=agent)


def _ask(question: Question) -> dict[str, Any]:
    started = perf_counter()
    result = _recall(question.text)
    taken = perf_counter() - started
    best = result.items[0] if result.items else None
    return {
        "question": question.text,
        "answer": best.text if best else None,
        "score": round(best.score, 3) if best else None,
        "found": best is not None and question.answer in best.text,
        "ms": _ms(taken),
    }


def _timed(connection: Connection) -> dict[str, Any]:
    """Recall again and again, as an agent in a conversation does."""
    before, taken = connection.round_trips, []
    for number in range(WARM_RECALLS):
        started = perf_counter()
        _recall(QUESTIONS[number % len(QUESTIONS)].text)
        taken.append(perf_counter() - started)
    trips = (connection.round_trips - before) / WARM_RECALLS
    return {"recalls": WARM_RECALLS, "round_trips": trips, "p50_ms": _ms(median(taken))}


def _teach() -> dict[str, Any]:
    """Ask what was told twice, say which answer was wrong, and ask again."""
    before = _recall(CHANGED.text, track=True)
    told = _judge(before)
    return {
        "question": CHANGED.text,
        "before": _order(before),
        "told": {item.text: told[item.id] for item in before.items if item.id in told},
        "after": _order(_recall(CHANGED.text)),
    }


def _judge(result: AssemblyResult) -> dict[str, str]:
    """Report an outcome for each of the two answers; by id, what was reported."""
    from omoide.recipes import SubconsciousMemory

    verdicts = {item.id: "contradicted" for item in result.items if OUTDATED in item.text}
    verdicts |= {item.id: "acted" for item in result.items if CHANGED.answer in item.text}
    report = SubconsciousMemory(agent_id=AGENT).report_outcomes(result, verdicts)
    if report.error:
        raise StoreError(f"the feedback of the demo did not get through: {report.error}")
    return verdicts


def _order(result: AssemblyResult) -> list[list[Any]]:
    return [[round(item.score, 3), item.text] for item in result.items]


def _paste() -> dict[str, Any]:
    """Try to store a message with an access token; it is made up anew in every run."""
    from omoide.recipes import DefaultMemory

    letters = string.ascii_letters + string.digits
    token = "ghp_" + "".join(secrets.choice(letters) for _ in range(36))
    memory = DefaultMemory(agent_id=AGENT, content=f"Jonas, the deploy token is {token}")
    outcome = memory.save()
    return {
        "stored": outcome.stored,
        "reason": outcome.reason,
        "counters": DefaultMemory.never_record_counts(agent_id=AGENT),
    }


@contextmanager
def _place(folder: Path | None, keep: bool) -> Iterator[Path]:
    """The folder of the demo's store, with a mark in it that says it may be removed."""
    if folder is None:
        where = Path(tempfile.mkdtemp(prefix="omoide-demo-"))
    else:
        where = folder.expanduser().resolve()
        if where.exists() and not (where / MARK).is_file() and (not where.is_dir() or any(where.iterdir())):
            raise QueryError(f"{where} holds something else than a demo", hint="name a new folder")
        where.mkdir(parents=True, exist_ok=True)
    (where / MARK).touch()
    try:
        yield where
    finally:
        if not keep:
            shutil.rmtree(where)


def _told(facts: dict[str, Any]) -> str:
    """The run in plain words."""
    stored, warm, feedback = facts["stored"], facts["warm_recall"], facts["feedback"]
    credential, restart = facts["credential"], facts["restart"]
    questions: list[tuple[str, ...]] = [
        (f"{one['score'] or 0:.3f}", one["question"], shown(one["answer"] or "nothing", 72))
        for one in facts["questions"]
    ]
    lines = [
        f"1. {stored['turns']} turns of a conversation stored in an embedded {facts['server']}:"
        f" one round trip and {stored['p50_ms']} ms each (p50).",
        "",
        "2. Questions, and the memory that comes back first:",
        table(questions, indent="   "),
        "   A score orders the answers of one question; it does not compare questions.",
        f"   Ranking and fetching takes {warm['round_trips']:g} round trip and {warm['p50_ms']} ms once warm"
        f" (p50 of {warm['recalls']}, track=False); noting a delivery is one round trip more.",
        "",
        f"3. {feedback['question']} It was told twice. Before feedback:",
        *_ranking(feedback["before"]),
        "   The agent reports what came of them: "
        + ", ".join(f"{verdict} ({shown(text, 28)})" for text, verdict in feedback["told"].items())
        + ". After:",
        *_ranking(feedback["after"]),
        "",
        f"4. An agent next door asks the same question and sees {facts['next_door']} memories.",
        "",
        f"5. A pasted access token is refused ({credential['reason']}); what counts it: "
        + ", ".join(f"{reason} {number}" for reason, number in credential["counters"].items()),
        "",
        f"6. The server is stopped and started again: {restart['memories']} memories, the same answer"
        f" first, {restart['ms']:.0f} ms.",
    ]
    lines += ["", NEXT]
    if facts["folder"]:
        lines += [
            f"Kept in {facts['folder']}: omoide list --agent {AGENT} --url embedded://{facts['folder']}",
        ]
    return "\n".join(lines)


def _ranking(order: list[list[Any]]) -> list[str]:
    return [f"   {score:.3f}  {shown(text, 84)}" for score, text in order]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
