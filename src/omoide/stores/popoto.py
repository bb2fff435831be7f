"""The keyspace of popoto 1.10, read by its layout; popoto itself is not needed.

    $Class:<Model>                             set     keys of its records
    <Model>:<key>:<key>...                     hash    field -> MessagePack
    $DecayingSortF:<Model>:<field>[:<part>]    zset    key -> last touch, seconds
    $ConfidencF:<Model>:<field>:data[:<part>]  hash    key -> MessagePack map: confidence, evidence_count, ...
    $CoOccurrencF:<Model>:<field>:<key>        zset    key of a neighbour -> weight
    $AT:<Model>:meta:<key>                     hash    access_count, last_accessed

Records are copied to a temporary file once, oldest touch first, so that both passes of an import see the
same and an edge leads to a record before it. Nothing is written to the keyspace.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from redis import Redis
from redis.exceptions import AuthenticationError, ConnectionError, RedisError, TimeoutError

from omoide.errors import QueryError, StoreError, StoreTimeoutError, StoreUnavailableError, TransferError
from omoide.model.instance import Instance, spec_of
from omoide.ops import batch as batches
from omoide.ops import port
from omoide.ops.run import Plan, arun, run
from omoide.ops.transfer.foreign import LEAVE_OUT, Destination, destination
from omoide.ops.transfer.importing import Imported, Progress, imported
from omoide.ops.transfer.popoto import Frame, read_popoto, roles_of, write_frame

if TYPE_CHECKING:
    from omoide.ops.transfer.incoming import Reader

AT_ONCE = 128
_MOST_EDGES = 64


def import_popoto(
    model: type[Instance],
    url: str,
    /,
    *,
    field_map: Mapping[str, str] | None = None,
    saved_as: str | None = None,
    lift_cap: bool = False,
    progress: Progress | None = None,
    **partition: Any,
) -> Imported:
    """Store the memories of a model of popoto 1.10, with what it keeps of them.

    Fields go to those of the same name, else as `field_map` says; what has no place is left out and counted.
    Everything is checked, then written, as by `import_memories`.

    Args:
        url: The Redis that popoto wrote to: `redis://`, `rediss://` or `unix://`. It is only read.
        field_map: Name of a field there -> field of the model, "" to leave it out.
        saved_as: The name of the class there, where it is not that of the model.
        lift_cap: Take more records than `max_records_per_partition`.
        partition: Where records go that name no partition.
    Raises:
        TransferError: no such class there, or a value that the model does not take; nothing was written.
        QueryError: an option that cannot be meant, a URL that cannot be read, or inside a batch.
        StoreError: one of the servers failed.
    Cost: scans the keys there and reads its records once, 128 a round trip; in memory their keys, touches and
        edges; writes as `import_memories`.
    """
    with tempfile.TemporaryFile() as copied:
        copy, plan = _prepare(model, url, copied, field_map, saved_as, lift_cap, progress, partition)
        copy()
        return run(plan, port.current().store)


async def aimport_popoto(
    model: type[Instance],
    url: str,
    /,
    *,
    field_map: Mapping[str, str] | None = None,
    saved_as: str | None = None,
    lift_cap: bool = False,
    progress: Progress | None = None,
    **partition: Any,
) -> Imported:
    """Store the memories of a model of popoto 1.10; see `import_popoto`. They are read in a thread."""
    with tempfile.TemporaryFile() as copied:
        copy, plan = _prepare(model, url, copied, field_map, saved_as, lift_cap, progress, partition)
        await asyncio.to_thread(copy)
        return await arun(plan, port.current().astore)


def _prepare(
    model: type[Instance],
    url: str,
    copied: BinaryIO,
    field_map: Mapping[str, str] | None,
    saved_as: str | None,
    lift_cap: bool,
    progress: Progress | None,
    partition: dict[str, Any],
) -> tuple[Any, Plan[Imported]]:
    """What copies the keyspace to a file, and the plan that imports the copy."""
    batches.refuse("import_popoto()")
    spec = spec_of(model)
    roles = roles_of(spec, field_map or {})
    names = {name: field for name, field in (field_map or {}).items() if name not in roles.values()}
    target: Destination = destination(model, "popoto", names, partition)
    reader: Reader = partial(read_popoto, target, roles, copied)
    plan = imported(model, reader, lift_cap=lift_cap, progress=progress)
    return partial(_copy, url, saved_as or spec.name, roles, copied), plan


def _copy(url: str, name: str, roles: Mapping[str, str], copied: BinaryIO) -> None:
    """Copy the records of a class, with what other keys say of them."""
    try:
        client = Redis.from_url(url, socket_timeout=30, socket_connect_timeout=5)
    except (ValueError, RedisError):
        raise QueryError("the URL of popoto's store cannot be read", hint="redis://host:port/db") from None
    try:
        for frame in _Keyspace(client, name, roles).frames():
            write_frame(copied, frame)
    except TransferError:
        raise
    except ValueError:
        raise TransferError("a key is not what popoto writes") from None
    except TimeoutError:
        raise StoreTimeoutError("popoto's store does not answer") from None
    except AuthenticationError:
        raise StoreUnavailableError("popoto's store wants another user name or password") from None
    except ConnectionError:
        raise StoreUnavailableError("popoto's store cannot be reached") from None
    except RedisError as error:
        raise StoreError(f"popoto's store failed: {type(error).__name__}") from None
    finally:
        client.close()


class _Keyspace:
    """One class of popoto."""

    def __init__(self, client: Redis, name: str, roles: Mapping[str, str]) -> None:
        self._client: Any = client
        self._name = name
        self._roles = roles

    def frames(self) -> Iterator[Frame]:
        """Its records, oldest touch first.

        Raises:
            TransferError: there is no such class.
        """
        members = [key.decode() for key in self._client.sscan_iter(f"$Class:{self._name}", count=1_000)]
        if not members:
            raise TransferError(
                f"popoto has no records of {self._name!r} there", hint="say which class they were saved as"
            )
        touched = self._touches()
        members.sort(key=lambda key: (touched.get(key, 0.0), key))
        place = {key: number for number, key in enumerate(members)}
        confidence = self._keys("ConfidencF", "certainty", ":data")
        earlier: dict[int, dict[str, float]] = {}
        for start in range(0, len(members), AT_ONCE):
            part = members[start : start + AT_ONCE]
            for key, frame, edges in self._read(part, confidence):
                frame.touched = touched.get(key)
                mine = place[key]
                for other, weight in edges:
                    there = place.get(other)
                    if there is not None and there != mine:
                        low, high = (other, mine) if there < mine else (key, there)
                        held = earlier.setdefault(high, {})
                        held[low] = max(weight, held.get(low, 0.0))
                if frame.fields:
                    found = earlier.pop(mine, {})
                    strongest = sorted(found.items(), key=lambda edge: (-edge[1], place[edge[0]]))
                    frame.edges = strongest[:_MOST_EDGES]
                    yield frame

    def _keys(self, kind: str, role: str, suffix: str = "") -> list[str]:
        """Keys that hold something of the field with a role, whatever they are divided by."""
        field = self._roles.get(role)
        if field is None:
            return []
        stem = f"${kind}:{self._name}:{field}{suffix}"
        found = (key.decode() for key in self._client.scan_iter(match=f"{_escaped(stem)}*", count=1_000))
        return sorted(key for key in found if key == stem or key.startswith(stem + ":"))

    def _touches(self) -> dict[str, float]:
        """Key of a record -> its last touch."""
        found: dict[str, float] = {}
        for key in self._keys("DecayingSortF", "decay"):
            found.update(
                (member.decode(), score) for member, score in self._client.zscan_iter(key, count=1_000)
            )
        return found

    def _read(
        self, members: list[str], confidence: list[str]
    ) -> Iterator[tuple[str, Frame, list[tuple[str, float]]]]:
        """Records of one round trip, with all their edges."""
        graph = self._roles.get("graph", LEAVE_OUT)
        pipe: Any = self._client.pipeline(transaction=False)
        for key in members:
            pipe.hgetall(key)
            pipe.pttl(key)
            pipe.hmget(f"$AT:{self._name}:meta:{key}", "access_count", "last_accessed")
            pipe.zrange(f"$CoOccurrencF:{self._name}:{graph}:{key}", 0, -1, withscores=True)
        for data in confidence:
            pipe.hmget(data, members)
        replies = pipe.execute()
        told = replies[4 * len(members) :]
        now = round(time.time() * 1_000)
        for number, key in enumerate(members):
            fields, left, (count, last), edges = replies[4 * number : 4 * number + 4]
            held = next((part[number] for part in told if part[number] is not None), None)
            frame = Frame(
                key,
                {name.decode(errors="replace"): value for name, value in fields.items()},
                expires=now + left if left > 0 else 0,
                confidence=held,
                accesses=int(count or 0),
                accessed=float(last or 0.0),
            )
            yield key, frame, [(other.decode(errors="replace"), weight) for other, weight in edges]


def _escaped(text: str) -> str:
    """A text as it stands in a pattern of SCAN."""
    return "".join(f"\\{one}" if one in "*?[]\\^" else one for one in text)


__all__ = ["aimport_popoto", "import_popoto"]
