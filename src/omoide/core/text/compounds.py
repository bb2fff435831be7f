"""What is written without a space but is more than a word: identifiers, paths, URLs, e-mails, versions.

Each is indexed twice: in parts (its words, by the ordinary pipeline) and whole, as one *exact term*
that starts with `=`, so that `foo.py` in a query prefers the memory that names that very file. No
word starts with `=`, so the two never meet.

    get_user_name     -> =get_user_name  get user name
    getUserName       -> get user name getusername          (a word by itself: no `=`)
    src/app/main.py   -> =src/app/main.py  =main.py  src app main py       (a file also by its name)
    v1.2.3            -> =v1.2.3  v1 2 3
    3fa9c1d           -> =3fa9c1d  3fa9c1d                  (letters and digits: hashes, ids)

A leading `/`, `./`, `--` or `_` and a trailing `/` are not part of it: the same path is often written
both ways. Every pattern consumes what it scanned (possessive), so no text makes it start over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from omoide.core.text.scripts import fold

# ASCII and the other alphabets in which identifiers and file names are usually written.
_LETTER = "A-Za-z0-9_\u00c0-\u02af\u0370-\u052f\u1e00-\u1fff"
_RUN = re.compile(rf"[{_LETTER}]++(?:(?:://|:\\|::|->|[.\-/\\:@+#?=&%~])[{_LETTER}]++)*+")
_JOINT = re.compile(rf"[^{_LETTER}]|_")
_LETTER_AND_DIGIT = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
_SIGNED_NAME = re.compile(r"(?<![\w.])[A-Za-z](?:\+\+|#)(?![\w+#])")  # C++, C#, F#
_EXACT_MIN = 3

_GROUPED_NUMBER = re.compile(r"(?<!\w)(?<!\d,)\d{1,3}(?:,\d{3})++(?!\w|,\d)")

_CAMEL_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACRONYM_PLURAL = re.compile(r"[A-Z]{2,}s")
_IDENTIFIER_MAX = 64


def exact_terms(normal: str) -> Iterator[str]:
    """The exact terms of a normalised chunk, each with its `=`, lower case, accents folded."""
    if normal.isalpha():
        return
    for match in _RUN.finditer(normal):
        run = match.group().strip("_")
        if len(run) >= _EXACT_MIN and (_JOINT.search(run) or _LETTER_AND_DIGIT.search(run)):
            yield "=" + fold(run.casefold())
            name = run[max(run.rfind("/"), run.rfind("\\")) + 1 :]
            if _EXACT_MIN <= len(name) < len(run) and "." in name:
                yield "=" + fold(name.casefold())
    if "+" in normal or "#" in normal:
        for match in _SIGNED_NAME.finditer(normal):
            yield "=" + match.group().casefold()


def without_digit_groups(normal: str) -> str:
    """`1,250,000` as `1250000`; other commas stay."""
    if "," not in normal:
        return normal
    return _GROUPED_NUMBER.sub(lambda match: match.group().replace(",", ""), normal)


def identifier_parts(word: str) -> list[str]:
    """The parts of a camelCase or snake_case word; empty when it has only one.

    Beyond 64 characters a word is a blob (base64, a token), not an identifier: it stays in one piece
    unless it has underscores.
    """
    if word.islower() and "_" not in word:
        return []
    parts = [part for piece in word.split("_") if piece for part in _camel_parts(piece)]
    return parts if len(parts) > 1 else []


def _camel_parts(piece: str) -> list[str]:
    rest = piece[1:]
    if len(piece) > _IDENTIFIER_MAX or rest == rest.lower() or piece.isupper():
        return [piece]
    if _ACRONYM_PLURAL.fullmatch(piece):
        return [piece]
    return _CAMEL_JOINT.split(piece)
