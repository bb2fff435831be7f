"""What a shell or a program relies on: exit codes, one line, one object, no traceback, quick help."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apps.conftest import Cli

from omoide.apps.cli.main import main

MISUSES = [
    ("nosuchverb",),
    ("status", "--nosuchoption"),
    ("recall",),
    ("recall", "words"),
    ("recall", "words", "--agent", ""),
    ("recall", "words", "--agent", "a", "--limit", "0"),
    ("recall", "words", "--agent", "a", "--format", "poem"),
    ("recall", "words", "--agent", "a", "--partition", "colour=red"),
    ("recall", "words", "--agent", "a", "--partition", "agent_id"),
    ("retain", "words", "--agent", "a", "--set", "nosuchfield=1"),
    ("retain", "words", "--agent", "a", "--set", "importance=much"),
    ("retain", "words", "--agent", "a", "--set", "importance=[]"),
    ("retain", "words", "--agent", "a", "--set", "occurred_at=2026-03-02T09:00:00"),
    ("forget", "--agent", "a"),
    ("forget", "x", "--everything", "--agent", "a"),
    ("list", "--agent", "a", "--order", "colour"),
    ("list", "--agent", "a", "--model", "nosuchmodule:Thing"),
    ("list", "--agent", "a", "--model", "omoide.recipes:SubconsciousMemory"),
    ("list", "--agent", "a", "--model", "nocolon"),
    ("reindex",),
    ("status", "--url", "gopher://host"),
    ("status", "--url", "redis://host:6379/zero"),
    ("status", "--namespace", "two words"),
    ("doctor", "--model", "Nope"),
    ("doctor", "--model", "nosuchmodule:Thing"),
    ("demo", "--folder", "."),
]


@pytest.mark.parametrize("arguments", MISUSES, ids=" ".join)
def test_misuse_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OMOIDE_URL", store_url)
    code = main(arguments)
    captured = capsys.readouterr()
    assert code == 2, captured.err
    assert captured.out == ""
    assert captured.err.startswith("omoide: ")
    assert captured.err.count("\n") == 1


def test_an_unreachable_store_is_exit_code_1_and_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert main(["status", "--url", "redis://127.0.0.1:1", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["type"] == "StoreUnavailableError"
    assert captured.err.count("\n") == 1


def test_an_unexpected_error_tells_its_kind_and_place_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from omoide.apps.cli import upkeep

    def broken(folder: object) -> None:
        raise ZeroDivisionError("secret text")

    monkeypatch.setattr(upkeep, "stop", broken)
    assert main(["stop"]) == 1
    told = capsys.readouterr().err
    assert "ZeroDivisionError" in told
    assert "secret text" not in told


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = {}['content of a memory']", "KeyError at torn.py:1"),
        ("\nraise ImportError('content of a memory')", "ImportError at torn.py:2"),
        ("def f(:", "SyntaxError at torn.py:1"),
        ("import sys; sys.exit('content of a memory')", "SystemExit at torn.py:1"),
        ("import nosuchpart", "there is no module 'nosuchpart'"),
        ("def __getattr__(name): return 1 / 0", "ZeroDivisionError at torn.py:1"),
    ],
)
def test_a_module_that_fails_on_import_is_named(
    source: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "torn.py").write_text(source + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torn", raising=False)
    assert main(["list", "--agent", "a", "--model", "torn:Thing"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"omoide: cannot import 'torn': {told}")
    assert "content of a memory" not in error


def test_the_version_is_the_one_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    import omoide

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"omoide {omoide.__version__}\n"


@pytest.mark.parametrize("arguments", [("-h",), ("recall", "-h")], ids=" ".join)
def test_a_short_option_shows_the_help(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("Usage: omoide")


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_help_loads_no_client_and_no_numpy() -> None:
    program = (
        "import sys; from omoide.apps.cli.main import main; main(['--help']);"
        "heavy = {'redis', 'numpy', 'msgspec', 'Stemmer', 'omoide.model.instance'} & set(sys.modules);"
        "print(heavy, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip().splitlines()[-1] == "set()"


def test_what_a_memory_goes_through_works_in_interpreters_of_their_own(cli: Cli) -> None:
    """Elsewhere what a verb needs may be there because another one imported it."""
    for words in (
        ("retain", "a heron by the river", "--agent", "ada"),
        ("recall", "heron", "--agent", "ada", "--json"),
        ("export", "kept.jsonl", "--agent", "ada"),
        ("forget", "--everything", "--agent", "ada"),
        ("import", "kept.jsonl"),
        ("doctor",),
    ):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "omoide.apps.cli.main", *words],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=cli.folder,
            env={**os.environ, "OMOIDE_URL": cli.url},
        )
        assert (done.returncode, done.stderr) == (0, ""), words
    assert "1 partitions, the indexes of all are sound" in done.stdout


def test_a_broken_pipe_is_quiet(cli: Cli) -> None:
    for number in range(3):
        cli("retain", f"note {number}", "--agent", "ada")
    program = f"{sys.executable} -m omoide.apps.cli.main list --agent ada | true"
    done = subprocess.run(
        program,
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OMOIDE_URL": cli.url},
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
