"""English words that say nothing about the subject, by kind.

Written the way the analyzer sees a word: lower case, no accents, apostrophes already taken care of
(`she'll` arrives as `she`), so contractions appear here only as people type them without one. `may`
and `won` are missing on purpose: a month and a victory are subjects.
"""

from __future__ import annotations

_PRONOUNS = """
    i me my myself  we our ours ourselves  you your yours yourself yourselves
    he him his himself  she her hers herself  it its itself  they them their theirs themselves
"""
_QUESTION_AND_RELATIVE = "what which who whom whose when where why how that this these those"
_AUXILIARIES = """
    be am is are was were been being  have has had having  do does did doing
    can could will would shall should ought might must cannot
"""
_ARTICLES_AND_CONJUNCTIONS = "a an the and but or nor if because as until while than so though although"
_PREPOSITIONS = """
    of at by for with about against between into through during before after above below to from
    up down in out on off over under onto upon via
"""
_ADVERBS_AND_QUANTIFIERS = """
    again further then once here there all any both each few more most other some such
    no not only own same too very just now also else ever etc
"""
_WITHOUT_APOSTROPHE = """
    im ive youre youve hes shes theyre weve thats whats isnt arent wasnt werent hasnt havent hadnt
    dont doesnt didnt wont wouldnt cant couldnt shouldnt aint lets
"""
# What is left of a contraction when it is split at the apostrophe by another program.
_FRAGMENTS = """
    s t d ll m re ve  isn aren wasn weren hasn haven hadn don doesn didn wouldn couldn shouldn ain
"""

ENGLISH: frozenset[str] = frozenset(
    " ".join(
        (
            _PRONOUNS,
            _QUESTION_AND_RELATIVE,
            _AUXILIARIES,
            _ARTICLES_AND_CONJUNCTIONS,
            _PREPOSITIONS,
            _ADVERBS_AND_QUANTIFIERS,
            _WITHOUT_APOSTROPHE,
            _FRAGMENTS,
        )
    ).split()
)

_ASKING = """
    say said tell told mention mentioned describe described mean
    kind kinds type types many much long likely considered according
"""

# Words that belong to the asking, not to what is asked for. Dropped from queries only.
QUESTION_VERBS: frozenset[str] = frozenset(_ASKING.split())
