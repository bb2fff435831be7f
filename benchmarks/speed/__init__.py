"""Speed: what one call costs the server, the client, the clock and the network."""

from benchmarks.speed.suite import main

__all__ = ["main"]
