"""Opt-in behaviour of models, added by inheritance."""

from __future__ import annotations

from omoide.mixins.access import AccessTrackerMixin
from omoide.mixins.never_record import NeverRecordMixin
from omoide.mixins.write_filter import WriteFilterMixin

__all__ = ["AccessTrackerMixin", "NeverRecordMixin", "WriteFilterMixin"]
