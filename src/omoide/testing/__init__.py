"""Real servers for tests: started from the packaged binary, stopped and removed at the end."""

from __future__ import annotations

from omoide.testing.postgres import PostgresServer
from omoide.testing.servers import ValkeyCluster, ValkeyServer

__all__ = ["PostgresServer", "ValkeyCluster", "ValkeyServer"]
