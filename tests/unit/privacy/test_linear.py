"""No family of texts makes a scan quadratic, and none makes it slow without end."""

from __future__ import annotations

import os

import pytest
from benchmarks.firewall.families import FAMILIES
from tests.growth import grows_by

from omoide.privacy import scan

FULL = bool(os.environ.get("OMOIDE_FULL"))
SIZES = (50_000, 100_000, 200_000, 400_000) if FULL else (6_000, 24_000)
MOST_GROWTH = 2.3 if FULL else 10.0
"""A step doubles in the full run. In the short one it quadruples: 16 times as long is quadratic."""
QUICK_SECONDS = 0.05


def test_there_are_at_least_sixty_families() -> None:
    assert len(FAMILIES) >= 60


@pytest.mark.parametrize("name", FAMILIES)
def test_time_grows_with_the_size(name: str) -> None:
    texts = [FAMILIES[name](size) for size in SIZES]
    assert grows_by(MOST_GROWTH, scan, texts, quick=QUICK_SECONDS)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_never_ends_in_an_error(name: str) -> None:
    assert scan(FAMILIES[name](3_000)).reason != "error"
