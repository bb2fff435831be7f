"""Made-up secrets for the tests of the firewall; none is written down anywhere."""

from __future__ import annotations

import pytest

from omoide.privacy.samples import Maker


@pytest.fixture
def maker() -> Maker:
    """A deterministic source of random-looking characters."""
    return Maker(4711)
