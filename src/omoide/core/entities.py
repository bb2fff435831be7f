"""Names in a text, by form alone: what links memories that speak of the same thing.

Four forms count: `@handles` and `#channels`; names in quotes or backticks; identifiers with an inner mark
(snake_case, camelCase, a path, a dotted name, a version-like code such as `ACME-1234`); and runs
of capitalised words that are not merely the start of a sentence. A single capitalised word counts
only in the middle of a sentence.

This is a heuristic for an association graph, not for ranking: a miss costs one edge, and an
entity named in very many memories links nothing useful, and a language that capitalises
all nouns yields more names than it should. An extractor may name entities itself.
"""

from __future__ import annotations

import re
import unicodedata

LIMIT = 16
_LONGEST = 80
_SCANNED = 16_384

_HANDLE = re.compile(r"(?<![\w@/.])[@#][^\W\d_][\w.-]{1,38}")
_QUOTED = re.compile(r"[\"“«「`]([^\"”»」`\n]{2,60})[\"”»」`]")
_IDENTIFIER = re.compile(
    r"(?<![\w@#/.-])(?:"
    r"[A-Z][A-Z0-9]{1,9}-\d{1,8}"
    r"|[A-Za-z]\w{0,40}(?:[./:]\w{1,40}){1,6}"
    r"|[A-Za-z][A-Za-z0-9]{0,40}(?:_[A-Za-z0-9]{1,40}){1,6}"
    r"|[a-z]{1,30}(?:[A-Z][a-z0-9]{1,30}){1,5}"
    r"|(?:[A-Z][a-z0-9]{1,30}){2,5}"
    r")(?![\w/])"
)
_WORD = re.compile(r"[^\W_][\w'’-]{0,39}")
_SENTENCE_END = re.compile(r"[.!?:;\n•*>\"“«„(\[]\s*[-–]?\s*$")
_POSSESSIVE = re.compile(r"['’]s$")
_JOINERS = frozenset({"of", "the", "de", "la", "van", "von", "der", "and", "&"})
_COMMON_WORDS = """
i i'm i'll i've i'd monday tuesday wednesday thursday friday saturday sunday january february
march april may june july august september october november december ok okay yes no the a an it
we you he she they this that these those what when where who why how is are was were do does did
can could should would will my our your his her their if but and or so not in on at to for from
with by as then there here please thanks hi hello also after before because while let's today
yesterday tomorrow tonight last next every
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def named_entities(text: str, limit: int = LIMIT) -> tuple[str, ...]:
    """Names in the text, case-folded and distinct, in order of first appearance, at most `limit`.

    Looks at the first 16,384 characters. Cost: linear.
    """
    text = text[:_SCANNED]
    found: list[tuple[int, str]] = []
    found += ((match.start(), match.group()) for match in _HANDLE.finditer(text))
    quoted = (match for match in _QUOTED.finditer(text) if _namelike(match.group(1)))
    found += ((match.start(1), match.group(1)) for match in quoted)
    found += ((match.start(), match.group()) for match in _IDENTIFIER.finditer(text))
    found += _capitalised(text)
    names: dict[str, None] = {}
    for _, name in sorted(found):
        folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split()).strip(".-:/'’")
        if len(folded) > 1 and len(folded) <= _LONGEST and folded not in _COMMON:
            names.setdefault(folded)
    return tuple(names)[:limit]


def _namelike(quoted: str) -> bool:
    """A quotation of up to five words without the end of a sentence is a name; more is speech."""
    return 0 < len(quoted.split()) <= 5 and quoted.rstrip()[-1:] not in {".", "!", "?", ","}


def _capitalised(text: str) -> list[tuple[int, str]]:
    """Runs of capitalised words, joined across small words inside a run."""
    runs: list[tuple[int, str]] = []
    run: list[re.Match[str]] = []
    joiner: re.Match[str] | None = None
    for word in _WORD.finditer(text):
        value = word.group()
        previous = joiner or (run[-1] if run else None)
        adjacent = previous is None or text[previous.end() : word.start()] in (" ", "\u00a0")
        if not adjacent:
            runs += _close(text, run)
            run, joiner = [], None
        if value[0].isupper():
            run.append(word)
            joiner = None
        elif run and joiner is None and value in _JOINERS:
            joiner = word
        else:
            runs += _close(text, run)
            run, joiner = [], None
    return runs + _close(text, run)


def _close(text: str, run: list[re.Match[str]]) -> list[tuple[int, str]]:
    """The name a finished run stands for, without common words at its start."""
    starts = bool(run) and _starts_sentence(text, run[0].start())
    while run and run[0].group().lower().replace("’", "'") in _COMMON:
        run, starts = run[1:], False
    if not run:
        return []
    start, end = run[0].start(), run[-1].end()
    name = _POSSESSIVE.sub("", text[start:end])
    owns = len(name) < end - start and name.casefold() not in _COMMON
    if len(run) == 1 and ((starts and not owns) or len(name) < 2):
        return []
    return [(start, name)]


def _starts_sentence(text: str, position: int) -> bool:
    """Whether a word at this position is capitalised only because a sentence starts there."""
    before = text[max(0, position - 8) : position]
    return _SENTENCE_END.search(before) is not None or not (before.strip() or text[:position].strip())


__all__ = ["LIMIT", "named_entities"]
