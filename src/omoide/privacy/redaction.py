"""Taking the blocked parts out of a text, for queries and for the opt-in redaction mode.

A finding is widened: a vendor token to the word it sits in and to the pieces of a broken token
before and after it, anything else to the end of its line, because a password may hold spaces. The
text is scanned again until it is clean. What cannot be isolated (off the record, a disguise that
has no place of its own) drops the whole text.
"""

from __future__ import annotations

import re
from typing import Final

from omoide.privacy.names import Strength, classify
from omoide.privacy.normalise import plain
from omoide.privacy.options import Options
from omoide.privacy.scanner import Scan
from omoide.privacy.values import has_rare_pair, transitions
from omoide.privacy.verdict import Finding, Redaction, Verdict

_ADDED: Final = re.compile(
    r"[ \t]{0,3}(?:(?:\+|\.{1,2}|~|\|\||&|\\)[ \t]{0,3})?(?:\\?\r?\n[ \t]{0,12})?(?:\+[ \t]{0,3})?"
    r"[\"'`][^\"'`\n]{1,2000}[\"'`]\S{0,4}"
)
_AS_RANDOM: Final = 0.2
"""Share of changes of class from which on a word is no name."""
MOST_PARTS: Final = 32
"""Parts that are taken out of one text; a text with more is dropped."""


def take_out(text: str, options: Options) -> Redaction:
    """Remove every finding. The result is the plain view of the text, without its disguises."""
    verdicts: list[Verdict] = []
    view = plain(text)
    for _ in range(MOST_PARTS + 1):
        finding = Scan(options).find(view)
        if finding is None:
            return Redaction(_close(view) if verdicts else text, tuple(verdicts), len(verdicts))
        verdicts.append(Verdict(True, finding.reason, finding.rule))
        if finding.reason == "off_the_record" or (finding.start == 0 and finding.end >= len(view)):
            break
        start, end = _widen(view, finding)
        view = view[:start] + " " + view[end:]
    return Redaction("", tuple(verdicts), len(verdicts))


def _widen(text: str, finding: Finding) -> tuple[int, int]:
    start, end = finding.start, finding.end
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    if finding.whole:
        line = text.find("\n", end)
        end = line if line >= 0 else len(text)
    else:
        while end < len(text) and not text[end].isspace():
            end += 1
    return _pieces_before(text, start), _pieces_after(text, end)


def _pieces_after(text: str, end: int) -> int:
    """A token goes on in the literal that is added to it, and with the first word of the next lines."""
    while (match := _ADDED.match(text, end)) is not None:
        end = match.end()
    while end < len(text):
        rest = text[end:]
        gap = len(rest) - len(rest.lstrip(" \t\r\n>\\"))
        if "\n" not in rest[:gap]:
            break
        words = rest[gap : gap + 4096].split(None, 1)
        if not words or not _is_piece(words[0]) or _is_name(words):
            break
        end += gap + len(words[0])
    return end


def _is_name(words: list[str]) -> bool:
    """The first word of a line names what comes next: without it, that would be judged alone."""
    first = words[0]
    core = first.strip("\"'`,;:=()[]{}")
    if transitions(core) >= _AS_RANDOM:
        return False
    if first[-1] in "=:" or "=" in first or (len(words) > 1 and words[1][0] in "=:"):
        return True
    return classify(core.lower()) is not Strength.NONE


def _pieces_before(text: str, start: int) -> int:
    while start > 0:
        head = text[max(0, start - 4096) : start]
        kept = head.rstrip(" \t\r\n>\\")
        if "\n" not in head[len(kept) :]:
            break
        words = kept.rsplit(None, 1)
        if not words or not _is_piece(words[-1]):
            break
        start -= len(head) - len(kept) + len(words[-1])
    return start


def _is_piece(word: str) -> bool:
    """Anything but an ordinary word: removing too much is better than leaving a piece."""
    core = word.strip("\"'`,;:.!?()[]{}<>")
    if not core.isalpha():
        return bool(core)
    return not (core.islower() or core.istitle()) or has_rare_pair(core)


def _close(text: str) -> str:
    return (
        " ".join(text.split())
        if "\n" not in text
        else "\n".join(" ".join(line.split()) for line in text.split("\n")).strip("\n")
    )
