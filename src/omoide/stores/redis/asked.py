"""What a search asks of a cache: lists of its terms, of those that stand in for missing ones, of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omoide.core.arms.authors import FIELD
from omoide.core.arms.weights import DEFAULT_WEIGHTS, RankWeights
from omoide.core.postings import exact_term
from omoide.core.text.vocabulary import Vocabulary, may_be_stood_in_for
from omoide.ops.request import Search
from omoide.stores.redis.cache import Partition
from omoide.stores.redis.filters import must


@dataclass(frozen=True, slots=True)
class Asked:
    """What a search asks of a cache as it is.

    `terms`: (name, weight, word it stands in for). `called`: lists of the names the query may say. `names`:
    every list wanted. `ready`: all are current, and there is nothing left to find out. `unread`: the words of
    the partition have to be read first.
    """

    terms: tuple[tuple[str, float, str], ...]
    called: tuple[str, ...]
    names: tuple[str, ...]
    ready: bool
    unread: bool


def weights_of(request: Search) -> RankWeights:
    """The weights of the arms for a search."""
    if request.ranking is not None:
        return request.ranking
    text = request.scope.spec.text
    return DEFAULT_WEIGHTS if text is None else text.ranking


def called_of(request: Search) -> tuple[str, ...]:
    """The equality terms of the names that the query may say."""
    if weights_of(request).author == 1:
        return ()
    return tuple(exact_term(FIELD, name).decode() for name in request.names)


def ask(partition: Partition, request: Search) -> Asked:
    """What a search needs of this cache, as far as the cache tells."""
    found = {name: (weight, "") for name, weight in request.terms.items()}
    unread = behind = False
    missing = [name for name in request.terms if _lacks(partition, name) and may_be_stood_in_for(name)]
    if missing and weights_of(request).back_off:
        behind = partition.behind_its_words
        words = None if behind else partition.known_words()
        unread = words is None and not behind
        if words is not None:
            found, _ = stand_ins(request.terms, missing, words, partition)
    terms = tuple((name, weight, stands_for) for name, (weight, stands_for) in found.items())
    called = called_of(request)
    names = (*found, *must(request.match), *called)
    return Asked(terms, called, names, not (unread or behind) and partition.current(names), unread)


def _lacks(partition: Partition, name: str) -> bool:
    """Whether it is certain that no memory has a term."""
    held = partition.terms.get(name)
    if held is None:
        return partition.known_since > 0 and partition.known_as_of >= partition.floor and partition.v > 0
    return held.df == 0 and held.as_of >= partition.floor and partition.v > 0


def stand_ins(
    terms: Mapping[str, float], missing: Sequence[str], words: Vocabulary, partition: Partition | None
) -> tuple[dict[str, tuple[float, str]], dict[str, tuple[str, ...]]]:
    """Term -> (weight, word it stands in for), and per missing word those that stand in for it.

    Words that have died meanwhile, as far as the cache tells, leave the vocabulary.
    """
    found = {name: (weight, "") for name, weight in terms.items()}
    standing = {}
    for name in missing:
        similar = words.similar(name)
        while partition is not None and (dead := [word for word, _ in similar if _lacks(partition, word)]):
            for word in dead:
                words.discard(word)
            similar = words.similar(name)
        for word, weight in similar:
            if weight * terms[name] > found.get(word, (0.0, ""))[0]:
                found[word] = (weight * terms[name], name)
        if similar:
            standing[name] = tuple(word for word, _ in similar)
    return found, standing


def told(asked: Asked) -> dict[str, tuple[str, ...]]:
    """Per missing word, those that stand in for it."""
    found: dict[str, list[str]] = {}
    for name, _, stands_for in asked.terms:
        if stands_for:
            found.setdefault(stands_for, []).append(name)
    return {word: tuple(names) for word, names in found.items()}
