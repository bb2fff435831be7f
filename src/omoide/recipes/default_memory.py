"""A memory of an agent, ready to use and to extend.

    class ProjectMemory(DefaultMemory):
        project = StringField(default="")

has every field, and a keyspace of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime

from omoide.fields import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    CoOccurrenceField,
    DatetimeField,
    DecayingSortedField,
    FloatField,
    KeyField,
    StringField,
    TagField,
)
from omoide.mixins import AccessTrackerMixin, NeverRecordMixin
from omoide.model.defaults import DEFAULTS
from omoide.ops.model import Model


def _now() -> datetime:
    return datetime.now(UTC)


class DefaultMemory(NeverRecordMixin, AccessTrackerMixin, Model):
    """One memory of one agent; a partition per agent, at most 1,000 records by default.

    `importance` in [0, 1] weighs in the ranking and is the base of `relevance`, which halves every
    30 days since the last use. `session_id`, `author` and `occurred_at` are optional and improve
    recall where they are known. What looks like a credential or was said off the record is
    refused, loudly.
    """

    max_records_per_partition = DEFAULTS.max_records
    cap_is_default = True

    memory_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)
    session_id = StringField(null=True)
    author = StringField(null=True)
    occurred_at = DatetimeField(null=True)
    created_at = DatetimeField(default_factory=_now)
    tags = TagField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    content_bm25 = BM25Field(source="content")
    associations = CoOccurrenceField()


__all__ = ["DefaultMemory"]
