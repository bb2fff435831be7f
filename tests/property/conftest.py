"""Assertions in the histories explain themselves."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("histories")
