"""The only place that reads the environment, always at call time, never at import.

    OMOIDE_URL                        store to connect to when `connect` is given none
    OMOIDE_POSTGRES                   PostgreSQL behind mirrors and long-term memory: a URL, or `embedded`
    OMOIDE_NAMESPACE                  first part of every key (default `omoide`)
    OMOIDE_DATA_DIR                   folder of the embedded store and of local state
    OMOIDE_MAX_RECORDS_PER_PARTITION  the default cap: a number, 0 switches it off
    OMOIDE_NEVER_RECORD_DISABLE       `1` switches the never-record firewall off
    OMOIDE_TIMEOUT                    seconds a call may take (default 5)
    OMOIDE_EMBEDDING_KEY              bearer token of an `HttpProvider` that is given none

Platform variables (`XDG_DATA_HOME`, `XDG_RUNTIME_DIR`, `HOME`) follow their own conventions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from omoide.errors import OmoideError

__all__ = [
    "DEFAULT_NAMESPACE",
    "DEFAULT_TIMEOUT",
    "MOST_SECONDS",
    "call_timeout",
    "data_dir",
    "embedding_key",
    "max_records_per_partition",
    "namespace",
    "never_record_disabled",
    "postgres_url",
    "runtime_dir",
    "store_url",
]

DEFAULT_NAMESPACE = "omoide"
DEFAULT_TIMEOUT = 5.0
"""Seconds a call to the store may take, connecting included."""

MOST_SECONDS = 2_147_483
"""Longest time limit: in milliseconds it fits 31 bits, which is what sockets and PostgreSQL take."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


def store_url() -> str | None:
    """`OMOIDE_URL`, or None when unset or empty."""
    return os.environ.get("OMOIDE_URL", "").strip() or None


def postgres_url() -> str | None:
    """`OMOIDE_POSTGRES`: `postgresql://...`, `embedded`, or None when unset or empty."""
    return os.environ.get("OMOIDE_POSTGRES", "").strip() or None


def namespace() -> str:
    """`OMOIDE_NAMESPACE`, by default `omoide`."""
    return os.environ.get("OMOIDE_NAMESPACE", "").strip() or DEFAULT_NAMESPACE


def call_timeout() -> float:
    """`OMOIDE_TIMEOUT` in seconds, > 0 and at most `MOST_SECONDS`, by default 5."""
    text = os.environ.get("OMOIDE_TIMEOUT", "").strip()
    if not text:
        return DEFAULT_TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds <= MOST_SECONDS:
        raise OmoideError(f"OMOIDE_TIMEOUT is not a number of seconds above 0, at most {MOST_SECONDS:,}")
    return seconds


def max_records_per_partition() -> int | None:
    """`OMOIDE_MAX_RECORDS_PER_PARTITION`: None when unset, 0 = no cap.

    Raises:
        OmoideError: it is set to something that is not a whole number >= 0.
    """
    text = os.environ.get("OMOIDE_MAX_RECORDS_PER_PARTITION", "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise OmoideError("OMOIDE_MAX_RECORDS_PER_PARTITION is not a whole number of at least 0")
    return int(text)


def never_record_disabled() -> bool:
    """Whether `OMOIDE_NEVER_RECORD_DISABLE` switches the firewall off.

    Raises:
        OmoideError: it is neither a yes nor a no; a typo must not decide about privacy.
    """
    text = os.environ.get("OMOIDE_NEVER_RECORD_DISABLE", "").strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise OmoideError("OMOIDE_NEVER_RECORD_DISABLE is neither 1 nor 0")


def embedding_key() -> str:
    """`OMOIDE_EMBEDDING_KEY`, "" when unset."""
    return os.environ.get("OMOIDE_EMBEDDING_KEY", "").strip()


def data_dir() -> Path:
    """Folder of this user's data: `OMOIDE_DATA_DIR`, else what the platform prescribes."""
    if given := os.environ.get("OMOIDE_DATA_DIR", ""):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "omoide"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "omoide"
    xdg = os.environ.get("XDG_DATA_HOME", "")
    root = Path(xdg) if xdg and os.path.isabs(xdg) else Path.home() / ".local" / "share"
    return root / "omoide"


def runtime_dir() -> Path:
    """Short, private folder for sockets: below `XDG_RUNTIME_DIR`, else one per user in the temp folder.

    It may not exist yet; whoever creates it checks owner and mode.
    """
    xdg = os.environ.get("XDG_RUNTIME_DIR", "")
    if xdg and os.path.isabs(xdg) and os.path.isdir(xdg) and len(os.fsencode(xdg)) <= 60:
        return Path(xdg) / "omoide"
    import tempfile

    temp = tempfile.gettempdir()
    if len(os.fsencode(temp)) > 50:
        temp = "/tmp"
    return Path(temp) / f"omoide-{os.getuid() if hasattr(os, 'getuid') else 0}"
