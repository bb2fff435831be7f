"""What each kind of text becomes, and what every term may rely on."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omoide.core.text import Analyzer, default_analyzer
from omoide.core.text.stop_words import ENGLISH, QUESTION_VERBS

ANY_TEXT = st.lists(st.integers(0, 0x10FFFF).map(chr), max_size=60).map("".join)

TABLE = [
    # English
    ("We deploy every Friday", "deploy everi friday"),
    ("running runs ran", "run run run"),
    ("children went home; she wrote", "child go home write"),
    ("mice and geese, women's feet", "mous goos woman foot"),
    ("Ann's dogs' bowls", "ann dog bowl"),
    ("She'll come; I'm sure they've left, we'd won't", "come sure leav"),
    ("She’ll don’t couldn’t it’s", ""),
    ("dont im youre", ""),
    ("rock'n'roll", "rocknrol"),
    ("in May we won", "may win"),
    ("THE LOUD ONE", "loud one"),
    ("1,250,000 people, 1,234, and 1,2,3", "1250000 person 1234 1 2 3"),
    # accents, ligatures, widths, digits
    ("café cafe\u0301 CAFÉ", "cafe cafe cafe"),
    ("ﬁne naïve Zürich", "fine naiv zurich"),
    ("l'école dell'arte", "ecol art"),
    ("Straße Æsir Øresund Łódź", "strass aesir oresund lodz"),
    ("Þórður ætlar Ísafjörð", "thordur aetlar isafjord"),
    ("Ｄｅｐｌｏｙ １２３", "deploy 123"),
    ("٣٤ १२ ๕", "34 12 5"),
    ("Ёлка ёжик", "елка ежик"),
    ("Σίσυφος ΣΙΣΥΦΟΣ", "σισυφοσ σισυφοσ"),
    ("dis\u00adcount zero\u200bwidth", "discount zerowidth"),
    # scripts without spaces
    ("今天玩成语接龙", "今天 天玩 玩成 成语 语接 接龙"),
    ("猫", "猫"),
    ("猫 が", "猫 が"),
    ("ｶﾞｷﾞｸﾞ", "ガギ ギグ"),
    ("か\u3099く", "がく"),
    ("東京タワー、大阪", "東京 京タ タワ ワー 大阪"),
    ("오늘 끝말잇기", "오늘 끝말 말잇 잇기"),
    (unicodedata.normalize("NFD", "오늘"), "오늘"),
    ("ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
    ("ខ្មែរ", "ខ្ ្ម មែ ែរ"),
    ("ລາວ", "ລາ າວ"),
    ("iPhone手机 v2版", "phone iphon 手机 v2 版"),
    ("请看https://a.io/b谢谢", "=https://a.io/b 请看 https io b 谢谢"),
    # scripts with marks
    ("नमस्ते हिन्दी", "नमस्ते हिन्दी"),
    ("தமிழ் மொழி", "தமிழ் மொழி"),
    ("كِتَابٌ الكتاب والكتاب", "كتاب كتاب كتاب"),
    ("مدرسة المدرسه أحمد احمد", "مدرس مدرس احمد احمد"),
    ("می\u200cروم میروم", "ميروم ميروم"),
    ("שָׁלוֹם בית־ספר", "שלום בית ספר"),
    # identifiers and the like
    ("getUserName", "get user name getusernam"),
    ("get_user_name", "=get_user_name get user name"),
    ("get-user-name", "=get-user-name get user name"),
    ("XMLHttpRequest IDs", "xml http request xmlhttprequest id"),
    ("__init__ _private_name", "init =private_name privat name"),
    ("/src/app/main.py,", "=src/app/main.py =main.py src app main py"),
    ("src/app/", "=src/app src app"),
    ("C:\\Temp\\x.log", "=c:\\temp\\x.log =x.log c temp x log"),
    ("(https://example.com/a?b=1&c=2).", "=https://example.com/a?b=1&c=2 https exampl com b 1 c 2"),
    ("Ann.Lee+x@example.com", "=ann.lee+x@example.com ann lee x exampl com"),
    ("v1.2.3", "=v1.2.3 v1 2 3"),
    ("3fa9c1d", "=3fa9c1d 3fa9c1d"),
    ("C++ C# std::vector", "=c++ c =c# c =std::vector std vector"),
    ("yes--no wait---what", "yes wait"),
    ("документы/отчёт.txt", "=документы/отчет.txt =отчет.txt документы отчет txt"),
    # pictographs
    ("👍🏽 ok👍", "👍 ok 👍"),
    ("👩‍💻 ❤️ 🇮🇸", "👩 💻 ❤ 🇮🇸"),
    ("1️⃣", "1"),
    # nothing to find
    ("", ""),
    (" \t\r\n\u3000", ""),
    ("…!?*[]{}|`~^<>\"'’", ""),
    ("\x00\x01\x1f", ""),
    ("cat\x00dog \ud83dfish\udc4d", "cat dog fish"),
    ("do\udc4dg", "dog"),
    ("\u0301\u0302", ""),
]


@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[ascii(text) for text, _ in TABLE])
def test_terms(text: str, expected: str) -> None:
    assert default_analyzer().terms(text) == expected.split()


def test_query_drops_words_of_asking_and_repeats() -> None:
    analyzer = default_analyzer()
    assert analyzer.query_terms("What kind of cat did she say her cats are?") == ["cat"]
    assert analyzer.query_terms("How long is the and of it?") == []
    assert analyzer.terms("a kind cat, a kind dog") == ["kind", "cat", "kind", "dog"]


def test_default_is_one_object() -> None:
    assert default_analyzer() is default_analyzer()


def test_lists_are_of_the_size_they_claim() -> None:
    assert 170 <= len(ENGLISH) <= 230
    assert not ENGLISH & QUESTION_VERBS
    assert all(word == word.lower() and word.isascii() for word in ENGLISH | QUESTION_VERBS)


def test_memo_changes_nothing() -> None:
    analyzer = Analyzer()
    for text, expected in TABLE:
        first = analyzer.terms(text)
        assert analyzer.terms(text) == first == expected.split()


def test_memo_is_bounded() -> None:
    analyzer = Analyzer(stem=False)
    words = [f"w{number}" for number in range(40_000)]
    assert [term for term in analyzer.terms(" ".join(words)) if term[0] != "="] == words
    memos = [analyzer._memory._chunks, analyzer._memory._words]
    assert all(len(memo) <= 16_384 for memo in memos)
    analyzer.terms("x" * 49)
    assert all("x" * 49 not in memo for memo in memos)


# --- counts


def test_count() -> None:
    counts = default_analyzer().count("cat dog cat bird the cat")
    assert counts.tf == {"cat": 3, "dog": 1, "bird": 1}
    assert list(counts.tf) == ["cat", "dog", "bird"]
    assert (counts.length, counts.left_out) == (5, 0)


def test_count_says_what_it_left_out() -> None:
    counts = default_analyzer().count("cat dog cat bird fish cat", limit=2)
    assert counts.tf == {"cat": 3, "dog": 1}
    assert (counts.length, counts.left_out) == (6, 2)
    assert len(default_analyzer().count(" ".join(f"w{i}" for i in range(5000))).tf) == 2048


@given(ANY_TEXT, st.integers(0, 20))
def test_count_agrees_with_terms(text: str, limit: int) -> None:
    terms = default_analyzer().terms(text)
    counts = default_analyzer().count(text, limit)
    assert counts.length == len(terms)
    assert len(counts.tf) + counts.left_out == len(set(terms))
    assert all(counts.tf[term] == terms.count(term) for term in counts.tf)
    assert list(counts.tf) == list(dict.fromkeys(terms))[:limit]


# --- every term


@given(ANY_TEXT)
@example("\ud800" * 5)
@example("\ufdfa")
@example("a'" * 40)
@example("".join(map(chr, range(256))))
def test_any_text_gives_storable_terms(text: str) -> None:
    for term in default_analyzer().terms(text):
        encoded = term.encode()
        assert 0 < len(encoded) <= 120
        assert min(encoded) >= 0x20
        assert not any(character.isspace() for character in term)


@pytest.mark.parametrize("unit", ["x", "漢字", "a.b/", "न", "é"])
def test_long_terms_stay_equal_and_distinct(unit: str) -> None:
    analyzer = Analyzer(stem=False, stop_words=frozenset())
    one, same, other = (analyzer.terms(unit * 200 + end) for end in ("", "", "y"))
    assert one == same
    assert set(one) != set(other)
    assert all(len(term.encode()) <= 120 for term in one + other)


def test_a_term_of_exactly_120_bytes_is_kept() -> None:
    analyzer = Analyzer(stem=False)
    assert analyzer.terms("x" * 120) == ["x" * 120]
    [cut] = analyzer.terms("x" * 121)
    assert cut.startswith("x" * 100 + "~")
    assert len(cut) == 117


# --- options


def test_fingerprint_follows_what_changes_terms() -> None:
    variants = [
        Analyzer(),
        Analyzer(stem=False),
        Analyzer(stop_words=frozenset({"the"})),
        Analyzer(language="german"),
        Analyzer(language="german", stem=False),
    ]
    prints = [analyzer.fingerprint for analyzer in variants]
    assert len(set(prints)) == len(prints)
    assert all(len(bytes.fromhex(value)) == 8 for value in prints)
    assert (
        Analyzer(stop_words=frozenset({"a", "b"})).fingerprint
        == Analyzer(stop_words=frozenset({"b", "A"})).fingerprint
    )


def test_own_stop_words_are_compared_folded() -> None:
    analyzer = Analyzer(language="french", stop_words=frozenset({"Été"}), stem=False)
    assert analyzer.terms("été ete the hiver") == ["the", "hiver"]


def test_other_languages() -> None:
    assert Analyzer(language="german").terms("Häuser Haus") == ["haus", "haus"]
    assert Analyzer(language="russian").terms("книги книга") == ["книг", "книг"]
    assert Analyzer(language="german").terms("the") == ["the"]
    spanish = Analyzer(language="spanish")
    assert spanish.terms("canción")[0] == spanish.terms("canciones")[0]


def test_unknown_language_names_the_choices() -> None:
    with pytest.raises(ValueError, match=r"english.*german"):
        Analyzer(language="klingon")


def test_stem_false_imports_no_stemmer() -> None:
    program = (
        "import sys; from omoide.core.text import Analyzer\n"
        "assert Analyzer(stem=False).terms('running dogs') == ['running', 'dogs']\n"
        "assert 'Stemmer' not in sys.modules\n"
        "assert Analyzer().terms('running') == ['run'] and 'Stemmer' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_threads_share_one_analyzer() -> None:
    words = [
        f"{stem}{ending}"
        for stem in ("walk", "jump", "nation", "relat")
        for ending in ("ing", "ed", "al", "ion")
    ]
    words = [word + "ly" * (number % 3) for number in range(200) for word in words]
    expected = Analyzer().terms(" ".join(words))
    shared = Analyzer()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: shared.terms(" ".join(words)), range(32)))
    assert all(result == expected for result in results)
    assert shared._stemming is not None
    assert 1 <= len(shared._stemming._pool._free) <= 8
