"""Long-tailed synthetic text: the same seed gives the same texts on every machine.

Words follow Zipf-Mandelbrot, p(rank) ~ 1 / (rank + 20), over 50,000 invented words: the most
frequent one is in about an eighth of the documents, most words are in fewer than one in ten
thousand. No word is a stop word, shorter than four letters, or changed by an English stemmer, so
every system indexes exactly the same terms.

Queries are the start of what a person would ask about one document: five of its words, drawn as they
fall, so frequent words come up as often as they do in the text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

VOCABULARY = 50_000
SHIFT = 20

_ONSETS = "bdfgklmnprtvz"
_VOWELS = "aou"
_SYLLABLES = tuple(onset + vowel for onset in _ONSETS for vowel in _VOWELS)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts to store and questions to ask of them.

    `documents` are what a partition holds when the clock starts, `arrivals` what is saved while it
    runs, `queries` what is asked.
    """

    documents: tuple[str, ...]
    arrivals: tuple[str, ...]
    queries: tuple[str, ...]


def word(rank: int) -> str:
    """Return the invented word of a frequency rank.

    Args:
        rank: 0 is the most frequent.
    Returns:
        str of two or more syllables; different ranks give different words.
    """
    syllables = len(_SYLLABLES)
    rest, last = divmod(rank, syllables)
    letters = [_SYLLABLES[last]]
    while True:
        rest, digit = divmod(rest, syllables)
        letters.append(_SYLLABLES[digit])
        if rest == 0:
            return "".join(reversed(letters))
        rest -= 1


def synthesize(
    size: int,
    *,
    queries: int = 200,
    arrivals: int = 200,
    distinct: int = 22,
    words: int | None = None,
    seed: int = 7,
) -> Corpus:
    """Invent a corpus.

    Args:
        size: Documents in the partition.
        queries: Questions, each of five distinct words of one document.
        arrivals: Documents beyond `size`.
        distinct: Distinct words of a document; the text ends with the word that reaches it.
        words: Words of a document instead, whatever number of them is distinct.
        seed: Same seed and arguments, same corpus.
    Cost: about 15 us a document.
    """
    texts = _texts(random.Random(f"texts {seed}"), distinct, words)
    documents = tuple(next(texts) for _ in range(size))
    later = tuple(next(texts) for _ in range(arrivals))
    asker = random.Random(f"queries {seed}")
    return Corpus(documents, later, tuple(_question(asker, documents) for _ in range(queries)))


def _question(asker: random.Random, documents: tuple[str, ...]) -> str:
    words = list(dict.fromkeys(asker.choice(documents).split()))
    return " ".join(asker.sample(words, min(5, len(words))))


def _texts(rng: random.Random, distinct: int, words: int | None) -> Iterator[str]:
    vocabulary, weights = distribution()
    while True:
        if words is not None:
            yield " ".join(rng.choices(vocabulary, cum_weights=weights, k=words))
            continue
        text: list[str] = []
        seen: set[str] = set()
        while len(seen) < distinct:
            for drawn in rng.choices(vocabulary, cum_weights=weights, k=distinct - len(seen)):
                text.append(drawn)
                seen.add(drawn)
        yield " ".join(text)


@lru_cache(maxsize=1)
def distribution() -> tuple[list[str], list[float]]:
    """The words, most frequent first, and their cumulative weights."""
    ranks = range(VOCABULARY)
    return [word(rank) for rank in ranks], list(accumulate(1 / (rank + 1 + SHIFT) for rank in ranks))
