"""`omoide embed`, and hybrid recall from the command line, as a user runs them."""

from __future__ import annotations

import json

import pytest
from tests.apps.conftest import Cli

MODULE = """
import os

from omoide import EmbeddingField
from omoide.recipes import DefaultMemory


def provider(texts):
    if os.path.exists("down"):
        raise OSError("content of a memory")
    return [[float("dog" in text or "puppy" in text), 1.0] for text in texts]


class CliMeant(DefaultMemory):
    meaning = EmbeddingField(source="content", provider=provider)


class CliMeantLater(DefaultMemory):
    pass
"""


@pytest.fixture
def meant(cli: Cli) -> Cli:
    (cli.folder / "meantcli.py").write_text(MODULE)
    return cli


def test_what_a_provider_missed_is_made_up_for(meant: Cli) -> None:
    model = ("--model", "meantcli:CliMeant")
    (meant.folder / "down").touch()
    for text in ("I adopted a puppy", "Mia drinks tea", "We met in Oslo"):
        assert meant("retain", text, "--agent", "ada", *model).code == 0
    failed = meant("embed", "meantcli:CliMeant", "--missing", "--json")
    assert failed.code == 1
    assert "content of a memory" not in failed.out + failed.err
    assert "EmbeddingError" in failed.out
    (meant.folder / "down").unlink()
    done = meant("embed", "meantcli:CliMeant", "--missing", "--agent", "ada", "--json")
    assert done.code == 0
    assert done.data == {"looked": 3, "embedded": 3, "failed": 0, "withheld": 0, "again": False}
    again = meant("embed", "meantcli:CliMeant")
    assert (again.code, again.out) == (0, "3 memories looked at, 0 embedded\n")
    nobody = meant("embed", "meantcli:CliMeant", "--agent", "adda")
    assert (nobody.code, "nothing of CliMeant is stored under agent_id 'adda'" in nobody.err) == (2, True)
    anew = meant("embed", "meantcli:CliMeant", "--all", "--json")
    assert (anew.data["embedded"], anew.data["again"]) == (3, True)
    found = meant("recall", "Who has a dog?", "--agent", "ada", "--limit", "1", "--json", *model)
    assert "I adopted a puppy" in json.dumps(found.data)


def test_a_model_without_vectors_is_misuse(meant: Cli) -> None:
    ran = meant("embed", "meantcli:CliMeantLater")
    assert (ran.code, "has no EmbeddingField" in ran.err) == (2, True)
