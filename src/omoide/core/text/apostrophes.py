"""Words with an apostrophe, brought back to the word that carries the meaning.

Ann's, dogs'          -> Ann, dogs           possessive
she'll, we've, don't  -> she, we, do         English contraction
l'école, dell'arte    -> école, arte         elision (French, Italian, Catalan)
O'Brien, rock'n'roll  -> OBrien, rocknroll   anything else is one word
"""

from __future__ import annotations

_ENDINGS = ("'s", "'ll", "'ve", "'re", "'d", "'m")
_NOT = {"won't": "will", "shan't": "shall", "can't": "can", "ain't": "be"}
_ELISIONS = "l d j m t s n c qu jusqu lorsqu puisqu quoiqu un all dall dell nell sull coll quest quell"
_ELIDED = frozenset(_ELISIONS.split())
_ELISION_REST_MIN = 3


def resolve(word: str) -> str:
    """A word without its apostrophes; case kept. May be empty."""
    word = word.strip("'")
    if "'" not in word:
        return word
    lower = word.lower()
    if lower.endswith("n't"):
        return _NOT.get(lower, word[:-3]).replace("'", "")
    for ending in _ENDINGS:
        if lower.endswith(ending):
            word = word[: -len(ending)]
            break
    before, mark, after = word.partition("'")
    if mark and before.lower() in _ELIDED and len(after) >= _ELISION_REST_MIN:
        word = after
    return word.replace("'", "")
