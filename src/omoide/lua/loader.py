"""Read the Lua verbs: header, includes, digest.

A verb starts with a header of comment lines:

    -- save: what it does
    -- KEYS: head
    -- ARGV: what it takes
    -- Returns: what it answers
    -- Cost: server work
    -- Include: put records        (libraries in lib/, taken in once each, depth first)

The text sent to the server is the verb and what it needs of the libraries, with comment lines removed; its
SHA-1 is computed here, so that EVALSHA works without asking the server. A script makes its functions anew at
every call, which costs the server a fraction of a microsecond each: those that nothing names are left out.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from omoide.errors import ModelError

READ_ONLY = frozenset(
    {
        "column",
        "count",
        "digests",
        "dump",
        "edges",
        "fetch",
        "get",
        "ids",
        "left",
        "missing",
        "order",
        "page",
        "place",
        "rank",
        "records",
        "slots",
        "spread",
        "top",
        "turn",
        "vocabulary",
    }
)
_FUNCTION = re.compile(r"local function (\w+)\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_HEADER = re.compile(r"^-- (?:(KEYS|ARGV|Returns|Cost|Include): ?)?(.*)$")


@dataclass(frozen=True, slots=True)
class Script:
    """One verb: its text as sent, its digest and its header."""

    name: str
    source: str
    sha: bytes
    keys: str
    argv: str
    returns: str
    cost: str
    includes: tuple[str, ...]

    @property
    def read_only(self) -> bool:
        """Whether it runs as EVALSHA_RO."""
        return self.name in READ_ONLY


def _read(path: str) -> str:
    return (files("omoide.lua") / path).read_text(encoding="utf-8")


def _header(text: str) -> dict[str, str]:
    """The fields of the leading comment block; continuation lines are joined."""
    fields: dict[str, str] = {}
    current = "summary"
    for line in text.splitlines():
        match = _HEADER.match(line)
        if match is None:
            break
        if match[1]:
            current = match[1]
        fields[current] = f"{fields.get(current, '')} {match[2].strip()}".strip()
    return fields


def _code(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line and not line.lstrip().startswith("--"))


def _needed(code: str) -> str:
    """The code without the functions of its top level that the rest does not name, directly or by others.

    A function of the top level is one line, or ends at the first `end` that is not indented.
    """
    pieces: list[tuple[str, list[str]]] = []  # (function, "" for what is none; lines)
    inside = False
    for line in code.splitlines():
        starts = None if inside else _FUNCTION.match(line)
        if starts is not None:
            pieces.append((starts[1], [line]))
            inside = not line.endswith(" end")
        elif inside:
            pieces[-1][1].append(line)
            inside = line != "end"
        else:
            pieces.append(("", [line]))
    bodies: dict[str, set[str]] = {}
    for name, lines in pieces:
        bodies.setdefault(name, set()).update(_NAME.findall("\n".join(lines)))
    wanted, found = {""}, [""]
    while found:
        named = bodies[found.pop()] & bodies.keys() - wanted
        wanted |= named
        found += named
    return "\n".join("\n".join(lines) for name, lines in pieces if name in wanted)


def _collect(name: str, taken: list[str]) -> None:
    path = f"lib/{name}.lua"
    for line in _read(path).splitlines():
        if line.startswith("-- Include:"):
            for included in line.removeprefix("-- Include:").split():
                if included not in taken:
                    _collect(included, taken)
    if name not in taken:
        taken.append(name)


@cache
def load(name: str) -> Script:
    """The verb of that name.

    Raises:
        ModelError: A header field is missing.
    """
    text = _read(f"{name}.lua")
    header = _header(text)
    missing = [field for field in ("KEYS", "ARGV", "Returns", "Cost", "Include") if field not in header]
    if missing or not header.get("summary", "").startswith(f"{name}:"):
        raise ModelError(f"{name}.lua: the header lacks {', '.join(missing) or 'its name'}")
    libraries: list[str] = []
    for include in header["Include"].split():
        if include not in libraries:
            _collect(include, libraries)
    parts = [*(_code(_read(f"lib/{library}.lua")) for library in libraries), _code(text)]
    source = _needed("\n".join(parts))
    digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest().encode()
    return Script(
        name=name,
        source=source,
        sha=digest,
        keys=header["KEYS"],
        argv=header["ARGV"],
        returns=header["Returns"],
        cost=header["Cost"],
        includes=tuple(libraries),
    )


def names() -> tuple[str, ...]:
    """Every verb, sorted."""
    found = (entry.name for entry in files("omoide.lua").iterdir())
    return tuple(sorted(name.removesuffix(".lua") for name in found if name.endswith(".lua")))
