"""Store URLs: what they mean, and that they keep their secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omoide.errors import StoreError
from omoide.stores.redis.url import Target, parse_url

SECRET = "pa:ss/w@rd%21"
QUOTED = "pa%3Ass%2Fw%40rd%2521"


@pytest.mark.parametrize(
    ("url", "kind", "addresses"),
    [
        ("redis://", "single", (("localhost", 6379),)),
        ("redis://h", "single", (("h", 6379),)),
        ("redis://h:1234/3", "single", (("h", 1234),)),
        ("REDIS://h:1234", "single", (("h", 1234),)),
        ("redis://[::1]:7000", "single", (("::1", 7000),)),
        ("redis://[fe80::1]", "single", (("fe80::1", 6379),)),
        ("unix:///run/v.sock", "single", (("/run/v.sock", 0),)),
        ("unix:///run/a%20b.sock?db=2", "single", (("/run/a b.sock", 0),)),
        ("redis+cluster://a:1,b:2,[::1]:3", "cluster", (("a", 1), ("b", 2), ("::1", 3))),
        ("redis+sentinel://a,b:5/mine", "sentinel", (("a", 26379), ("b", 5))),
    ],
)
def test_addresses(url: str, kind: str, addresses: tuple[tuple[str, int], ...]) -> None:
    target = parse_url(url)
    assert (target.kind, target.addresses) == (kind, addresses)


def test_credentials_database_and_options() -> None:
    target = parse_url(f"rediss://me:{QUOTED}@h:1/5?ssl_cert_reqs=none&ssl_check_hostname=false&timeout=2.5")
    assert target.tls
    assert target.timeout == 2.5
    assert dict(target.options) == {
        "username": "me",
        "password": SECRET,
        "db": 5,
        "ssl_cert_reqs": "none",
        "ssl_check_hostname": False,
    }


def test_password_without_a_user_and_on_a_socket() -> None:
    assert parse_url("redis://:pw@h").options["password"] == "pw"
    assert parse_url("unix://me:pw@/run/v.sock").options == {"username": "me", "password": "pw"}
    assert parse_url("unix:///run/v.sock?password=a%2525b").options["password"] == "a%25b"


def test_sentinel_has_a_service_a_database_and_its_own_credentials() -> None:
    target = parse_url("rediss+sentinel://u:p@a:1,b:2/mine/4?sentinel_password=s&ssl_cert_reqs=none")
    assert (target.service, target.tls, target.options["db"]) == ("mine", True, 4)
    assert dict(target.sentinel_options) == {"password": "s", "ssl_cert_reqs": "none"}


def test_embedded() -> None:
    assert parse_url("embedded://") == Target("embedded")
    assert parse_url("embedded:///some/fol%20der").folder == Path("/some/fol der")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis",
        "http://h",
        "redis://a,b",
        "redis://h:0",
        "redis://h:99999",
        "redis://h:port",
        "redis://h/db",
        "redis://h?decode_responses=true",
        "redis://h?ssl_cert_reqs=none",
        "redis://h?timeout=soon",
        "redis://h?timeout=0",
        "redis://h?db=x",
        "rediss://h?ssl_check_hostname=perhaps",
        "rediss://h?ssl_include_verify_flags=NONE_SUCH",
        "redis+cluster://h/3",
        "redis+sentinel://h:1",
        "unix://relative.sock",
        "embedded://relative",
        "embedded:///x?timeout=3",
    ],
)
def test_refused(url: str) -> None:
    with pytest.raises(StoreError):
        parse_url(url)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{QUOTED}@h:1/5",
        f"unix://me:{QUOTED}@/run/v.sock",
        f"redis+cluster://me:{QUOTED}@a:1,b:2",
        f"redis+sentinel://me:{QUOTED}@a:1/mine?sentinel_password={QUOTED}",
    ],
)
def test_credentials_are_shown_nowhere(url: str) -> None:
    target = parse_url(url)
    for text in (repr(target), str(target), target.safe_url):
        assert "me" not in text.replace("mine", "")
        assert SECRET not in text
        assert QUOTED not in text


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_without_its_secret(text: str) -> None:
    for url in (text, f"redis://user:s3cr3t@{text}", f"redis://h?{text}=s3cr3t"):
        try:
            shown = repr(parse_url(url))
        except StoreError as error:
            shown = f"{error} {error.hint}"
        assert "s3cr3t" not in shown
