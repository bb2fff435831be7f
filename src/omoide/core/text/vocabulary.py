"""Terms of the index that stand in for a query term it does not have.

Words resemble each other by the trigrams they share (`^` and `$` mark the ends):

    Dice = 2 |A ∩ B| / (|A| + |B|)

Alphabetic terms of at least 4 characters take part. A term of one character from a script without
spaces stands for the pairs that contain it (Dice of characters, 2/3 for each): there is no better
and worse among them, so up to 16 are taken, those that begin with the character first.
"""

from __future__ import annotations

from collections.abc import Iterable

from omoide.core.text.scripts import UNSPACED_RUN

BACK_OFF_WEIGHT = 0.3
DICE_MIN = 0.5
LIMIT = 3
PAIRS_LIMIT = 16
_LENGTH_MIN = 4


def trigrams(word: str) -> set[str]:
    marked = f"^{word}$"
    return {marked[i : i + 3] for i in range(len(marked) - 2)}


class Vocabulary:
    """The terms of one partition, indexed by trigram.

    Args:
        terms: Any iterable of terms; exact terms (`=...`) and short ones are skipped.
    Cost: O(characters), about 4 us a term; look-ups are O(terms that share a trigram).
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms: list[str] = []
        self._sizes: list[int] = []
        self._having: dict[str, list[int]] = {}
        self._pairs: dict[str, list[str]] = {}
        self._known: set[str] = set()
        self._gone: set[str] = set()
        for term in terms:
            self.add(term)

    def __len__(self) -> int:
        return len(self._known)

    def add(self, term: str) -> None:
        """Take in one term more; one that is there, exact or short changes nothing."""
        self._gone.discard(term)
        if term in self._known:
            return
        if _is_unspaced(term):
            self._known.add(term)
            for character in dict.fromkeys(term):
                self._pairs.setdefault(character, []).append(term)
        elif _is_word(term):
            self._known.add(term)
            grams = trigrams(term)
            number = len(self._terms)
            self._terms.append(term)
            self._sizes.append(len(grams))
            for gram in grams:
                self._having.setdefault(gram, []).append(number)

    def discard(self, term: str) -> None:
        """Leave a term out from now on, until it is added again."""
        self._gone.add(term)

    def similar(self, missing: str) -> list[tuple[str, float]]:
        """Terms to search instead, with weight .3 x Dice, best first.

        Returns:
            At most 3 with Dice >= .5; at most 16 for a single character. Ties in order of the term.
        """
        if len(missing) == 1:
            return self._containing(missing)
        if not _is_word(missing):
            return []
        grams = trigrams(missing)
        shared: dict[int, int] = {}
        for gram in grams:
            for number in self._having.get(gram, ()):
                shared[number] = shared.get(number, 0) + 1
        found = []
        for number, count in shared.items():
            dice = 2 * count / (len(grams) + self._sizes[number])
            term = self._terms[number]
            if dice >= DICE_MIN and term != missing and term not in self._gone:
                found.append((-dice, term))
        return [(term, -BACK_OFF_WEIGHT * negative) for negative, term in sorted(found)[:LIMIT]]

    def _containing(self, character: str) -> list[tuple[str, float]]:
        pairs = [
            pair for pair in self._pairs.get(character, ()) if pair != character and pair not in self._gone
        ]
        pairs.sort(key=lambda pair: (pair[0] != character, pair))
        return [(pair, BACK_OFF_WEIGHT * 2 / (1 + len(pair))) for pair in pairs[:PAIRS_LIMIT]]


def may_be_stood_in_for(term: str) -> bool:
    """Whether a term that no memory has can have similar ones: a word, or a lone character of a script
    without spaces."""
    return _is_word(term) or (len(term) == 1 and _is_unspaced(term))


def similar(missing: str, vocabulary: Iterable[str]) -> list[tuple[str, float]]:
    """`Vocabulary(vocabulary).similar(missing)`, for one look-up."""
    return Vocabulary(vocabulary).similar(missing)


def _is_unspaced(term: str) -> bool:
    return not term.isascii() and UNSPACED_RUN.match(term) is not None


def _is_word(term: str) -> bool:
    return len(term) >= _LENGTH_MIN and term[0] > "\x1f" and term[0] != "=" and not _is_unspaced(term)
