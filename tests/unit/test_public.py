"""What `import omoide` gives and what it does not do."""

from __future__ import annotations

import subprocess
import sys
import traceback
from importlib import import_module
from typing import Any

import pytest

import omoide
from omoide.recipes import DefaultMemory

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
    "EmbeddingError",
    "EmbeddingField",
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
    "PostgresMirror",
    "QueryError",
    "RankWeights",
    "RuleError",
    "SaveOutcome",
    "ScriptError",
    "StoreError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "StringField",
    "TagField",
    "TransferError",
    "UUIDField",
    "Validity",
    "ValidityField",
    "WriteFilterMixin",
    "__version__",
    "acompare",
    "adoctor",
    "aembed",
    "aexport_memories",
    "aforget",
    "aimport_memories",
    "aimport_popoto",
    "aprune",
    "arebuild",
    "areindex",
    "ascan_memories",
    "astatus",
    "batch",
    "compare",
    "connect",
    "doctor",
    "embed",
    "export_memories",
    "forget",
    "import_memories",
    "import_popoto",
    "prune",
    "rebuild",
    "reindex",
    "scan_memories",
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


@pytest.mark.parametrize(
    "program",
    [
        "import omoide",
        "import omoide; omoide.Model; omoide.ContextAssembler; omoide.EmbeddingField; omoide.embed",
        "from omoide import providers as p; p.FastEmbedProvider(); p.OnnxProvider('x'); "
        "p.HttpProvider('http://127.0.0.1', 'm')",
    ],
)
def test_an_import_loads_no_client_and_no_numpy(program: str) -> None:
    heavy = "{'redis', 'hiredis', 'numpy', 'msgspec', 'Stemmer', 'typer', 'asyncio', "
    heavy += "'onnxruntime', 'tokenizers', 'fastembed'}"
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


@pytest.mark.parametrize(
    "options",
    [
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"timeout": "5"},
        {"timeout": True},
        {"cache_bytes": -1},
        {"cache_bytes": 1.5},
        {"cache_bytes": True},
        {"reader": "both"},
        {"namespace": ""},
        {"namespace": 7},
        {"url": 7},
    ],
    ids=str,
)
def test_an_argument_of_connect_that_cannot_be_meant_is_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(omoide.QueryError, match=f"^(a )?{name} (is|must be)"):
        omoide.connect(**{"url": "redis://127.0.0.1:1", **options})


def test_the_timeout_of_the_url_counts_unless_the_call_has_one(store_url: str) -> None:
    from omoide.stores.redis.wire import SyncWire

    def timeout_of(url: str, timeout: float | None = None) -> float | None:
        with omoide.connect(url, timeout=timeout) as connection:
            wire = connection._store.wire
            assert isinstance(wire, SyncWire)
            return wire.timeout

    separator = "&" if "?" in store_url else "?"
    assert timeout_of(store_url) == 5.0
    assert timeout_of(f"{store_url}{separator}timeout=2.5") == 2.5
    assert timeout_of(f"{store_url}{separator}timeout=2.5", timeout=1.5) == 1.5


class StoredNote(omoide.Model):
    class Meta:
        name = "NoteAsStored"

    note_id = omoide.AutoKeyField()
    agent_id = omoide.KeyField()


@pytest.mark.parametrize("model", [StoredNote, "NoteAsStored"], ids=["class", "name"])
def test_upkeep_takes_a_model_or_its_name(store_url: str, model: Any) -> None:
    with omoide.connect(store_url):
        DefaultMemory(agent_id="ada", content="another model").save()
        assert StoredNote(agent_id="ada").save()
        assert [part["model"] for part in omoide.status(model)["partitions"]] == ["NoteAsStored"]
        assert [one.model for one in omoide.doctor(model)] == ["NoteAsStored"]
        assert omoide.prune(model) == 0


async def _upkeep(model: Any) -> tuple[Any, Any, int]:
    return await omoide.astatus(model), await omoide.adoctor(model), await omoide.aprune(model)


def test_the_async_twins_take_a_model_too(store_url: str) -> None:
    import asyncio

    with omoide.connect(store_url):
        assert StoredNote(agent_id="ada").save()
        told, found, gone = asyncio.run(_upkeep(StoredNote))
        assert [len(told["partitions"]), len(found), gone] == [1, 1, 0]


@pytest.mark.parametrize("model", [7, "", int, b"StoredNote"], ids=repr)
def test_what_is_no_model_is_refused_before_the_store_is_asked(model: Any) -> None:
    for call in (omoide.status, omoide.doctor, omoide.prune):
        with pytest.raises(omoide.QueryError, match="model class or the name"):
            call(model)


def test_a_traceback_shows_what_to_do_next() -> None:
    error = omoide.QueryError("no partition", hint="name the agent")
    assert "name the agent" in "".join(traceback.format_exception(error))
    assert str(error) == "no partition"
