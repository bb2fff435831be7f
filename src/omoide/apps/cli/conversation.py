"""The conversation of `omoide demo`: Mika in Kyoto and Jonas in Leipzig build a booking site for tea houses.

Three talks over three weeks. Facts are concrete, some change on the way, and some are said in
Japanese or German.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

MIKA = "Mika"
JONAS = "Jonas"

ORDINARY = 0.5
IMPORTANT = 0.7


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its talk (session), who wrote it, when, what, and how much it matters, in [0, 1]."""

    talk: str
    author: str
    when: datetime
    text: str
    importance: float = ORDINARY


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and words that only the turn that answers it has."""

    text: str
    answer: str


_TALKS = (
    (
        "kickoff",
        datetime(2026, 3, 2, 8, 0, tzinfo=UTC),
        (
            (MIKA, "Good morning Jonas! The tea house in Uji signed. The project is called Kawa."),
            (JONAS, "Wonderful. Who is our contact over there?"),
            (MIKA, "Ms. Hayashi, she owns the house. She prefers phone calls before ten in the morning."),
            (JONAS, "Noted. What do they use for bookings today?"),
            (MIKA, "A paper notebook and a fax machine. They seat 14 guests per ceremony."),
            (JONAS, "Then let's start small: one calendar, one ceremony, payment on arrival."),
            (MIKA, "Agreed. The launch has to be before the Aoi festival on May 15."),
            (JONAS, "The database for the bookings will be PostgreSQL; Valkey keeps the sessions."),
            (MIKA, "Fine with me. The site must work in Japanese, English and German."),
            (JONAS, "Ich schreibe die deutschen Texte selbst, die Stornierungsregeln zuerst."),
            (MIKA, "キャンセルは二日前まで無料です。それ以降は料金の半分をいただきます。"),
            (JONAS, "Thanks, so free until two days before, half the price after that."),
            (MIKA, "A ceremony costs 6,500 yen, sweets included."),
            (JONAS, "Our weekly call is on Tuesday at nine, Kyoto time."),
        ),
    ),
    (
        "midway",
        datetime(2026, 3, 10, 8, 0, tzinfo=UTC),
        (
            (JONAS, "The calendar prototype is up on staging, port 8443."),
            (MIKA, "I see it! Weekends are shown in the wrong colour."),
            (JONAS, "Fixed in the evening build. Deploys are blue-green and take four minutes."),
            (MIKA, "And if one goes wrong while you are asleep?"),
            (JONAS, "Anyone can roll back: kawa-rollback in the ops folder, one command."),
            (MIKA, "Ms. Hayashi is allergic to cats, so please no cat photos on the landing page."),
            (JONAS, "Schade, aber verstanden. Dann nehmen wir den Garten mit der roten Brücke."),
            (MIKA, "庭の写真は四月の桜の時期に撮ります。カメラマンは田中さんです。"),
            (JONAS, "Tanaka in April, good. What does he charge?"),
            (MIKA, "80,000 yen for half a day, prints included."),
            (JONAS, "I moved the e-mails to a queue; a booking is confirmed within 20 seconds now."),
            (MIKA, "My sister Aiko will test the English pages, she lives in Toronto."),
            (JONAS, "My holiday is from April 3 to April 12, hiking in the Harz with my daughter Lena."),
        ),
    ),
    (
        "launch",
        datetime(2026, 3, 23, 8, 0, tzinfo=UTC),
        (
            (MIKA, "From April the weekly call is on Thursday at nine, Kyoto time."),
            (JONAS, "Works for me. The load test held 300 bookings a minute."),
            (MIKA, "That is more than Uji gets in a year."),
            (JONAS, "The certificate renews itself on the first of every month."),
            (MIKA, "The bank wants invoices as PDF, with the registration number T-4130."),
            (JONAS, "Rechnungen erzeugt jetzt der Dienst namens Zettel, auch auf Japanisch."),
            (MIKA, "Aiko found a bug: the time zone of Toronto shifts the ceremony by one day."),
            (JONAS, "Good catch. Times are stored in UTC now and shown in Asia/Tokyo."),
            (MIKA, "予約は電話でも受け付けます。番号は店の入口に貼ってあります。"),
            (JONAS, "Then the house needs a form to enter phone bookings by hand."),
            (MIKA, "Ms. Hayashi would like a dashboard in the evening: guests, sweets, cancellations."),
            (JONAS, "I'll have it by Friday. Backups run at three in the morning to Osaka."),
            (MIKA, "Launch is on May 11, four days before the festival. Matcha is on me."),
        ),
    ),
)

OUTDATED = "Tuesday"

CONVERSATION = tuple(
    Turn(
        talk,
        author,
        start + timedelta(minutes=2 * number),
        text,
        IMPORTANT if OUTDATED in text else ORDINARY,
    )
    for talk, start, lines in _TALKS
    for number, (author, text) in enumerate(lines)
)

QUESTIONS = (
    Question("What is Ms. Hayashi allergic to?", "cats"),
    Question("Which database is for the bookings?", "PostgreSQL"),
    Question("How long does a deploy take?", "blue-green"),
    Question("How do we roll back?", "kawa-rollback"),
    Question("キャンセルはいつまで無料ですか?", "二日前まで"),
    Question("Welcher Dienst erzeugt die Rechnungen?", "Zettel"),
    Question("When is Jonas on holiday?", "April 3"),
)

CHANGED = Question("When is our weekly call?", "Thursday")
"""Told twice. The older answer mattered more when it was stored; it is wrong by now, and feedback says so."""
