"""Every string of a record is scanned, wherever it sits."""

from __future__ import annotations

import pytest

from omoide.privacy import scan_values
from omoide.privacy.samples import Maker

TOKEN = "gh" + "p_" + Maker(8).body("an", 36)


@pytest.mark.parametrize(
    "value",
    [
        TOKEN,
        [TOKEN],
        ("a", ["b", TOKEN]),
        {TOKEN},
        frozenset({TOKEN}),
        {"a": {"b": [{"c": TOKEN}]}},
        {TOKEN: 1},
        TOKEN.encode(),
        bytearray(TOKEN.encode()),
        [{"x": b"\xff"}, {"y": TOKEN.encode()}],
    ],
    ids=range(10),
)
def test_nested_secret_is_found(value: object) -> None:
    assert scan_values({"note": value}).blocked


def test_a_value_is_judged_beside_its_name() -> None:
    assert not scan_values({"note": "OtterLantern84"}).blocked
    assert scan_values({"password": "OtterLantern84"}).blocked
    assert scan_values({"settings": {"wifi_password": "OtterLantern84"}}).blocked
    assert scan_values({"pin": 4921}).blocked


def test_ordinary_record_passes() -> None:
    record = {
        "content": "Bob likes tea",
        "tags": ["tea", "bob"],
        "importance": 0.5,
        "blob": b"\xff\xfe",
        "meta": {"n": None},
    }
    assert not scan_values(record).blocked


def test_a_record_that_nests_too_deeply_is_refused() -> None:
    value: object = "x"
    for _ in range(40):
        value = [value]
    assert scan_values({"v": value}).reason == "budget"


def test_a_value_that_fails_is_refused() -> None:
    class Broken(dict[str, object]):
        def items(self):  # type: ignore[no-untyped-def]
            raise RuntimeError("broken")

    assert scan_values({"v": Broken(a=1)}).reason == "error"
