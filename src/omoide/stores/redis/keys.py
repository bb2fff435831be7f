"""The names of keys, and nothing else builds one.

    <namespace>:{<Model>/<partition value>/...}:<letter>

Model and values are percent-encoded, so that no value can hold a brace, a slash, a colon or a
wildcard; the braces make the hash tag, which puts all keys of a partition into one slot. Scripts get
the head key (letter `h`) and derive the others by its last letter.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from omoide.errors import QueryError
from omoide.model.schema import Scope

DEFAULT_NAMESPACE = "omoide"
_NAMESPACE = re.compile(r"[^\s{}*?\[\]\\\ud800-\udfff]{1,64}")
_HEAD = re.compile(rb"(?P<namespace>[^{}]+):\{(?P<tag>[^{}]+)\}:(?P<letter>[a-z])")


class Keys:
    """The keys of one namespace."""

    def __init__(self, namespace: str | None = None) -> None:
        name = namespace or DEFAULT_NAMESPACE
        if not _NAMESPACE.fullmatch(name):
            raise QueryError("a namespace is 1 to 64 characters, without spaces, braces or wildcards")
        self.namespace = name

    def head(self, scope: Scope) -> bytes:
        """The head key of a partition."""
        return self.key(scope, "h")

    def key(self, scope: Scope, letter: str) -> bytes:
        """One key of a partition."""
        parts = "/".join(quote(part, safe="") for part in (scope.spec.name, *scope.values))
        return f"{self.namespace}:{{{parts}}}:{letter}".encode()

    def pattern(self, model: str | None, letter: str = "h") -> bytes:
        """A SCAN pattern for one key of every partition of a model, or of all models.

        It lets through models whose names go on after this one; `belongs` tells them apart.
        """
        name = "*" if model is None else f"{quote(model, safe='')}*"
        return f"{self.namespace}:{{{name}}}:{letter}".encode()

    def parse(self, key: bytes) -> tuple[str, tuple[str, ...]] | None:
        """(model, partition values) of a key; None for one that this class would not have built."""
        match = _HEAD.fullmatch(key)
        if match is None or match["namespace"] != self.namespace.encode():
            return None
        try:
            parts = match["tag"].decode().split("/")
            model, *values = (unquote(part, errors="strict") for part in parts)
        except UnicodeDecodeError:
            return None
        if [quote(part, safe="") for part in (model, *values)] != parts:
            return None
        return model, tuple(values)

    def belongs(self, key: bytes, model: str | None) -> bool:
        """Whether it is a key of a partition of that model (None: of any)."""
        parsed = self.parse(key)
        return parsed is not None and (model is None or parsed[0] == model)


def model_of(key: bytes) -> str:
    """The model whose partition a key belongs to; "" for a key that is none of omoide's."""
    match = _HEAD.fullmatch(key)
    return "" if match is None else unquote(match["tag"].decode().partition("/")[0])
