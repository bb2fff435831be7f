"""English forms that no suffix rule brings together: `went` -> `go`, `children` -> `child`.

One entry: the lemma, then its forms. A form that is more often another word is left out
(`rose`, `ground`, `wound`, `dove`, `bound`).
"""

from __future__ import annotations

_VERBS = """
arise arose arisen; awake awoke awoken; be am is are was were been; bear borne born; beat beaten;
become became; begin began begun; bend bent; bite bit bitten; bleed bled; blow blew blown;
break broke broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught;
choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; do did done;
draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen;
feed fed; feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden;
foresee foresaw foreseen; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen;
get got gotten; give gave given; go went gone; grow grew grown; hang hung; have has had; hear heard;
hide hid hidden; hold held; keep kept; kneel knelt; know knew known; lay laid; lead led; lean leant;
leap leapt; learn learnt; leave left; lend lent; lie lain lying; light lit; lose lost; make made;
mean meant; meet met; mislead misled; mistake mistook mistaken; misunderstand misunderstood;
mow mown; overcome overcame; overhear overheard; oversee oversaw overseen; oversleep overslept;
overtake overtook overtaken; pay paid; prove proven; rebuild rebuilt; redo redid redone;
repay repaid; rethink rethought; rewrite rewrote rewritten; ride rode ridden; ring rang rung;
rise risen; run ran; say said; see saw seen; seek sought; sell sold; send sent; sew sewn;
shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung;
sink sank sunk; sit sat; sleep slept; slide slid; smell smelt; sow sown; speak spoke spoken;
speed sped; spell spelt; spend spent; spill spilt; spin spun; spoil spoilt; spring sprang sprung;
stand stood; steal stole stolen; stick stuck; sting stung; stink stank stunk; strike struck stricken;
strive strove striven; swear swore sworn; sweep swept; swell swollen; swim swam swum; swing swung;
take took taken; teach taught; tear tore torn; tell told; think thought; throw threw thrown;
undergo underwent undergone; understand understood; undertake undertook undertaken; undo undid undone;
wake woke woken; wear wore worn; weave wove woven; weep wept; win won; withdraw withdrew withdrawn;
withhold withheld; withstand withstood; write wrote written
"""

_NOUNS = """
analysis analyses; calf calves; child children; crisis crises; criterion criteria; diagnosis diagnoses;
elf elves; foot feet; goose geese; half halves; hoof hooves; hypothesis hypotheses; knife knives;
leaf leaves; life lives; loaf loaves; louse lice; man men; mouse mice; ox oxen; person people;
phenomenon phenomena; scarf scarves; self selves; shelf shelves; thesis theses; thief thieves;
tooth teeth; wife wives; wolf wolves; woman women
"""


def _lemmas(entries: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in entries.split(";"):
        lemma, *forms = entry.split()
        found.update(dict.fromkeys(forms, lemma))
    return found


LEMMA: dict[str, str] = _lemmas(_VERBS) | _lemmas(_NOUNS)
