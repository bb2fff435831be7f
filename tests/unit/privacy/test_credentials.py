"""Credentials in the notations people paste, and the look-alikes around them."""

from __future__ import annotations

import base64

import pytest

from omoide.privacy import scan
from omoide.privacy.samples import Maker

MAKER = Maker(99)
GITHUB = "gh" + "p_" + MAKER.body("an", 36)
RANDOM32 = MAKER.body("an", 32)
HEX32 = MAKER.body("hex", 32)
PASSWORD = "Otter" + "Lantern" + "84!"
PLAIN = "sword" + "fish"
PEM = "-" * 5 + "BEGIN PRIV" + "ATE KEY" + "-" * 5
B64 = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()

CREDENTIALS = [
    f"hey can you check {GITHUB} for me",
    f"DB_PASSWORD={PASSWORD}\nDB_HOST=localhost",
    f"DB_PASSWORD={PLAIN}x",
    f'{{"client_secret": "{RANDOM32}"}}',
    f'{{\\"api_key\\": \\"{RANDOM32}\\"}}',
    f"password: {PASSWORD}",
    f"const apiKey = '{HEX32}';",
    f"apiKey := `{HEX32}`",
    f'adafruitToken ::= "{HEX32}"',
    f'var adafruitToken string = "{HEX32}"',
    f'System.setProperty("ADAFRUIT_TOKEN", "{HEX32}")',
    f"<adafruitToken>\n    {HEX32}\n</adafruitToken>",
    f'<add key="ApiPassword" value="{PASSWORD}" />',
    f'variable "db_password" {{\n  default = "{PASSWORD}"\n}}',
    f"- name: ADAFRUIT_TOKEN\n  value: {HEX32}",
    f'"name": "ADAFRUIT_TOKEN",\n  "value": "{HEX32}"',
    f"Authorization: Bearer {RANDOM32}",
    f"authorization: Basic {B64}",
    f"Cookie: sessionid={RANDOM32}; theme=dark",
    f"https://api.acme.io/export?id=7&access_token={RANDOM32}&fmt=csv",
    f"postgres://app:{PASSWORD}@db.acme.io:5432/orders",
    f"redis://:{PASSWORD}@cache:6379/0",
    f"Server=tcp:db,1433;User ID=sa;Password={PASSWORD};Encrypt=True;",
    f"host=db user=mem password={PASSWORD} sslmode=require",
    f"curl -u admin:{PASSWORD} https://grafana.acme.io",
    f"mysql -u root -p{PASSWORD} shop",
    f"app --db-password {PASSWORD} --verbose",
    f"machine api.acme.io login bot password {RANDOM32}",
    f'{{"auths": {{"ghcr.io": {{"auth": "{B64}"}}}}}}',
    f"kind: Secret\ndata:\n  password: {base64.b64encode(PASSWORD.encode()).decode()}\n",
    f"{PEM}\n{MAKER.body('an', 64)}\n{MAKER.body('an', 64)}\n",
    f"my seed phrase is: {' '.join(['copper', 'otter', 'piano', 'river', 'maple', 'tiger'] * 2)}",
    f"wallet private key: 0x{MAKER.body('hex', 64)}",
]


@pytest.mark.parametrize("text", CREDENTIALS, ids=range(len(CREDENTIALS)))
def test_credential_is_blocked(text: str) -> None:
    assert scan(text).reason == "credential"


LOOK_ALIKES = [
    "password = os.environ['DB_PASSWORD']",
    "password = getpass.getpass('Password: ')",
    "const apiKey = process.env.API_KEY;",
    "token = request.headers.get('Authorization', '').removeprefix('Bearer ')",
    "password: ********",
    "DB_PASSWORD=changeme",
    "export GITHUB_TOKEN=<your-github-token>",
    "OPENAI_API_KEY=sk-" + "x" * 40,
    "token: ${{ secrets.NPM_TOKEN }}",
    "def login(username: str, password: str) -> bool: ...",
    "password_min_length = 12",
    "max_tokens=4096, temperature=0.2",
    "public_key = '" + MAKER.body("an", 43) + "'",
    "commit " + MAKER.body("hex", 40),
    "sha256:" + MAKER.body("hex", 64),
    "request id " + MAKER.body("uuid", 0),
    "![logo](data:image/png;base64," + "iVBORw0KGgo" + MAKER.body("an", 180) + ")",
    "run_" + MAKER.body("an", 24) + " failed",
    "pk_" + "live_" + MAKER.body("an", 24) + " is public",
    "https://www.youtube.com/watch?v=" + MAKER.body("an", 11),
    "postgres://user:password@localhost:5432/mydb",
    "Authorization: Bearer $TOKEN",
    "arn:aws:secretsmanager:eu-west-1:123456789123:secret:proxysecret1-Abcd1e",
    "The token budget for this prompt is 4096.",
    "for key, value in sorted(d.items(), key=lambda kv: kv[1]):",
    "integrity sha512-" + MAKER.body("an", 86) + "==",
    "kind: Secret\nmetadata:\n  name: db",
    "primaryKey: true, foreign_key='users.id'",
    "csrf_token = '" + RANDOM32 + "'",
    "docker run -p 8080:80 nginx",
]


@pytest.mark.parametrize("text", LOOK_ALIKES, ids=range(len(LOOK_ALIKES)))
def test_look_alike_passes(text: str) -> None:
    assert not scan(text).blocked


@pytest.mark.parametrize("before", ["凭证为", "キー", "키는", "ключ:", "“", "(", "=", "："])
@pytest.mark.parametrize("after", ["です", "。", "”", ")", "，谢谢", ""])
def test_neighbours_without_spaces_do_not_hide_a_token(before: str, after: str) -> None:
    assert scan(f"{before}{GITHUB}{after}").blocked


def test_a_random_token_without_a_name_is_only_suspect() -> None:
    verdict = scan("the value is " + MAKER.body("an", 32))
    assert not verdict.blocked
    assert verdict.suspect


def test_verdict_tells_nothing_of_the_text() -> None:
    verdict = scan(f"DB_PASSWORD={PASSWORD}")
    assert PASSWORD not in repr(verdict)
    assert {type(value) for value in (verdict.blocked, verdict.suspect, verdict.allowed)} == {bool}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("my visa is 4539 1488 " + "0343 6467 exp 09/28", "payment_card"),
        ("SSN 536-22-" + "1234 for the form", "social_security"),
    ],
)
def test_personal_numbers(text: str, rule: str) -> None:
    assert (scan(text).reason, scan(text).rule) == ("personal", rule)


def test_order_numbers_and_own_ids_are_no_cards() -> None:
    assert not scan("order number 4111111111111112 has shipped").blocked
    assert not scan("id 0192e4a1-4111-7111-8111-111111111111").blocked
