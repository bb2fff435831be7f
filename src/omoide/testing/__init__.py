"""Real servers for tests: started from the packaged binary, stopped and removed at the end."""

from __future__ import annotations

from omoide.testing.servers import ValkeyCluster, ValkeyServer

__all__ = ["ValkeyCluster", "ValkeyServer"]
