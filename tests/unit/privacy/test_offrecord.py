"""Requests not to keep something, and ordinary uses of the same words."""

from __future__ import annotations

import pytest

from omoide.privacy import scan

ASKED = [
    "Off the record, I think Mark is going to be fired.",
    "Between you and me and not for the record, the numbers were made up.",
    "Please don't remember this, but I'm leaving.",
    "Don't store what I'm about to say. I cheated.",
    "Do not save this: my sister is pregnant.",
    "please do not log this conversation",
    "keep this out of your memory please: I'm seeing a therapist",
    "don't write this down: the party is for Ann",
    "forget I said this, but Lena is leaving Jonas",
    "This must not be stored anywhere.",
    "None of this should be remembered.",
    "pause your memory please",
    "/nomem the diagnosis came back positive",
    "[[private]] I had a panic attack [[/private]]",
    "<!-- no-memory --> my salary is 94k",
    "delete this from your memory",
    "Vergiss das bitte wieder: ich kündige im März.",
    "Bitte nicht speichern: ich kündige.",
    "Entre nous, hors micro: ne l'enregistre pas, je divorce.",
    "No guardes esto: estoy embarazada.",
    "Não guarde isso: vou me demitir.",
    "Niet opslaan: ik ben ontslagen.",
    "这件事请不要记录。",
    "これはオフレコで。",
    "Не записывай это.",
    "off\xa0the\xa0record: I lied",
    "Don’t remember this please",
]


@pytest.mark.parametrize("text", ASKED, ids=range(len(ASKED)))
def test_request_is_honoured(text: str) -> None:
    assert scan(text).reason == "off_the_record"


ORDINARY = [
    "I don't remember her name.",
    "I can't remember whether I locked the door.",
    "please remember this: I'm allergic to nuts",
    "don't forget this: mom's birthday is May 3",
    "Never forget this day!",
    "There is no record of that payment.",
    "He fell off the record player shelf.",
    "The reporter said nothing in that interview was off the record.",
    "don't save the file yet, I'm still editing",
    "Do not record more than 30 minutes per tape.",
    "There's no memory leak in the new build.",
    "turn off memory overcommit in the kernel",
    "their data are not stored",
    "it should not be stored in the repository",
    "we use incognito windows for testing",
    "the tables do not store that column",
    "parse it without storing it in memory",
    "Save this for later: recipe for lasagna",
    "Je ne retiens pas les noms.",
    "Ich kann mir das nicht merken.",
    "Do not remember me? I'm Paul from school!",
]


@pytest.mark.parametrize("text", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_speech_passes(text: str) -> None:
    assert not scan(text).blocked
