"""Notations that other tools know, and ordinary technical text that looks like them."""

from __future__ import annotations

import pytest

from omoide.privacy import scan
from omoide.privacy.samples import Maker

UUID = "3f2b9c1e-84d7-4a60-b5e2-9d0c7f1a6e38"

SECRETS = {
    "vendor_beside_key": 'deepgram key: "{hex:40}"',
    "vendor_and_word": "customer.io api key {hex:32}",
    "vendor_and_number": "deepgram token 1 == {hex:40}",
    "vendor_alone": "deepgram = {hex:40}",
    "vendor_with_scheme": "statuspage_api: OAuth {hex:64}",
    "vendor_with_uuid": f"scaleway token {UUID}",
    "vendor_in_name_with_uuid": f"STATUSPAGE_KEY = {UUID}",
    "property": "mvn verify -Dsonar.login={hex:40}",
    "name_that_contains_a_denied_one": "bitbucket_key={an:44}",
    "on_the_next_line": "API Key\n{hex:32}",
    "curl_over_lines": "curl -X POST https://i.acme.io \\\n -H 'Accept: */*' \\\n -u deploy:{an:14}",
    "curl_user_only": 'curl -u "{an:24}:" https://api.acme.io',
    "user_without_password": "extra-index-url = https://{an:32}@repo.fury.io/acme",
    "call": "mysqli_connect('db.internal', 'admin', '{an:12}', 'shop')",
    "constructor": '[Net.NetworkCredential]::new("admin", "{an:12}")',
    "scheduled_task": "schtasks /create /tn Backup /tr b.bat /ru admin /rp {an:12}",
    "network_drive": "net use Z: \\\\srv\\share /user:ACME\\admin {an:12}",
    "unseal": "Unseal Key 2: {an:44}",
    "approle": f"secret_id: {UUID}",
    "key_option": "mix hex.organization auth acme --key {hex:32}",
    "swift": 'let apiKey: String = "{an:32}"',
    "rust": 'const AUTH_TOKEN: &str = "{an:40}";',
    "csharp": 'public string ClientSecret {{ get; set; }} = "{an:34}";',
    "perl": "my $password = q{{Walnut{digits:4}!}};",
    "httpie": "http -a admin:{an:12} https://api.acme.io/v1/me",
    "systemd": 'Environment="REDIS_PASSWORD=Walnut{digits:4}*"',
    "redis": "requirepass Walnut{digits:4}#",
    "ldap": "bindpw Walnut{digits:4}?",
    "rows": "user,password,role\nmia,Walnut{digits:4}?,admin",
    "table": "| user | password |\n|---|---|\n| mia | `Walnut{digits:4}#` |",
    "swedish": "lösenordet är Walnut{digits:4}!",
    "danish": "adgangskoden er Walnut{digits:4}!",
    "indonesian": "kata sandinya adalah Walnut{digits:4}!",
    "vietnamese": "mật khẩu là Walnut{digits:4}!",
    "romanian": "parola este Walnut{digits:4}!",
    "french": "le mdp du wifi c'est Walnut{digits:4}!",
    "turned": "it's Walnut{digits:4}!, that's the new password",
    "asked": "my PIN? {digits:4}",
    "provider": "https://eth-mainnet.alchemyapi.io/v2/{an:32}",
}
ORDINARY = {
    "manual_page": "a server wants password authentication\\&. However, \\fB\\-\\-key=\\fIrestrict_key\\fR",
    "manual_option": '\\-\\-page\\-size=3 \\-\\-page\\-token="ala9glealanal908"',
    "jsdoc": "/**\n * Module variables.\n * @private\n */",
    "comment": "strip the bits, which we don't need to store\nhash.mode = strip(mode)",
    "turned_off": "Commit recorded changes, turn off recording, return changes.",
    "possessive": "renamed to --comment to get aligned with passwd's terminology.",
    "infinitive": "is sent as the username/password to authenticate\nwith the proxy",
    "expression": "listening on GnuPG agent and passphrase cache\\.$",
    "condition": "qt: Check constraints before accepting passphrase if\n passphrase constraints are set",
    "annotation": "def encode(self, private_key: ed25519.Ed25519PrivateKey, f_priv: Frag) -> None:",
    "exports": "exports.Socks5Auth = exports.Socks4Response = exports.SocksCommand = void 0;",
    "dictionary": '"Cryptography_HAS_PSK_TLSv1_3": cryptography_has_psk_tlsv13,',
    "issue": "Update version pin (#345), disambiguate pseudo-code statement (Dario) [#57092]",
    "one_time_code": "append --otp=123456 on the command line",
    "table_of_numbers": "visa 5471 5473 5474 5475 5476 5477 5478 5479",
    "made_up_number": "ssn = parse('22 111-22-3333 #221B')",
    "words_of_a_list": "backup: apply backup build clean clone copy debug delete deploy diff edit exec",
    "schema": 'type="clm65495:AgencyIdentificationCodeContentType"',
    "asset": "http://assets.acme.com/media/video_box.ico-7a388b69018576d24b59331fd60aab0c.png",
    "page": "https://acme.notion.site/API-BD80F56CDC1441E6BF6011AB6D852875",
    "key_in_ukrainian": "закритий ключ PKCS#8 (зашифрований)",
    "commit_of_vendor": "deepgram commit: 6c8ba06cb14a32d508948606d8b5d9c8f70e493b",
    "arguments": "copy(a, b)\nlogin(user, password, db)\nstart(main, hmac_sha256, x)",
    "heading": "user, password, role\nare columns, that exist, here",
    "bytes": 'PP_V2_SIGNATURE: Final = b"\\x0d\\x0a\\x0d\\x0a\\x00\\x0d\\x0a\\x51\\x55"',
    "colours": "rgb = [12, 34, 56, 78, 90, 11, 22, 33, 44, 55, 66, 77, 88, 99, 10, 20, 30, 40]",
    "famous": "hunter2 is the famous password joke",
    "tests": "turn off logging for this test",
    "sentry_dsn": "https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/2",
    "playground": "https://play.acme.dev/?code=" + Maker(3).body("an", 480),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_notation_of_a_secret_is_known(name: str) -> None:
    text = Maker(77).fill(SECRETS[name]).replace("{{", "{").replace("}}", "}")
    assert scan(text).reason in ("credential", "natural_language")


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_technical_text_passes(name: str) -> None:
    assert not scan(ORDINARY[name]).blocked
