"""What a call may say: strict bodies, each one the rule that is checked and the JSON schema that tells it.

    body ──▶ unknown names, missing ones, types, bounds ──▶ dict with every field
                         └──▶ FieldError that names body, field and rule, never the value

A body is read the same way whoever sends it: a method of `LongTermMemory`, a tool call, a request.
Lengths are characters (code points). Texts lose the white space around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omoide.errors import FieldError
from omoide.model.naming import unknown_field
from omoide.model.partition import text_rule
from omoide.recipes.longterm.record import FACT_CHARS, KEY_CHARS

QUERY_CHARS = 4_096
MOST_RECALLED = 50
RECALLED = 8
REFLECTED = 30
IMPORTANCE = 0.5

REQUIRED = object()


@dataclass(frozen=True, slots=True)
class Property:
    """One field of a body. `schema` is JSON schema; a default of None makes it nullable."""

    schema: Mapping[str, Any]
    default: Any = REQUIRED

    @property
    def nullable(self) -> bool:
        return self.default is None

    def told(self) -> dict[str, Any]:
        """Its JSON schema."""
        schema = dict(self.schema)
        if self.nullable:
            schema["type"] = [schema["type"], "null"]
        if self.default is not REQUIRED:
            schema["default"] = self.default
        return schema


@dataclass(frozen=True, slots=True)
class Body:
    """A named set of fields, and no others."""

    name: str
    properties: Mapping[str, Property]

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the body: an object without additional properties."""
        return {
            "type": "object",
            "properties": {name: one.told() for name, one in self.properties.items()},
            "required": [name for name, one in self.properties.items() if one.default is REQUIRED],
            "additionalProperties": False,
        }

    def read(self, given: object) -> dict[str, Any]:
        """Every field of the body, checked; texts stripped, numbers as float where the schema says number.

        Raises:
            FieldError: a field is unknown, missing, of another type or out of bounds.
        """
        if not isinstance(given, Mapping):
            raise FieldError(self.name, "body", "must be an object")
        for name in given:
            if name not in self.properties:
                raise unknown_field(self.name, name, self.properties)
        return {name: self._value(name, given) for name in self.properties}

    def _value(self, name: str, given: Mapping[str, Any]) -> Any:
        property = self.properties[name]
        value = given.get(name, property.default)
        if value is REQUIRED:
            raise FieldError(self.name, name, "a value is required")
        if value is None and property.nullable:
            return None
        rule, value = _READERS[property.schema["type"]](value, property.schema)
        if rule:
            raise FieldError(self.name, name, rule)
        return value


def _text(value: Any, schema: Mapping[str, Any]) -> tuple[str, Any]:
    if not isinstance(value, str):
        return "must be a string", value
    choices = schema.get("enum")
    if choices is not None:
        return ("" if value in choices else f"must be one of {', '.join(choices)}"), value
    value = value.strip()
    if len(value) < schema.get("minLength", 0):
        return "must not be empty", value
    if len(value) > schema["maxLength"]:
        return f"must be at most {schema['maxLength']:,} characters", value
    return text_rule(value) or "", value


def _number(value: Any, schema: Mapping[str, Any]) -> tuple[str, Any]:
    low, high = schema["minimum"], schema["maximum"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "must be a number", value
    if not low <= value <= high:
        return f"must be a number in [{low}, {high}]", value
    return "", float(value)


def _whole(value: Any, schema: Mapping[str, Any]) -> tuple[str, Any]:
    low, high = schema["minimum"], schema["maximum"]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        return f"must be a whole number, {low}..{high}", value
    return "", value


_READERS = {"string": _text, "number": _number, "integer": _whole}


def _string(description: str, most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "string", "minLength": least, "maxLength": most, "description": description}


_CONTENT = _string("One durable statement, complete in itself.", FACT_CHARS)
_KEY = _string("Names what the fact is the current value of, such as ui.theme.", KEY_CHARS)
_IMPORTANCE = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "description": "How much it matters, from 0 to 1.",
}
_QUERY = _string("What to look for, in plain words.", QUERY_CHARS)
_LIMIT = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_RECALLED,
    "description": "Most memories to return.",
}

RETAIN = Body(
    "retain_memory",
    {
        "content": Property(_CONTENT),
        "key": Property(_KEY, None),
        "importance": Property(_IMPORTANCE, IMPORTANCE),
    },
)
RECALL = Body("recall_memory", {"query": Property(_QUERY), "limit": Property(_LIMIT, RECALLED)})
REFLECT = Body("reflect_memory", {"query": Property(_QUERY), "limit": Property(_LIMIT, REFLECTED)})
EDIT = Body(
    "edit_memory",
    {
        "memory_id": Property(_string("The id of a fact that was recalled.", KEY_CHARS)),
        "action": Property(
            {
                "type": "string",
                "enum": ["update", "forget"],
                "description": "Change the fact, or erase it for good.",
            }
        ),
        "content": Property(_CONTENT, None),
        "importance": Property(_IMPORTANCE, None),
    },
)

__all__ = ["EDIT", "FACT_CHARS", "IMPORTANCE", "KEY_CHARS", "RECALL", "RECALLED", "REFLECT", "REFLECTED",
           "RETAIN", "Body", "Property"]  # fmt: skip
