"""Secrets told in sentences, in several languages, and sentences that only speak of passwords."""

from __future__ import annotations

import pytest

from omoide.privacy import scan

WORD = "Otter" + "84x"

TOLD = [
    f"The wifi password is {WORD}, guests can use it too.",
    f"my password is {WORD} - please remember it",
    f"I changed my Netflix password to {WORD} last night",
    f"the password for the NAS in the basement is {WORD}",
    f"ok log in as bob@acme.io with password {WORD} and check",
    f"user: carol\npass: {WORD}",
    f"login for the portal is jsmith, pw {WORD}. Thanks",
    f"The admin login is admin / {WORD}",
    f"I used {WORD} as my bank password",
    f"Das WLAN-Passwort lautet {WORD}",
    f"Mein Passwort ist {WORD}.",
    f"le mot de passe est {WORD}",
    f"la contraseña es {WORD}",
    f"a senha é {WORD}",
    f"la password è {WORD}",
    f"het wachtwoord is {WORD}",
    f"密码是{WORD}",
    f"パスワードは{WORD}です",
    f"пароль: {WORD}",
    "the wifi password is " + "sword" + "fish",
    'the passphrase for the gpg key is "copper otter piano river"',
    "My debit card pin is 4921, don't tell anyone",
    "the alarm code is 480213 for the back door",
    "the verification code they texted me is 480213",
    "2FA backup codes: a1b2-c3d4, e5f6-g7h8, i9j0-k1l2",
    "my security question answer (mother's maiden name) is Kowalczyk",
]


@pytest.mark.parametrize("text", TOLD, ids=range(len(TOLD)))
def test_told_secret_is_blocked(text: str) -> None:
    assert scan(text).reason in ("natural_language", "credential")


SPOKEN_OF = [
    "I forgot my password again and the password reset flow is broken.",
    "The password is case sensitive.",
    "The password must be at least 12 characters long and contain a digit.",
    "the wifi password is written on the back of the router",
    "Das Passwort ist falsch, sagt die Seite.",
    "Le mot de passe est trop court.",
    "La contraseña es obligatoria.",
    "密码太短了,请重新输入。",
    "パスワードを忘れました。",
    "The key to success is consistency.",
    "The secret to good bread is patience and a hot oven.",
    "The zip code is 94107.",
    "error code 40312 means forbidden",
    "The PIN code area in Bangalore is 560001.",
    "the dress code is smart casual",
    "Password for the NAS: ask Tom",
    "Please pass: the salt, the pepper and the olive oil.",
    "My bank password? I never share it.",
    "the passcode is six digits long",
    "call me at +49 170 555 0123 tomorrow",
]


@pytest.mark.parametrize("text", SPOKEN_OF, ids=range(len(SPOKEN_OF)))
def test_sentence_about_passwords_passes(text: str) -> None:
    assert not scan(text).blocked
