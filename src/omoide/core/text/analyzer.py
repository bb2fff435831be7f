"""The analyzer: a text as the list of terms it is found by, the same for memories and queries.

    text -> chunks (white space) -> normalise -> exact terms   =src/app.py     (compounds)
                                              -> words -> pairs  東京 京都      (scripts without spaces)
                                                       -> parts  get user name (identifiers)
                                                       -> word   drop stop words, lemma, stem

Choices:

* Chunks and words are remembered as they were written, so a warm turn is one dictionary look-up a
  word. Each memo holds at most 16,384 entries of at most 48 characters (about 5 MB when full) and is
  emptied when it is full.
* Scripts without spaces give overlapping pairs and no single characters: those would double the index
  for queries of one character, which `vocabulary` serves instead from the pairs already there. A
  character that stands alone is a term.
* A pictograph is a term; joined ones (families, professions) are their members, without skin tone, so
  that either finds the other.
* English: irregular form, then Porter2, on the folded word. Another language: its Snowball stemmer on
  the word as written, then folded, because the endings it looks for have accents.
* A term has at most 120 bytes of UTF-8; a longer one is its first 100 bytes and a digest of the whole,
  so equal stays equal. No term has a control character, a space or a lone surrogate, and none is empty.

Linear in the text, whatever it is.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import NamedTuple

from omoide.core.text import apostrophes, compounds, scripts
from omoide.core.text.irregular import LEMMA
from omoide.core.text.stemmers import StemmerPool, languages
from omoide.core.text.stop_words import ENGLISH, QUESTION_VERBS

# Raise it with any change that gives a memory other terms than before.
RULES = 2

TERM_BYTES_MAX = 120
_PREFIX_BYTES = 100
_UTF8_BYTES_MAX = 4
_MEMO_ENTRIES = 16_384
_MEMO_CHARACTERS = 48


class TermCounts(NamedTuple):
    """How often each term occurs.

    Attributes:
        tf: Term -> occurrences, in order of first occurrence.
        length: Terms of the whole text, with repeats, left-out ones included.
        left_out: Distinct terms beyond the limit, which `tf` lacks.
    """

    tf: dict[str, int]
    length: int
    left_out: int


class Analyzer:
    """Terms of memories and queries; immutable, safe to share between threads.

    Args:
        language: "english", or any language PyStemmer has. Only English has stop words of its own.
        stop_words: Replaces them; compared in lower case and without accents.
        stem: False leaves words as they are (folded) and needs no PyStemmer; `language` then only
            decides about the English stop words.
    Raises:
        ValueError: PyStemmer does not know the language; the message lists those it knows.
    """

    def __init__(
        self, *, language: str = "english", stop_words: frozenset[str] | None = None, stem: bool = True
    ) -> None:
        english = language == "english"
        if stem and not english and language not in (known := languages()):
            raise ValueError(f"unknown language {language!r}; one of: {', '.join(known)}")
        if stop_words is None:
            stop_words = ENGLISH if english else frozenset()
        self.language = language
        self.stop_words = frozenset(scripts.fold(word.casefold()) for word in stop_words)
        self._stemming = _Stemming(language) if stem else None
        self._memory = _Pass(self._stemming, self.stop_words)
        self._query = _Pass(self._stemming, self.stop_words | (QUESTION_VERBS if english else frozenset()))

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits that differ whenever a memory could get other terms.

        Made of the rules, the language, the stop words and the stemmer's name. The Unicode version of
        the interpreter is not part of it: a newer one only adds characters.
        """
        stemmer = f"snowball:{self.language}" if self._stemming else ""
        described = "\n".join([str(RULES), self.language, stemmer, *sorted(self.stop_words)])
        return _digest(described.encode("utf-8", "surrogatepass"))

    def terms(self, text: str) -> list[str]:
        """The terms of a memory, in order, with repeats.

        Cost: about 5 us for 20 words seen before, 5 us per new word.
        """
        return self._memory.terms(text)

    def query_terms(self, text: str) -> list[str]:
        """The distinct terms of a query in order of first occurrence; words of asking are dropped too.

        Empty when nothing is left: a query of stop words asks for nothing.
        """
        return list(dict.fromkeys(self._query.terms(text)))

    def count(self, text: str, limit: int = 2048) -> TermCounts:
        """The terms of a memory, counted; the first `limit` distinct ones are kept."""
        terms = self._memory.terms(text)
        tf: dict[str, int] = {}
        for term in terms:
            tf[term] = tf.get(term, 0) + 1
        left_out = max(0, len(tf) - limit)
        if left_out:
            tf = dict(list(tf.items())[:limit])
        return TermCounts(tf, len(terms), left_out)


@cache
def default_analyzer() -> Analyzer:
    """The English analyzer with its stop words; one for the process."""
    return Analyzer()


class _Stemming:
    """From a lower-case word, and its folded form, to its folded stem, by language and script."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._pool = StemmerPool(language)

    def __call__(self, word: str, folded: str) -> str:
        if len(word) > _MEMO_CHARACTERS or word.isdigit():
            return folded
        if self._language == "english":
            if folded.isascii():
                return self._pool.stem(LEMMA.get(folded, folded))
        else:
            stem = scripts.fold(self._pool.stem(word))
            if stem != folded or self._language == "arabic":
                return stem or folded
        return scripts.light_arabic(folded) if scripts.is_arabic(folded) else folded


class _Pass:
    """The pipeline with one set of dropped words, and what it remembers."""

    def __init__(self, stemming: _Stemming | None, dropped: frozenset[str]) -> None:
        self._stemming = stemming
        self._dropped = dropped
        self._chunks: dict[str, tuple[str, ...]] = {}
        self._words: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        found: list[str] = []
        known = self._chunks.get
        for chunk in text.split():
            terms = known(chunk)
            if terms is None:
                terms = self._chunk_terms(chunk)
                _remember(self._chunks, chunk, terms)
            found += terms
        return found

    def _chunk_terms(self, chunk: str) -> tuple[str, ...]:
        normal = compounds.without_digit_groups(scripts.normalise(chunk))
        found = [_bounded(term) for term in compounds.exact_terms(normal)]
        known = self._words.get
        for word in scripts.words(normal):
            terms = known(word)
            if terms is None:
                terms = tuple(self._word_terms(word))
                _remember(self._words, word, terms)
            found += terms
        return tuple(found)

    def _word_terms(self, word: str) -> list[str]:
        found: list[str] = []
        end = 0
        if not word.isascii():
            for run in scripts.UNSPACED_RUN.finditer(word):
                self._spaced(word[end : run.start()], found)
                found += _pairs(run.group())
                end = run.end()
        self._spaced(word[end:] if end else word, found)
        return found

    def _spaced(self, word: str, found: list[str]) -> None:
        word = apostrophes.resolve(word)
        parts = compounds.identifier_parts(word)
        for part in parts:
            self._add(part, found)
        if not parts or "_" not in word:  # with underscores the whole is an exact term already
            self._add(word.strip("_"), found)

    def _add(self, word: str, found: list[str]) -> None:
        word = word.casefold()
        folded = scripts.fold(word)
        if not folded or folded in self._dropped:
            return
        found.append(_bounded(self._stemming(word, folded) if self._stemming else folded))


def _pairs(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _remember(memo: dict[str, tuple[str, ...]], key: str, terms: tuple[str, ...]) -> None:
    if len(key) > _MEMO_CHARACTERS:
        return
    if len(memo) >= _MEMO_ENTRIES:
        memo.clear()
    memo[key] = terms


def _bounded(term: str) -> str:
    if len(term) * _UTF8_BYTES_MAX <= TERM_BYTES_MAX:
        return term
    encoded = term.encode()
    if len(encoded) <= TERM_BYTES_MAX:
        return term
    return encoded[:_PREFIX_BYTES].decode(errors="ignore") + "~" + _digest(encoded)


def _digest(data: bytes) -> str:
    from hashlib import blake2b

    return blake2b(data, digest_size=8).hexdigest()
