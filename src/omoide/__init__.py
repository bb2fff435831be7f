"""omoide: memory for agents on Redis or Valkey.

Declarative models, exact ranked recall from one partition at a time, decay, confidence, links, a firewall
against secrets, and the loop that puts the right lines into a prompt. Names are imported at first use;
nothing connects, and no environment variable is read, before the first call that needs a store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omoide.__about__ import __version__
from omoide.ops import port as _port

if TYPE_CHECKING:
    from omoide.connection import Connection, astatus, connect, status
    from omoide.context import AssemblyResult, ContextAssembler
    from omoide.core.arms.weights import RankWeights
    from omoide.errors import (
        CapabilityError,
        ConflictError,
        CorruptRecordError,
        EmbeddingError,
        FieldError,
        ModelError,
        NotFoundError,
        OmoideError,
        PolicyError,
        QueryError,
        RuleError,
        ScriptError,
        StoreError,
        StoreTimeoutError,
        StoreUnavailableError,
        TransferError,
    )
    from omoide.fields import (
        AutoKeyField,
        BM25Field,
        BoolField,
        BytesField,
        ConfidenceField,
        CoOccurrenceField,
        DateField,
        DatetimeField,
        DecayingSortedField,
        DecimalField,
        DictField,
        EmbeddingField,
        EnumField,
        FloatField,
        IntField,
        KeyField,
        ListField,
        StringField,
        TagField,
        UUIDField,
        Validity,
        ValidityField,
    )
    from omoide.mixins import AccessTrackerMixin, NeverRecordMixin, WriteFilterMixin
    from omoide.model.defaults import Defaults
    from omoide.model.mirror import PostgresMirror
    from omoide.ops.batch import batch
    from omoide.ops.embedding import aembed, embed
    from omoide.ops.forget import aforget, forget
    from omoide.ops.model import Model
    from omoide.ops.reindex import areindex, reindex
    from omoide.ops.save import SaveOutcome
    from omoide.ops.screening import ascan_memories, scan_memories
    from omoide.ops.transfer.export import aexport_memories, export_memories
    from omoide.ops.transfer.intake import aimport_memories, import_memories
    from omoide.ops.upkeep import adoctor, aprune, doctor, prune
    from omoide.stores.popoto import aimport_popoto, import_popoto
    from omoide.stores.postgres.upkeep import acompare, arebuild, compare, rebuild

_HOMES = {
    "omoide.connection": ("Connection", "astatus", "connect", "status"),
    "omoide.context": ("AssemblyResult", "ContextAssembler"),
    "omoide.core.arms.weights": ("RankWeights",),
    "omoide.errors": (
        "CapabilityError",
        "ConflictError",
        "CorruptRecordError",
        "EmbeddingError",
        "FieldError",
        "ModelError",
        "NotFoundError",
        "OmoideError",
        "PolicyError",
        "QueryError",
        "RuleError",
        "ScriptError",
        "StoreError",
        "StoreTimeoutError",
        "StoreUnavailableError",
        "TransferError",
    ),
    "omoide.fields": (
        "AutoKeyField",
        "BM25Field",
        "BoolField",
        "BytesField",
        "CoOccurrenceField",
        "ConfidenceField",
        "DateField",
        "DatetimeField",
        "DecayingSortedField",
        "DecimalField",
        "DictField",
        "EmbeddingField",
        "EnumField",
        "FloatField",
        "IntField",
        "KeyField",
        "ListField",
        "StringField",
        "TagField",
        "UUIDField",
        "Validity",
        "ValidityField",
    ),
    "omoide.mixins": ("AccessTrackerMixin", "NeverRecordMixin", "WriteFilterMixin"),
    "omoide.model.defaults": ("Defaults",),
    "omoide.model.mirror": ("PostgresMirror",),
    "omoide.ops.batch": ("batch",),
    "omoide.ops.embedding": ("aembed", "embed"),
    "omoide.ops.forget": ("aforget", "forget"),
    "omoide.ops.model": ("Model",),
    "omoide.ops.reindex": ("areindex", "reindex"),
    "omoide.ops.save": ("SaveOutcome",),
    "omoide.ops.screening": ("ascan_memories", "scan_memories"),
    "omoide.ops.transfer.export": ("aexport_memories", "export_memories"),
    "omoide.ops.transfer.intake": ("aimport_memories", "import_memories"),
    "omoide.ops.upkeep": ("adoctor", "aprune", "doctor", "prune"),
    "omoide.stores.postgres.upkeep": ("acompare", "arebuild", "compare", "rebuild"),
    "omoide.stores.popoto": ("aimport_popoto", "import_popoto"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
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


def _open() -> Any:
    from omoide.connection import open_default

    return open_default()


_port.opener = _open


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'omoide' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
