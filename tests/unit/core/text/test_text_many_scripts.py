"""Forty-two memories in many scripts among 600 others: each is first for its query.

By shared terms alone, and as a user recalls them, whichever reader ranks.
"""

from __future__ import annotations

import math
import random
import unicodedata

import pytest

from omoide import ContextAssembler
from omoide.connection import Connection
from omoide.core.text import default_analyzer
from omoide.core.text.vocabulary import Vocabulary
from omoide.recipes import DefaultMemory

CASES = [
    ("昨日は新宿の映画館で怖い映画を見ました", "新宿の映画館"),
    ("妹は抹茶アイスクリームが大好きです", "抹茶"),
    ("ﾊﾟｿｺﾝの電源が壊れた", "パソコン"),
    ("鯨を見に室戸岬まで行った", "鯨"),
    ("我女儿在学小提琴，每周三上课", "小提琴"),
    ("服务器的备份放在上海机房", "备份在哪里？上海机房"),
    ("他對花生過敏", "花生過敏"),
    ("周末我们玩成语接龙", "成语接龙"),
    ("오늘 끝말잇기 게임을 했다", "끝말잇기"),
    ("할머니는 부산에서 김치를 담그신다", "부산 김치"),
    ("제주도 여행은 비가 왔다", unicodedata.normalize("NFD", "제주도")),
    ("ฉันชอบกินข้าวเหนียวมะม่วงตอนเย็น", "ข้าวเหนียวมะม่วง"),
    ("รหัสโครงการคือดาวเสาร์", "ดาวเสาร์"),
    ("ខ្ញុំចូលចិត្តកាហ្វេទឹកដោះគោ", "កាហ្វេ"),
    ("ຂ້ອຍມັກເຂົ້າຫນຽວ", "ເຂົ້າຫນຽວ"),
    ("မန္တလေးမှာ နေတယ်", "မန္တလေး"),
    ("اشترى أحمد الكِتابَ من مكتبة القاهرة", "مكتبه القاهره"),
    ("المدرسة قريبة من البيت", "مدرسة"),
    ("فردا به اصفهان می\u200cروم", "اصفهان میروم"),
    ("मेरी बहन दिल्ली में हिन्दी पढ़ाती है", "हिन्दी पढ़ाती"),
    ("मुझे क़व्वाली पसंद है", "क\u093cव्वाली"),
    ("என் தம்பி மதுரையில் வசிக்கிறான்", "மதுரையில்"),
    ("Þórður keypti íslenska lopapeysu á Ísafirði", "Thordur lopapeysa"),
    ("Jökulsárlón er fallegasta lónið", "jokulsarlon"),
    ("Die Krankenversicherungskarte liegt im Handschuhfach", "Krankenversicherung"),
    ("Donaudampfschifffahrtsgesellschaft zahlt pünktlich", "Dampfschifffahrtsgesellschaft"),
    ("Straßenbahnhaltestelle am Südtor", "strassenbahnhaltestelle"),
    ("Ёжик живёт под ёлкой", "ежик"),
    ("Το καφενείο στη Θεσσαλονίκη", "ΘΕΣΣΑΛΟΝΙΚΗ"),
    ("סבתא גרה בבית שֶׁמֶשׁ", "שמש"),
    ("Café con leche en Málaga", "malaga cafe\u0301"),
    ("L'école de Zoé ferme à midi", "ecole Zoé"),
    ("the handler is parseInvoiceHeader", "parse invoice header"),
    ("call retry_with_backoff before giving up", "retry_with_backoff"),
    ("config lives in src/orchard/pruning/settings.toml", "src/orchard/pruning/settings.toml"),
    ("log file C:\\ProgramData\\Quartz\\trace.log", "Quartz trace.log"),
    ("write to ulla.berg+billing@fjord.example", "ulla.berg+billing@fjord.example"),
    ("runbook: https://wiki.example/ops/failover?step=2", "https://wiki.example/ops/failover?step=2"),
    ("pinned libsodium to 1.0.19", "which libsodium 1.0.19?"),
    ("the bad commit is 9f3ac21e", "9F3AC21E"),
    ("she answers everything with 🦔", "🦔"),
    ("the team lead is 👩🏽\u200d🚀 and flies 🇮🇸", "🇮🇸 👩‍🚀"),
]

OTHERS = """
今日は 友達と 公園で 音楽を 聞いた 明日 仕事が あります 電車 会社 料理 本を 読む 天気 雨が
今天 我们 去 公园 吃饭 看电影 朋友 工作 很忙 明天 天气 下雨 喜欢 音乐 学校
오늘은 친구와 공원에서 음악을 들었다 내일 회사에 갑니다 날씨가 좋다 영화를 책을 읽었다
วันนี้ อากาศดี เพื่อน ทำงาน กินข้าว โรงเรียน ดนตรี พรุ่งนี้ ฝนตก
اليوم ذهب صديق الى الحديقة وسمع الموسيقى غدا عمل كثير الطقس جميل
आज मैं दोस्त के साथ बाग़ में गया कल काम है मौसम अच्छा संगीत सुना
Í dag fór ég með vini mínum í garðinn og hlustaði tónlist veðrið gott vinna morgun
Heute war das Wetter schön wir gingen in den Park Musik Arbeit morgen Versicherung Bahn Gesellschaft
сегодня хорошая погода мы пошли в парк музыка завтра работа друг книга
we met a friend in the park and talked about music work weather tomorrow book train header handler
src/app/main.py settings.toml trace.log user_name getUser v1.0.1 https://wiki.example/home a@fjord.example
👍 😀 🎉 🇩🇰 🇸🇪 ok thanks 👩 great 1.0.18 9f3ac21d commit file retry
"""
POOLS = [line.split() for line in OTHERS.strip().splitlines()]


def distractors() -> list[str]:
    choose = random.Random(11)
    return [" ".join(choose.choices(POOLS[number % len(POOLS)], k=9)) for number in range(600)]


class Overlap:
    """Memories ranked by the sum of idf of the terms they share with a query."""

    def __init__(self, memories: list[str]) -> None:
        self.analyzer = default_analyzer()
        self.holders: dict[str, set[int]] = {}
        for number, memory in enumerate(memories):
            for term in self.analyzer.terms(memory):
                self.holders.setdefault(term, set()).add(number)
        self.size = len(memories)
        self.vocabulary = Vocabulary(self.holders)

    def ranked(self, query: str) -> list[tuple[float, int]]:
        scores: dict[int, float] = {}
        for asked in self.analyzer.query_terms(query):
            for term, weight in [(asked, 1.0)] if asked in self.holders else self.vocabulary.similar(asked):
                df = len(self.holders[term])
                idf = math.log((self.size - df + 0.5) / (df + 0.5) + 1)
                for number in self.holders[term]:
                    scores[number] = scores.get(number, 0.0) + weight * idf
        return sorted(((score, number) for number, score in scores.items()), reverse=True)


@pytest.fixture(scope="module")
def overlap() -> Overlap:
    return Overlap([memory for memory, _ in CASES] + distractors())


def test_there_are_forty_two() -> None:
    assert len(CASES) == 42


@pytest.mark.parametrize("number", range(len(CASES)), ids=[ascii(query) for _, query in CASES])
def test_found_first(overlap: Overlap, number: int) -> None:
    ranked = overlap.ranked(CASES[number][1])
    assert ranked, "nothing found"
    assert ranked[0][1] == number
    assert len(ranked) == 1 or ranked[0][0] > ranked[1][0], "a tie is not a first rank"


@pytest.mark.parametrize("reader", ["client", "server"])
def test_recalled_first(reader: str, store_url: str) -> None:
    with Connection(store_url, reader=reader) as connection, connection.use():
        texts = [memory for memory, _ in CASES] + distractors()
        DefaultMemory.save_many(DefaultMemory(agent_id="scripts", content=text) for text in texts)
        assembler = ContextAssembler(DefaultMemory, track=False)
        for memory, query in CASES:
            result = assembler.assemble(query, agent_id="scripts")
            assert result.records[0].content == memory, ascii(query)
            assert len(result.items) == 1 or result.items[0].score > result.items[1].score
