"""Models that tests of plans share."""

from __future__ import annotations

from omoide.fields import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    CoOccurrenceField,
    DatetimeField,
    DecayingSortedField,
    FloatField,
    KeyField,
    ListField,
    StringField,
    TagField,
)
from omoide.mixins import AccessTrackerMixin, NeverRecordMixin, WriteFilterMixin
from omoide.ops.model import Model


class OpsNote(AccessTrackerMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    project = StringField(null=True, index=True)
    colour = StringField(default="red")
    importance = FloatField(default=1.0)
    occurred_at = DatetimeField(null=True)
    items = ListField(default=[])
    tags = TagField()
    relevance = DecayingSortedField(base_score_field="importance")
    confidence = ConfidenceField()
    text = BM25Field(source="content")
    associations = CoOccurrenceField()


class OpsUnique(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    subject = StringField()
    version = FloatField(default=0.0)

    class Meta:
        unique_together = ("subject", "version")


class OpsCapped(Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    max_records_per_partition = 2


class OpsGuarded(NeverRecordMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")


class OpsFiltered(WriteFilterMixin, Model):
    note_id = AutoKeyField()
    agent_id = KeyField()
    importance = FloatField(default=1.0)
    write_threshold = 0.3


class OpsSingle(Model):
    note_id = AutoKeyField()
    content = StringField(default="")

    class Meta:
        partition_by = None
