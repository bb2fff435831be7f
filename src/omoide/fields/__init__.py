"""The fields a model is made of.

keys           AutoKeyField, KeyField
values         StringField, IntField, FloatField, DecimalField, BoolField, BytesField, DatetimeField,
               DateField, EnumField, UUIDField
collections    TagField, ListField, DictField
memory         DecayingSortedField, ConfidenceField, BM25Field, EmbeddingField, CoOccurrenceField,
               ValidityField
"""

from __future__ import annotations

from omoide.fields.bm25 import BM25Field
from omoide.fields.confidence import ConfidenceField
from omoide.fields.cooccurrence import CoOccurrenceField
from omoide.fields.decaying import DecayingSortedField
from omoide.fields.documents import DictField, ListField
from omoide.fields.embedding import EmbeddingField
from omoide.fields.instants import DateField, DatetimeField
from omoide.fields.keys import AutoKeyField, KeyField
from omoide.fields.numbers import BoolField, DecimalField, FloatField, IntField
from omoide.fields.tags import TagField
from omoide.fields.validity import Validity, ValidityField
from omoide.fields.values import BytesField, EnumField, StringField, UUIDField

__all__ = [
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
]
