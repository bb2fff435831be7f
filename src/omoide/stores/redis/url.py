"""Where a store is: URLs read into a `Target`, which never shows its credentials.

    redis://[user:password@]host[:port][/db][?option=value]       one server, or a cluster it belongs to
    rediss://...                                                  the same over TLS
    unix://[user:password@]/path/of.sock[?db=0]
    redis+cluster://[user:password@]host:port,host:port           (rediss+cluster:// over TLS)
    redis+sentinel://[user:password@]host:port,host:port/name[/db]
    embedded://  embedded:///folder                               the server omoide brings along

Options are redis-py's: `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`, `ssl_cert_reqs`,
`ssl_check_hostname` and so on, `socket_connect_timeout`, `client_name`;
`timeout` is the default deadline of a call in seconds; `sentinel_username` and
`sentinel_password` are for the sentinels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

from omoide.errors import StoreError
from omoide.model.partition import text_rule
from omoide.settings import MOST_SECONDS

__all__ = ["Address", "Target", "parse_url"]

Address = tuple[str, int]
"""Host and TCP port; for a unix socket its path and 0."""

Kind = Literal["embedded", "single", "cluster", "sentinel"]

_SCHEMES: Mapping[str, tuple[Kind, bool]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "unix": ("single", False),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "embedded": ("embedded", False),
}
_PLAIN_OPTIONS = frozenset({"db", "username", "password", "client_name", "socket_connect_timeout", "timeout"})
_SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
_HINT = "for example redis://localhost:6379/0, unix:///run/valkey.sock or embedded://"


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A parsed URL.

    Attributes:
        kind: `embedded`, `single`, `cluster` or `sentinel`.
        addresses: The servers, seeds or sentinels to ask; empty for `embedded`.
        tls: Whether connections are TLS.
        folder: Folder of the embedded store, None for the user's own.
        service: Name of the primary, for `sentinel`.
        timeout: Default deadline of a call in seconds, or None.
        options: Keyword arguments of a redis-py connection; holds the credentials.
        sentinel_options: The same for connections to the sentinels.
    """

    kind: Kind
    addresses: tuple[Address, ...] = ()
    tls: bool = False
    folder: Path | None = None
    service: str = ""
    timeout: float | None = None
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    sentinel_options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def safe_url(self) -> str:
        """The URL without user, password and options, for people to read."""
        if self.kind == "embedded":
            return f"embedded://{self.folder or ''}"
        if self.kind == "single" and self.addresses[0][1] == 0:
            return f"unix://{self.addresses[0][0]}"
        scheme = ("rediss" if self.tls else "redis") + ("" if self.kind == "single" else f"+{self.kind}")
        hosts = ",".join(show_address(address) for address in self.addresses)
        service = f"/{self.service}" if self.service else ""
        db = f"/{self.options['db']}" if self.options.get("db") else ""
        return f"{scheme}://{hosts}{service}{db}"

    def __repr__(self) -> str:
        return f"<Target {self.safe_url}>"


def show_address(address: Address) -> str:
    """`host:port`, `[v6]:port` or the path of a socket."""
    host, port = address
    if port == 0:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_url(url: str) -> Target:
    """Read a store URL.

    Raises:
        StoreError: it cannot be read; the message repeats no part that could be a secret.
    """
    if text_rule(url) is not None:
        raise StoreError("the store URL holds a lone surrogate", hint=_HINT)
    scheme, separator, rest = url.strip().partition("://")
    kind_tls = _SCHEMES.get(scheme.lower()) if separator else None
    if kind_tls is None:
        raise StoreError("the store URL starts with no scheme that omoide knows", hint=_HINT)
    kind, tls = kind_tls
    rest, _, query = rest.partition("?")
    if kind == "embedded":
        return _embedded(rest, query)
    credentials, _, place = rest.rpartition("@")
    username, _, password = credentials.partition(":")
    given = _query(query, kind, tls)
    if username:
        given.setdefault("username", unquote(username))
    if password:
        given.setdefault("password", unquote(password))
    if scheme.lower() == "unix":
        if not place.startswith("/"):
            raise StoreError("a unix:// URL needs the whole path of a socket", hint=_HINT)
        return _target(kind, ((unquote(place), 0),), False, given)
    hosts, _, path = place.partition("/")
    service = ""
    if kind == "sentinel":
        service, _, path = path.partition("/")
        if not service:
            raise StoreError("a sentinel URL needs the name of the primary: redis+sentinel://host:port/name")
    addresses = _addresses(hosts, 26379 if kind == "sentinel" else 6379)
    if kind == "single" and len(addresses) != 1:
        raise StoreError("several hosts need redis+cluster:// or redis+sentinel://", hint=_HINT)
    if path.strip("/"):
        given["db"] = _number(path.strip("/"), "the database")
    if kind == "cluster" and given.get("db"):
        raise StoreError("a cluster has only database 0")
    return _target(kind, addresses, tls, given, unquote(service))


def _embedded(rest: str, query: str) -> Target:
    if query:
        raise StoreError("embedded:// takes no options")
    folder = unquote(rest)
    if folder and not (folder.startswith("/") or re.match(r"[A-Za-z]:[\\/]", folder)):
        raise StoreError("embedded:// needs an absolute folder: embedded:///some/folder")
    return Target("embedded", folder=Path(folder) if folder else None)


def _target(
    kind: Kind, addresses: tuple[Address, ...], tls: bool, given: dict[str, Any], service: str = ""
) -> Target:
    timeout = given.pop("timeout", None)
    sentinel = {name: given.pop(f"sentinel_{name}", None) for name in ("username", "password")}
    shared = {name: value for name, value in given.items() if name.startswith("ssl_")}
    return Target(
        kind,
        addresses,
        tls,
        service=service,
        timeout=timeout,
        options=MappingProxyType(given),
        sentinel_options=MappingProxyType(
            shared | {name: value for name, value in sentinel.items() if value is not None}
        ),
    )


def _query(query: str, kind: Kind, tls: bool) -> dict[str, Any]:
    """Options of the URL with the types redis-py wants; an unknown name is refused."""
    pairs = dict(parse_qsl(query, keep_blank_values=True))
    for name in pairs:
        known = name in _PLAIN_OPTIONS or (tls and name.startswith("ssl_"))
        if not known and not (kind == "sentinel" and name in _SENTINEL_OPTIONS):
            shown = name if re.fullmatch(r"[a-z_]{1,40}", name) else "an option"
            raise StoreError(f"the store URL has {shown}, which omoide does not know")
    try:
        return {name: _CONVERT.get(name, str)(value) for name, value in pairs.items()}
    except (ValueError, AttributeError):
        names = ", ".join(sorted(name for name in pairs if name in _CONVERT))
        raise StoreError(f"the store URL has an invalid value among {names}") from None


def _yes(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off"):
        return False
    raise ValueError


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.0 < seconds <= MOST_SECONDS:
        raise ValueError
    return seconds


def _verify_flags(text: str) -> list[Any]:
    import ssl

    return [getattr(ssl.VerifyFlags, name.strip()) for name in text.strip("[]").split(",")]


_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "db": int,
    "timeout": _seconds,
    "socket_connect_timeout": _seconds,
    "ssl_check_hostname": _yes,
    "ssl_min_version": int,
    "ssl_include_verify_flags": _verify_flags,
    "ssl_exclude_verify_flags": _verify_flags,
}
"""What is not text as it stands."""


def _addresses(hosts: str, default_port: int) -> tuple[Address, ...]:
    found = []
    for part in hosts.split(","):
        match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:\[\]/]*))(?::(\d+))?", part.strip())
        if match is None:
            raise StoreError("the store URL has a host that cannot be read", hint=_HINT)
        port = _number(match[3], "the port") if match[3] else default_port
        if not 0 < port < 65536:
            raise StoreError("the store URL has a port outside 1..65535", hint=_HINT)
        host = unquote(match[1] or match[2]) or "localhost"
        if not _is_host(host):
            raise StoreError("the store URL has a host that cannot be read", hint=_HINT)
        found.append((host, port))
    return tuple(found)


def _is_host(host: str) -> bool:
    """Whether a socket takes it for a name: labels of a length that DNS has."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise StoreError(f"{what} in the store URL is not a number", hint=_HINT)
    return int(text)
