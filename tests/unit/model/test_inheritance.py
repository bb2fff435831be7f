from __future__ import annotations

import gc

import pytest

from omoide.errors import FieldError, ModelError
from omoide.fields import (
    AutoKeyField,
    BM25Field,
    ConfidenceField,
    DecayingSortedField,
    FloatField,
    IntField,
    KeyField,
    ListField,
    StringField,
)
from omoide.model.field import Field
from omoide.model.instance import Instance, spec_of
from omoide.ops.model import Model


class PlainModel(Model):
    memory_id = AutoKeyField()
    agent_id = KeyField()
    content = StringField(default="")
    importance = FloatField(default=1.0)


def _names(model: type[Instance]) -> list[str]:
    return list(spec_of(model).fields)


def test_a_subclass_has_every_field_and_its_own_keyspace() -> None:
    class Project(PlainModel):
        pass

    assert _names(Project) == _names(PlainModel)
    assert (spec_of(Project).name, spec_of(PlainModel).name) == ("Project", "PlainModel")
    assert Project(agent_id="a").content == ""


def test_a_subclass_adds_overrides_and_removes_fields() -> None:
    class Changed(PlainModel):
        project = StringField(default="none")
        content = StringField(default="changed")
        importance = None  # type: ignore[assignment]

    assert _names(Changed) == ["memory_id", "agent_id", "content", "project"]
    assert Changed(agent_id="a").content == "changed"
    assert spec_of(Changed).importance is None
    with pytest.raises(FieldError, match="importance"):
        Changed(agent_id="a", importance=1.0)

    class Back(Changed):
        importance = FloatField(default=0.5)

    assert Back(agent_id="a").importance == 0.5


def test_a_diamond_follows_the_mro() -> None:
    class Left(PlainModel):
        left = IntField(default=1)

    class Right(PlainModel):
        content = StringField(default="right")

    class Bottom(Left, Right):
        pass

    assert Bottom(agent_id="a").content == "right"
    assert Bottom.content is Right.content
    assert _names(Bottom) == ["memory_id", "agent_id", "content", "importance", "left"]


def test_an_abstract_base_needs_nothing_and_cannot_be_used() -> None:
    class Base(Model):
        content = StringField(default="base")

        class Meta:
            abstract = True
            partition_by = None

    class Concrete(Base):
        note_id = AutoKeyField()

    with pytest.raises(ModelError, match="abstract"):
        Base(content="x")
    with pytest.raises(ModelError, match="abstract"):
        Base.query.all()
    assert Concrete().content == "base"
    assert spec_of(Concrete).partition_by == ()


def test_a_mixin_that_is_no_model_gives_fields() -> None:
    class Rated:
        rating = IntField(default=3)

    class WithMixin(Rated, PlainModel):
        pass

    assert WithMixin(agent_id="a").rating == 3
    assert "rating" in _names(WithMixin)


def test_annotations_do_not_matter() -> None:
    class Annotated(PlainModel):
        note: StringField[str] = StringField(default="n")

    assert Annotated(agent_id="a").note == "n"


def test_two_classes_cannot_share_a_name() -> None:
    class Twice(PlainModel):
        pass

    with pytest.raises(ModelError, match="share the model name 'Twice'"):

        class Other(PlainModel):
            class Meta:
                name = "Twice"

    def again() -> type[Instance]:
        class Once(PlainModel):
            class Meta:
                name = "DefinedAgain"

        return Once

    assert again() is not again()
    del Twice
    gc.collect()

    class Successor(PlainModel):
        class Meta:
            name = "Twice"

    assert spec_of(Successor).name == "Twice"


def test_meta_is_inherited_but_for_name_and_abstract() -> None:
    class Parent(PlainModel):
        class Meta:
            name = "ParentName"
            ttl = 60
            unique_together = ("content",)

    class Child(Parent):
        class Meta(Parent.Meta):
            ttl = 30

    class Grandchild(Child):
        pass

    assert (spec_of(Parent).name, spec_of(Child).name, spec_of(Grandchild).name) == (
        "ParentName",
        "Child",
        "Grandchild",
    )
    assert (spec_of(Child).ttl, spec_of(Grandchild).unique) == (30.0, (("content",),))


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"verbose_name": "x"}, "no option 'verbose_name'"),
        ({"name": ""}, "Meta.name"),
        ({"name": 3}, "Meta.name"),
        ({"name": "\ud800"}, "Meta.name"),
        ({"name": "é" * 65}, "Meta.name"),
        ({"ttl": 0}, "Meta.ttl"),
        ({"ttl": -1}, "Meta.ttl"),
        ({"ttl": "1h"}, "Meta.ttl"),
        ({"ttl": float("nan")}, "Meta.ttl"),
        ({"partition_by": "content"}, "not a KeyField"),
        ({"partition_by": ("agent_id", "agent_id")}, "partition_by"),
        ({"partition_by": 7}, "partition_by"),
        ({"unique_together": ("agent_id", "content")}, "partition field 'agent_id'"),
        ({"unique_together": ("nothing",)}, "not a stored field"),
        ({"unique_together": (("content",), ("content",))}, "repeated"),
        ({"unique_together": ((),)}, "empty"),
        ({"unique_together": "content"}, "unique_together"),
        ({"aliases": {"old": "nothing"}}, "aliases"),
        ({"aliases": {"importance": "content"}}, "aliases"),
        ({"aliases": ["old"]}, "aliases"),
        ({"defaults": {"half_life": 3}}, "Meta.defaults"),
    ],
)
def test_a_meta_that_cannot_work_is_refused(meta: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        type("BadMeta", (PlainModel,), {"Meta": type("Meta", (), meta), "__module__": __name__})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"other_id": AutoKeyField()}, "two fields of the kind AutoKeyField"),
        ({"memory_id": None}, "has no id"),
        ({"agent_id": None}, "has no KeyField"),
        ({"user_id": KeyField()}, "several KeyFields"),
        (
            {"one": BM25Field(source="content"), "two": BM25Field(source="content")},
            "two fields of the kind BM25Field",
        ),
        ({"one": ConfidenceField(), "two": ConfidenceField()}, "two fields"),
        ({"text": BM25Field(source="importance")}, "source must name a text field"),
        ({"text": BM25Field(source="nothing")}, "source must name a text field"),
        ({"text": BM25Field(source=())}, "names no field"),
        ({"text": BM25Field(source="content", session="importance")}, "session must name"),
        ({"text": BM25Field(source="content", time="content")}, "DatetimeField"),
        ({"text": BM25Field(source="content", language="klingon")}, "klingon"),
        ({"decay": DecayingSortedField(base_score_field="content")}, "base_score_field"),
        ({"decay": DecayingSortedField(partition_by="content")}, "partition_by"),
        ({"save": StringField()}, "taken by omoide"),
        ({"query": StringField()}, "taken by omoide"),
        ({"_hidden": StringField()}, "taken by omoide"),
        ({"max_records_per_partition": -1}, "max_records_per_partition"),
        ({"max_records_per_partition": "many"}, "max_records_per_partition"),
        ({"agent_id": KeyField(null=True)}, "cannot be null"),
    ],
)
def test_a_body_that_cannot_work_is_refused(body: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        type("BadBody", (PlainModel,), {**body, "__module__": __name__})


def test_arguments_that_cannot_work_are_refused() -> None:
    for make in (
        lambda: StringField(max_bytes=0),
        lambda: StringField(max_bytes=1_048_577),
        lambda: StringField(default="", default_factory=str),
        lambda: DecayingSortedField(half_life=0),
        lambda: DecayingSortedField(half_life=float("inf")),
        lambda: ConfidenceField(initial=1.0),
        lambda: ConfidenceField(cap=1, prior_weight=2),
        lambda: BM25Field(source="x", b=2.0),
        lambda: BM25Field(source="x", pivot=0),
    ):
        with pytest.raises(ModelError):
            make()


def test_several_keys_need_a_stated_partition() -> None:
    class Shared(PlainModel):
        user_id = KeyField()
        room = KeyField(null=True)

        class Meta:
            partition_by = ("user_id", "agent_id")

    spec = spec_of(Shared)
    assert spec.partition_by == ("user_id", "agent_id")
    assert spec.exact == ("room",)


def test_one_field_object_has_one_name() -> None:
    shared = StringField(default="")
    with pytest.raises(ModelError, match="two names"):
        type("Confused", (PlainModel,), {"one": shared, "two": shared, "__module__": __name__})


def test_a_fingerprint_covers_what_shapes_the_index_and_nothing_else() -> None:
    def fingerprint(name: str, **body: object) -> str:
        model: type[Instance] = type(name, (PlainModel,), {**body, "__module__": __name__})
        return spec_of(model).fingerprint

    same = [
        fingerprint("FingerA", text=BM25Field(source="content")),
        fingerprint("FingerB", text=BM25Field(source="content", k1=2.0, pivot=None)),
        fingerprint("FingerC", text=BM25Field(source="content"), extra=StringField(default="")),
    ]
    assert len(set(same)) == 1
    different = [
        fingerprint("FingerD"),
        fingerprint("FingerE", text=BM25Field(source="content", stem=False)),
        fingerprint("FingerF", text=BM25Field(source=("content", "agent_id"))),
        fingerprint("FingerG", text=BM25Field(source="content"), extra=StringField(default="", index=True)),
        fingerprint("FingerH", text=BM25Field(source="content"), decay=DecayingSortedField(half_life=5.0)),
        fingerprint("FingerI", text=BM25Field(source="content"), Meta=type("Meta", (), {"ttl": 5})),
    ]
    assert len({*same, *different}) == 1 + len(different)


def test_an_instance_checks_keywords_and_names() -> None:
    with pytest.raises(FieldError, match=r"PlainModel\.contents: no such field") as caught:
        PlainModel(agent_id="a", contents="x")
    assert isinstance(caught.value, ValueError)
    note = PlainModel(agent_id="a")
    with pytest.raises(FieldError, match="no such field"):
        note.contents = "x"  # type: ignore[attr-defined]
    assert isinstance(PlainModel.content, Field)


def test_equality_is_class_partition_and_id() -> None:
    class Sibling(PlainModel):
        pass

    one = PlainModel(agent_id="a", memory_id="m", content="x")
    assert one == PlainModel(agent_id="a", memory_id="m", content="y")
    assert len({one, PlainModel(agent_id="a", memory_id="m")}) == 1
    assert one != PlainModel(agent_id="b", memory_id="m")
    assert one != PlainModel(agent_id="a")
    assert one != Sibling(agent_id="a", memory_id="m")
    assert PlainModel(memory_id="m") != PlainModel(memory_id="m")


def test_a_repr_shows_no_content() -> None:
    shown = repr(PlainModel(agent_id="a", memory_id="m", content="a secret"))
    assert shown == "<PlainModel agent_id='a', memory_id='m'>"


def test_ids_are_made_in_time_order_and_mutable_defaults_are_fresh() -> None:
    class Listed(PlainModel):
        items = ListField(default=[1])

    ids = [Listed(agent_id="a").memory_id for _ in range(100)]
    assert ids == sorted(ids)
    Listed(agent_id="a").items.append(2)
    assert Listed(agent_id="a").items == [1]


def test_a_value_that_was_never_given_is_an_attribute_error() -> None:
    class Needy(PlainModel):
        subject = StringField()

    with pytest.raises(AttributeError, match="subject has no value"):
        _ = Needy(agent_id="a").subject
