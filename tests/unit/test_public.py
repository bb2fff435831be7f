"""What `import omoide` gives and what it does not do."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import omoide

NAMES = [
    "AccessTrackerMixin",
    "AssemblyResult",
    "AutoKeyField",
    "BM25Field",
    "BoolField",
    "BytesField",
    "CapabilityError",
    "CoOccurrenceField",
    "ConfidenceField",
    "ConflictError",
    "Connection",
    "ContextAssembler",
    "CorruptRecordError",
    "DateField",
    "DatetimeField",
    "DecayingSortedField",
    "DecimalField",
    "Defaults",
    "DictField",
    "EnumField",
    "FieldError",
    "FloatField",
    "IntField",
    "KeyField",
    "ListField",
    "Model",
    "ModelError",
    "NeverRecordMixin",
    "NotFoundError",
    "OmoideError",
    "PolicyError",
    "QueryError",
    "SaveOutcome",
    "ScriptError",
    "StoreError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "StringField",
    "TagField",
    "UUIDField",
    "WriteFilterMixin",
    "__version__",
    "astatus",
    "batch",
    "connect",
    "status",
]


def _run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_public_names_are_these() -> None:
    assert omoide.__all__ == NAMES == sorted(NAMES)
    assert set(dir(omoide)) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_can_be_imported(name: str) -> None:
    value = getattr(omoide, name)
    assert value is getattr(omoide, name)
    if name != "__version__":
        assert value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nosuchname"):
        _ = omoide.nosuchname


@pytest.mark.parametrize(
    "module",
    ["omoide.context", "omoide.fields", "omoide.mixins", "omoide.recipes", "omoide.errors", "omoide.testing"],
)
def test_the_public_modules_are_sorted_too(module: str) -> None:
    found = import_module(module)
    names = getattr(found, "__all__", None)
    if names is None:
        assert found.__doc__
        return
    assert sorted(names) == sorted(set(names))
    assert all(hasattr(found, name) for name in names)


@pytest.mark.parametrize("program", ["import omoide", "import omoide; omoide.Model; omoide.ContextAssembler"])
def test_an_import_loads_no_client_and_no_numpy(program: str) -> None:
    heavy = "{'redis', 'hiredis', 'numpy', 'msgspec', 'Stemmer', 'typer', 'asyncio'}"
    assert _run(f"import sys; {program}; print({heavy} & set(sys.modules))") == "set()"


def test_an_import_opens_nothing_reads_no_environment_and_starts_no_thread() -> None:
    program = """
import os, socket, sys, threading

def watch(event, arguments):
    if event.startswith(("socket.", "subprocess.")) or event == "os.fork":
        raise SystemExit(f"{event} at import")

class Watched(type(os.environ)):
    def __getitem__(self, name):
        if str(name).startswith("OMOIDE"):
            raise SystemExit(f"{name} read at import")
        return super().__getitem__(name)

    def get(self, name, default=None):
        if str(name).startswith("OMOIDE"):
            raise SystemExit(f"{name} read at import")
        return super().get(name, default)

sys.addaudithook(watch)
os.environ.__class__ = Watched
import omoide
for name in omoide.__all__:
    getattr(omoide, name)
import omoide.recipes
print(threading.active_count())
"""
    assert _run(program) == "1"


def test_every_error_is_in_the_tree() -> None:
    errors = [getattr(omoide, name) for name in NAMES if name.endswith("Error")]
    assert all(issubclass(error, omoide.OmoideError) for error in errors)
    drawn = import_module("omoide.errors").__doc__ or ""
    assert all(error.__name__ in drawn for error in errors)
