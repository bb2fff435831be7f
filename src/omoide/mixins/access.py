"""Access statistics of a record: how often it was really delivered or confirmed, and when last.

The store counts a delivery (a memory given to a prompt) or an outcome once; a plain load counts
nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from omoide.fields.instants import from_milliseconds
from omoide.model.instance import Instance


class AccessTrackerMixin:
    """Adds `access_count` and `last_accessed`, as they were when the record was loaded."""

    __omoide_tracks_access__: ClassVar[bool] = True

    @property
    def access_count(self) -> int:
        """Deliveries and confirmed uses; 0 for a record that was not loaded."""
        record = self._omoide.record if isinstance(self, Instance) else None
        return 0 if record is None else record.access_count

    @property
    def last_accessed(self) -> datetime | None:
        """When it was last delivered or used (UTC); None for never."""
        record = self._omoide.record if isinstance(self, Instance) else None
        return None if record is None or not record.accessed_ms else from_milliseconds(record.accessed_ms)
