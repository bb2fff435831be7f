"""What the server at the other end is, found out once when a wire is first used."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omoide.errors import CapabilityError

__all__ = ["PROBE", "Capabilities", "read_capabilities"]

_LOG = logging.getLogger("omoide")

PROBE: Final[tuple[tuple[str, ...], ...]] = (("INFO",), ("HELLO",))
"""Commands whose replies `read_capabilities` takes; HELLO stands in where INFO is denied."""

_OLDEST: Final[Mapping[str, tuple[int, ...]]] = {"redis": (7, 0), "valkey": (7, 2)}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The server.

    Attributes:
        name: `valkey`, `redis`, or `unknown` when the user may see neither INFO nor HELLO.
        version: Its numbers, for example (9, 1, 2); empty when unknown.
        cluster: Whether it is a node of a cluster.
        maxmemory_policy: Its eviction policy, empty when unknown.
        maxmemory: Bytes, 0 = no limit or unknown.
    """

    name: str
    version: tuple[int, ...]
    cluster: bool
    maxmemory_policy: str
    maxmemory: int

    @property
    def version_text(self) -> str:
        """`9.1.2`, or `unknown`."""
        return ".".join(map(str, self.version)) or "unknown"


def read_capabilities(replies: Sequence[Any], address: str) -> Capabilities:
    """Read the replies to `PROBE`, and log one warning for what endangers memories.

    Raises:
        CapabilityError: the server is older than Redis 7.0 or Valkey 7.2.
    """
    info = _info(replies[0])
    hello = _pairs(replies[1])
    name = info.get("server_name") or ("valkey" if "valkey_version" in info else "")
    if not name:
        name = "redis" if info else hello.get("server", "unknown")
    text = info.get(f"{name}_version") or info.get("redis_version") or hello.get("version", "")
    found = Capabilities(
        name=name,
        version=tuple(int(part) for part in re.findall(r"\d+", text)[:3]),
        cluster=info.get("cluster_enabled", "0") == "1" or hello.get("mode") == "cluster",
        maxmemory_policy=info.get("maxmemory_policy", ""),
        maxmemory=int(info.get("maxmemory", "0")),
    )
    oldest = _OLDEST.get(name, _OLDEST["redis"])
    if found.version and found.version < oldest:
        raise CapabilityError(
            f"{address} runs {name} {found.version_text}; omoide needs Redis >= 7.0 or Valkey >= 7.2"
        )
    if not found.version:
        _LOG.warning("%s does not tell its version; omoide needs Redis >= 7.0 or Valkey >= 7.2", address)
    if found.maxmemory_policy not in ("", "noeviction"):
        _LOG.warning(
            "%s evicts keys (maxmemory-policy %s): one evicted key tears a partition; set noeviction",
            address,
            found.maxmemory_policy,
        )
    return found


def _info(reply: Any) -> dict[str, str]:
    if not isinstance(reply, bytes):
        return {}
    lines = reply.decode("utf-8", "replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))


def _pairs(reply: Any) -> dict[str, str]:
    """HELLO's flat list of names and values, those that are text."""
    if not isinstance(reply, list):
        return {}
    pairs = zip(reply[::2], reply[1::2], strict=False)
    return {
        name.decode(): value.decode()
        for name, value in pairs
        if isinstance(name, bytes) and isinstance(value, bytes)
    }
