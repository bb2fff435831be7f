"""The detectors under test, each a function from a text to "would it be blocked".

A rival that is not installed here may be run by another Python: its side is this module run as a
script, which reads JSON strings, one a line, and answers `blocked seconds` for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

Blocks = Callable[[str], bool]


def omoide() -> Blocks:
    """The firewall with whatever accelerator is installed."""
    from omoide.privacy import scan, self_test

    self_test()
    return lambda text: scan(text).blocked


def omoide_plain() -> Blocks:
    """The firewall in pure Python."""
    from omoide.privacy import scan, scanner, self_test
    from omoide.privacy.gates import make_gate

    look = make_gate(scanner.questions())
    scanner.gate = lambda: look  # type: ignore[assignment]
    self_test()
    return lambda text: scan(text).blocked


def popoto() -> Blocks:
    """popoto's never-record scan."""
    library: Any = import_module("popoto.privacy.never_record")
    return lambda text: bool(library.scan_never_record(text))


def detect_secrets() -> Blocks:
    """detect-secrets with its default plugins and filters, on a file, as it is meant to be used."""
    import tempfile

    library: Any = import_module("detect_secrets")
    settings: Any = import_module("detect_secrets.settings")

    def blocks(text: str) -> bool:
        with (
            tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file,
            settings.default_settings(),
        ):
            file.write(text)
            file.flush()
            secrets = library.SecretsCollection()
            secrets.scan_file(file.name)
            return bool(secrets.data)

    return blocks


def betterleaks() -> Blocks:
    """Betterleaks through its bindings, embedded rules."""
    library: Any = import_module("betterleaks")
    return lambda text: bool(library.scan_string(text))


def kingfisher() -> Blocks:
    """Kingfisher through its bindings, built-in rules."""
    library: Any = import_module("kingfisher_sdk")
    scanner = library.Scanner()
    return lambda text: bool(scanner.scan(text.encode()))


DETECTORS: dict[str, Callable[[], Blocks]] = {
    "omoide": omoide,
    "omoide-plain": omoide_plain,
    "popoto": popoto,
    "detect-secrets": detect_secrets,
    "betterleaks": betterleaks,
    "kingfisher": kingfisher,
}


class Worker:
    """One detector in a process of its own, so that none sees another's caches or patches."""

    def __init__(self, name: str, python: str = sys.executable) -> None:
        self.name = name
        root = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.firewall.detectors", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=root,
        )
        self.ready = self._read() == "ready"

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, text: str, repeats: int = 1) -> tuple[bool, float]:
        """Whether the text is blocked, and the fewest seconds of processor one scan of it took."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([repeats, text]) + "\n")
        self._process.stdin.flush()
        blocked, seconds = self._read().split()
        return blocked == "1", float(seconds)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=10)


def _answers(blocks: Blocks, lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        repeats, text = json.loads(line)
        best, blocked = 1e9, False
        for _ in range(repeats):
            start = process_time()
            blocked = blocks(text)
            best = min(best, process_time() - start)
        yield f"{int(blocked)} {best:.9f}"


def _serve(name: str) -> int:
    try:
        blocks = DETECTORS[name]()
    except ImportError:
        print("missing", flush=True)
        return 1
    print("ready", flush=True)
    for answer in _answers(blocks, iter(sys.stdin.readline, "")):
        print(answer, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(_serve(sys.argv[1]))
