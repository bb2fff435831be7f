"""The parts of long-term memory: its record, what may be written, how a turn becomes an episode, upkeep."""
