"""What ranks a memory beside the words it shares with the query: arms, each with a name and a weight.

    text        what the query's words weigh in the memory               core.bm25
    neighbours  what they weigh just before and after, in its session    arms.sessions
    answer      the same, more, right after a question                   arms.questions
    asking      a memory that asks more than it tells counts less          arms.questions
    author      the one author whom the query names                      arms.authors
    date        the dates that the query names                           arms.dates
    cue         a time, place or number, when the query asks for one     core.text.cues

    graph       what was put to use together with one of the best            core.linking

and two bounded multipliers, importance and confidence. `arms.weights` holds the numbers, `arms.formula`
how they make a score. An arm without what it needs (no sessions, no names, no times) is skipped.
"""

from __future__ import annotations

from omoide.core.arms.weights import DEFAULT_WEIGHTS, Arm, RankWeights

__all__ = ["DEFAULT_WEIGHTS", "Arm", "RankWeights"]
