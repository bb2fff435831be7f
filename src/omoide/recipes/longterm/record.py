"""One long-term memory of a resource: a fact or an episode.

`identity` is what makes two writes the same memory: for a fact with a key the key, else the kind and
the digest of the content. It is unique within the resource, in both stores, so no race makes two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256

from omoide.fields import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    DatetimeField,
    FloatField,
    KeyField,
    StringField,
)
from omoide.mixins import AccessTrackerMixin, NeverRecordMixin
from omoide.model.mirror import PostgresMirror
from omoide.ops.model import Model

FACT = "fact"
EPISODE = "episode"
KINDS = (FACT, EPISODE)


def digest_of(content: str) -> str:
    """SHA-256 of the content in UTF-8, in hexadecimal."""
    return sha256(content.encode()).hexdigest()


def identity_of(kind: str, key: str | None, digest: str) -> str:
    """What makes it the same memory; no key can look like a digest's, nor the other way round."""
    return f"key {key}" if key is not None else f"{kind} {digest}"


def _now() -> datetime:
    return datetime.now(UTC)


class LongTermRecord(NeverRecordMixin, AccessTrackerMixin, Model):
    """A fact (a durable statement, with or without a key) or an episode (a finished turn) of one resource.

    Written through `LongTermMemory`, which keeps to the bounds and fills `content_sha256` and `identity`.
    """

    memory_id = AutoKeyField()
    resource_id = KeyField()
    session_id = StringField(null=True)
    kind = StringField(default=FACT, index=True)
    semantic_key = StringField(null=True)
    content = StringField(default="")
    content_sha256 = StringField(default="")
    identity = StringField(default="")
    importance = FloatField(default=0.5)
    author = StringField(null=True)
    occurred_at = DatetimeField(null=True)
    created_at = DatetimeField(default_factory=_now)
    updated_at = DatetimeField(default_factory=_now)
    confidence = ConfidenceField()
    content_bm25 = BM25Field(source="content")

    class Meta:
        mirror = PostgresMirror(table="popagent_memories")
        unique_together = (("identity",),)


__all__ = ["EPISODE", "FACT", "KINDS", "LongTermRecord", "digest_of", "identity_of"]
