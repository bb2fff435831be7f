"""A secret in disguise is found; ordinary encoded data is not taken for one."""

from __future__ import annotations

import base64
import html
from collections.abc import Callable

import pytest

from omoide.privacy import scan
from omoide.privacy.samples import Maker

MAKER = Maker(3)
TOKEN = "gl" + "pat-" + MAKER.body("an", 24)

DISGUISES: dict[str, Callable[[str], str]] = {
    "zero_width": "\u200b".join,
    "soft_hyphen": lambda s: s[:8] + "\xad" + s[8:],
    "bidi": lambda s: "\u202a" + s[:10] + "\u2060" + s[10:] + "\u202c",
    "full_width": lambda s: "".join(chr(ord(c) + 65248) for c in s),
    "percent": lambda s: "".join(f"%{ord(c):02x}" for c in s),
    "entities": lambda s: "".join(f"&#{ord(c)};" for c in s),
    "named_entities": lambda s: html.escape(s).replace("-", "&#45;").replace("_", "&#95;"),
    "unicode_escape": lambda s: "".join(f"\\u{ord(c):04x}" for c in s),
    "hex_escape": lambda s: "".join(f"\\x{ord(c):02x}" for c in s),
    "joined": lambda s: f'"{s[:9]}" + "{s[9:]}"',
    "touching": lambda s: f"'{s[:9]}' '{s[9:]}'",
    "wrapped": lambda s: s[:14] + "\n" + s[14:],
    "wrapped_backslash": lambda s: s[:14] + "\\\n    " + s[14:],
    "quoted_wrap": lambda s: s[:14] + "\n> " + s[14:],
    "spaced": " ".join,
    "base64": lambda s: base64.b64encode(f"API_TOKEN={s}".encode()).decode(),
    "base64_twice": lambda s: base64.b64encode(base64.b64encode(f"TOKEN={s}".encode())).decode(),
    "base64_assigned": lambda s: "data=" + base64.b64encode(f"TOKEN={s}".encode()).decode(),
    "hex": lambda s: s.encode().hex(),
    "hex_pairs": lambda s: " ".join(f"{ord(c):02x}" for c in s),
    "quoted_printable": lambda s: "".join(f"={ord(c):02X}" for c in s),
    "octal": lambda s: "".join(f"\\{ord(c):03o}" for c in s),
    "codes": lambda s: "bytes([" + ", ".join(str(ord(c)) for c in s) + "])",
    "codes_of_javascript": lambda s: "String.fromCharCode(" + ",".join(str(ord(c)) for c in s) + ")",
    "chr": lambda s: "+".join(f"chr({ord(c)})" for c in s),
    "dotted": ".".join,
    "dashed": "-".join,
    "one_a_line": "\n".join,
    "markdown": lambda s: f"**`{s}`**",
}


@pytest.mark.parametrize("name", DISGUISES)
def test_disguised_token_is_blocked(name: str) -> None:
    assert scan(f"use this one: {DISGUISES[name](TOKEN)} thanks").blocked


@pytest.mark.parametrize(
    "text",
    [
        "the wifi pаssword is Otter84x",
        "my pass\u200bword is Otter84!x",
        "ｐａｓｓｗｏｒｄ: Otter84x",
        "pAsSwOrD -> Otter84!x",
        "Oﬀ the record, we lost it",
    ],
)
def test_disguised_words_are_read(text: str) -> None:
    assert scan(text).blocked


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(b"just an ordinary sentence about the weather in Berlin").decode(),
        b"hello world, how are you".hex(),
        "a b c d e f g h i j k l m n o p q r s t",
        "https://example.org/search?q=caf%C3%A9%20au%20lait%20%26%20more",
        "&#72;&#101;&#108;&#108;&#111; world",
    ],
)
def test_ordinary_encoded_text_passes(text: str) -> None:
    assert not scan(text).blocked
