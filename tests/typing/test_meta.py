"""`class Meta` of a model, and of a subclass of one, is no error to a type checker."""

from __future__ import annotations

from omoide import AutoKeyField, KeyField, Model, StringField
from omoide.recipes import DefaultMemory


class TypedTicket(Model):
    ticket_id = AutoKeyField()
    agent_id = KeyField()
    text = StringField(default="")

    class Meta:
        ttl = 60


class TypedMemory(DefaultMemory):
    class Meta:
        unique_together = (("content",),)


def test_both_are_models() -> None:
    assert TypedTicket(agent_id="a").text == ""
    assert TypedMemory(agent_id="a").content == ""
