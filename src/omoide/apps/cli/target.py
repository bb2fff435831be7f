"""Which store, which model and which partition a command line means.

`omoide --help` imports this: models and stores are imported where they are needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from omoide.apps.cli.output import place_of
from omoide.errors import OmoideError, QueryError, StoreError
from omoide.model.naming import shown_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omoide.connection import Connection
    from omoide.model.schema import ModelSpec
    from omoide.ops.model import Model

DEFAULT_MODEL = "omoide.recipes:DefaultMemory"


@contextmanager
def opened(
    url: str | None, namespace: str | None, *, reader: str = "server", postgres: str | None = None
) -> Iterator[Connection]:
    """A connection for one call, ranked by the server: a single recall then needs no numpy.

    Raises:
        QueryError: the URL cannot be read.
    """
    from omoide.connection import connect
    from omoide.settings import store_url
    from omoide.stores.redis.url import parse_url

    try:
        parse_url(url or store_url() or "embedded://")
    except StoreError as error:
        raise QueryError(str(error), hint=error.hint) from None
    with connect(url, namespace=namespace, reader=reader, postgres=postgres) as connection:
        yield connection


def reader_for(model: type[Model]) -> str:
    """Who ranks for one recall: the server, or the client where vectors are compared."""
    from omoide.model.instance import spec_of

    return "server" if spec_of(model).embedding is None else "client"


def model_at(path: str) -> type[Model]:
    """The model class of an import path `module:Class`, looked for in the working folder as well.

    Raises:
        QueryError: there is no such module or class, it is no model, or importing it failed.
    """
    from importlib import import_module

    from omoide.model.instance import spec_of
    from omoide.ops.model import Model

    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise QueryError(f"{path!r} is no import path of a model", hint="write it as module:Class")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(import_module(module_name), class_name, None)
    except OmoideError:
        raise
    except ModuleNotFoundError as error:
        problem, hint = f"there is no module {error.name!r}", "run it where the module is"
        raise QueryError(f"cannot import {module_name!r}: {problem}", hint=hint) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user, whose message may hold anything
        problem = f"{type(error).__name__} at {place_of(error)}"
        raise QueryError(f"cannot import {module_name!r}: {problem}") from None
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise QueryError(f"{module_name!r} has no model {class_name!r}", hint="write it as module:Class")
    spec_of(found)
    return found


def named(model: str | None) -> type[Model] | str | None:
    """A model for a verb that needs no class: `module:Class` is imported, a name stays a name."""
    return model_at(model) if model is not None and ":" in model else model


def partition_of(model: type[Model], agent: str | None, pairs: Sequence[str] = ()) -> dict[str, Any]:
    """Partition fields from `--agent` (the only field's value) and `--partition NAME=VALUE`.

    Raises:
        QueryError: one is missing, or `--agent` is given where there is not exactly one.
    """
    from omoide.model.instance import spec_of

    spec = spec_of(model)
    named = dict(split_pair(pair, "--partition") for pair in pairs)
    if agent is not None:
        if len(spec.partition_by) != 1:
            fields = ", ".join(spec.partition_by) or "none"
            raise QueryError(
                f"{spec.name} has these partition fields: {fields}", hint="use --partition NAME=VALUE"
            )
        named[spec.partition_by[0]] = agent
    missing = [name for name in spec.partition_by if name not in named]
    if missing:
        option = "--agent VALUE" if len(spec.partition_by) == 1 else f"--partition {missing[0]}=VALUE"
        raise QueryError(f"{spec.name} needs {missing[0]}", hint=f"add {option}")
    return named


def given_partition(model: type[Model], agent: str | None, pairs: Sequence[str] | None) -> dict[str, Any]:
    """Partition fields where any is given; {} for all partitions."""
    return partition_of(model, agent, pairs or ()) if agent is not None or pairs else {}


def check_found(model: type[Model], partition: dict[str, Any], found: int) -> None:
    """Refuse a partition that is named and of which nothing was found: "0 blocked" would hide a slip.

    Raises:
        NotFoundError: it names the partition.
    """
    from omoide.model.instance import spec_of
    from omoide.model.partition import not_stored

    if partition and not found:
        spec = spec_of(model)
        raise not_stored(spec, tuple(partition[name] for name in spec.partition_by))


def split_pair(pair: str, option: str) -> tuple[str, str]:
    """NAME and VALUE of NAME=VALUE."""
    name, equals, value = pair.partition("=")
    if not name or not equals:
        raise QueryError(f"{option} takes NAME=VALUE")
    return name, value


def value_of(spec: ModelSpec, name: str, text: str) -> Any:
    """A field's value from its text: ISO 8601 for instants, else JSON or as it is.

    Raises:
        QueryError: no such field, or no instant.
        FieldError: not a value of the field; it names the rule.
    """
    field = spec.fields.get(name)
    if field is None:
        raise QueryError(
            f"{spec.name} has no field {shown_name(name)!r}", hint=f"fields: {', '.join(spec.fields)}"
        )
    if field.timed:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise QueryError(
                f"{spec.name}.{name}: must be an ISO 8601 instant with a time zone",
                hint=f"for example {name}=2026-03-02T09:00:00+09:00",
            ) from None
    if field.textual or name in (*spec.partition_by, spec.id_field):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    field.verify(field.coerce(value), spec.name)
    return value


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which memories of a partition count, as options say; instants are ISO 8601 with a time zone."""

    tags: Sequence[str] = ()
    since: str | None = None
    until: str | None = None
    as_of: str | None = None
    exclude: Sequence[str] = ()

    def lookups(self) -> dict[str, Any]:
        """Filters of a query, `as_of` among them.

        Raises:
            QueryError: no instant.
        """
        found: dict[str, Any] = {"tags": set(self.tags)} if self.tags else {}
        bounds = (("time__gte", "since"), ("time__lt", "until"), ("as_of", "as_of"))
        for lookup, option in bounds:
            text = getattr(self, option)
            if text is not None:
                found[lookup] = _instant(text, f"--{option.replace('_', '-')}")
        return found


def _instant(text: str, option: str) -> datetime:
    """An aware datetime from ISO 8601."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.utcoffset() is None:
        raise QueryError(
            f"{option} takes an ISO 8601 instant with a time zone",
            hint=f"for example {option} 2026-03-02T09:00:00+09:00",
        )
    return instant


def text_field(spec: ModelSpec) -> str:
    """The field that holds what a memory says.

    Raises:
        QueryError: the model has no text.
    """
    if spec.text is not None:
        return spec.text.source[0]
    if "content" in spec.fields:
        return "content"
    raise QueryError(f"{spec.name} has no text field", hint="give every value with --set NAME=VALUE")
