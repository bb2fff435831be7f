"""One long-term memory of a resource: a fact or an episode.

`identity` is what makes two writes the same memory: for a fact with a key the key, else the kind and
the digest of the content. It is unique within the resource, in both stores, so no race makes two.

The bounds hold for every way in (facade, tools, import, a plain `save`): the record checks them, and fills
digest and identity, at the door of the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256

from omoide.errors import FieldError
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
from omoide.model.draft import Draft, Refusal
from omoide.model.mirror import PostgresMirror
from omoide.ops.model import Model

FACT = "fact"
EPISODE = "episode"
KINDS = (FACT, EPISODE)
FACT_CHARS = 2_000
KEY_CHARS = 128
EPISODE_CHARS = 12_100
"""Both sides of a turn at their bounds, and their labels."""


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

    `LongTermMemory` is the usual way to write one. `content_sha256` and `identity` are filled at each save.
    An episode that is stored does not change any more.
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

    def __omoide_gate__(self, draft: Draft) -> Refusal | None:
        for field, rule in self._broken():
            raise FieldError(type(self).__name__, field, rule)
        self.content_sha256 = digest_of(self.content)
        self.identity = identity_of(self.kind, self.semantic_key, self.content_sha256)
        told = {"content_sha256": self.content_sha256, "identity": self.identity}
        draft.values = {**draft.values, **told}
        return None

    def _broken(self) -> Iterator[tuple[str, str]]:
        """Fields that break a rule, with the rule."""
        stored = self._omoide.raw if self._omoide.stored else {}
        if self.kind not in KINDS:
            yield "kind", f"must be one of {', '.join(KINDS)}"
        if stored.get("kind", self.kind) != self.kind:
            yield "kind", "does not change"
        if EPISODE in (self.kind, stored.get("kind")) and stored.get("content", self.content) != self.content:
            yield "content", "an episode is immutable"
        most = FACT_CHARS if self.kind == FACT else EPISODE_CHARS
        if not self.content.strip():
            yield "content", "must not be empty"
        if len(self.content) > most:
            yield "content", f"must be at most {most:,} characters"
        if self.semantic_key is not None:
            if self.kind != FACT:
                yield "semantic_key", "only a fact has a key"
            if not self.semantic_key.strip() or len(self.semantic_key) > KEY_CHARS:
                yield "semantic_key", f"must be 1 to {KEY_CHARS} characters"
        if not 0.0 <= self.importance <= 1.0:
            yield "importance", "must be in [0, 1]"


__all__ = ["EPISODE", "FACT", "KINDS", "LongTermRecord", "digest_of", "identity_of"]
