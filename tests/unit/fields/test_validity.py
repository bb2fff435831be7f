"""ValidityField on a class and on an instance, without a store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from omoide import (
    AutoKeyField,
    DatetimeField,
    FieldError,
    KeyField,
    ListField,
    Model,
    ModelError,
    QueryError,
    StringField,
    Validity,
    ValidityField,
)
from omoide.model.instance import spec_of
from omoide.ops.prepare import prepare
from omoide.ops.request import Put

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Tenure(Model):
    """Named fields of its own."""

    tenure_id = AutoKeyField()
    agent_id = KeyField()
    who = StringField(null=True)
    what = StringField(null=True)
    since = DatetimeField(null=True)
    until = DatetimeField(null=True)
    when = ValidityField(key=("who", "what"), start="since", end="until")


class Sighting(Model):
    """The usual names, no key."""

    sighting_id = AutoKeyField()
    agent_id = KeyField()
    occurred_at = DatetimeField(null=True)
    valid_to = DatetimeField(null=True)
    validity = ValidityField()


def put_of(model: type[Model], **values: Any) -> Put:
    put = prepare(model(agent_id="a", **values)).put
    assert put is not None
    return put


def test_the_index_names_its_fields() -> None:
    stated, usual = spec_of(Tenure).validity, spec_of(Sighting).validity
    assert stated is not None
    assert usual is not None
    assert (stated.name, stated.key, stated.start, stated.end) == ("when", ("who", "what"), "since", "until")
    assert (usual.name, usual.key, usual.start, usual.end) == ("validity", (), None, "valid_to")


def test_a_write_says_start_end_and_chain() -> None:
    put = put_of(Tenure, who="Ada", what="home", since=NOON, until=NOON + timedelta(milliseconds=1.5))
    assert put.valid_from_ms is not None
    assert put.valid_to_ms == put.valid_from_ms + 1
    assert put.chain is not None
    assert put.chain.startswith("k")
    assert len(put.chain) == 17
    assert put_of(Tenure, who="Ada", what="home").chain == put.chain
    others = [("Ada", "homework"), ("Adah", "ome"), ("home", "Ada"), ("Bob", "home")]
    assert len({put_of(Tenure, who=who, what=what).chain for who, what in others} | {put.chain}) == 5


@pytest.mark.parametrize("values", [{"who": "Ada"}, {"who": "Ada", "what": ""}, {}])
def test_half_a_key_is_none(values: dict[str, str]) -> None:
    assert put_of(Tenure, **values).chain is None


def test_an_end_before_its_start_is_refused_and_an_equal_one_is_not() -> None:
    moment = timedelta(milliseconds=1)
    with pytest.raises(FieldError, match=r"Tenure\.until: must not be before the start"):
        put_of(Tenure, since=NOON, until=NOON - moment)
    assert put_of(Tenure, since=NOON, until=NOON).valid_to_ms == put_of(Tenure, since=NOON).valid_from_ms
    with pytest.raises(FieldError, match=r"Sighting\.valid_to: must not be before the start"):
        put_of(Sighting, occurred_at=NOON, valid_to=NOON - moment)
    with pytest.raises(FieldError, match=r"Tenure\.until: an end needs a start"):
        put_of(Tenure, until=NOON)


def test_an_instance_shows_what_it_says_until_the_store_has_spoken() -> None:
    tenure = Tenure(agent_id="a", since=NOON)
    assert tenure.when == Validity(NOON, None)
    assert NOON in tenure.when
    assert NOON - timedelta(seconds=1) not in tenure.when
    assert NOON not in Validity(NOON - timedelta(days=1), NOON)
    assert NOON not in Sighting(agent_id="a").validity
    with pytest.raises(FieldError, match="computed by the store"):
        tenure.when = Validity(None, None)


def test_a_record_cannot_supersede_itself_nor_one_without_versions() -> None:
    class Plain(Model):
        class Meta:
            name = "PlainWithoutVersions"

        plain_id = AutoKeyField()
        agent_id = KeyField()

    with pytest.raises(QueryError, match="has no versions"):
        prepare(Plain(agent_id="a"), supersedes="other")
    tenure = Tenure(agent_id="a")
    with pytest.raises(QueryError, match="cannot supersede itself"):
        prepare(tenure, supersedes=tenure.tenure_id)
    with pytest.raises(QueryError, match="supersedes must not be empty"):
        prepare(tenure, supersedes="")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"again": ValidityField()}, "two fields of the kind ValidityField"),
        ({"validity": ValidityField(key="nothing")}, "key must name fields that hold single values"),
        ({"parts": ListField(), "validity": ValidityField(key="parts")}, "hold single values"),
        ({"validity": ValidityField(key="agent_id")}, "leave out 'agent_id'"),
        ({"text": StringField(), "validity": ValidityField(start="text")}, "start must name a DatetimeField"),
        ({"validity": ValidityField(end="nothing")}, "end must name a DatetimeField"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ModelError, match=rule):
        type("Broken", (Sighting,), {"__module__": __name__, **fields})


def test_validity_shapes_the_fingerprint_and_its_lack_does_not() -> None:
    class OtherSighting(Sighting):
        validity = ValidityField(end="occurred_at")

    assert spec_of(OtherSighting).fingerprint != spec_of(Sighting).fingerprint
